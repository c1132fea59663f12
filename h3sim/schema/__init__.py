"""File formats: one declaration per format from which its files are parsed, checked and written.

It may import values only. Begin with `fields.py` (a declared class) and `values.py` (the types of
its fields), then `files.py`.
"""

from h3sim.schema.errors import format_choices, format_value, is_quantity, join_words
from h3sim.schema.files import (
    check_output,
    open_input,
    parse_json,
    parse_toml,
    read_text,
    resolved_within,
    shown_path,
    write_atomically,
)

__all__ = [
    "check_output",
    "format_choices",
    "format_value",
    "is_quantity",
    "join_words",
    "open_input",
    "parse_json",
    "parse_toml",
    "read_text",
    "resolved_within",
    "shown_path",
    "write_atomically",
]

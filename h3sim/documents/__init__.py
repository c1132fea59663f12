"""Documents: files in and out, parsed, and held against one declaration per format."""

from h3sim.documents.files import (
    check_output,
    open_input,
    read_text,
    resolved_within,
    shown_path,
    write_whole,
)
from h3sim.documents.parse import parse_json, parse_toml
from h3sim.documents.shown import is_quantity, listed, not_one_of, shown

__all__ = [
    "check_output",
    "is_quantity",
    "listed",
    "not_one_of",
    "open_input",
    "parse_json",
    "parse_toml",
    "read_text",
    "resolved_within",
    "shown",
    "shown_path",
    "write_whole",
]

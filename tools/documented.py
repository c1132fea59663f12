"""Tables of docs/validation.md that a command makes, each between two lines that name it."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["VALIDATION", "put"]

VALIDATION = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
_END = "<!-- end of the table -->"


def put(command: str, table: str, path: Path = VALIDATION) -> None:
    """Replace what stands in a document between the line of *command* and the end of its table.

    Raises:
        LookupError: if the document has no such line.
    """
    begin = f"<!-- {command} -->"
    text = path.read_text("utf-8")
    pattern = f"{re.escape(begin)}.*?{re.escape(_END)}"
    block = f"{begin}\n{table}\n{_END}"
    written, found = re.subn(pattern, lambda _: block, text, count=1, flags=re.DOTALL)
    if not found:
        raise LookupError(f"{path}: no line {begin}")
    path.write_text(written, "utf-8")

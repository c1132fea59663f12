"""Reads header lists in QIF, the text format for comparing header encoders.

A line is a name, a tab and a value; an empty line ends a list; a line that begins with # is a
comment. The format is that of the QPACK offline interop (quicwg/base-drafts wiki). It has no times;
h3sim writes them as comments: `# at_ms 12.5` precedes a list that is sent at 12.5 ms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from h3sim.errors import InputError, ValidationIssue
from h3sim.schema import format_value, open_input, shown_path

if TYPE_CHECKING:
    from os import PathLike

    from h3sim.headers.base import Field, FieldSection


_MOST_BYTES = 64 * 2**20
"""The size limit: no file of header lists is larger."""
_COMMENT = b"#"
_TIME = re.compile(rb"# at_ms (\d{1,9}(?:\.\d{1,9})?)")


class HeaderListError(InputError):
    """A file of header lists that cannot be used."""


class TimedList(NamedTuple):
    """A header list of a file, with its send time in ms, if the file has it."""

    fields: FieldSection
    at_ms: float | None = None


def read_qif(path: str | PathLike[str]) -> tuple[TimedList, ...]:
    """Return the header lists of the file at *path*, in order.

    Raises:
        HeaderListError: if it cannot be read, has no lists, or has lines that are not fields.
    """
    with open_input(path, HeaderListError) as file:
        # One byte more than allowed detects a file that is too large without reading all of it.
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        message = f"is larger than {_MOST_BYTES >> 20} MiB"
        raise HeaderListError([ValidationIssue(key="", message=message)], shown_path(path))
    return parse_qif(data, source=shown_path(path))


def parse_qif(data: bytes, *, source: str = "") -> tuple[TimedList, ...]:
    r"""Return the header lists that the bytes of a QIF file hold.

    >>> for fields, at_ms in parse_qif(b"# at_ms 2.5\n:method\tGET\nx\t\n\n:method\tPOST\n"):
    ...     print(at_ms, fields)
    2.5 ((b':method', b'GET'), (b'x', b''))
    None ((b':method', b'POST'),)

    Raises:
        HeaderListError: if there is none, or lines are no fields; each with its number.
    """
    reader = _Reader()
    for number, line in enumerate(data.split(b"\n"), start=1):
        reader.take(number, line.removesuffix(b"\r"))
    # The last list may lack its empty line.
    reader.take(0, b"")
    if not reader.lists and not reader.problems:
        reader.problems.append(ValidationIssue(key="", message="has no header lists"))
    if reader.problems:
        raise HeaderListError(reader.problems, source)
    return tuple(reader.lists)


class _Reader:
    """Parser of lines."""

    def __init__(self) -> None:
        self.lists: list[TimedList] = []
        self.problems: list[ValidationIssue] = []
        self._fields: list[Field] = []
        self._at_ms: float | None = None

    def take(self, number: int, text: bytes) -> None:
        """Process the line with that number."""
        if text.startswith(_COMMENT):
            timed = _TIME.fullmatch(text)
            if timed:
                self._at_ms = float(timed[1])
        elif text:
            name, tab, value = text.partition(b"\t")
            if not name or not tab:
                readable = format_value(text.decode("utf-8", "backslashreplace"))
                message = f"must be a name, a tab and a value, is {readable}"
                self.problems.append(ValidationIssue(key=f"line {number}", message=message))
            self._fields.append((name, value))
        elif self._fields:
            self.lists.append(TimedList(tuple(self._fields), self._at_ms))
            self._fields, self._at_ms = [], None

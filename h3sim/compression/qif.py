"""Reads header lists in QIF, the text format in which header coders are compared.

A line is a name, a tab and a value; an empty line ends a list; a line that begins with # is a
comment. The format is that of the QPACK offline interop (quicwg/base-drafts wiki).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.documents import open_input, shown
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from os import PathLike

    from h3sim.compression.base import Field, FieldSection

__all__ = ["HeaderListError", "parse_qif", "read_qif"]

_MOST_BYTES = 64 * 2**20
"""A larger file is none of header lists."""
_COMMENT = ord("#")


class HeaderListError(InputError):
    """A file of header lists cannot be used."""


def read_qif(path: str | PathLike[str]) -> tuple[FieldSection, ...]:
    """Return the field sections of the file at *path*, in order.

    Raises:
        HeaderListError: if it cannot be read, holds none, or has lines that are no fields.
    """
    with open_input(path, HeaderListError) as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        message = f"is larger than {_MOST_BYTES >> 20} MiB"
        raise HeaderListError([Problem(key="", message=message)], str(path))
    return parse_qif(data, source=str(path))


def parse_qif(data: bytes, *, source: str = "") -> tuple[FieldSection, ...]:
    r"""Return the field sections that the bytes of a QIF file hold.

    >>> parse_qif(b"# one\n:method\tGET\nx\t\n\n:method\tPOST\n")
    (((b':method', b'GET'), (b'x', b'')), ((b':method', b'POST'),))

    Raises:
        HeaderListError: if there is none, or lines are no fields; each with its number.
    """
    sections: list[FieldSection] = []
    fields: list[Field] = []
    problems: list[Problem] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        text = line.removesuffix(b"\r")
        if text and text[0] == _COMMENT:
            continue
        if text:
            name, tab, value = text.partition(b"\t")
            if not name or not tab:
                message = f"must be a name, a tab and a value, is {shown(_readable(text))}"
                problems.append(Problem(key=f"line {number}", message=message))
            fields.append((name, value))
        elif fields:
            sections.append(tuple(fields))
            fields = []
    if fields:
        sections.append(tuple(fields))
    if not sections and not problems:
        problems.append(Problem(key="", message="holds no header list"))
    if problems:
        raise HeaderListError(problems, source)
    return tuple(sections)


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")

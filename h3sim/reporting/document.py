"""A report as a value: what it says, shows and lists; and as one file of HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.documents import write_whole
from h3sim.documents.arguments import PATH, check_arguments
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

__all__ = ["SUFFIXES", "Picture", "Report", "ReportTable", "Section", "check_suffix"]

SUFFIXES = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class ReportTable:
    """Rows under *columns*; *title* is the caption."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure as SVG, *alt* which says in words what it shows, and its data."""

    title: str
    alt: str
    svg: str
    data: ReportTable


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section: words first, then pictures, then tables."""

    title: str
    words: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[ReportTable] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """A report: *verdict* in sentences, *parts* that show why, and *made*, which says how.

    A notebook shows it whole; `save` writes it.
    """

    title: str
    verdict: Sequence[str]
    parts: Sequence[Section]
    made: ReportTable
    command: str = field(default="")

    def to_html(self) -> str:
        """Return the file: it needs no other file and no network, and runs no script."""
        from h3sim.reporting.html import page_of

        return page_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to *path*, which ends in .html, whole or not at all.

        Raises:
            InputError: if the ending is another, or the file cannot be written.
        """
        check_suffix(path)
        write_whole(path, self.to_html())

    def _repr_html_(self) -> str:
        from h3sim.reporting.html import body_of

        return body_of(self)

    def __repr__(self) -> str:
        return f"<Report {self.title!r}: {' '.join(self.verdict)}>"


def check_suffix(path: str | os.PathLike[str], *, key: str = "") -> None:
    """Refuse a path that does not say it is HTML.

    Raises:
        InputError: naming the endings that do; *key* is the option that gave the path.
    """
    check_arguments(InputError, **{key or "path": (PATH, path)})
    if Path(path).suffix.lower() not in SUFFIXES:
        message = f"must end in {' or '.join(SUFFIXES)}, is {str(path)!r}"
        raise InputError([Problem(key=key, message=message)])

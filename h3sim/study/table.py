"""Result tables: a header that describes what was run, rows, and conversion to pandas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from h3sim.schema.output import TEXT, VERSION, Property
from h3sim.schema.values import Choice, ListOf, OrNone, Scalar, TableOf
from h3sim.table import RichDisplay

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from h3sim.schema.output import OutputSchema
    from h3sim.table import Rows, Table


SETTINGS = TableOf(OrNone(Scalar(), none=None))
"""Settings of loads, as in `h3sim-load/2`."""
CONFIGURATION = Property(
    "configuration", SETTINGS, "common settings of all loads, as in `h3sim-load/2`"
)
PAGE_DIGESTS = Property("page_digests", TableOf(TEXT), "digest of each page, by its name")
COMMON = (VERSION, CONFIGURATION, PAGE_DIGESTS)
WHICH = Choice(("all", "atf"))
"""All resources, or those above the fold."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ResultTable(RichDisplay):
    """Result table: `rows`, the settings of the loads, and conversion to a document."""

    format: ClassVar[OutputSchema]
    displayed: ClassVar[tuple[str, ...]] = ("rows",)
    """Names of the tables that a notebook shows."""
    rows: Rows[Any]
    version: str
    configuration: dict[str, Any]
    """Common settings of all loads, as `Load.configuration`."""
    words: dict[str, str]
    """Common settings in words."""
    page_digests: dict[str, str]

    def __repr__(self) -> str:
        """Return a short summary, as the rows would fill the screen."""
        first, *others = self.page_digests
        pages = f"{1 + len(others)} pages" if others else first
        rows = f"{len(self.rows):,} row{'s' * (len(self.rows) != 1)}"
        return f"<{type(self).__name__} of {pages}: {rows}>"

    @property
    def _sentences(self) -> tuple[str, ...]:
        """Sentences that a notebook shows above the tables: here the common settings."""
        return (self.describe(),)

    def _display(self) -> Iterable[str | Table[Any]]:
        yield from self._sentences
        yield from (getattr(self, name) for name in self.displayed)

    def to_pandas(self) -> pd.DataFrame:
        """Return `rows` as a pandas DataFrame; its `attrs` have the rest of the document.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        frame = self.rows.to_pandas()
        document = self.to_dict()
        tables = [key.name for key in self.format.entries if isinstance(key.kind, ListOf)]
        frame.attrs |= {key: document[key] for key in document if key not in ("format", *tables)}
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document of its `format`."""
        return self.format.write(self)

    def describe(self) -> str:
        """Describe the common settings of all loads in words."""
        return f"{', '.join(self.words.values())}; h3sim {self.version}"

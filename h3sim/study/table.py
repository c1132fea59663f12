"""Result tables: a header that describes what was run, rows, and conversion to pandas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from h3sim.schema.output import TEXT, VERSION, Property
from h3sim.schema.values import Choice, ListOf, OrNone, Scalar, TableOf

if TYPE_CHECKING:
    import pandas as pd

    from h3sim.schema.output import OutputSchema
    from h3sim.trace import Rows


SETTINGS = TableOf(OrNone(Scalar(), none=None))
"""Settings of loads, as `h3sim-load/2` has them: what a version can set, it says."""
CONFIGURATION = Property(
    "configuration", SETTINGS, "what all loads have in common, as in `h3sim-load/2`"
)
PAGE_DIGESTS = Property("page_digests", TableOf(TEXT), "of each page, by its name")
COMMON = (VERSION, CONFIGURATION, PAGE_DIGESTS)
WHICH = Choice(("all", "atf"))
"""All resources, or those above the fold."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ResultTable:
    """A table, `rows`, that says what was run, and becomes a document of a *format*."""

    format: ClassVar[OutputSchema]
    rows: Rows[Any]
    version: str
    configuration: dict[str, Any]
    """What all loads have in common, as `Load.configuration`."""
    words: dict[str, str]
    """The same for people."""
    page_digests: dict[str, str]

    def __repr__(self) -> str:
        """Return what it is of; all that it holds would fill the screen of a prompt."""
        first, *others = self.page_digests
        pages = f"{1 + len(others)} pages" if others else first
        rows = f"{len(self.rows):,} row{'s' * (len(self.rows) != 1)}"
        return f"<{type(self).__name__} of {pages}: {rows}>"

    def to_pandas(self) -> pd.DataFrame:
        """Return `rows` as a pandas DataFrame; its `attrs` say the rest of the document.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        frame = self.rows.to_pandas()
        document = self.to_dict()
        tables = [key.name for key in self.format.entries if isinstance(key.kind, ListOf)]
        frame.attrs |= {key: document[key] for key in document if key not in ("format", *tables)}
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as a document of its `format`."""
        return self.format.write(self)

    def told(self) -> str:
        """Return what all loads have in common in words."""
        return f"{', '.join(self.words.values())}; h3sim {self.version}"

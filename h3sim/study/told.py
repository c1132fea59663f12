"""What tables of loads have in common: what was run, and how they go to pandas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from h3sim.trace import Rows

__all__ = ["Told"]


@dataclass(frozen=True, kw_only=True)
class Told:
    """A table, `rows`, that says what was run."""

    rows: Rows[Any]
    version: str
    configuration: dict[str, Any]
    """What all loads have in common, as `Load.configuration`."""
    words: dict[str, str]
    """The same for people."""
    page_digests: dict[str, str]

    def to_pandas(self) -> pd.DataFrame:
        """Return `rows` as a pandas DataFrame; its `attrs` say what was run.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        frame = self.rows.to_pandas()
        frame.attrs.update(self._identity())
        return frame

    def told(self) -> str:
        """Return what all loads have in common in words."""
        return f"{', '.join(self.words.values())}; h3sim {self.version}"

    def _identity(self) -> dict[str, Any]:
        """Return what was run, as documents have it."""
        return {
            "version": self.version,
            "configuration": self.configuration,
            "page_digests": self.page_digests,
        }

"""Tables as sequences of named tuples: a row per observation, plain columns, units in the names."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from operator import eq
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from h3sim.errors import needing_extra
from h3sim.notebook import html_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NamedRows", "Rows", "with_floats"]

RowT = TypeVar("RowT", bound=NamedTuple)


def with_floats(frame: pd.DataFrame) -> pd.DataFrame:
    """Return *frame* with NaN, as floats, in columns where no row has a value.

    pandas makes them columns of objects, with which neither means nor plots can be made.
    """
    empty = [name for name in frame.columns if len(frame) and frame[name].isna().all()]
    return frame.astype(dict.fromkeys(empty, float))


class NamedRows(Sequence[RowT], Generic[RowT]):
    """A view of plain tuples as *row_type*, each made when it is asked for."""

    def __init__(self, row_type: type[RowT], rows: Sequence[tuple[Any, ...]]) -> None:
        self._row_type = row_type
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> NamedRows[RowT]: ...
    def __getitem__(self, index: int | slice) -> RowT | NamedRows[RowT]:
        if isinstance(index, slice):
            return NamedRows(self._row_type, self._rows[index])
        return self._row_type._make(self._rows[index])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[RowT]:
        return map(self._row_type._make, self._rows)


class Rows(Sequence[RowT], Generic[RowT]):
    """An immutable table; *row_type* names its columns even where it has no row.

    >>> class Point(NamedTuple):
    ...     x: int
    ...     y: int
    >>> points = Rows(Point, [Point(1, 2), Point(3, 4)])
    >>> points.columns, points[1].y, points.column("x")
    (('x', 'y'), 4, [1, 3])
    """

    def __init__(self, row_type: type[RowT], rows: Iterable[RowT]) -> None:
        self._row_type = row_type
        self._rows: Sequence[RowT] = rows if isinstance(rows, NamedRows) else tuple(rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return self._row_type._fields

    def column(self, name: str) -> list[Any]:
        """Return one column as a list.

        Raises:
            KeyError: if there is no such column.
        """
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        return [getattr(row, name) for row in self._rows]

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        with needing_extra("pandas", "analysis"):
            pandas = importlib.import_module("pandas")
        return with_floats(pandas.DataFrame(list(self._rows), columns=list(self.columns)))

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[RowT]: ...
    def __getitem__(self, index: int | slice) -> RowT | Rows[RowT]:
        if isinstance(index, slice):
            return Rows(self._row_type, self._rows[index])
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[RowT]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self._rows))

    def __repr__(self) -> str:
        rows = f"{len(self)} row{'s' * (len(self) != 1)}"
        return f"<{rows} of {self._row_type.__name__}({', '.join(self.columns)})>"

    def _repr_html_(self) -> str:
        return html_table(self.columns, self._rows)

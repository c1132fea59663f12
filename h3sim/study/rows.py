"""Rows of a study: streamed from where they are kept, filtered, grouped, summed up."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, overload

from h3sim.documents import listed, shown
from h3sim.documents.arguments import Only, check_arguments
from h3sim.documents.refused import RefusedError, collected
from h3sim.documents.shown import plain_values
from h3sim.documents.values import ValueType
from h3sim.errors import InputError, NothingToMeasureError, Problem
from h3sim.results.figures import FIGURES
from h3sim.study.moments import Moments
from h3sim.study.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Counts", "Row", "Stored", "StudyRows", "is_row_of", "no_column", "row_problem"]

Row: TypeAlias = dict[str, Any]
Stored: TypeAlias = tuple[str | None, str | None, str | None]
"""Row and resources as JSON, and error: of each, one or the other."""
_COLUMNS = Only("a list of names of columns", lambda value: isinstance(value, list | tuple))
_LOAD = ("page", "scheme", "network", "seed")
"""What a row of a resource says of its load, beside the axes."""
_SCALARS = {str, int, float, bool, type(None)}
_TEXTS: dict[str, Any] = {"page": str, "scheme": str, "network": (str, type(None))}
"""Of what type a column is where there is one; a model of paths has no network."""
_FIGURES = tuple(figure.name for figure in FIGURES)
_SAME = 1e-6
"""Times are kept in whole nanoseconds, so that a setting may come back with other last digits."""


class Counts(NamedTuple):
    """What became of the cells of a study."""

    reused: int
    ran: int
    failed: int

    def __str__(self) -> str:
        return f"reused {self.reused:,}, ran {self.ran:,}, failed {self.failed:,}"


class StudyRows:
    """Rows of a study, read where they are kept each time they are asked for; parts of them."""

    def __init__(
        self,
        source: Callable[[], Iterator[Stored]],
        *,
        axes: Sequence[str] = (),
        counts: Counts | None = None,
        wanted: Callable[[Row], bool] | None = None,
        is_interrupted: bool = False,
    ) -> None:
        self._source = source
        self._wanted = wanted
        self.axes = tuple(axes)
        self.counts = counts
        self.is_interrupted = is_interrupted

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], *, axes: Sequence[str] = ()) -> Self:
        """Return results that hold these *rows*: tables of columns, NaN for what one has not.

        Raises:
            InputError: if they are something else.
        """
        taken = check_arguments(InputError, rows=(_Lines(), rows))["rows"]
        texts: list[Stored] = [(line, None, None) for line in taken]
        return cls(lambda: iter(texts), axes=axes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process has the rows: they are read here, where they are kept."""
        wanted = self._wanted or (lambda _: True)
        kept = [one for one in self._source() if one[0] is None or wanted(_read_row(one[0]))]
        return _restored, (type(self), kept, self.axes, self.counts, self.is_interrupted)

    def __iter__(self) -> Iterator[Row]:
        for text, _, _ in self._source():
            if text is not None:
                row: Row = _read_row(text)
                if self._wanted is None or self._wanted(row):
                    yield row

    def __len__(self) -> int:
        # Counted without reading the JSON.
        if self._wanted is None:
            return sum(text is not None for text, _, _ in self._source())
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """Return the row at *index*, from the end on where it is negative; of a slice a list."""
        if isinstance(index, slice):
            return list(self)[index]
        wanted = index if index >= 0 else len(self) + index
        for number, row in enumerate(self):
            if number == wanted:
                return row
        raise IndexError(f"there are {len(self)} rows, and none at {index}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(next(iter(self), {}))

    def column(self, name: str) -> list[Any]:
        """Return one column as a list.

        Raises:
            KeyError: if there is no such column.
        """
        self._check_columns([name])
        return [row.get(name) for row in self]

    @property
    def errors(self) -> list[str]:
        """What each load that failed is, and why."""
        return [error for _, _, error in self._source() if error is not None]

    def resources(self) -> Self:
        """Return one row a resource: what tells its load, and when it was asked for and came.

        Raises:
            NothingToMeasureError: if the study did not keep them (`sweep(..., resources=True)`).
        """
        # Of loads that failed there are none; what another study kept of a few would not be all.
        kept = {text is not None for row_text, text, _ in self._source() if row_text is not None}
        if kept != {True}:
            raise NothingToMeasureError("the resources were not kept: sweep(..., resources=True)")

        def source() -> Iterator[Stored]:
            for row_text, text, _ in self._source():
                if row_text is None or text is None:
                    continue
                row = _read_row(row_text)
                if self._wanted is None or self._wanted(row):
                    load = {key: row.get(key) for key in dict.fromkeys((*_LOAD, *self.axes))}
                    for resource in _read(text, list):
                        yield json.dumps(load | resource), None, None

        return type(self)(source, axes=(*self.axes, "id"))

    def filter(self, wanted: Callable[[Row], bool] | None = None, /, **equal: Any) -> Self:
        """Return the rows for which *wanted* holds, and whose columns are as given, or listed.

        Raises:
            KeyError: if there is no such column.
        """
        self._check_columns(equal)
        allowed = {
            name: [*value]
            if isinstance(value, Iterable) and not isinstance(value, str)
            else [value]
            for name, value in zip(equal, map(plain_values, equal.values()), strict=True)
        }

        def holds(row: Row) -> bool:
            before = self._wanted is None or self._wanted(row)
            return (
                before
                and all(row.get(name) in values for name, values in allowed.items())
                and (wanted is None or wanted(row))
            )

        return type(self)(self._source, axes=self.axes, wanted=holds)

    def group(self, *columns: str) -> dict[tuple[Any, ...], Self]:
        """Return the rows by what stands in *columns*, in the order in which that is met.

        Raises:
            KeyError: if there is no such column.
        """
        self._check_columns(columns)
        keys = dict.fromkeys(tuple(row.get(name) for name in columns) for row in self)
        return {key: self.filter(**dict(zip(columns, key, strict=True))) for key in keys}

    def join(self, *others: StudyRows) -> Self:
        """Return these rows and, behind them, those of *others*."""
        parts: tuple[StudyRows, ...] = (self, *others)

        def source() -> Iterator[Stored]:
            for part in parts:
                yield from ((json.dumps(row), None, None) for row in part)

        axes = dict.fromkeys(name for part in parts for name in part.axes)
        return type(self)(source, axes=tuple(axes))

    def summary(self, value: str = "byte_index_all_ms", *, by: Sequence[str] = ("scheme",)) -> Self:
        """Return count, mean, standard deviation, least and most of a column, *by* others.

        It goes through the rows once, and leaves out those without the value.

        Raises:
            KeyError: if there is no such column.
        """
        check_arguments(InputError, by=(_COLUMNS, by))
        self._check_columns([value, *by])
        sums: dict[tuple[Any, ...], Moments] = {}
        for row in self:
            moments = sums.setdefault(tuple(row.get(name) for name in by), Moments())
            number = row.get(value)
            if isinstance(number, str):
                raise InputError([Problem(key=value, message=f"is text: {shown(number)}")])
            if number is not None:
                moments.add(number)
        return self.of(
            dict(zip(by, key, strict=True)) | {"value": value} | moments.told()
            for key, moments in sums.items()
        )

    def _check_columns(self, names: Iterable[str]) -> None:
        columns = self.columns
        for name in names:
            if columns and name not in columns:
                raise KeyError(no_column(name, columns))


def _restored(
    kind: type[StudyRows], kept: list[Stored], axes: tuple[str, ...], *rest: Any
) -> StudyRows:
    counts, is_interrupted = rest
    return kind(lambda: iter(kept), axes=axes, counts=counts, is_interrupted=is_interrupted)


class _Lines(ValueType):
    """Rows that people made themselves; each becomes a line of JSON."""

    def accept(self, value: Any) -> list[str]:
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            raise RefusedError(f"must be a list of tables, is {shown(value)}")
        entries = ((f"[{number}]", _line, row) for number, row in enumerate(value))
        lines, problems = collected(entries)
        if problems:
            raise RefusedError(problems)
        return lines


def _line(row: Any) -> str:
    if not isinstance(row, Mapping):
        hint = "of a DataFrame take `frame.to_dict('records')`"
        raise RefusedError(f"must be a table of columns, is {shown(row)} ({hint})")
    cells = {key: plain_values(value) for key, value in row.items()}
    # What a load has not, pandas has as a number that is none.
    plain = {key: None if value != value else value for key, value in cells.items()}
    try:
        return json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RefusedError(f"cannot be written: {error}") from error


def no_column(name: object, columns: Iterable[str]) -> str:
    """Return the message for a name that is none of *columns*, with those spelt alike.

    >>> no_column("los", ["loss", "rtt_ms"])
    "there is no column 'los'; there are loss, rtt_ms"
    """
    return f"there is no column {shown(name)}; there are {listed(columns, near=name)}"


def row_problem(row: Row) -> str | None:
    """Return what is wrong with a row that was kept, None if nothing is.

    >>> row_problem({"page": "a", "page_load_ms": "soon"})
    "page_load_ms: must be a number, is 'soon'"
    """
    if not set(map(type, row.values())) <= _SCALARS:
        name = next(name for name, value in row.items() if type(value) not in _SCALARS)
        return f"{name}: must be one value, is {shown(row[name])}"
    for name, kinds in _TEXTS.items():
        if not isinstance(row.get(name, ""), kinds):
            return f"{name}: must be text, is {shown(row[name])}"
    for name in _FIGURES:
        value = row.get(name)
        if isinstance(value, str) or (isinstance(value, float) and not math.isfinite(value)):
            return f"{name}: must be a number, is {shown(value)}"
    return None


def is_row_of(columns: Mapping[str, Any], text: str | None, *, figures: Iterable[str] = ()) -> bool:
    """Return whether the row *text* has all *figures*, and the values of *columns* that it has.

    >>> is_row_of({"seed": 1, "rtt_ms": 1 / 3}, '{"seed": 1, "rtt_ms": 0.333333}')
    True
    """
    row = _read_row(text or "")
    has_all = all(name in row for name in figures)
    return has_all and all(_is_same(row.get(key, value), value) for key, value in columns.items())


def _is_same(found: Any, value: Any) -> bool:
    if isinstance(found, float) and isinstance(value, int | float):
        return math.isclose(found, value, rel_tol=_SAME, abs_tol=_SAME)
    return bool(found == value)


def _read_row(text: str) -> Row:
    row: Row = _read(text, dict)
    if problem := row_problem(row):
        raise StoreError(f"a row cannot be read: {problem}")
    return row


def _read(text: str, kind: type) -> Any:
    """Return what was kept as JSON; a file that was damaged since may hold anything.

    Raises:
        StoreError: if it is nothing of that *kind*.
    """
    try:
        value = json.loads(text)
        if isinstance(value, kind):
            return value
    except (TypeError, ValueError, RecursionError):
        pass
    raise StoreError("a row cannot be read: its file is damaged: `h3sim store verify` says where")

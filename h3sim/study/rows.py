"""The rows of a study, read lazily from the store, and the tables of other results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias, overload

from h3sim.load.figures import FIGURES
from h3sim.schema import format_value, join_words
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.errors import RejectedValueError, collected, plain_values
from h3sim.schema.output import TEXT, VERSION, OutputSchema, Property
from h3sim.schema.values import Choice, ListOf, Number, OrNone, Scalar, TableOf, ValueType
from h3sim.study import pairing
from h3sim.values.errors import H3SimError, InputError, NothingToMeasureError
from h3sim.values.table import RichDisplay, Rows, Table

if TYPE_CHECKING:
    import pandas as pd


class StoreError(H3SimError):
    """Store that cannot be read or written; the message has advice."""


class RunningStats:
    """Running count, mean and standard deviation (Welford 1962)."""

    def __init__(self) -> None:
        self.n = 0
        self.mean = self._squares = 0.0
        self.least = math.inf
        self.most = -math.inf

    def add(self, value: float) -> None:
        """Add one number."""
        self.n += 1
        deviation = value - self.mean
        self.mean += deviation / self.n
        # From the deviations from the old and the new mean: sums of squares of values would cancel
        # if the spread is small.
        self._squares += deviation * (value - self.mean)
        self.least, self.most = min(self.least, value), max(self.most, value)

    def describe(self) -> dict[str, Any]:
        """Return the statistics; None for those that need more numbers."""
        if not self.n:
            return {"n": 0, "mean": None, "sd": None, "min": None, "max": None}
        sd = math.sqrt(self._squares / (self.n - 1)) if self.n > 1 else None
        return {"n": self.n, "mean": self.mean, "sd": sd, "min": self.least, "max": self.most}


Row: TypeAlias = dict[str, Any]
Stored: TypeAlias = tuple[str | None, str | None, str | None]
"""Row and resources as JSON, or an error."""
_COLUMN_NAMES = Predicate(
    "a list of names of columns", lambda value: isinstance(value, list | tuple)
)
_LOAD_COLUMNS = ("page", "scheme", "network", "seed")
"""Columns of the load in rows of resources, besides the axes."""
_SCALAR_TYPES = {str, int, float, bool, type(None)}
_TEXT_COLUMNS: dict[str, Any] = {"page": str, "scheme": str, "network": (str, type(None))}
"""Types of the columns that are text; without a network in studies of independent packets."""
_METRIC_COLUMNS = tuple(figure.name for figure in FIGURES)
_SETTING_TOLERANCE = 1e-6
"""Tolerance for equal settings: a row has those of the load, whose times are whole nanoseconds."""


class Counts(NamedTuple):
    """Numbers of cells of a study that were reused, ran and failed."""

    reused: int
    ran: int
    failed: int

    def __str__(self) -> str:
        return f"reused {self.reused:,}, ran {self.ran:,}, failed {self.failed:,}"


class StudyRows:
    """Rows of a study, read lazily from their source on each access."""

    def __init__(
        self,
        source: Callable[[], Iterator[Stored]],
        *,
        axes: Sequence[str] = (),
        counts: Counts | None = None,
        predicate: Callable[[Row], bool] | None = None,
        is_interrupted: bool = False,
        n_merged: int = 0,
    ) -> None:
        self._source = source
        self._predicate = predicate
        self.axes = tuple(axes)
        self.counts = counts
        self.is_interrupted = is_interrupted
        self._asked: tuple[StudyRows, Mapping[str, Sequence[Any]]] | None = None
        """Rows and values by column to which `filter` restricted these."""
        self.n_merged = n_merged
        """Number of rows that `join` merged with an equal one."""

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], *, axes: Sequence[str] = ()) -> Self:
        """Return results with these *rows*, given as dicts; NaN becomes None.

        Raises:
            InputError: if they are not a list of dicts.
        """
        lines = check_arguments(InputError, rows=(_JsonLines(), rows))["rows"]
        stored: list[Stored] = [(line, None, None) for line in lines]
        return cls(lambda: iter(stored), axes=axes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a pickle that contains the rows, since their source cannot be pickled."""
        settings = (self.axes, self.counts, self.is_interrupted, self.n_merged)
        return _restored, (type(self), [*self._selected()], *settings)

    def _selected(self) -> Iterator[Stored]:
        """Yield the stored rows that satisfy the predicate, and the errors of failed loads."""
        for row, resources, error in self._source():
            if row is None or self._predicate is None or self._predicate(_read_row(row)):
                yield row, resources, error

    def __iter__(self) -> Iterator[Row]:
        for text, _, _ in self._source():
            if text is not None:
                row: Row = _read_row(text)
                if self._predicate is None or self._predicate(row):
                    yield row

    def __len__(self) -> int:
        # Counted without parsing the JSON.
        if self._predicate is None:
            return sum(text is not None for text, _, _ in self._source())
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """Return the row at *index*, which may be negative, or the rows of a slice as a list."""
        if isinstance(index, slice):
            return list(self)[index]
        number_of_row = index if index >= 0 else len(self) + index
        for number, row in enumerate(self):
            if number == number_of_row:
                return row
        raise IndexError(f"index {index} is out of range: there are {len(self)} rows")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(next(iter(self), {}))

    def column(self, name: str) -> list[Any]:
        """Return one column as a list.

        Raises:
            KeyError: if a column is unknown.
        """
        self._check_columns([name])
        return [row.get(name) for row in self]

    @property
    def errors(self) -> list[str]:
        """Descriptions of failed loads, with their errors."""
        return [error for _, _, error in self._source() if error is not None]

    def resources(self) -> Self:
        """Return one row per resource: identity of its load, and times of request and response.

        Raises:
            NothingToMeasureError: if they were not kept (use `sweep(..., resources=True)`).
        """
        # Failed loads have none. Some loads may have them from another study with the same store.
        has_resources = {
            resources is not None for row, resources, _ in self._source() if row is not None
        }
        if has_resources != {True}:
            raise NothingToMeasureError(
                "the resources were not kept: use sweep(..., resources=True)"
            )

        def source() -> Iterator[Stored]:
            for row_text, resources_text, _ in self._source():
                if row_text is None or resources_text is None:
                    continue
                row = _read_row(row_text)
                if self._predicate is None or self._predicate(row):
                    names = dict.fromkeys((*_LOAD_COLUMNS, *self.axes))
                    load = {name: row.get(name) for name in names}
                    for resource in _read(resources_text, list):
                        yield json.dumps(load | resource), None, None

        return type(self)(source, axes=(*self.axes, "id"))

    def filter(self, predicate: Callable[[Row], bool] | None = None, /, **equal: Any) -> Self:
        """Return the rows that satisfy *predicate* and have the given values, or one of a list.

        Raises:
            KeyError: if a column is unknown.
        """
        self._check_columns(equal)
        allowed = {
            name: [*value]
            if isinstance(value, Iterable) and not isinstance(value, str)
            else [value]
            for name, value in zip(equal, map(plain_values, equal.values()), strict=True)
        }

        def holds(row: Row) -> bool:
            return (
                (self._predicate is None or self._predicate(row))
                and all(row.get(name) in values for name, values in allowed.items())
                and (predicate is None or predicate(row))
            )

        found = type(self)(self._source, axes=self.axes, predicate=holds)
        found._asked = (self, allowed)
        return found

    def reason_without_rows(self) -> str:
        """Return which value that `filter` was asked for no row has; "" if there are rows.

        >>> rows = StudyRows.of([{"scheme": "rr"}, {"scheme": "fifo"}])
        >>> rows.filter(scheme="firefox").reason_without_rows()
        "no row has scheme 'firefox'; there are rr, fifo"
        """
        if self._asked is None or len(self):
            return ""
        rows, allowed = self._asked
        for name, values in allowed.items():
            known = dict.fromkeys(rows.column(name))
            if known and not any(value in known for value in values):
                asked = " or ".join(map(format_value, values))
                there = join_words([str(value) for value in known], near=values[0])
                return f"no row has {name} {asked}; there are {there}"
        return ""

    def group(self, *columns: str) -> dict[tuple[Any, ...], Self]:
        """Group the rows by the values of *columns*, in order of first occurrence.

        Raises:
            KeyError: if a column is unknown.
        """
        self._check_columns(columns)
        keys = dict.fromkeys(tuple(row.get(name) for name in columns) for row in self)
        return {key: self.filter(**dict(zip(columns, key, strict=True))) for key in keys}

    def join(self, *others: StudyRows) -> Self:
        """Return these rows followed by those of *others*, each load once.

        The axes are those of all studies, and every other setting in which the loads now differ:
        the network of two studies over one network each, for example, or the digest of a page that
        was edited. A load that several studies have is merged into one row, which has the metrics
        of all; `n_merged` counts such rows, and the text of the results states it. Failed loads and
        rows of resources are retained.

        Raises:
            InputError: if rows with the same settings have different metrics.

        >>> one = StudyRows.of([{"page": "p", "scheme": "rr", "seed": 0, "network": "4g"}])
        >>> two = StudyRows.of([{"page": "p", "scheme": "rr", "seed": 0, "network": "dsl"}])
        >>> one.join(two).axes, len(one.join(one)), one.join(one).n_merged
        (('network',), 1, 1)
        """
        joined = _Joined((self, *others))
        return type(self)(joined.stored, axes=joined.axes, n_merged=joined.n_merged)

    def summary(self, value: str = "byte_index_all_ms", *, by: Sequence[str] = ("scheme",)) -> Self:
        """Return count, mean, standard deviation, minimum and maximum, grouped *by* columns.

        Computed in one pass; rows without the value are skipped.

        Raises:
            KeyError: if a column is unknown.
        """
        check_arguments(InputError, by=(_COLUMN_NAMES, by))
        self._check_columns([value, *by])
        stats_by_group: dict[tuple[Any, ...], RunningStats] = {}
        for row in self:
            group = tuple(row.get(name) for name in by)
            stats = stats_by_group.setdefault(group, RunningStats())
            number = row.get(value)
            if isinstance(number, str):
                raise InputError.at(value, f"is text: {format_value(number)}")
            if number is not None:
                stats.add(number)
        return self.of(
            dict(zip(by, group, strict=True)) | {"value": value} | stats.describe()
            for group, stats in stats_by_group.items()
        )

    def _check_columns(self, names: Iterable[str]) -> None:
        columns = self.columns
        for name in names:
            if columns and name not in columns:
                raise KeyError(no_column(name, columns))


class _Joined:
    """Rows of several studies, each load once."""

    def __init__(self, parts: Sequence[StudyRows]) -> None:
        self._parts = parts
        declared = dict.fromkeys(name for part in parts for name in part.axes)
        varied = pairing.varying(self, [*declared])
        self.axes = tuple(dict.fromkeys((*declared, *varied)))
        self._merger = pairing.Merger(self, self.axes)
        self.n_merged = self._merger.n_merged

    def __iter__(self) -> Iterator[Row]:
        for part in self._parts:
            yield from part

    def stored(self) -> Iterator[Stored]:
        """Yield the stored rows of all parts, and their errors."""
        merged = self._merger.pieces(self)
        for part in self._parts:
            for text, resources, error in part._selected():
                if text is None:
                    yield text, resources, error
                elif (row := next(merged)) is not None:
                    yield json.dumps(row), resources, error


def _restored(
    kind: type[StudyRows], retained: list[Stored], axes: tuple[str, ...], *rest: Any
) -> StudyRows:
    counts, is_interrupted, n_merged = rest
    return kind(
        lambda: iter(retained),
        axes=axes,
        counts=counts,
        is_interrupted=is_interrupted,
        n_merged=n_merged,
    )


class _JsonLines(ValueType):
    """Field type of rows given by the user; each becomes a line of JSON."""

    def accept(self, value: Any) -> list[str]:
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            raise RejectedValueError(f"must be a list of tables, is {format_value(value)}")
        entries = ((f"[{number}]", _format_row, row) for number, row in enumerate(value))
        lines, problems = collected(entries)
        if problems:
            raise RejectedValueError(problems)
        return lines


def _format_row(row: Any) -> str:
    """Return a row as a line of JSON."""
    if not isinstance(row, Mapping):
        hint = "for a DataFrame use `frame.to_dict('records')`"
        raise RejectedValueError(f"must be a table of columns, is {format_value(row)} ({hint})")
    cells = {key: plain_values(value) for key, value in row.items()}
    # pandas represents missing values as NaN.
    plain = {key: None if value != value else value for key, value in cells.items()}
    try:
        return json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RejectedValueError(f"cannot be written: {error}") from error


def no_column(name: object, columns: Iterable[str]) -> str:
    """Return the message for an unknown column, with similar names from *columns*.

    >>> no_column("los", ["loss", "rtt_ms"])
    "there is no column 'los'; there are loss, rtt_ms"
    """
    return f"there is no column {format_value(name)}; there are {join_words(columns, near=name)}"


def row_problem(row: Row) -> str | None:
    """Return the error in a stored row, or None.

    >>> row_problem({"page": "a", "page_load_ms": "soon"})
    "page_load_ms: must be a number, is 'soon'"
    """
    if not set(map(type, row.values())) <= _SCALAR_TYPES:
        name = next(name for name, value in row.items() if type(value) not in _SCALAR_TYPES)
        return f"{name}: must be one value, is {format_value(row[name])}"
    for name, kinds in _TEXT_COLUMNS.items():
        if not isinstance(row.get(name, ""), kinds):
            return f"{name}: must be text, is {format_value(row[name])}"
    if _are_finite_numbers(filter(None, map(row.get, _METRIC_COLUMNS))):
        return None
    for name in _METRIC_COLUMNS:
        value = row.get(name)
        if isinstance(value, str) or (isinstance(value, float) and not math.isfinite(value)):
            return f"{name}: must be a number, is {format_value(value)}"
    return None


def _are_finite_numbers(values: Iterable[Any]) -> bool:
    """Return whether *values* surely are finite numbers, which is far faster than to look at each.

    False, too, if only their sum is infinite.
    """
    try:
        return math.isfinite(sum(values))
    except (TypeError, OverflowError):
        return False


def is_row_of(columns: Mapping[str, Any], text: str | None, *, figures: Iterable[str] = ()) -> bool:
    """Return whether the row *text* has all *figures*, and equals *columns* where it has them.

    >>> is_row_of({"seed": 1, "rtt_ms": 1 / 3}, '{"seed": 1, "rtt_ms": 0.333333}')
    True
    """
    row = _read_row(text or "")
    has_all = all(name in row for name in figures)
    return has_all and all(_is_same(row.get(key, value), value) for key, value in columns.items())


def _is_same(found: Any, value: Any) -> bool:
    if isinstance(found, float) and isinstance(value, int | float):
        tolerance = _SETTING_TOLERANCE
        return math.isclose(found, value, rel_tol=tolerance, abs_tol=tolerance)
    return bool(found == value)


def _read_row(text: str) -> Row:
    row: Row = _read(text, dict)
    if problem := row_problem(row):
        raise StoreError(f"a row cannot be read: {problem}")
    return row


def _read(text: str, kind: type) -> Any:
    """Parse stored JSON; a damaged file may contain anything.

    Raises:
        StoreError: if it is not of that *kind*.
    """
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(_DAMAGED_ROW_MESSAGE) from error
    if not isinstance(value, kind):
        raise StoreError(_DAMAGED_ROW_MESSAGE)
    return value


_DAMAGED_ROW_MESSAGE = (
    "a row cannot be read: the file is damaged; run `h3sim store verify` to find out where"
)


SETTINGS = TableOf(OrNone(Scalar(), none=None))
"""Settings of loads, as in `h3sim-load/2`."""
CONFIGURATION = Property(
    "configuration", SETTINGS, "common settings of all loads, as in `h3sim-load/2`"
)
PAGE_DIGESTS = Property("page_digests", TableOf(TEXT), "digest of each page, by its name")
COMMON = (VERSION, CONFIGURATION, PAGE_DIGESTS)
"""Keys that the documents of all result tables have."""
NETWORK_WITHIN = Property(
    "network_within",
    Number(low=1),
    "largest factor by which each load multiplies or divides RTT and rates",
)
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

    def __iter__(self) -> Iterator[Any]:
        """Iterate over `rows`."""
        return iter(self.rows)

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

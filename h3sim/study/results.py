"""The results of a study: rows from the store, filtered, grouped, summarized, exported."""

from __future__ import annotations

import csv
import html
import io
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Self, TypeAlias, overload

from h3sim._version import __version__
from h3sim.accessors import accessor
from h3sim.errors import InputError, NothingToMeasureError, ValidationIssue, needing_extra
from h3sim.notebook import html_table
from h3sim.results.figures import FIGURES
from h3sim.schema import format_value, join_words, write_whole
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.errors import RejectedValueError, collected, plain_values
from h3sim.schema.fields import declare, write_table
from h3sim.schema.files import DIGEST, lines_digest
from h3sim.schema.values import ListOf, Text, ValueType
from h3sim.study.store_file import StoreError
from h3sim.trace.model import with_floats
from h3sim.units import unit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pandas as pd
    import xarray as xr

    from h3sim.study.sample_size import PowerRow
    from h3sim.study.statistics import (
        ContrastRow,
        Correlation,
        Method,
        Ranks,
        RelativeRow,
        SchemeRow,
    )
    from h3sim.trace import Rows


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
        before = value - self.mean
        self.mean += before / self.n
        # With the mean before and after: sums of squares cancel if the spread is small.
        self._squares += before * (value - self.mean)
        self.least, self.most = min(self.least, value), max(self.most, value)

    def told(self) -> dict[str, Any]:
        """Return the statistics; None for those that need more numbers."""
        if not self.n:
            return {"n": 0, "mean": None, "sd": None, "min": None, "max": None}
        spread = math.sqrt(self._squares / (self.n - 1)) if self.n > 1 else None
        numbers = {"mean": self.mean, "sd": spread, "min": self.least, "max": self.most}
        return {"n": self.n, **numbers}


Row: TypeAlias = dict[str, Any]
Stored: TypeAlias = tuple[str | None, str | None, str | None]
"""Row and resources as JSON, or an error."""
_COLUMNS = Predicate("a list of names of columns", lambda value: isinstance(value, list | tuple))
_LOAD = ("page", "scheme", "network", "seed")
"""Columns of the load in rows of resources, besides the axes."""
_SCALARS = {str, int, float, bool, type(None)}
_TEXTS: dict[str, Any] = {"page": str, "scheme": str, "network": (str, type(None))}
"""Types of nullable columns; the path model has no network."""
_FIGURES = tuple(figure.name for figure in FIGURES)
_SAME = 1e-6
"""Relative tolerance of settings: times are stored as whole nanoseconds."""


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
        """Return results with these *rows*, given as dicts; NaN becomes None.

        Raises:
            InputError: if they are not a list of dicts.
        """
        taken = check_arguments(InputError, rows=(_Lines(), rows))["rows"]
        texts: list[Stored] = [(line, None, None) for line in taken]
        return cls(lambda: iter(texts), axes=axes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a pickle that contains the rows, since their source is local."""
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
        # Counted without parsing the JSON.
        if self._wanted is None:
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
        wanted = index if index >= 0 else len(self) + index
        for number, row in enumerate(self):
            if number == wanted:
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
        # Failed loads have none; those that another study kept for some loads are incomplete.
        kept = {text is not None for row_text, text, _ in self._source() if row_text is not None}
        if kept != {True}:
            raise NothingToMeasureError(
                "the resources were not kept: use sweep(..., resources=True)"
            )

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
        """Return the rows that satisfy *wanted* and have the given values, or one of a list.

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
            before = self._wanted is None or self._wanted(row)
            return (
                before
                and all(row.get(name) in values for name, values in allowed.items())
                and (wanted is None or wanted(row))
            )

        return type(self)(self._source, axes=self.axes, wanted=holds)

    def group(self, *columns: str) -> dict[tuple[Any, ...], Self]:
        """Group the rows by the values of *columns*, in order of first occurrence.

        Raises:
            KeyError: if a column is unknown.
        """
        self._check_columns(columns)
        keys = dict.fromkeys(tuple(row.get(name) for name in columns) for row in self)
        return {key: self.filter(**dict(zip(columns, key, strict=True))) for key in keys}

    def join(self, *others: StudyRows) -> Self:
        """Return these rows followed by those of *others*."""
        parts: tuple[StudyRows, ...] = (self, *others)

        def source() -> Iterator[Stored]:
            for part in parts:
                yield from ((json.dumps(row), None, None) for row in part)

        axes = dict.fromkeys(name for part in parts for name in part.axes)
        return type(self)(source, axes=tuple(axes))

    def summary(self, value: str = "byte_index_all_ms", *, by: Sequence[str] = ("scheme",)) -> Self:
        """Return count, mean, standard deviation, minimum and maximum, grouped *by* columns.

        Computed in one pass; rows without the value are skipped.

        Raises:
            KeyError: if a column is unknown.
        """
        check_arguments(InputError, by=(_COLUMNS, by))
        self._check_columns([value, *by])
        sums: dict[tuple[Any, ...], RunningStats] = {}
        for row in self:
            moments = sums.setdefault(tuple(row.get(name) for name in by), RunningStats())
            number = row.get(value)
            if isinstance(number, str):
                raise InputError(
                    [ValidationIssue(key=value, message=f"is text: {format_value(number)}")]
                )
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
    """Field type of rows given by the user; each becomes a line of JSON."""

    def accept(self, value: Any) -> list[str]:
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            raise RejectedValueError(f"must be a list of tables, is {format_value(value)}")
        entries = ((f"[{number}]", _line, row) for number, row in enumerate(value))
        lines, problems = collected(entries)
        if problems:
            raise RejectedValueError(problems)
        return lines


def _line(row: Any) -> str:
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
    if not set(map(type, row.values())) <= _SCALARS:
        name = next(name for name, value in row.items() if type(value) not in _SCALARS)
        return f"{name}: must be one value, is {format_value(row[name])}"
    for name, kinds in _TEXTS.items():
        if not isinstance(row.get(name, ""), kinds):
            return f"{name}: must be text, is {format_value(row[name])}"
    for name in _FIGURES:
        value = row.get(name)
        if isinstance(value, str) or (isinstance(value, float) and not math.isfinite(value)):
            return f"{name}: must be a number, is {format_value(value)}"
    return None


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
        return math.isclose(found, value, rel_tol=_SAME, abs_tol=_SAME)
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
        if isinstance(value, kind):
            return value
    except (TypeError, ValueError, RecursionError):
        pass
    raise StoreError(
        "a row cannot be read: the file is damaged; run `h3sim store verify` to find out where"
    )


FORMAT = "h3sim-results/2"
_CHUNK = 5000


class ResultsError(InputError):
    """Error in reading, writing or using results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsHead:
    """First line of saved rows, with their metadata."""

    version: str = field(default="", metadata=declare(Text(), "version of h3sim"))
    axes: tuple[str, ...] = field(
        default=(),
        metadata=declare(ListOf(Text(), "names of columns"), "the columns in which loads differ"),
    )


def to_xarray(results: Results, values: Sequence[str]) -> xr.Dataset:
    """Return *values* (default: all metrics) over the axes of *results*.

    Units are in `attrs`, as in the CF conventions and for xarray's plots.
    """
    with needing_extra("xarray", "study"):
        import xarray  # noqa: F401 - pandas calls it
    frame = results.to_pandas()
    axes = list(results.axes) or ["page"]
    if frame.duplicated(axes).any():
        message = f"are not a grid over {', '.join(axes)}: several rows have the same values"
        raise ResultsError([ValidationIssue(key="rows", message=message)])
    if unknown := [name for name in values if name not in frame.columns or name in axes]:
        raise ResultsError(
            ValidationIssue(key="values", message=_no_value(name, axes, list(frame.columns)))
            for name in unknown
        )
    figures = [figure.name for figure in FIGURES if figure.name in frame.columns]
    dataset: xr.Dataset = frame.set_index(axes)[list(values) or figures].to_xarray()
    # In the order of the study: xarray would sort the coordinates.
    dataset = dataset.reindex({axis: frame[axis].unique() for axis in axes})
    titles = {figure.name: figure.title for figure in FIGURES}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "iuf" and (unit := unit_of(str(name))):
            variable.attrs["units"] = unit
        if name in titles:
            variable.attrs["long_name"] = titles[str(name)]
    return dataset


def _no_value(name: str, axes: Sequence[str], columns: Sequence[str]) -> str:
    """Explain why *name* cannot be a variable over the axes."""
    return f"{name} is an axis" if name in axes else no_column(name, columns)


def write_csv(results: Results, path: str | Path) -> None:
    """Write the rows as CSV; missing values are empty."""

    def write(file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        # From all rows: rows of joined studies may have different columns.
        columns = dict.fromkeys(name for row in results for name in row)
        writer = csv.DictWriter(text, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)
        # Otherwise *text* would close the file when collected, before it is moved into place.
        text.detach()

    write_whole(path, write, error=ResultsError)


def write_parquet(results: Results, path: str | Path) -> None:
    """Write the rows as Parquet, in batches of some thousands."""
    with needing_extra("pyarrow", "study"):
        import pyarrow.parquet  # lazy: optional dependency
    schema = _arrow_schema(results)

    def write(file: BinaryIO) -> None:
        with pyarrow.parquet.ParquetWriter(file, schema) as writer:
            rows = iter(results)
            while some := list(itertools.islice(rows, _CHUNK)):
                writer.write_table(pyarrow.Table.from_pylist(some, schema=schema))

    write_whole(path, write, error=ResultsError)


def write_lines(results: Results, path: str | Path) -> None:
    """Write a header line, then one line of JSON per row, then their digest."""
    metadata = ResultsHead(version=__version__, axes=tuple(results.axes))
    head = {"format": FORMAT, **write_table(metadata, is_whole=True)}

    def write(file: BinaryIO) -> None:
        def written() -> Iterator[str]:
            for line in itertools.chain([head], results):
                text = json.dumps(line, allow_nan=False)
                file.write(text.encode() + b"\n")
                yield text

        file.write(json.dumps({DIGEST: lines_digest(written())}).encode() + b"\n")

    write_whole(path, write, error=ResultsError)


def _arrow_schema(results: Results) -> Any:
    """Return the types of the columns, found in a pass over all rows."""
    import pyarrow  # lazy: optional dependency

    kinds: dict[str, set[type]] = {}
    for row in results:
        for name, value in row.items():
            kinds.setdefault(name, set()).add(type(value))
    types = {bool: pyarrow.bool_(), int: pyarrow.int64(), str: pyarrow.string()}
    fields = []
    for name, found in kinds.items():
        found.discard(type(None))
        # Integers mixed with floats become floats, and so does an empty column.
        (kind,) = found if len(found) == 1 else (float,)
        if str in found and len(found) > 1:
            message = f"{name} has text and numbers: a Parquet column has one type"
            raise ResultsError([ValidationIssue(key="rows", message=message)])
        fields.append((name, types.get(kind, pyarrow.float64())))
    return pyarrow.schema(fields)


_SHOWN = 10
_HEADLINES = tuple(figure.name for figure in FIGURES if figure.is_headline)


class Results(StudyRows):
    """Rows in the order of the study's parameters, however the workers finished.

    A row is a dict: page, scheme, every setting, version and seed, then the metrics; times in ms,
    None for missing values. Rows are read lazily, so results may be larger than memory. *axes*
    names the columns in which the loads differ.

    >>> results = Results.of([{"scheme": "rr", "ms": 30.0}, {"scheme": "fifo", "ms": 10.0}])
    >>> len(results), results.columns, results.filter(scheme="fifo").column("ms")
    (2, ('scheme', 'ms'), [10.0])
    """

    # Statistics and plots

    @overload
    def compare(
        self,
        baseline: str = "rr",
        *,
        value: str = "byte_index_all_ms",
        pool: Sequence[str] = (),
        confidence: float = 0.95,
        interval: Method = "bootstrap-t",
        seed: int = 0,
    ) -> Rows[SchemeRow]: ...
    @overload
    def compare(
        self,
        baseline: Any = "rr",
        *,
        over: str,
        value: str = "byte_index_all_ms",
        by: Sequence[str] = (),
        pool: Sequence[str] = (),
        confidence: float = 0.95,
        interval: Method = "bootstrap-t",
        seed: int = 0,
    ) -> Rows[ContrastRow]: ...
    def compare(
        self,
        baseline: Any = "rr",
        *,
        over: str | None = None,
        value: str = "byte_index_all_ms",
        by: Sequence[str] = (),
        pool: Sequence[str] = (),
        confidence: float = 0.95,
        interval: Method = "bootstrap-t",
        seed: int = 0,
    ) -> Rows[SchemeRow] | Rows[ContrastRow]:
        """Return each scheme against *baseline*: speedup, interval, test, wins and losses.

        With *over*, each value of that axis is compared with *baseline*, one of them, in pairs of
        loads that have all else in common, in each setting of the columns *by*. Pages and seeds are
        averaged over, other axes only where *pool* names them. See `compare_schemes` and
        `compare_over` in `h3sim.study.statistics`, which say what figures mean and assume.

        >>> rows = [
        ...     {"page": page, "scheme": "rr", "transport": transport, "seed": 0, "ms": float(ms)}
        ...     for page in ("a", "b")
        ...     for transport, ms in (("tcp", 200), ("quic", 100))
        ... ]
        >>> study = Results.of(rows, axes=["page", "transport"])
        >>> (row,) = study.compare(over="transport", baseline="tcp", value="ms")
        >>> row.level, row.geometric, row.refusal
        ('quic', 2.0, '2 independent pages: an interval takes 3 or more')
        """
        from h3sim.study.statistics import compare_over, compare_schemes  # on use: an extra

        how: dict[str, Any] = {"confidence": confidence, "interval": interval, "seed": seed}
        how |= {"value": value, "baseline": baseline, "pool": pool}
        if over is None and not by:
            return compare_schemes(self, **how)
        return compare_over(self, over="scheme" if over is None else over, by=by, **how)

    def relative_medians(
        self, baseline: str = "rr", *, value: str = "byte_index_all_ms"
    ) -> Rows[RelativeRow]:
        """Return medians relative to *baseline*, as `h3sim.study.statistics.relative_medians`."""
        from h3sim.study.statistics import relative_medians

        return relative_medians(self, baseline=baseline, value=value)

    def correlation(self, x: str, y: str, *, confidence: float = 0.95) -> Correlation:
        """Return the rank correlation of two columns, as `h3sim.study.statistics.correlation`."""
        from h3sim.study.statistics import correlation

        return correlation(self, x, y, confidence=confidence)

    def power(
        self,
        speedup: float = 1.05,
        *,
        baseline: str = "rr",
        value: str = "byte_index_all_ms",
        level: float = 0.05,
        power: float = 0.8,
    ) -> Rows[PowerRow]:
        """Return seeds and pages needed to detect a *speedup*; see `h3sim.study.sample_size`."""
        from h3sim.study.sample_size import power_of_schemes

        return power_of_schemes(
            self, speedup=speedup, baseline=baseline, value=value, level=level, power=power
        )

    def ranks(self, value: str = "byte_index_all_ms", *, level: float = 0.05) -> Ranks:
        """Return the mean ranks of schemes over pages, as `h3sim.study.statistics.mean_ranks`."""
        from h3sim.study.statistics import mean_ranks

        return mean_ranks(self, value=value, level=level)

    @property
    def plot(self) -> Any:
        """Plots, as methods of `h3sim.reporting.StudyPlots`: `plot.cdf()`, `plot.ranks()`."""
        return accessor("results.plot", self)

    # Conversion

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        with needing_extra("pandas", "study"):
            import pandas
        frame = with_floats(pandas.DataFrame(list(self)))
        frame.attrs.update({"version": __version__, "axes": list(self.axes)})
        return frame

    def to_xarray(self, *values: str) -> xr.Dataset:
        """Return metrics (default: all) as an xarray Dataset whose dimensions are the axes.

        Raises:
            MissingExtraError: if pandas or xarray is not installed.
            ResultsError: if the rows are not a grid: several have the same values of the axes.
        """
        return to_xarray(self, values)

    def to_csv(self, path: str | Path) -> None:
        """Write the rows as CSV, atomically; missing values are empty.

        Raises:
            InputError: if the file cannot be written.
        """
        write_csv(self, path)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows as a Parquet file, atomically and in batches.

        Raises:
            InputError: if the file cannot be written.
            MissingExtraError: if pyarrow is not installed.
        """
        write_parquet(self, path)

    def save(self, path: str | Path) -> None:
        """Save the results for `read_results`: one line of JSON per row.

        Raises:
            InputError: if the file cannot be written.
        """
        write_lines(self, path)

    # Display

    def __repr__(self) -> str:
        told = f"; {self.counts}" if self.counts is not None else ""
        rows = f"{len(self):,} row{'s' * (len(self) != 1)}"
        return f"<Results of {rows} over {', '.join(self.axes) or 'nothing'}{told}>"

    def _repr_html_(self) -> str:
        columns = self.columns
        shown = [name for name in dict.fromkeys((*self.axes, *_HEADLINES)) if name in columns]
        head = list(itertools.islice(self, _SHOWN))
        told = shown or columns
        # Rows of joined studies may have different columns.
        rows = [[row.get(name) for name in told] for row in head]
        first = f"The first {_SHOWN} rows, " if len(self) > _SHOWN else ""
        more = f"<p>{first}{len(told)} of {len(columns)} columns.</p>"
        return f"<p>{html.escape(repr(self))}</p>{html_table(told, rows)}{more}"

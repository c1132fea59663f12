"""The results of a study: one row a load, with every setting, streamed from where they are kept."""

from __future__ import annotations

import csv
import html
import io
import itertools
import json
import math
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

from h3sim._version import __version__
from h3sim.documents import parse_json, read_text, write_whole
from h3sim.errors import InputError, MissingExtraError, NothingToMeasureError, Problem
from h3sim.notebook import html_table
from h3sim.study.store import Store, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    import xarray as xr

    from h3sim.study.statistics import Correlation, RelativeRow, SchemeRow
    from h3sim.trace import Rows

__all__ = ["Counts", "Results", "ResultsError", "read_results"]

FORMAT = "h3sim-results/1"
_SHOWN = 10
_CHUNK = 5000
_SQLITE = b"SQLite format 3\0"
_HEADLINES = ("byte_index_all_ms", "byte_index_atf_ms", "page_load_ms")

Row: TypeAlias = dict[str, Any]
Stored: TypeAlias = tuple[str | None, str | None, str | None]
"""Row and resources as JSON, and error: of each, one or the other."""


class ResultsError(InputError):
    """Results cannot be read, written or used so."""


class Counts(NamedTuple):
    """What became of the cells of a study."""

    reused: int
    ran: int
    failed: int

    def __str__(self) -> str:
        return f"reused {self.reused:,}, ran {self.ran:,}, failed {self.failed:,}"


class Results:
    """Rows in the order of the study's parameters, however the workers finished.

    A row is a dict: page, scheme, every setting, version and seed, then the figures; times in ms,
    None for what the load has not. Rows are read when they are asked for, so that results may be
    larger than memory. *axes* names the columns in which the loads differ.

    >>> results = Results.of([{"scheme": "rr", "ms": 30.0}, {"scheme": "fifo", "ms": 10.0}])
    >>> len(results), results.columns, results.filter(scheme="fifo").column("ms")
    (2, ('scheme', 'ms'), [10.0])
    """

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
    def of(cls, rows: Iterable[Mapping[str, Any]], *, axes: Sequence[str] = ()) -> Results:
        """Return results that hold these *rows*."""
        texts: list[Stored] = [(json.dumps(dict(row)), None, None) for row in rows]
        return cls(lambda: iter(texts), axes=axes)

    # Rows

    def __iter__(self) -> Iterator[Row]:
        for text, _, _ in self._source():
            if text is not None:
                row = json.loads(text)
                if self._wanted is None or self._wanted(row):
                    yield row

    def __len__(self) -> int:
        if self._wanted is None:
            return sum(text is not None for text, _, _ in self._source())
        return sum(1 for _ in self)

    def __getitem__(self, place: int) -> Row:
        for number, row in enumerate(self):
            if number == place:
                return row
        raise IndexError(f"there are {len(self)} rows, and none at {place}")

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

    def resources(self) -> Results:
        """Return one row a resource: what tells its load, and when it was asked for and came.

        Raises:
            NothingToMeasureError: if the study did not keep them (`sweep(..., resources=True)`).
        """
        if not any(text is not None for _, text, _ in itertools.islice(self._source(), 1)):
            raise NothingToMeasureError("the resources were not kept: sweep(..., resources=True)")

        def source() -> Iterator[Stored]:
            for row_text, text, _ in self._source():
                if row_text is None or text is None:
                    continue
                row = json.loads(row_text)
                if self._wanted is None or self._wanted(row):
                    load = {key: row[key] for key in dict.fromkeys((*_LOAD, *self.axes))}
                    for resource in json.loads(text):
                        yield json.dumps(load | resource), None, None

        return Results(source, axes=(*self.axes, "id"))

    # Parts and sums

    def filter(self, wanted: Callable[[Row], bool] | None = None, /, **equal: Any) -> Results:
        """Return the rows for which *wanted* holds, and whose columns are as given, or listed.

        Raises:
            KeyError: if there is no such column.
        """
        self._check_columns(equal)
        allowed = {
            name: value if isinstance(value, (list, tuple, set, frozenset, range)) else (value,)
            for name, value in equal.items()
        }

        def holds(row: Row) -> bool:
            before = self._wanted is None or self._wanted(row)
            return (
                before
                and all(row[name] in values for name, values in allowed.items())
                and (wanted is None or wanted(row))
            )

        return Results(self._source, axes=self.axes, wanted=holds)

    def group(self, *columns: str) -> dict[tuple[Any, ...], Results]:
        """Return the rows by what stands in *columns*, in the order in which that is met.

        Raises:
            KeyError: if there is no such column.
        """
        self._check_columns(columns)
        keys = dict.fromkeys(tuple(row[name] for name in columns) for row in self)
        return {key: self.filter(**dict(zip(columns, key, strict=True))) for key in keys}

    def join(self, *others: Results) -> Results:
        """Return these rows and, behind them, those of *others*."""
        parts = (self, *others)

        def source() -> Iterator[Stored]:
            for part in parts:
                yield from ((json.dumps(row), None, None) for row in part)

        axes = dict.fromkeys(name for part in parts for name in part.axes)
        return Results(source, axes=tuple(axes))

    def summary(
        self, value: str = "byte_index_all_ms", *, by: Sequence[str] = ("scheme",)
    ) -> Results:
        """Return count, mean, standard deviation, least and most of a column, *by* others.

        It goes through the rows once, and leaves out those without the value.

        Raises:
            KeyError: if there is no such column.
        """
        self._check_columns([value, *by])
        sums: dict[tuple[Any, ...], _Moments] = {}
        for row in self:
            moments = sums.setdefault(tuple(row[name] for name in by), _Moments())
            if row[value] is not None:
                moments.add(row[value])
        return Results.of(
            dict(zip(by, key, strict=True)) | {"value": value} | moments.told()
            for key, moments in sums.items()
        )

    # What they say

    def compare(
        self,
        baseline: str = "rr",
        *,
        value: str = "byte_index_all_ms",
        confidence: float = 0.95,
        seed: int = 0,
    ) -> Rows[SchemeRow]:
        """Return each scheme against *baseline*: speedup, interval, test, wins and losses.

        See `h3sim.study.statistics.compare_schemes`, which says what they mean and assume.
        """
        from h3sim.study.statistics import compare_schemes  # on use: scipy is an extra

        return compare_schemes(
            self, baseline=baseline, value=value, confidence=confidence, seed=seed
        )

    def relative_medians(
        self, baseline: str = "rr", *, value: str = "byte_index_all_ms"
    ) -> Rows[RelativeRow]:
        """Return medians relative to *baseline*, as `h3sim.study.statistics.relative_medians`."""
        from h3sim.study.statistics import relative_medians

        return relative_medians(self, baseline=baseline, value=value)

    def correlation(self, x: str, y: str, *, confidence: float = 0.95) -> Correlation:
        """Return how two columns go together, as `h3sim.study.statistics.correlation`."""
        from h3sim.study.statistics import correlation

        return correlation(self, x, y, confidence=confidence)

    # To other forms

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("pandas", "study") from error
        frame = pandas.DataFrame(list(self))
        frame.attrs.update({"version": __version__, "axes": list(self.axes)})
        return frame

    def to_xarray(self, *values: str) -> xr.Dataset:
        """Return figures as an xarray Dataset whose dimensions are the axes; all of them at first.

        Raises:
            MissingExtraError: if pandas or xarray is not installed.
            ResultsError: if the rows are no grid: two of them stand at one place of the axes.
        """
        try:
            import xarray  # noqa: F401 - pandas calls it
        except ImportError as error:
            raise MissingExtraError("xarray", "study") from error
        frame = self.to_pandas()
        axes = list(self.axes) or ["page"]
        if frame.duplicated(axes).any():
            message = f"are no grid over {', '.join(axes)}: two stand at one place"
            raise ResultsError([Problem(key="rows", message=message)])
        wanted = list(values) or [name for name in frame.columns if _is_figure(name)]
        self._check_columns(wanted)
        dataset: xr.Dataset = frame.set_index(axes)[wanted].to_xarray()
        # In the order of the study: xarray sorts what it is not told.
        return dataset.reindex({axis: frame[axis].unique() for axis in axes})

    def to_csv(self, path: str | Path) -> None:
        """Write the rows as CSV, whole or not at all; what a load has not is empty.

        Raises:
            InputError: if the file cannot be written.
        """
        write_whole(path, self._write_csv, error=ResultsError)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows as a Parquet file, whole or not at all, some thousands at a time.

        Raises:
            InputError: if the file cannot be written.
            MissingExtraError: if pyarrow is not installed.
        """
        try:
            import pyarrow.parquet  # on use: an extra
        except ImportError as error:
            raise MissingExtraError("pyarrow", "study") from error
        schema = self._arrow_schema()

        def write(file: BinaryIO) -> None:
            with pyarrow.parquet.ParquetWriter(file, schema) as writer:
                rows = iter(self)
                while some := list(itertools.islice(rows, _CHUNK)):
                    writer.write_table(pyarrow.Table.from_pylist(some, schema=schema))

        write_whole(path, write, error=ResultsError)

    def save(self, path: str | Path) -> None:
        """Write the results such that `read_results` gives them back: a line of JSON for each row.

        Raises:
            InputError: if the file cannot be written.
        """
        head = {"format": FORMAT, "version": __version__, "axes": list(self.axes)}

        def write(file: BinaryIO) -> None:
            for line in itertools.chain([head], self):
                file.write(json.dumps(line, allow_nan=False).encode() + b"\n")

        write_whole(path, write, error=ResultsError)

    # What people see

    def __repr__(self) -> str:
        told = f"; {self.counts}" if self.counts is not None else ""
        return f"<Results of {len(self):,} loads over {', '.join(self.axes) or 'nothing'}{told}>"

    def _repr_html_(self) -> str:
        columns = self.columns
        shown = [name for name in dict.fromkeys((*self.axes, *_HEADLINES)) if name in columns]
        head = list(itertools.islice(self, _SHOWN))
        rows = [[row[name] for name in shown or columns] for row in head]
        more = f"<p>The first {_SHOWN} rows, {len(shown)} of {len(columns)} columns.</p>"
        return f"<p>{html.escape(repr(self))}</p>{html_table(shown or columns, rows)}{more}"

    def _write_csv(self, file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.DictWriter(text, self.columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(self)
        text.detach()

    def _arrow_schema(self) -> Any:
        """Return the types of the columns, which takes a pass over all rows."""
        import pyarrow  # on use: an extra

        kinds: dict[str, set[type]] = {}
        for row in self:
            for name, value in row.items():
                kinds.setdefault(name, set()).add(type(value))
        types = {bool: pyarrow.bool_(), int: pyarrow.int64(), str: pyarrow.string()}
        fields = []
        for name, found in kinds.items():
            found.discard(type(None))
            (kind,) = found if len(found) == 1 else (float,)
            if str in found and len(found) > 1:
                message = f"{name} holds text and numbers: Parquet has one type a column"
                raise ResultsError([Problem(key="rows", message=message)])
            fields.append((name, types.get(kind, pyarrow.float64())))
        return pyarrow.schema(fields)

    def _check_columns(self, names: Iterable[str]) -> None:
        columns = self.columns
        for name in names:
            if columns and name not in columns:
                raise KeyError(f"no column {name!r}; there are {', '.join(columns)}")


class _Moments:
    """Count, mean and spread of numbers that come one by one (Welford 1962)."""

    def __init__(self) -> None:
        self.n = 0
        self.mean = self._squares = 0.0
        self.least = math.inf
        self.most = -math.inf

    def add(self, value: float) -> None:
        self.n += 1
        before = value - self.mean
        self.mean += before / self.n
        self._squares += before * (value - self.mean)
        self.least, self.most = min(self.least, value), max(self.most, value)

    def told(self) -> dict[str, Any]:
        if not self.n:
            return {"n": 0, "mean": None, "sd": None, "min": None, "max": None}
        spread = math.sqrt(self._squares / (self.n - 1)) if self.n > 1 else None
        numbers = {"mean": self.mean, "sd": spread, "min": self.least, "max": self.most}
        return {"n": self.n, **numbers}


_LOAD = ("page", "scheme", "network", "seed")
"""What a row of a resource says of its load, beside the axes."""


def _is_figure(name: str) -> bool:
    return name.startswith(("byte_index", "object_index", "hol_", "packets_")) or name in (
        *("page_load_ms", "first_paint_ms", "largest_paint_ms", "speed_index_ms"),
        *("dom_content_loaded_ms", "load_event_ms"),
    )


def read_results(path: str | Path, *, study: int | None = None) -> Results:
    """Return the results that `Results.save` wrote, or those of a *study* in a store (the last).

    Raises:
        ResultsError: if the file holds neither.
        StoreError: if it is a store that cannot be read, or has no such study.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - paths and names alike
            is_store = file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise ResultsError(
            [Problem(key="", message=f"cannot be read: {error.strerror}")], str(path)
        ) from error
    return _of_store(path, study) if is_store else _of_lines(path)


def _of_store(path: str | Path, study: int | None) -> Results:
    store = Store(path, may_write=False)
    known = {stored.id: stored for stored in store.studies()}
    wanted = max(known, default=0) if study is None else study
    if wanted not in known:
        raise StoreError(f"{path}: has no study {wanted}; there are {', '.join(map(str, known))}")
    return Results(lambda: store.rows(wanted), axes=known[wanted].axes)


def _of_lines(path: str | Path) -> Results:
    head, *lines = read_text(path, ResultsError).splitlines() or [""]
    document = parse_json(head, ResultsError, source=str(path))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        message = f"must be {FORMAT!r}: neither saved results nor a store"
        raise ResultsError([Problem(key="format", message=message)], str(path))
    texts: list[Stored] = [(line, None, None) for line in lines]
    for line in lines:
        parse_json(line, ResultsError, source=str(path))
    return Results(lambda: iter(texts), axes=tuple(document.get("axes", ())))

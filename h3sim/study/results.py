"""The results of a study: one row a load, with every setting, streamed from where they are kept."""

from __future__ import annotations

import html
import importlib
import itertools
import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim._version import __version__
from h3sim.errors import MissingExtraError, NothingToMeasureError
from h3sim.notebook import html_table
from h3sim.study import export
from h3sim.study.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    import xarray as xr

    from h3sim.study.power import PowerRow
    from h3sim.study.ranks import Ranks
    from h3sim.study.statistics import Correlation, RelativeRow, SchemeRow
    from h3sim.trace import Rows

__all__ = ["Counts", "Results", "Stored"]

_SHOWN = 10
_HEADLINES = ("byte_index_all_ms", "byte_index_atf_ms", "page_load_ms")

Row: TypeAlias = dict[str, Any]
Stored: TypeAlias = tuple[str | None, str | None, str | None]
"""Row and resources as JSON, and error: of each, one or the other."""


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
        sums: dict[tuple[Any, ...], Moments] = {}
        for row in self:
            moments = sums.setdefault(tuple(row[name] for name in by), Moments())
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

    def power(
        self,
        speedup: float = 1.05,
        *,
        baseline: str = "rr",
        value: str = "byte_index_all_ms",
        level: float = 0.05,
        power: float = 0.8,
    ) -> Rows[PowerRow]:
        """Return how many seeds and pages show a *speedup*, as `h3sim.study.power` has it."""
        from h3sim.study.power import power_of_schemes

        return power_of_schemes(
            self, speedup=speedup, baseline=baseline, value=value, level=level, power=power
        )

    def ranks(self, value: str = "byte_index_all_ms", *, level: float = 0.05) -> Ranks:
        """Return how schemes rank page by page, as `h3sim.study.ranks.mean_ranks` has it."""
        from h3sim.study.ranks import mean_ranks

        return mean_ranks(self, value=value, level=level)

    @property
    def plot(self) -> Any:
        """Figures, by the methods of `h3sim.plots.StudyPlots`: `plot.cdf()`, `plot.ranks()`, ..."""
        # Figures stand a floor above; they are found by name so that none is loaded for numbers.
        return importlib.import_module("h3sim.plots").StudyPlots(self)

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
        return export.to_xarray(self, values)

    def to_csv(self, path: str | Path) -> None:
        """Write the rows as CSV, whole or not at all; what a load has not is empty.

        Raises:
            InputError: if the file cannot be written.
        """
        export.write_csv(self, path)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows as a Parquet file, whole or not at all, some thousands at a time.

        Raises:
            InputError: if the file cannot be written.
            MissingExtraError: if pyarrow is not installed.
        """
        export.write_parquet(self, path)

    def save(self, path: str | Path) -> None:
        """Write the results such that `read_results` gives them back: a line of JSON for each row.

        Raises:
            InputError: if the file cannot be written.
        """
        export.write_lines(self, path)

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

    def _check_columns(self, names: Iterable[str]) -> None:
        columns = self.columns
        for name in names:
            if columns and name not in columns:
                raise KeyError(f"no column {name!r}; there are {', '.join(columns)}")


_LOAD = ("page", "scheme", "network", "seed")
"""What a row of a resource says of its load, beside the axes."""

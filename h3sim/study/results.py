"""The results of a study: one row a load, with every setting, streamed from where they are kept."""

from __future__ import annotations

import html
import itertools
from typing import TYPE_CHECKING, Any

from h3sim._version import __version__
from h3sim.errors import needing_extra
from h3sim.notebook import html_table
from h3sim.provided import provided
from h3sim.results.figures import FIGURES
from h3sim.study import export
from h3sim.study.rows import StudyRows
from h3sim.trace.rows import with_floats

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    import xarray as xr

    from h3sim.study.intervals import Method
    from h3sim.study.power import PowerRow
    from h3sim.study.ranks import Ranks
    from h3sim.study.statistics import Correlation, RelativeRow, SchemeRow
    from h3sim.trace import Rows

__all__ = ["Results"]

_SHOWN = 10
_HEADLINES = tuple(figure.name for figure in FIGURES if figure.is_headline)


class Results(StudyRows):
    """Rows in the order of the study's parameters, however the workers finished.

    A row is a dict: page, scheme, every setting, version and seed, then the figures; times in ms,
    None for what the load has not. Rows are read when they are asked for, so that results may be
    larger than memory. *axes* names the columns in which the loads differ.

    >>> results = Results.of([{"scheme": "rr", "ms": 30.0}, {"scheme": "fifo", "ms": 10.0}])
    >>> len(results), results.columns, results.filter(scheme="fifo").column("ms")
    (2, ('scheme', 'ms'), [10.0])
    """

    # What they say

    def compare(
        self,
        baseline: str = "rr",
        *,
        value: str = "byte_index_all_ms",
        confidence: float = 0.95,
        interval: Method = "bootstrap-t",
        seed: int = 0,
    ) -> Rows[SchemeRow]:
        """Return each scheme against *baseline*: speedup, interval, test, wins and losses.

        See `h3sim.study.statistics.compare_schemes`, which says what they mean and assume.
        """
        from h3sim.study.statistics import compare_schemes  # on use: scipy is an extra

        return compare_schemes(
            self,
            baseline=baseline,
            value=value,
            confidence=confidence,
            interval=interval,
            seed=seed,
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
        return provided("results.plot", self)

    # To other forms

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
        rows = f"{len(self):,} row{'s' * (len(self) != 1)}"
        return f"<Results of {rows} over {', '.join(self.axes) or 'nothing'}{told}>"

    def _repr_html_(self) -> str:
        columns = self.columns
        shown = [name for name in dict.fromkeys((*self.axes, *_HEADLINES)) if name in columns]
        head = list(itertools.islice(self, _SHOWN))
        told = shown or columns
        # Of joined studies, not all rows need have what the first has.
        rows = [[row.get(name) for name in told] for row in head]
        first = f"The first {_SHOWN} rows, " if len(self) > _SHOWN else ""
        more = f"<p>{first}{len(told)} of {len(columns)} columns.</p>"
        return f"<p>{html.escape(repr(self))}</p>{html_table(told, rows)}{more}"

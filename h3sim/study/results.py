"""The results of a study: rows, filtered, grouped, summarized, saved and read back."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, overload

from h3sim._version import __version__
from h3sim.errors import InputError, ValidationIssue, needing_extra
from h3sim.lazy import accessor
from h3sim.results.figures import FIGURES
from h3sim.schema import format_value, parse_json, read_text, write_atomically
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.fields import declare, read_document, write_table
from h3sim.schema.files import DIGEST, lines_digest, open_input
from h3sim.schema.values import Integer, ListOf, OrNone, Text
from h3sim.study.rows import StudyRows, no_column, row_problem
from h3sim.study.store import Store
from h3sim.study.store_file import renamed_row
from h3sim.table import RichDisplay, Table, with_floats
from h3sim.units import unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import pandas as pd
    import xarray as xr

    from h3sim.study.rows import Stored
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
        raise ResultsError.at("rows", message)
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

    write_atomically(path, write, error=ResultsError)


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

    write_atomically(path, write, error=ResultsError)


def write_lines(results: Results, path: str | Path) -> None:
    """Write a header line, then one line of JSON per row, then their digest."""
    metadata = ResultsHead(version=__version__, axes=tuple(results.axes))
    head = {"format": FORMAT, **write_table(metadata, include_defaults=True)}

    def write(file: BinaryIO) -> None:
        def written() -> Iterator[str]:
            for line in itertools.chain([head], results):
                text = json.dumps(line, allow_nan=False)
                file.write(text.encode() + b"\n")
                yield text

        file.write(json.dumps({DIGEST: lines_digest(written())}).encode() + b"\n")

    write_atomically(path, write, error=ResultsError)


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
            raise ResultsError.at("rows", message)
        fields.append((name, types.get(kind, pyarrow.float64())))
    return pyarrow.schema(fields)


_SHOWN = 10
_HEADLINES = tuple(figure.name for figure in FIGURES if figure.is_headline)


class Results(StudyRows, RichDisplay):
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
        description = f"; {self.counts}" if self.counts is not None else ""
        rows = f"{len(self):,} row{'s' * (len(self) != 1)}"
        return f"<Results of {rows} over {', '.join(self.axes) or 'nothing'}{description}>"

    def _display(self) -> Iterable[str | Table[Any]]:
        columns = self.columns
        shown = [name for name in dict.fromkeys((*self.axes, *_HEADLINES)) if name in columns]
        description = shown or columns
        # Rows of joined studies may have different columns.
        rows = [[row.get(name) for name in description] for row in itertools.islice(self, _SHOWN)]
        yield repr(self)
        yield Table(description, rows)
        first = f"The first {_SHOWN} rows, " if len(self) > _SHOWN else ""
        yield f"{first}{len(description)} of {len(columns)} columns."


_SQLITE = b"SQLite format 3\0"
_PARQUET = b"PAR1"
_OTHER = (
    "is neither a store nor written by `results.save` (read the files of `to_csv` and others with"
    " pandas)"
)
SAMPLED = "h3sim-results/1"
"""Older format without a digest, whose `byte_index_all_ms` was sampled every 100 ms."""
_STUDY = OrNone(Integer(low=1))


def read_results(path: str | Path, *, study: int | None = None) -> Results:
    """Read the results that `Results.save` wrote, or those of a *study* in a store (default: last).

    Raises:
        ResultsError: if the file is neither.
        StoreError: if the store cannot be read, or has no such study.
    """
    taken = check_arguments(ResultsError, path=(PATH, path), study=(_STUDY, study))
    with open_input(path, ResultsError) as file:
        head = file.read(len(_SQLITE))
    if head == _SQLITE:
        return _of_store(path, taken["study"])
    if head.startswith(_PARQUET):
        raise ResultsError.at("", _OTHER, str(path))
    if study is not None:
        message = f"is valid only for stores, is {study}: this file contains one study"
        raise ResultsError.at("study", message, str(path))
    return _read_lines(path)


def _of_store(path: str | Path, study: int | None) -> Results:
    store = Store(path, may_write=False)
    number, axes = store.axes_of(study)
    return _with_known_axes(Results(lambda: store.rows(number), axes=axes), path)


def _read_lines(path: str | Path) -> Results:
    """Return the results of a file of JSON lines."""
    head, *lines = read_text(path, ResultsError).splitlines() or [""]
    if not head.lstrip().startswith("{"):
        raise ResultsError.at("", _OTHER, str(path))
    document = parse_json(head, ResultsError, source=str(path))
    if not isinstance(document, dict) or document.get("format") not in (FORMAT, SAMPLED):
        message = f"must be {FORMAT!r}: neither saved results nor a store"
        raise ResultsError.at("format", message, str(path))
    problems: list[ValidationIssue] = []
    metadata, is_sampled = ResultsHead(), document["format"] == SAMPLED
    last = None if is_sampled or not lines else lines.pop()
    try:
        metadata = read_document(
            ResultsHead, document | {"format": FORMAT}, ResultsError, source="", format_=FORMAT
        )
    except ResultsError as error:
        problems += error.problems
    # Checked now, so that bad lines are found early; but kept as text, which takes far less memory
    # than rows.
    problems += filter(None, map(_row_problem, itertools.count(2), lines))
    if not is_sampled and not problems:
        problems += filter(None, [_digest_problem([head, *lines], last)])
    if problems:
        raise ResultsError(problems, str(path))
    texts: list[Stored] = [(line, None, None) for line in lines]
    if is_sampled:
        texts = [(renamed_row(line), None, None) for line in lines]
    return _with_known_axes(Results(lambda: iter(texts), axes=metadata.axes), path)


def _with_known_axes(results: Results, path: str | Path) -> Results:
    """Return *results* after checking that their axes are columns."""
    columns = results.columns
    if columns and (unknown := [name for name in results.axes if name not in columns]):
        problems = [
            ValidationIssue(key="axes", message=no_column(name, columns)) for name in unknown
        ]
        raise ResultsError(problems, str(path))
    return results


def _digest_problem(lines: list[str], last: str | None) -> ValidationIssue | None:
    """Return the issue of lines that do not match the digest in the *last* one, or None."""
    found = None
    with contextlib.suppress(ResultsError):
        found = parse_json(last or "", ResultsError, source="")
    if not isinstance(found, dict) or not isinstance(found.get(DIGEST), str):
        message = "is missing in the last line: the file was cut off"
    elif found[DIGEST] != lines_digest(lines):
        message = "differs from the rows, which are damaged or were edited"
    else:
        return None
    return ValidationIssue(key=DIGEST, message=message)


def _row_problem(number: int, line: str) -> ValidationIssue | None:
    """Return the issue of a line that is not a valid row, or None."""
    try:
        row = parse_json(line, ResultsError, source="")
    except ResultsError as error:
        return ValidationIssue(key=f"line {number}", message=error.problems[0].message)
    if not isinstance(row, dict):
        return ValidationIssue(
            key=f"line {number}", message=f"must be an object, is {format_value(row)}"
        )
    if problem := row_problem(row):
        return ValidationIssue(key=f"line {number}", message=problem)
    return None

"""The results of a study: rows, filtered, grouped, summarized, saved and read back."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import itertools
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from h3sim._version import __version__
from h3sim.load.figures import FIGURES
from h3sim.load.options import file_key
from h3sim.schema import format_value, parse_json, read_text, write_atomically
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.fields import read_document, write_table
from h3sim.schema.files import DIGEST, lines_digest, open_input
from h3sim.schema.values import Integer, ListOf, OrNone, Text
from h3sim.study import pairing
from h3sim.study.rows import Stored, StudyRows, no_column, row_problem
from h3sim.study.statistics import contrasts, correlation, medians, ranks
from h3sim.study.statistics.power import PowerRow, power_of_schemes
from h3sim.study.store import Store
from h3sim.values.errors import InputError, ValidationIssue, needing_extra
from h3sim.values.notebook import reporting
from h3sim.values.table import RichDisplay, Rows, Table, with_floats
from h3sim.values.units import unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import pandas as pd
    import xarray as xr

    from h3sim.study.columns import Columns
    from h3sim.study.statistics.contrasts import Correction
    from h3sim.study.statistics.correlation import Correlation
    from h3sim.study.statistics.medians import RelativeRow
    from h3sim.study.statistics.pairs import How
    from h3sim.study.statistics.ranks import Ranks
    from h3sim.values.plots import StudyPlots


FORMAT = "h3sim-results/2"
_ROWS_PER_BATCH = 5000
"""Rows that are written to a Parquet file together."""


class ResultsError(InputError):
    """Error in reading, writing or using results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsHead:
    """First line of saved rows, with their metadata."""

    version: str = file_key(Text(), "version of h3sim", default="")
    axes: tuple[str, ...] = file_key(
        ListOf(Text(), "names of columns"), "the columns in which loads differ", default=()
    )


_TEXT_COLUMNS = {
    *("page", "of", "scheme", "network", "transport", "transport_profile", "cc", "version"),
    *("queue_discipline", "reorder", "send_buffer_refill", "retransmission_order", "signalling"),
    *("handshake", "browser", "tight_mode", "paint", "header_compression", "connections"),
    *("cross_traffic", *(name for name in pairing.DETERMINED_BY if name.endswith("_digest"))),
}
"""Settings that are text; all others but switches and the seed are numbers, as metrics are."""
_SWITCHES = {"ecn", "preload_scanner", "stylesheets_block_parser"}
_KNOWN_COLUMNS = {*pairing.DETERMINED_BY, *(figure.name for figure in FIGURES)}


def _arrow_schema(results: Results) -> Any:
    """Return types, units and metadata of the columns.

    A known column has the same type in all files, whatever its values are, so that files can be
    read together. The types of others are found in a pass over all rows.
    """
    import pyarrow  # lazy: optional dependency

    types_by_column: dict[str, set[type]] = {}
    for row in results:
        for name, value in row.items():
            types_by_column.setdefault(name, set()).add(type(value))
    arrow_types = {bool: pyarrow.bool_(), int: pyarrow.int64(), str: pyarrow.string()}
    fields = []
    for name, types in types_by_column.items():
        types.discard(type(None))
        if str in types and len(types) > 1:
            message = f"{name} has text and numbers: a Parquet column has one type"
            raise ResultsError.at("rows", message)
        if name in _KNOWN_COLUMNS:
            column_type: type = int if name == "seed" else float
            column_type = str if name in _TEXT_COLUMNS else column_type
            column_type = bool if name in _SWITCHES else column_type
        else:
            # A column with integers and floats has floats, and so has an empty one.
            column_type = types.pop() if len(types) == 1 else float
        metadata = {"unit": unit} if (unit := unit_of(name)) else None
        arrow_type = arrow_types.get(column_type, pyarrow.float64())
        fields.append(pyarrow.field(name, arrow_type, metadata=metadata))
    about = {"format": FORMAT, "version": __version__, "axes": list(results.axes)}
    return pyarrow.schema(fields, metadata={"h3sim": json.dumps(about)})


def _sampled_together(frame: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return those settings among *axes* that were not combined with each other, but listed."""

    def count(names: list[str]) -> int:
        return len(frame[names].drop_duplicates()) if names else 1

    together = [name for name in axes if name not in (*pairing.LOAD_COLUMNS, "page_digest")]
    for name in tuple(together):
        others = [other for other in together if other != name]
        if count(together) == count([name]) * count(others):
            together = others
    # A grid of which at least half is filled has only lost some loads.
    is_sparse = 2 * count(together) <= math.prod(count([name]) for name in together)
    return together if is_sparse else []


def _pages_without(columns: Columns, value: str) -> str:
    """Return a sentence that names the pages without *value* in any row; "" if there are none."""
    pages, values = columns["page"], columns[value]
    measured = {page for page, own in zip(pages, values, strict=True) if own is not None}
    without = [str(page) for page in columns.distinct("page") if page not in measured]
    return f"Without {value}, and so in no row: {', '.join(without)}." if without else ""


_MAX_SHOWN_ROWS = 10
"""Rows that a notebook shows."""
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

    def compare(
        self,
        baseline: Any = "rr",
        *,
        over: str | None = None,
        value: str = "byte_index_all_ms",
        how: How | None = None,
        by: Sequence[str] = (),
        pool: Sequence[str] = (),
        confidence: float = 0.95,
        correction: Correction = "holm",
        seed: int = 0,
    ) -> Rows[Any]:
        """Return each scheme against *baseline*: speedup, interval, test, wins and losses.

        With *over*, each value of that axis is compared with *baseline*, one of them, in each
        setting of the columns *by*; with *baseline* None, all are compared with each other. p is
        corrected for the number of rows: *correction* is "holm", "benjamini-hochberg" or "none".
        The loads of a pair have all else in common: every setting, the
        contents of the page and the version of h3sim. Pages and seeds are averaged over, other axes
        only where *pool* names them.

        *how* is "ratio", or "difference" in the unit of the value, which is the default for metrics
        that can be 0, such as blocked bytes and losses. See `compare_schemes` and `compare_over` in
        `h3sim.study.statistics.contrasts`, which say what figures mean and assume, and which rows
        there are.

        Raises:
            InputError: if there is no such scheme, column or value, if loads differ in columns that
                are not named, or if too many pairs have no ratio because a value is 0.
            NothingToMeasureError: if no pair has the value.
            MissingExtraError: if scipy is not installed.

        >>> rows = [
        ...     {"page": page, "scheme": "rr", "transport": transport, "seed": 0, "ms": float(ms)}
        ...     for page in ("a", "b")
        ...     for transport, ms in (("tcp", 200), ("quic", 100))
        ... ]
        >>> study = Results.of(rows, axes=["page", "transport"])
        >>> (row,) = study.compare(over="transport", baseline="tcp", value="ms")
        >>> row.level, row.geometric, row.refusal
        ('quic', 2.0, '2 independent pages: an interval takes 3 or more')
        >>> (row,) = study.compare(over="transport", baseline="tcp", value="ms", how="difference")
        >>> row.baseline_mean, row.mean, row.difference
        (200.0, 100.0, -100.0)
        """
        options: dict[str, Any] = {"confidence": confidence, "seed": seed}
        options |= {
            "correction": correction,
            "value": value,
            "baseline": baseline,
            "pool": pool,
            "how": how,
        }
        axis = "scheme" if over is None else over
        named = by if isinstance(by, list | tuple) else ()
        columns = pairing.columns_of(self, value, axis, *named)
        if over is None and not by and baseline is not None:
            rows = contrasts.compare_schemes(columns, **options)
        else:
            rows = contrasts.compare_over(columns, over=axis, by=by, **options)
        rows.note = _pages_without(columns, value)
        return rows

    def relative_medians(
        self, baseline: str = "rr", *, value: str = "byte_index_all_ms", how: How | None = None
    ) -> Rows[RelativeRow]:
        """Return medians relative to *baseline*, as `h3sim.study.statistics.medians`."""
        columns = pairing.columns_of(self, value)
        rows = medians.relative_medians(columns, baseline=baseline, value=value, how=how)
        rows.note = _pages_without(columns, value)
        return rows

    def correlation(self, x: str, y: str, *, confidence: float = 0.95) -> Correlation:
        """Return the rank correlation of two columns, as `h3sim.study.statistics.correlation`."""
        return correlation.correlation(self, x, y, confidence=confidence)

    def power(
        self,
        speedup: float = 1.05,
        *,
        baseline: str = "rr",
        value: str = "byte_index_all_ms",
        level: float = 0.05,
        power: float = 0.8,
        pool: Sequence[str] = (),
    ) -> Rows[PowerRow]:
        """Return seeds and pages needed to detect a *speedup*; see `h3sim.study.statistics.power`.

        Settings are averaged over only if they differ in the columns that *pool* names.
        """
        options: dict[str, Any] = {"baseline": baseline, "value": value, "pool": pool}
        return power_of_schemes(self, speedup=speedup, level=level, power=power, **options)

    def ranks(
        self,
        value: str = "byte_index_all_ms",
        *,
        level: float = 0.05,
        pool: Sequence[str] = (),
    ) -> Ranks:
        """Return the mean ranks of schemes over pages, as `h3sim.study.statistics.ranks`."""
        return ranks.mean_ranks(self, value=value, level=level, pool=pool)

    @property
    def plot(self) -> StudyPlots:
        """Plots, as methods of `h3sim.reporting.StudyPlots`: `plot.cdf()`, `plot.ranks()`."""
        plots: StudyPlots = reporting().StudyPlots(self)
        return plots

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

        These are all columns in which loads differ (`h3sim.study.pairing`), declared or not. Those
        that were sampled together, not combined with each other, are coordinates of one dimension,
        `sample`.

        Raises:
            MissingExtraError: if pandas or xarray is not installed.
            ResultsError: if the rows are not a grid: several have the same values of the axes.
        """
        with needing_extra("xarray", "study"):
            import xarray  # noqa: F401 - pandas calls it
        frame = self.to_pandas()
        varied = pairing.varying(self, self.axes)
        axes = [*dict.fromkeys((*self.axes, *varied))] or ["page"]
        together = _sampled_together(frame, axes)
        if together:
            samples = frame.groupby(together, sort=False, dropna=False)
            frame["sample"] = samples.ngroup()
            axes = [*dict.fromkeys("sample" if name in together else name for name in axes)]
        if frame.duplicated(axes).any():
            message = f"are not a grid over {', '.join(axes)}: several rows have the same values"
            raise ResultsError.at("rows", message)
        unknown = {
            name: f"{name} is an axis" if name in axes else no_column(name, list(frame.columns))
            for name in values
            if name not in frame.columns or name in axes
        }
        if unknown:
            issues = (ValidationIssue(key="values", message=text) for text in unknown.values())
            raise ResultsError(issues)
        titles = {figure.name: figure.title for figure in FIGURES if figure.name in frame.columns}
        dataset: xr.Dataset = frame.set_index(axes)[list(values) or list(titles)].to_xarray()
        # In the order of the study: xarray would sort the coordinates.
        dataset = dataset.reindex({axis: frame[axis].unique() for axis in axes})
        for name, variable in dataset.variables.items():
            # As in the CF conventions and for xarray's plots.
            if variable.dtype.kind in "iuf" and (unit := unit_of(str(name))):
                variable.attrs["units"] = unit
            if name in titles:
                variable.attrs["long_name"] = titles[str(name)]
        for name in together:
            dataset = dataset.assign_coords({name: ("sample", samples[name].first().to_numpy())})
            if unit := unit_of(name):
                dataset[name].attrs["units"] = unit
        dataset.attrs |= {"version": __version__, "axes": list(self.axes)}
        return dataset

    def to_csv(self, path: str | Path) -> None:
        """Write the rows as CSV, atomically; missing values are empty.

        The file *path* with ".json" added describes it: version, axes, units of the columns, the
        configuration that all rows share, and the digest (SHA-256) of the CSV file.

        Raises:
            InputError: if the file cannot be written.
        """
        # From all rows: rows of joined studies may have different columns.
        columns = dict.fromkeys(name for row in self for name in row)
        settings = pairing.columns_of(self).constants()

        def write(file: BinaryIO) -> None:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
            writer = csv.DictWriter(text, list(columns), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self)
            # Otherwise *text* would close the file when collected, before it is moved into place.
            text.detach()

        write_atomically(path, write, error=ResultsError)
        with open_input(path, ResultsError) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        about = {
            "version": __version__,
            "axes": list(self.axes),
            "units": {name: unit for name in columns if (unit := unit_of(name))},
            "configuration": {name: settings[name] for name in columns if name in settings},
            "sha256": digest,
        }
        write_atomically(f"{path}.json", json.dumps(about, indent=2) + "\n", error=ResultsError)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows as a Parquet file, atomically and in batches.

        A setting or metric has the same type in all files; the key "unit" of a field's metadata is
        its unit, and "h3sim" of the schema's has version and axes as JSON.

        Raises:
            InputError: if the file cannot be written.
            MissingExtraError: if pyarrow is not installed.
        """
        with needing_extra("pyarrow", "study"):
            import pyarrow.parquet  # lazy: optional dependency
        schema = _arrow_schema(self)

        def write(file: BinaryIO) -> None:
            with pyarrow.parquet.ParquetWriter(file, schema) as writer:
                rows = iter(self)
                while batch := list(itertools.islice(rows, _ROWS_PER_BATCH)):
                    writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))

        write_atomically(path, write, error=ResultsError)

    def save(self, path: str | Path) -> None:
        """Save the results for `read_results`: one line of JSON per row.

        Raises:
            InputError: if the file cannot be written.
        """
        metadata = ResultsHead(version=__version__, axes=tuple(self.axes))
        head = {"format": FORMAT, **write_table(metadata, include_defaults=True)}

        def write(file: BinaryIO) -> None:
            def written() -> Iterator[str]:
                for line in itertools.chain([head], self):
                    text = json.dumps(line, allow_nan=False)
                    file.write(text.encode() + b"\n")
                    yield text

            file.write(json.dumps({DIGEST: lines_digest(written())}).encode() + b"\n")

        write_atomically(path, write, error=ResultsError)

    # Display

    def __repr__(self) -> str:
        description = f"; {self.counts}" if self.counts is not None else ""
        if self.n_merged:
            repeated = f"{self.n_merged:,} repeated load{'s' * (self.n_merged != 1)}"
            description += f"; {repeated} merged"
        if reason := self.reason_without_rows():
            description += f"; {reason}"
        rows = f"{len(self):,} row{'s' * (len(self) != 1)}"
        return f"<Results of {rows} over {', '.join(self.axes) or 'nothing'}{description}>"

    def _display(self) -> Iterable[str | Table[Any]]:
        columns = self.columns
        headlines = [name for name in dict.fromkeys((*self.axes, *_HEADLINES)) if name in columns]
        shown = headlines or columns
        # Rows of joined studies may have different columns.
        rows = [
            [row.get(name) for name in shown] for row in itertools.islice(self, _MAX_SHOWN_ROWS)
        ]
        yield repr(self)
        yield Table(shown, rows)
        first = f"The first {_MAX_SHOWN_ROWS} rows, " if len(self) > _MAX_SHOWN_ROWS else ""
        yield f"{first}{len(shown)} of {len(columns)} columns."


_SQLITE_MAGIC = b"SQLite format 3\0"
_PARQUET_MAGIC = b"PAR1"
_OTHER_FILE_MESSAGE = (
    "is neither a store nor written by `results.save` (read the files of `to_csv` and others with"
    " pandas)"
)
_STUDY_NUMBER = OrNone(Integer(low=1))


def read_results(path: str | Path, *, study: int | None = None) -> Results:
    """Read the results that `Results.save` wrote, or those of a *study* in a store (default: last).

    Raises:
        ResultsError: if the file is neither.
        StoreError: if the store cannot be read, or has no such study.
    """
    valid = check_arguments(ResultsError, path=(PATH, path), study=(_STUDY_NUMBER, study))
    with open_input(path, ResultsError) as file:
        head = file.read(len(_SQLITE_MAGIC))
    if head == _SQLITE_MAGIC:
        return _of_store(path, valid["study"])
    if head.startswith(_PARQUET_MAGIC):
        raise ResultsError.at("", _OTHER_FILE_MESSAGE, str(path))
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
        raise ResultsError.at("", _OTHER_FILE_MESSAGE, str(path))
    document = parse_json(head, ResultsError, source=str(path))
    given = document.get("format") if isinstance(document, dict) else None
    if given != FORMAT:
        message = f"must be {FORMAT!r}, is {format_value(given)}: neither saved results nor a store"
        raise ResultsError.at("format", message, str(path))
    problems: list[ValidationIssue] = []
    metadata = ResultsHead()
    digest_line = lines.pop() if lines else None
    try:
        metadata = read_document(ResultsHead, document, ResultsError, source="", format_=FORMAT)
    except ResultsError as error:
        problems += error.problems
    # All lines are checked now, but kept as text, which takes far less memory than rows.
    for number, line in enumerate(lines, 2):
        if problem := _line_problem(line):
            problems.append(ValidationIssue(key=f"line {number}", message=problem))
    if not problems and (problem := _digest_problem([head, *lines], digest_line)):
        problems.append(ValidationIssue(key=DIGEST, message=problem))
    if problems:
        raise ResultsError(problems, str(path))
    rows: list[Stored] = [(line, None, None) for line in lines]
    return _with_known_axes(Results(lambda: iter(rows), axes=metadata.axes), path)


def _with_known_axes(results: Results, path: str | Path) -> Results:
    """Return *results* after checking that their axes are columns."""
    columns = results.columns
    if columns and (unknown := [name for name in results.axes if name not in columns]):
        texts = [no_column(name, columns) for name in unknown]
        raise ResultsError((ValidationIssue(key="axes", message=text) for text in texts), str(path))
    return results


def _digest_problem(lines: list[str], digest_line: str | None) -> str | None:
    """Return why lines do not match the digest in the last line of a file; None if they do."""
    document = None
    with contextlib.suppress(ResultsError):
        document = parse_json(digest_line or "", ResultsError, source="")
    if not isinstance(document, dict) or not isinstance(document.get(DIGEST), str):
        return "is missing in the last line: the file was cut off"
    if document[DIGEST] != lines_digest(lines):
        return "differs from the rows, which are damaged or were edited"
    return None


def _line_problem(line: str) -> str | None:
    """Return why a line is not a valid row, or None if it is."""
    try:
        row = parse_json(line, ResultsError, source="")
    except ResultsError as error:
        return error.problems[0].message
    return (
        row_problem(row) if isinstance(row, dict) else f"must be an object, is {format_value(row)}"
    )

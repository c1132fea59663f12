"""Results in other forms: xarray, CSV, Parquet, lines of JSON; files whole or not at all."""

from __future__ import annotations

import csv
import io
import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from h3sim._version import __version__
from h3sim.documents import write_whole
from h3sim.documents.declared import says, write_table
from h3sim.documents.values import ListOf, Text
from h3sim.errors import InputError, Problem, needing_extra
from h3sim.results.figures import FIGURES
from h3sim.study.rows import no_column
from h3sim.units import unit_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import xarray as xr

    from h3sim.study.results import Results

__all__ = [
    *("FORMAT", "ResultsError", "ResultsHead", "to_xarray", "write_csv", "write_lines"),
    "write_parquet",
]

FORMAT = "h3sim-results/2"
_CHUNK = 5000


class ResultsError(InputError):
    """Results cannot be read, written or used so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsHead:
    """The first line of saved rows, which says what they are."""

    version: str = field(default="", metadata=says(Text(), "of h3sim"))
    axes: tuple[str, ...] = field(
        default=(),
        metadata=says(ListOf(Text(), "names of columns"), "the columns in which loads differ"),
    )


def to_xarray(results: Results, values: Sequence[str]) -> xr.Dataset:
    """Return *values*, all figures if none is named, over the axes of *results*.

    Figures and axes have their units in `attrs`, as xarray's plots and CF name them.
    """
    with needing_extra("xarray", "study"):
        import xarray  # noqa: F401 - pandas calls it
    frame = results.to_pandas()
    axes = list(results.axes) or ["page"]
    if frame.duplicated(axes).any():
        message = f"are no grid over {', '.join(axes)}: two stand at one place"
        raise ResultsError([Problem(key="rows", message=message)])
    if unknown := [name for name in values if name not in frame.columns or name in axes]:
        raise ResultsError(
            Problem(key="values", message=_no_value(name, axes, list(frame.columns)))
            for name in unknown
        )
    figures = [figure.name for figure in FIGURES if figure.name in frame.columns]
    dataset: xr.Dataset = frame.set_index(axes)[list(values) or figures].to_xarray()
    # In the order of the study: xarray sorts what it is not told.
    dataset = dataset.reindex({axis: frame[axis].unique() for axis in axes})
    titles = {figure.name: figure.title for figure in FIGURES}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "iuf" and (unit := unit_of(str(name))):
            variable.attrs["units"] = unit
        if name in titles:
            variable.attrs["long_name"] = titles[str(name)]
    return dataset


def _no_value(name: str, axes: Sequence[str], columns: Sequence[str]) -> str:
    """Return why *name* is none of the values that can stand over the axes."""
    return f"{name} is an axis" if name in axes else no_column(name, columns)


def write_csv(results: Results, path: str | Path) -> None:
    """Write the rows as CSV; what a load has not is empty."""

    def write(file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        # Of all rows: of studies that were joined, not all need have what the first has.
        columns = dict.fromkeys(name for row in results for name in row)
        writer = csv.DictWriter(text, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)
        # Otherwise *text* would close the file when it is collected, before it is moved in place.
        text.detach()

    write_whole(path, write, error=ResultsError)


def write_parquet(results: Results, path: str | Path) -> None:
    """Write the rows as Parquet, some thousands at a time."""
    with needing_extra("pyarrow", "study"):
        import pyarrow.parquet  # on use: an extra
    schema = _arrow_schema(results)

    def write(file: BinaryIO) -> None:
        with pyarrow.parquet.ParquetWriter(file, schema) as writer:
            rows = iter(results)
            while some := list(itertools.islice(rows, _CHUNK)):
                writer.write_table(pyarrow.Table.from_pylist(some, schema=schema))

    write_whole(path, write, error=ResultsError)


def write_lines(results: Results, path: str | Path) -> None:
    """Write a line of JSON for each row, behind one that says what they are."""
    said = ResultsHead(version=__version__, axes=tuple(results.axes))
    head = {"format": FORMAT, **write_table(said, is_whole=True)}

    def write(file: BinaryIO) -> None:
        for line in itertools.chain([head], results):
            file.write(json.dumps(line, allow_nan=False).encode() + b"\n")

    write_whole(path, write, error=ResultsError)


def _arrow_schema(results: Results) -> Any:
    """Return the types of the columns, which takes a pass over all rows."""
    import pyarrow  # on use: an extra

    kinds: dict[str, set[type]] = {}
    for row in results:
        for name, value in row.items():
            kinds.setdefault(name, set()).add(type(value))
    types = {bool: pyarrow.bool_(), int: pyarrow.int64(), str: pyarrow.string()}
    fields = []
    for name, found in kinds.items():
        found.discard(type(None))
        # Whole numbers beside floats are floats, and so is a column in which no row has anything.
        (kind,) = found if len(found) == 1 else (float,)
        if str in found and len(found) > 1:
            message = f"{name} holds text and numbers: Parquet has one type a column"
            raise ResultsError([Problem(key="rows", message=message)])
        fields.append((name, types.get(kind, pyarrow.float64())))
    return pyarrow.schema(fields)

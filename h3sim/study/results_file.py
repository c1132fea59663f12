"""Saved results: read back from lines of JSON or from a store."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

from h3sim.errors import ValidationIssue
from h3sim.schema import format_value, parse_json, read_text
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.schema.fields import read_document
from h3sim.schema.files import DIGEST, lines_digest, open_input
from h3sim.schema.values import Integer, OrNone
from h3sim.study.results import FORMAT, Results, ResultsError, ResultsHead
from h3sim.study.rows import no_column, row_problem
from h3sim.study.store import Store
from h3sim.study.store_file import renamed_row

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.study.rows import Stored


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
        raise ResultsError([ValidationIssue(key="", message=_OTHER)], str(path))
    if study is not None:
        message = f"is valid only for stores, is {study}: this file contains one study"
        raise ResultsError([ValidationIssue(key="study", message=message)], str(path))
    return _of_lines(path)


def _of_store(path: str | Path, study: int | None) -> Results:
    store = Store(path, may_write=False)
    number, axes = store.axes_of(study)
    return _with_known_axes(Results(lambda: store.rows(number), axes=axes), path)


def _of_lines(path: str | Path) -> Results:
    head, *lines = read_text(path, ResultsError).splitlines() or [""]
    if not head.lstrip().startswith("{"):
        raise ResultsError([ValidationIssue(key="", message=_OTHER)], str(path))
    document = parse_json(head, ResultsError, source=str(path))
    if not isinstance(document, dict) or document.get("format") not in (FORMAT, SAMPLED):
        message = f"must be {FORMAT!r}: neither saved results nor a store"
        raise ResultsError([ValidationIssue(key="format", message=message)], str(path))
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

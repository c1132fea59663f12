"""Pages of an export of the HTTP Archive, one per page load."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.browser.above_the_fold import HEURISTIC
from h3sim.importers.detect import finished_page
from h3sim.importers.formats.archive import read_archived_loads
from h3sim.importers.result import ImportedPage, RecordingError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class ArchivedPage(NamedTuple):
    """Page of an archive: its name, unique among those of the file, and its import or error."""

    name: str
    result: ImportedPage | RecordingError


def read_archive(
    path: str | Path, *, strict: bool = False, above_the_fold: str | Path = HEURISTIC
) -> Iterator[ArchivedPage]:
    """Yield the page of each page load in an export of the HTTP Archive, in order of their rows.

    *strict* and *above_the_fold* are as in `import_page`, which imports one page load of a file.

    Raises:
        RecordingError: if the file cannot be read.
        MissingExtraError: for a Parquet file, if pyarrow is not installed.
    """
    for name, recording in read_archived_loads(path):
        if isinstance(recording, RecordingError):
            yield ArchivedPage(name, recording)
            continue
        try:
            imported = finished_page(recording, above_the_fold=above_the_fold, strict=strict)
        except RecordingError as error:
            yield ArchivedPage(name, error)
        else:
            yield ArchivedPage(name, imported)

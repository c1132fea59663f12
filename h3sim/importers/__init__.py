"""Importers: pages from recordings of page loads, static sites and an installed Chromium.

They may import pages, traces and qlog, and run no load. Begin with `source.py` (files and parts),
then `detect.py` (which format), `causes.py` and `page_assembly.py` (from requests to a page).
"""

from h3sim.importers.crux import NetworkShare, NotCruxError, read_crux
from h3sim.importers.detect import (
    DIALECTS,
    ArchivedPage,
    import_page,
    read_archive,
    read_har,
    read_recording,
)
from h3sim.importers.result import ImportedPage, RecordingError

__all__ = [
    "DIALECTS",
    "ArchivedPage",
    "ImportedPage",
    "NetworkShare",
    "NotCruxError",
    "RecordingError",
    "import_page",
    "read_archive",
    "read_crux",
    "read_har",
    "read_recording",
]

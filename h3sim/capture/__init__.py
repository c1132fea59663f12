"""Recordings of page loads, static sites and an installed Chromium, made into pages."""

from h3sim.capture.dialects.facts import facts_from_dict
from h3sim.capture.imported import ImportedPage, RecordingError
from h3sim.capture.importer import DIALECTS, import_page, read_har

__all__ = [
    "DIALECTS",
    "ImportedPage",
    "RecordingError",
    "facts_from_dict",
    "import_page",
    "read_har",
]

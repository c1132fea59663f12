"""Recordings of page loads, and static sites, made into pages."""

from h3sim.formats.imports import ImportedPage, RecordingError
from h3sim.formats.pages.read import DIALECTS, import_page, read_har

__all__ = ["DIALECTS", "ImportedPage", "RecordingError", "import_page", "read_har"]

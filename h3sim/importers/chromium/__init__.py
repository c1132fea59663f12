"""Records real pages in an installed Chromium, as facts: what is loaded, when, and why."""

from h3sim.importers.chromium.browser import ChromiumError, find_chromium
from h3sim.importers.chromium.navigation import Timeouts
from h3sim.importers.chromium.recording import (
    PageRecording,
    Recorded,
    RecordedSource,
    RecordedTiming,
    record,
)

__all__ = [
    "ChromiumError",
    "PageRecording",
    "Recorded",
    "RecordedSource",
    "RecordedTiming",
    "Timeouts",
    "find_chromium",
    "record",
]

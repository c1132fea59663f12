"""Records real pages in an installed Chromium, as facts: what is loaded, when, and why."""

from h3sim.capture.chromium.browser import ChromiumError, find_chromium
from h3sim.capture.chromium.page_builder import Recorded, RecordedTiming
from h3sim.capture.chromium.recording import PageRecording, RecordedSource, record
from h3sim.capture.chromium.visit import Patience

__all__ = [
    "ChromiumError",
    "PageRecording",
    "Patience",
    "Recorded",
    "RecordedSource",
    "RecordedTiming",
    "find_chromium",
    "record",
]

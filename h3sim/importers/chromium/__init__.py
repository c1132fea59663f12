"""The recorder: loads pages in an installed Chromium and records resources, times and causes.

Begin with `browser.py`, which talks to Chromium; `recording.py` makes a page of what it says.
"""

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

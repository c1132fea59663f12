"""Records real pages in an installed Chromium, as facts: what is loaded, when, and why."""

from h3sim.capture.chromium.browser import ChromiumError, find_chromium
from h3sim.capture.chromium.page_builder import Recorded, Timing
from h3sim.capture.chromium.recording import Recording, Source, record
from h3sim.capture.chromium.visit import Patience

__all__ = [
    "ChromiumError",
    "Patience",
    "Recorded",
    "Recording",
    "Source",
    "Timing",
    "find_chromium",
    "record",
]

"""Records real pages in an installed Chromium, as facts: what is loaded, when, and why."""

from h3sim.recorder.chromium import RecordingError, find_chromium
from h3sim.recorder.making import Recorded, Timing
from h3sim.recorder.recording import Recording, Source, record
from h3sim.recorder.visit import Patience

__all__ = [
    "Patience",
    "Recorded",
    "Recording",
    "RecordingError",
    "Source",
    "Timing",
    "find_chromium",
    "record",
]

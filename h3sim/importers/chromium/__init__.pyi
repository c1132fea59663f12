"""The public names of `h3sim.importers.chromium`, each loaded when it is first used."""

from h3sim.importers.chromium.browser import ChromiumError as ChromiumError
from h3sim.importers.chromium.browser import find_chromium as find_chromium
from h3sim.importers.chromium.navigation import Timeouts as Timeouts
from h3sim.importers.chromium.recording import PageRecording as PageRecording
from h3sim.importers.chromium.recording import Recorded as Recorded
from h3sim.importers.chromium.recording import RecordedSource as RecordedSource
from h3sim.importers.chromium.recording import RecordedTiming as RecordedTiming
from h3sim.importers.chromium.recording import record as record

__all__: list[str]

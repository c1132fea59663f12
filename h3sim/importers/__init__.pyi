"""The public names of `h3sim.importers`, each loaded when it is first used."""

from h3sim.importers.detect import ArchivedPage as ArchivedPage
from h3sim.importers.detect import read_archive as read_archive
from h3sim.importers.crux import NetworkShare as NetworkShare
from h3sim.importers.crux import NotCruxError as NotCruxError
from h3sim.importers.crux import read_crux as read_crux
from h3sim.importers.detect import DIALECTS as DIALECTS
from h3sim.importers.detect import import_page as import_page
from h3sim.importers.detect import read_har as read_har
from h3sim.importers.detect import read_recording as read_recording
from h3sim.importers.formats.fact_table import facts_from_dict as facts_from_dict
from h3sim.importers.result import ImportedPage as ImportedPage
from h3sim.importers.result import RecordingError as RecordingError

__all__: list[str]

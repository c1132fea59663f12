"""Files that a load is written to: HAR, Chrome trace, JSON, and reading saved loads back.

It may import loads, and nothing imports it but what is above. Begin with `load_document.py`.
"""

from h3sim.export.chrome_trace import load_to_chrome_trace
from h3sim.export.har import load_to_har
from h3sim.export.load_document import load_to_dict, measured_to_dict
from h3sim.export.load_file import (
    SavedLoad,
    SavedLoadError,
    is_saved_load,
    load_from_dict,
    read_load,
)
from h3sim.export.qlog_file import write_load_qlog
from h3sim.export.tables import metrics_of

__all__ = [
    "SavedLoad",
    "SavedLoadError",
    "is_saved_load",
    "load_from_dict",
    "load_to_chrome_trace",
    "load_to_dict",
    "load_to_har",
    "measured_to_dict",
    "metrics_of",
    "read_load",
    "write_load_qlog",
]

"""Files that a load is written to: HAR, Chrome trace, JSON, and reading saved loads back.

It may import loads, and nothing imports it but what is above. Begin with `load_document.py`.
"""

from h3sim.export.load_file import (
    SavedLoad,
    SavedLoadError,
    is_saved_load,
    load_from_dict,
    read_load,
)

__all__ = [
    "SavedLoad",
    "SavedLoadError",
    "is_saved_load",
    "load_from_dict",
    "read_load",
]

"""Studies: single loads by name, and comparisons of many."""

from h3sim.study.compare import (
    Comparison,
    ComparisonRow,
    MeanRow,
    baseline_of,
    check_names,
    compare,
)
from h3sim.study.config import LoadConfig
from h3sim.study.options import LoadOptions
from h3sim.study.run import (
    resolve_pages,
    resolve_scheme,
    resolve_schemes,
    run_config,
    simulate,
    with_scheduler,
)
from h3sim.study.saved import (
    SavedLoad,
    SavedLoadError,
    is_saved_load,
    load_from_dict,
    read_load,
)

__all__ = [
    "Comparison",
    "ComparisonRow",
    "LoadConfig",
    "LoadOptions",
    "MeanRow",
    "SavedLoad",
    "SavedLoadError",
    "baseline_of",
    "check_names",
    "compare",
    "is_saved_load",
    "load_from_dict",
    "read_load",
    "resolve_pages",
    "resolve_scheme",
    "resolve_schemes",
    "run_config",
    "simulate",
    "with_scheduler",
]

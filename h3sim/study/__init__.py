"""Studies: single loads by name, and comparisons of many."""

from h3sim.study.compare import (
    Comparison,
    ComparisonRow,
    MeanRow,
    baseline_of,
    check_names,
    compare,
)
from h3sim.study.options import LoadOptions
from h3sim.study.run import (
    resolve_pages,
    resolve_scheme,
    resolve_schemes,
    run_setting,
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
from h3sim.study.setting import Setting

__all__ = [
    "Comparison",
    "ComparisonRow",
    "LoadOptions",
    "MeanRow",
    "SavedLoad",
    "SavedLoadError",
    "Setting",
    "baseline_of",
    "check_names",
    "compare",
    "is_saved_load",
    "load_from_dict",
    "read_load",
    "resolve_pages",
    "resolve_scheme",
    "resolve_schemes",
    "run_setting",
    "simulate",
    "with_scheduler",
]

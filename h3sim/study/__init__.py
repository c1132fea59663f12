"""Studies: many loads, stored and resumed, and their statistics.

It may import single loads and all below them, but neither advice nor figures. Begin with
`sweep.py`, then `runner.py`, which every command that loads more than once uses.
"""

from h3sim.study.compare import Comparison, ComparisonRow, MeanRow, compare
from h3sim.study.design import Range
from h3sim.study.merge import merge_stores
from h3sim.study.results import Results, read_results
from h3sim.study.rows import Counts, StoreError
from h3sim.study.sobol import SensitivityRow, sensitivity
from h3sim.study.statistics.contrasts import corrected
from h3sim.study.store import Store
from h3sim.study.subjects import baseline_of, check_names
from h3sim.study.sweep import Sequential, Study, StudyPlan, load_study, sequential_sweep, sweep

__all__ = [
    "Comparison",
    "ComparisonRow",
    "Counts",
    "MeanRow",
    "Range",
    "Results",
    "SensitivityRow",
    "Sequential",
    "Store",
    "StoreError",
    "Study",
    "StudyPlan",
    "baseline_of",
    "check_names",
    "compare",
    "corrected",
    "load_study",
    "merge_stores",
    "read_results",
    "sensitivity",
    "sequential_sweep",
    "sweep",
]

"""Studies: single loads by name, and comparisons of many."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.study.advise import Advice, advise
    from h3sim.study.compare import (
        Comparison,
        ComparisonRow,
        MeanRow,
        baseline_of,
        check_names,
        compare,
    )
    from h3sim.study.config import LoadConfig
    from h3sim.study.design import Range
    from h3sim.study.find import FoundRow, FoundScheme, RobustnessRow, find
    from h3sim.study.optimum import Optimum, least_total
    from h3sim.study.plan import StudyPlan
    from h3sim.study.regret import (
        ClassRegretRow,
        Regret,
        RegretRow,
        SchemeRegretRow,
        regret,
    )
    from h3sim.study.results import Results
    from h3sim.study.rows import Counts
    from h3sim.study.rule_check import Disagreement, RuleCheck, RuleRow, check_rules
    from h3sim.study.run import (
        resolve_config,
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
    from h3sim.study.saved_results import read_results
    from h3sim.study.schemas import result_schemas, study_schemas
    from h3sim.study.sensitivity import SensitivityRow, sensitivity
    from h3sim.study.sequential import Sequential, sweep_until
    from h3sim.study.server_check import ServerCheck, ServerCheckRow, check_server
    from h3sim.study.store import Store, StoreError
    from h3sim.study.sweep import Study, study_of, sweep
    from h3sim.study.what_if import WhatIf, WhatIfRow, what_if

__all__ = [
    "Advice",
    "ClassRegretRow",
    "Comparison",
    "ComparisonRow",
    "Counts",
    "Disagreement",
    "FoundRow",
    "FoundScheme",
    "LoadConfig",
    "MeanRow",
    "Optimum",
    "Range",
    "Regret",
    "RegretRow",
    "Results",
    "RobustnessRow",
    "RuleCheck",
    "RuleRow",
    "SavedLoad",
    "SavedLoadError",
    "SchemeRegretRow",
    "SensitivityRow",
    "Sequential",
    "ServerCheck",
    "ServerCheckRow",
    "Store",
    "StoreError",
    "Study",
    "StudyPlan",
    "WhatIf",
    "WhatIfRow",
    "advise",
    "baseline_of",
    "check_names",
    "check_rules",
    "check_server",
    "compare",
    "find",
    "is_saved_load",
    "least_total",
    "load_from_dict",
    "read_load",
    "read_results",
    "regret",
    "resolve_config",
    "resolve_pages",
    "resolve_scheme",
    "resolve_schemes",
    "result_schemas",
    "run_config",
    "sensitivity",
    "simulate",
    "study_of",
    "study_schemas",
    "sweep",
    "sweep_until",
    "what_if",
    "with_scheduler",
]

__getattr__, __dir__ = attach(
    __name__,
    advise="Advice advise",
    compare="Comparison ComparisonRow MeanRow baseline_of check_names compare",
    config="LoadConfig",
    design="Range",
    find="FoundRow FoundScheme RobustnessRow find",
    optimum="Optimum least_total",
    plan="StudyPlan",
    regret="ClassRegretRow Regret RegretRow SchemeRegretRow regret",
    results="Results",
    rows="Counts",
    rule_check="Disagreement RuleCheck RuleRow check_rules",
    run="resolve_config resolve_pages resolve_scheme resolve_schemes run_config simulate"
    " with_scheduler",
    saved="SavedLoad SavedLoadError is_saved_load load_from_dict read_load",
    saved_results="read_results",
    schemas="result_schemas study_schemas",
    sensitivity="SensitivityRow sensitivity",
    sequential="Sequential sweep_until",
    server_check="ServerCheck ServerCheckRow check_server",
    store="Store StoreError",
    sweep="Study study_of sweep",
    what_if="WhatIf WhatIfRow what_if",
)

"""The public names of `h3sim.study`, each loaded when it is first used."""

from h3sim.study.advise import (
    Advice as Advice,
    advise as advise,
)
from h3sim.study.compare import (
    Comparison as Comparison,
    ComparisonRow as ComparisonRow,
    MeanRow as MeanRow,
    baseline_of as baseline_of,
    check_names as check_names,
    compare as compare,
)
from h3sim.study.config import LoadConfig as LoadConfig
from h3sim.study.design import Range as Range
from h3sim.study.find import (
    FoundRow as FoundRow,
    FoundScheme as FoundScheme,
    RobustnessRow as RobustnessRow,
    find as find,
)
from h3sim.study.optimum import (
    Optimum as Optimum,
    least_total as least_total,
)
from h3sim.study.plan import StudyPlan as StudyPlan
from h3sim.study.regret import (
    ClassRegretRow as ClassRegretRow,
    Regret as Regret,
    RegretRow as RegretRow,
    SchemeRegretRow as SchemeRegretRow,
    regret as regret,
)
from h3sim.study.results import Results as Results
from h3sim.study.rows import Counts as Counts
from h3sim.study.rule_check import (
    Disagreement as Disagreement,
    RuleCheck as RuleCheck,
    RuleRow as RuleRow,
    check_rules as check_rules,
)
from h3sim.study.run import (
    resolve_config as resolve_config,
    resolve_pages as resolve_pages,
    resolve_scheme as resolve_scheme,
    resolve_schemes as resolve_schemes,
    run_config as run_config,
    simulate as simulate,
    with_scheduler as with_scheduler,
)
from h3sim.study.saved import (
    SavedLoad as SavedLoad,
    SavedLoadError as SavedLoadError,
    is_saved_load as is_saved_load,
    load_from_dict as load_from_dict,
    read_load as read_load,
)
from h3sim.study.saved_results import read_results as read_results
from h3sim.study.schemas import (
    result_schemas as result_schemas,
    study_schemas as study_schemas,
)
from h3sim.study.sensitivity import (
    SensitivityRow as SensitivityRow,
    sensitivity as sensitivity,
)
from h3sim.study.sequential import (
    Sequential as Sequential,
    sweep_until as sweep_until,
)
from h3sim.study.server_check import (
    ServerCheck as ServerCheck,
    ServerCheckRow as ServerCheckRow,
    check_server as check_server,
)
from h3sim.study.store import (
    Store as Store,
    StoreError as StoreError,
)
from h3sim.study.sweep import (
    Study as Study,
    study_of as study_of,
    sweep as sweep,
)
from h3sim.study.what_if import (
    WhatIf as WhatIf,
    WhatIfRow as WhatIfRow,
    what_if as what_if,
)

__all__: list[str]

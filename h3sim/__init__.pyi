"""The public names of `h3sim`, each loaded when it is first used; the modules stand first."""

from h3sim import (
    browser as browser,
    capture as capture,
    catalog as catalog,
    compression as compression,
    conformance as conformance,
    documents as documents,
    engine as engine,
    errors as errors,
    findings as findings,
    http as http,
    metrics as metrics,
    page as page,
    plots as plots,
    plugins as plugins,
    qlog as qlog,
    ranges as ranges,
    reporting as reporting,
    results as results,
    schedulers as schedulers,
    schemes as schemes,
    seeds as seeds,
    signals as signals,
    study as study,
    trace as trace,
    transport as transport,
    units as units,
)
from h3sim._version import (
    __version__ as __version__,
    build as build,
)
from h3sim.capture import (
    import_page as import_page,
    read_har as read_har,
)
from h3sim.catalog import (
    list_networks as list_networks,
    list_pages as list_pages,
    list_profiles as list_profiles,
    list_schemes as list_schemes,
    load_network as load_network,
    load_page as load_page,
    load_profile as load_profile,
    load_scheme as load_scheme,
)
from h3sim.errors import H3SimError as H3SimError
from h3sim.findings.reproduce import reproduce as reproduce
from h3sim.page import (
    Page as Page,
    Resource as Resource,
    read_page as read_page,
)
from h3sim.reporting import (
    Report as Report,
    report as report,
)
from h3sim.results import Load as Load
from h3sim.results.measured import (
    Measurement as Measurement,
    measure as measure,
)
from h3sim.schemes import (
    Scheme as Scheme,
    read_scheme as read_scheme,
)
from h3sim.study.advise import (
    Advice as Advice,
    advise as advise,
)
from h3sim.study.compare import (
    Comparison as Comparison,
    compare as compare,
)
from h3sim.study.config import LoadConfig as LoadConfig
from h3sim.study.design import Range as Range
from h3sim.study.find import (
    FoundScheme as FoundScheme,
    find as find,
)
from h3sim.study.regret import (
    Regret as Regret,
    regret as regret,
)
from h3sim.study.results import Results as Results
from h3sim.study.rule_check import (
    RuleCheck as RuleCheck,
    check_rules as check_rules,
)
from h3sim.study.run import simulate as simulate
from h3sim.study.saved import (
    SavedLoad as SavedLoad,
    read_load as read_load,
)
from h3sim.study.saved_results import read_results as read_results
from h3sim.study.sensitivity import sensitivity as sensitivity
from h3sim.study.sequential import sweep_until as sweep_until
from h3sim.study.server_check import (
    ServerCheck as ServerCheck,
    check_server as check_server,
)
from h3sim.study.sweep import (
    Study as Study,
    study_of as study_of,
    sweep as sweep,
)
from h3sim.study.what_if import (
    WhatIf as WhatIf,
    what_if as what_if,
)
from h3sim.transport import (
    Network as Network,
    read_network as read_network,
)
from h3sim.versions import show_versions as show_versions

__all__: list[str]

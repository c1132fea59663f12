"""Replays web pages through HTTP/2 and HTTP/3 prioritization schemes, without sockets.

>>> import h3sim
>>> load = h3sim.simulate("davies-meenan", scheme="bucket-html")
>>> load.byte_index("atf") < h3sim.simulate("davies-meenan", scheme="rr").byte_index("atf")
True

- one load: `simulate`, a `Load`: figures, timings, `load.plot`, `load.lower_bound`
- many loads: `compare` (a table), `find` (which scheme is best), `sweep` (a study), `sweep_until`,
  `sensitivity`, `regret`, `what_if`; `report` makes one file of what was found
- what is there: `list_pages`, `list_schemes`, `list_networks`, `list_profiles`; `load_page` etc.
- files: `read_page`, `read_scheme`, `read_network`, `read_load`, `read_results`
- recordings: `advise` (which scheme serves a HAR's page best), `import_page`, `read_har`;
  `measure` reads a qlog; `load.to_har` writes a HAR
- checks: `check_server`, `check_rules`, `reproduce` (the papers), `show_versions`
- options: `help(h3sim.LoadConfig)` explains those that `simulate` and the others take
- your own: `help(h3sim.schedulers)`, `help(h3sim.conformance)`, `help(h3sim.engine)`

Importing this is quick: each name is loaded when it is first used. Simulating loads SimPy and the
standard library only; figures and tables load what they need when they are made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from h3sim._version import __version__, build
from h3sim.provided import provide

if TYPE_CHECKING:
    from h3sim.capture import import_page, read_har
    from h3sim.catalog import (
        list_networks,
        list_pages,
        list_profiles,
        list_schemes,
        load_network,
        load_page,
        load_profile,
        load_scheme,
    )
    from h3sim.errors import H3SimError
    from h3sim.findings.reproduce import reproduce
    from h3sim.page import Page, Resource, read_page
    from h3sim.reporting import Report, report
    from h3sim.results import Load
    from h3sim.results.measured import Measurement, measure
    from h3sim.schemes import Scheme, read_scheme
    from h3sim.study.advise import Advice, advise
    from h3sim.study.compare import Comparison, compare
    from h3sim.study.config import LoadConfig
    from h3sim.study.design import Range
    from h3sim.study.find import FoundScheme, find
    from h3sim.study.regret import Regret, regret
    from h3sim.study.results import Results
    from h3sim.study.rule_check import RuleCheck, check_rules
    from h3sim.study.run import simulate
    from h3sim.study.saved import SavedLoad, read_load
    from h3sim.study.saved_results import read_results
    from h3sim.study.sensitivity import sensitivity
    from h3sim.study.sequential import sweep_until
    from h3sim.study.server_check import ServerCheck, check_server
    from h3sim.study.sweep import Study, study_of, sweep
    from h3sim.study.what_if import WhatIf, what_if
    from h3sim.transport import Network, read_network
    from h3sim.versions import show_versions

__all__ = [
    "Advice",
    "Comparison",
    "FoundScheme",
    "H3SimError",
    "Load",
    "LoadConfig",
    "Measurement",
    "Network",
    "Page",
    "Range",
    "Regret",
    "Report",
    "Resource",
    "Results",
    "RuleCheck",
    "SavedLoad",
    "Scheme",
    "ServerCheck",
    "Study",
    "WhatIf",
    "__version__",
    "advise",
    "build",
    "check_rules",
    "check_server",
    "compare",
    "find",
    "import_page",
    "list_networks",
    "list_pages",
    "list_profiles",
    "list_schemes",
    "load_network",
    "load_page",
    "load_profile",
    "load_scheme",
    "measure",
    "read_har",
    "read_load",
    "read_network",
    "read_page",
    "read_results",
    "read_scheme",
    "regret",
    "report",
    "reproduce",
    "sensitivity",
    "show_versions",
    "simulate",
    "study_of",
    "sweep",
    "sweep_until",
    "what_if",
]

_HOMES = {
    "capture": ("import_page", "read_har"),
    "catalog": (
        *("list_networks", "list_pages", "list_profiles", "list_schemes"),
        *("load_network", "load_page", "load_profile", "load_scheme"),
    ),
    "errors": ("H3SimError",),
    "findings": ("reproduce",),
    "page": ("Page", "Resource", "read_page"),
    "reporting": ("Report", "report"),
    "results": ("Load",),
    "results.measured": ("Measurement", "measure"),
    "schemes": ("Scheme", "read_scheme"),
    "study": (
        *(
            "Advice",
            "Comparison",
            "FoundScheme",
            "LoadConfig",
            "Range",
            "Regret",
            "Results",
            "SavedLoad",
        ),
        *("RuleCheck", "ServerCheck", "Study", "check_rules", "check_server", "compare"),
        *("advise", "find", "read_load", "read_results", "regret", "sensitivity", "simulate"),
        *("study_of", "sweep", "sweep_until", "WhatIf", "what_if"),
    ),
    "transport": ("Network", "read_network"),
    "versions": ("show_versions",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = (
    *("browser", "capture", "catalog", "compression", "conformance", "documents", "engine"),
    *("errors", "findings", "http", "metrics", "page", "plots", "plugins", "qlog", "ranges"),
    *(
        "reporting",
        "results",
        "schedulers",
        "schemes",
        "seeds",
        "signals",
        "study",
        "trace",
        "transport",
    ),
    "units",
)


# Figures stand above loads and results, and load matplotlib: nobody pays for them who draws none.
provide("load.plot", lambda load: importlib.import_module("h3sim.plots").LoadPlots([load]))
provide("measured.plot", lambda log: importlib.import_module("h3sim.plots").LogPlots([log]))
provide("page.plot", lambda page: importlib.import_module("h3sim.plots").PagePlots(page))
provide("regret.plot", lambda regret: importlib.import_module("h3sim.plots").RegretPlots(regret))
provide("results.plot", lambda results: importlib.import_module("h3sim.plots").StudyPlots(results))


def __getattr__(name: str) -> Any:
    """Load a public name, or a module of h3sim, when it is first asked for (PEP 562)."""
    if name in _HOME_OF:
        value = getattr(importlib.import_module(f"h3sim.{_HOME_OF[name]}"), name)
    elif name in _MODULES:
        try:
            value = importlib.import_module(f"h3sim.{name}")
        except ImportError as error:
            # So that help(), hasattr() and inspect pass over what an extra would bring.
            raise AttributeError(f"h3sim.{name} cannot be loaded: {error}") from error
    else:
        raise AttributeError(f"module 'h3sim' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not: a prompt completes no helper of this file."""
    special = [name for name in globals() if name.startswith("__")]
    return sorted({*special, *__all__, *_MODULES})

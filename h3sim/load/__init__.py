"""One load of a page and its figures.

`simulate` resolves names and options into a `LoadSpec`, the engine runs it, and the `Load` computes
figures from its trace. It may import the engine, the catalog and all below them, but no exports.
Begin with `run.py` (from names to a load), then `load.py` (from a trace to figures).
"""

from h3sim.load.configuration import (
    FORMAT,
    MAX_CONNECTIONS_PER_HOST,
    MAX_LOAD_NS,
    LoadSpec,
    describe,
    in_words,
)
from h3sim.load.load import Hol, Load, ResourceTiming, Which
from h3sim.load.load_config import LoadConfig
from h3sim.load.run import (
    resolve_config,
    resolve_pages,
    resolve_scheme,
    resolve_schemes,
    run_config,
    simulate,
    with_scheduler,
)

__all__ = [
    "FORMAT",
    "MAX_CONNECTIONS_PER_HOST",
    "MAX_LOAD_NS",
    "Hol",
    "Load",
    "LoadConfig",
    "LoadSpec",
    "ResourceTiming",
    "Which",
    "describe",
    "in_words",
    "resolve_config",
    "resolve_pages",
    "resolve_scheme",
    "resolve_schemes",
    "run_config",
    "simulate",
    "with_scheduler",
]

"""One load of a page and its figures.

`resolve` makes a `LoadSpec` of names and options, the engine runs it, and the `Load` computes
figures from its trace. It may import the engine, the catalog and all below them, but no exports.
Begin with `run.py` (from names to a load), then `load.py` (from a trace to figures).
"""

from h3sim.load.configuration import (
    FORMAT,
    describe,
    in_words,
)
from h3sim.load.load import Hol, Load, ResourceTiming, Which
from h3sim.load.load_config import LoadConfig
from h3sim.load.run import resolve, resolve_scheme, run_spec, simulate, with_scheduler
from h3sim.load.selection import resolve_pages, resolve_schemes

__all__ = [
    "FORMAT",
    "Hol",
    "Load",
    "LoadConfig",
    "ResourceTiming",
    "Which",
    "describe",
    "in_words",
    "resolve",
    "resolve_pages",
    "resolve_scheme",
    "resolve_schemes",
    "run_spec",
    "simulate",
    "with_scheduler",
]

"""What the functions of studies take: kinds of arguments that several of them share."""

from __future__ import annotations

from h3sim.documents.arguments import Only
from h3sim.documents.values import Choice, Number, Whole

__all__ = ["LEVEL", "NETWORKS", "N_SAMPLES", "SAMPLING", "SEED"]

LEVEL = Number(low=0, high=1, is_above=True, is_below=True)
"""A confidence, a level of significance, a power."""
NETWORKS = Only(
    "a list of names",
    lambda value: isinstance(value, list | tuple) and all(isinstance(name, str) for name in value),
)
"""Networks, one after the other."""
SEED = Whole(low=0, high=2**63 - 1, hint="2^63 - 1")
"""What random numbers may begin with."""
SAMPLING = Choice(("latin-hypercube", "sobol"))
"""How samples are drawn."""
N_SAMPLES = Whole(low=1, high=10**6)
"""How many."""

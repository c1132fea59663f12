"""The version and the build, apart so that they can be read without importing anything."""

from __future__ import annotations

__version__ = "0.1.0"

_COMPILED_IF_ANY = "h3sim.ranges"
"""One of the modules of compiled.txt: they are compiled together, or not at all."""


def build() -> str:
    """Return how the h3sim that runs was built: "pure" or "compiled".

    Both say the same, byte for byte; what is compiled (by mypyc) is quicker.

    >>> build() in ("pure", "compiled")
    True
    """
    from importlib.util import find_spec

    spec = find_spec(_COMPILED_IF_ANY)
    is_source = spec is None or spec.origin is None or spec.origin.endswith(".py")
    return "pure" if is_source else "compiled"

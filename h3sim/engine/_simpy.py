"""SimPy's environment, without the rest of SimPy until it is used.

`import simpy` looks up its own version, for which Python loads what reads packages, archives and
mails: four times what SimPy itself takes, and longer than loading a page. So its package is put in
place as it is found, and its own code runs when a name of it is first asked for (PEP 562): to a
program that imports SimPy before or afterwards nothing is different.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from typing import Any

__all__ = ["Environment", "StopSimulation"]


def _put_in_place() -> None:
    """Make `simpy.core` importable without what `simpy/__init__.py` imports."""
    spec = find_spec("simpy")
    if spec is None or spec.loader is None:
        return  # importing it says what is wrong
    package, loader = module_from_spec(spec), spec.loader

    def load(name: str) -> Any:
        """Run the package's own code, once, and return what it calls so."""
        if vars(package).pop("__getattr__", None) is not None:
            loader.exec_module(package)
        return getattr(package, name)

    vars(package)["__getattr__"] = load
    sys.modules["simpy"] = package


if "simpy" not in sys.modules:
    _put_in_place()

from simpy.core import Environment, StopSimulation  # noqa: E402 - found in the package that was put in place

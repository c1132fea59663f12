"""SimPy's environment, without the rest of SimPy until it is used.

`import simpy` looks up its own version, for which Python loads modules that read packages, archives
and mails: four times the cost of SimPy itself, and longer than loading a page. So the package is
registered unexecuted, and its code runs when one of its names is first used (PEP 562): a program
that imports SimPy before or afterwards sees no difference.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from typing import Any

__all__ = ["Environment", "StopSimulation"]


def _register_package() -> None:
    """Make `simpy.core` importable without the imports of `simpy/__init__.py`."""
    spec = find_spec("simpy")
    if spec is None or spec.loader is None:
        return  # the import below reports the error
    package, loader = module_from_spec(spec), spec.loader

    def load(name: str) -> Any:
        """Execute the package once, and return its attribute."""
        if vars(package).pop("__getattr__", None) is not None:
            loader.exec_module(package)
        return getattr(package, name)

    vars(package)["__getattr__"] = load
    sys.modules["simpy"] = package


if "simpy" not in sys.modules:
    _register_package()

from simpy.core import Environment, StopSimulation  # noqa: E402 - found in the package that was put in place

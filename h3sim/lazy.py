"""Packages whose names are imported when they are first used (PEP 562), as their stubs declare.

`h3sim run` needs a tenth of what the packages offer, and importing the rest would take longer than
to load a page. A package declares its names in `__init__.pyi`, as in SPEC 1 of Scientific Python,
each in a line that type checkers also read: `from h3sim.page.model import Page`. Its
`__init__.py` has the line `__getattr__, __dir__, __all__ = attach(__name__)`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_STUB_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)
"""An import in a stub: the module, and several names in parentheses or a single one."""


class _Package(ModuleType):
    """A package in which a function shadows the module of the same name: `study.compare`.

    Python's import system sets each imported module as an attribute of its package, which would
    replace the function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        is_child = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        super().__setattr__(name, vars(value).get(name, value) if is_child else value)


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of *package*, as declared in its stub.

    Modules of the package that the stub declares are not in `__all__`.
    """
    # Python looks up `__setattr__` in a module's class, which can be changed at run time.
    sys.modules[package].__class__ = _Package
    module_by_name = _declared_names(package)

    def load(name: str) -> Any:
        module = module_by_name.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Importing leaves no garbage, and looking for it takes a tenth of the time.
        with gc_paused():
            is_module = module == package
            value = _submodule(package, name) if is_module else _attribute(module, name)
        # So the next use finds it as a plain attribute, without a call.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        special = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*special, *module_by_name})

    public = sorted(name for name, module in module_by_name.items() if module != package)
    return load, names, public


def _declared_names(package: str) -> dict[str, str]:
    """Return the names in the stub of *package*, each with the module that defines it."""
    spec = sys.modules[package].__spec__
    # The package may be in a zip file, so its loader reads the stub.
    loader: Any = None if spec is None else spec.loader
    stub = os.path.join(os.path.dirname(str(spec and spec.origin)), "__init__.pyi")  # noqa: PTH118, PTH120 - pathlib takes longer to import
    text = loader.get_data(stub).decode()
    return {
        name.partition(" as ")[0].strip(): module
        for module, in_parentheses, single in _STUB_IMPORT.findall(text)
        for name in (in_parentheses or single).rstrip(",\n").split(",")
    }


def _attribute(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _submodule(package: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{package}.{name}")
    except ImportError as error:
        # help(), hasattr() and inspect skip attributes that raise AttributeError, here modules
        # that need an extra.
        raise AttributeError(f"{package}.{name} cannot be loaded: {error}") from error


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector; values without cycles are still freed at once."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def reporting() -> Any:
    """Return `h3sim.reporting`, which imports matplotlib and is above what it draws.

    Results return its figures as their attribute `plot`.
    """
    return importlib.import_module("h3sim.reporting")


def load_options() -> Any:
    """Return the module of a load's options, which is above the networks that they change."""
    return importlib.import_module("h3sim.config.load_config")

"""Packages whose names are loaded when they are first used (PEP 562), as their stubs declare them.

`h3sim run` needs a tenth of what the packages offer, and importing the rest would take longer than
to load a page. A package has its names in `__init__.pyi`, as Scientific Python's SPEC 1 has it,
each in one line that type checkers read too: `from h3sim.page.model import Page`. Its
`__init__.py` says `__getattr__, __dir__, __all__ = attach(__name__)`.
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


_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


class _Package(ModuleType):
    """A package in which a function goes before the module of its name: `study.compare`.

    Whoever imports a module puts it into its package, under its name.
    """

    def __setattr__(self, name: str, value: object) -> None:
        is_child = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        super().__setattr__(name, vars(value).get(name, value) if is_child else value)


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of *package*, by its stub.

    Modules of the package that it declares are no part of `__all__`.
    """
    # A module may get a class of its own while it lives, and `__setattr__` is looked up there.
    sys.modules[package].__class__ = _Package
    home_of = _declared(package)

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Importing leaves no garbage, and looking for it takes a tenth of the time.
        with gc_paused():
            value = _module(package, name) if home == package else _value(home, name)
        # So the next use finds it as a plain attribute, without a call.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        special = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*special, *home_of})

    return load, names, sorted(name for name, home in home_of.items() if home != package)


def _declared(package: str) -> dict[str, str]:
    """Return by name the module that has it, as the stub of *package* says."""
    spec = sys.modules[package].__spec__
    # By the loader, which may have the package in a zip file.
    loader: Any = None if spec is None else spec.loader
    stub = os.path.join(os.path.dirname(str(spec and spec.origin)), "__init__.pyi")  # noqa: PTH118, PTH120 - pathlib takes longer to import
    text = loader.get_data(stub).decode()
    return {
        name.partition(" as ")[0].strip(): home
        for home, several, one in _IMPORT.findall(text)
        for name in (several or one).rstrip(",\n").split(",")
    }


def _value(home: str, name: str) -> Any:
    return getattr(importlib.import_module(home), name)


def _module(package: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{package}.{name}")
    except ImportError as error:
        # So that help(), hasattr() and inspect pass over what an extra would bring.
        raise AttributeError(f"{package}.{name} cannot be loaded: {error}") from error


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Have Python look for no cycles meanwhile; what is no cycle is freed at once as ever."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_PROVIDERS: dict[str, Callable[[Any], Any]] = {}


def register_accessor(name: str, provider: Callable[[Any], Any]) -> None:
    """Have *provider* make what goes by *name*, say "load.plot", of the value that asks for it."""
    _PROVIDERS[name] = provider


def accessor(name: str, value: Any) -> Any:
    """Return what goes by *name* for *value*.

    >>> register_accessor("text.length", len)
    >>> accessor("text.length", "four")
    4
    """
    return _PROVIDERS[name](value)

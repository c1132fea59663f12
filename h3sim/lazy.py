"""Packages whose names are loaded when they are first used (PEP 562).

`h3sim run` needs a tenth of what the packages offer, and importing the rest would take longer than
to load a page. A package says `__getattr__, __dir__ = attach(__name__, ...)`, and imports the same
names where only type checkers look.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["attach", "without_collecting"]


class _Package(ModuleType):
    """A package in which a function goes before the module of its name: `study.compare`.

    Whoever imports a module puts it into its package, under its name.
    """

    def __setattr__(self, name: str, value: object) -> None:
        is_child = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        super().__setattr__(name, vars(value).get(name, value) if is_child else value)


def attach(package: str, **homes: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of *package*, whose modules *homes* have these names."""
    # A module may get a class of its own while it lives, and `__setattr__` is looked up there.
    sys.modules[package].__class__ = _Package
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Importing leaves no garbage, and looking for it takes a tenth of the time.
        with without_collecting():
            value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        # So the next use finds it as a plain attribute, without a call.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return load, names


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Have Python look for no cycles meanwhile; what is no cycle is freed at once as ever."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

"""Accessors: attributes of a value that a package above provides, a load's figures, say.

The package itself, which stands above all floors, says who provides what. So no floor imports one
above it, and nothing is loaded before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


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

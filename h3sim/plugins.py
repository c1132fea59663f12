"""Parts by name: those of h3sim, and those that other packages announce by entry point."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from h3sim.errors import UnknownNameError, raised_words
from h3sim.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.metadata import EntryPoint


NO_PLUGINS_VARIABLE = "H3SIM_NO_PLUGINS"
"""The environment variable that, set to 1, leaves plug-ins out."""
_OWN = "h3sim"
_MOST_PLUGINS = 1000
"""Most entry points of a kind that are looked at; each is imported to be listed."""

PartT = TypeVar("PartT")


class Guard:
    """Calls code that is not h3sim's: what it raises becomes an error that says who did.

    *make_error* makes an error of a sentence. It takes what exits too, which must not take h3sim
    along, but no KeyboardInterrupt: that is the user's, and ends the program.

    >>> Guard(ValueError, shows_arguments=True).call("half", lambda n: 1 / n, 0)
    Traceback (most recent call last):
    ValueError: half(0) raised ZeroDivisionError: division by zero
    """

    __slots__ = ("_shows_arguments", "failed")

    def __init__(
        self, make_error: Callable[[str], Exception], *, shows_arguments: bool = False
    ) -> None:
        self.failed = make_error
        self._shows_arguments = shows_arguments

    def call(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:
        """Return what *function* returns; an error calls it *name*."""
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            shown = ", ".join(map(repr, arguments)) if self._shows_arguments else ""
            raise self.failed(f"{name}({shown}) raised {raised_words(error)}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Generic[PartT]):
    """A part with its name, and where it comes from: h3sim, or a package and its version."""

    name: str
    part: PartT
    origin: str

    @property
    def is_own(self) -> bool:
        """True if it comes with h3sim."""
        return self.origin == _OWN


class PluginWarning(RuntimeWarning):
    """A part that another package announces is left out."""


class PluginRegistry(Generic[PartT]):
    """Parts of one *kind*: the *built_in* ones, and those of an entry point *group*.

    A built-in part that is told as "module:name" is imported when it is asked for. Plug-ins are
    looked for when first a name is asked for that is not built in, or the list. Each is loaded
    once, when it is asked for. One that cannot be loaded, cannot be called, or has a name that is
    taken, is left out with a `PluginWarning`, once.

    >>> registry = PluginRegistry("h3sim.colours", "colour", {"red": lambda: 0xFF0000})
    >>> registry.named("red")(), registry.names()
    (16711680, ('red',))
    """

    def __init__(self, group: str, kind: str, built_in: Mapping[str, PartT | str]) -> None:
        self._group = group
        self._kind = kind
        self._built_in = dict(built_in)
        self._found: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, PartT | None] = {}

    def named(self, name: str) -> PartT:
        """Return the part of that name.

        Raises:
            UnknownNameError: if there is none.
        """
        key: object = name  # whatever the annotation says
        if isinstance(key, str) and name in self._built_in:
            return self._own(name)
        part = self._plug_in(name) if isinstance(key, str) else None
        if part is None:
            raise UnknownNameError(self._kind, name, self.names())
        return part

    def __contains__(self, name: object) -> bool:
        """Return whether there is a part of that name; plug-ins are asked only if need be."""
        return name in self._built_in or name in self.names()

    def names(self) -> tuple[str, ...]:
        """Return the names of all parts, in alphabetical order."""
        plugged_in = (name for name in self._entry_points() if self._plug_in(name) is not None)
        return tuple(sorted([*self._built_in, *plugged_in]))

    def listed(self) -> tuple[Listed[PartT], ...]:
        """Return all parts with their origin, in alphabetical order."""
        entries = [Listed(name=name, part=self._own(name), origin=_OWN) for name in self._built_in]
        for name, entry_point in self._entry_points().items():
            part = self._plug_in(name)
            if part is not None:
                entries.append(Listed(name=name, part=part, origin=_origin(entry_point)))
        return tuple(sorted(entries, key=lambda entry: entry.name))

    def forget(self) -> None:
        """Look for plug-ins again when next one is asked for, and warn again."""
        self._found = None
        self._loaded.clear()

    def _own(self, name: str) -> PartT:
        """Return a built-in part; one that is told as "module:name" is imported now."""
        part = self._built_in[name]
        if isinstance(part, str):
            module, _, attribute = part.partition(":")
            part = self._built_in[name] = cast("PartT", getattr(import_module(module), attribute))
        return part

    def _entry_points(self) -> dict[str, EntryPoint]:
        if os.environ.get(NO_PLUGINS_VARIABLE) == "1":
            return {}
        if self._found is None:
            self._found = self._look()
        return self._found

    def _look(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        entry_points = entry_points_of(self._group)
        # By name and value, as the order of installed packages differs between machines: which of
        # two equal names is left out must not.
        ordered = sorted(entry_points, key=lambda found: (found.name, found.value))
        for number, entry_point in enumerate(ordered):
            if number == _MOST_PLUGINS:
                self._warn(entry_point, f"it and all behind it are more than {_MOST_PLUGINS}")
                break
            if entry_point.name in self._built_in or entry_point.name in found:
                self._warn(entry_point, "the name is taken")
            else:
                found[entry_point.name] = entry_point
        return found

    def _plug_in(self, name: str) -> PartT | None:
        entry_point = self._entry_points().get(name)
        if entry_point is None:
            return None
        if name not in self._loaded:
            self._loaded[name] = self._load(entry_point)
        return self._loaded[name]

    def _load(self, entry_point: EntryPoint) -> PartT | None:
        try:
            part: object = entry_point.load()
        # A plug-in may fail in any way, and one that exits must not take h3sim along.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._warn(entry_point, f"{type(error).__name__}: {error}")
            return None
        if not callable(part):
            self._warn(entry_point, "it cannot be called")
            return None
        return cast("PartT", part)

    def _warn(self, entry_point: EntryPoint, reason: str) -> None:
        what = f"the {self._kind} {entry_point.name!r} ({entry_point.value})"
        message = f"{what} of {_origin(entry_point)} is left out: {reason}"
        warnings.warn(escape_control(message), PluginWarning, stacklevel=2)


def entry_points_of(group: str) -> list[EntryPoint]:
    """Return the entry points of a *group*; packages whose own are damaged are left out."""
    import importlib.metadata  # on use: importing h3sim should stay quick

    try:
        return list(importlib.metadata.entry_points(group=group))
    # The library stops at the first damaged file of any installed package, with any exception.
    except Exception:  # noqa: BLE001
        found: list[EntryPoint] = []
        for distribution in importlib.metadata.distributions():
            try:
                found += [each for each in distribution.entry_points if each.group == group]
            except Exception as error:  # noqa: BLE001
                where = f"the package {distribution.name!r} has entry points that cannot be read"
                message = escape_control(f"{where}: {raised_words(error)}")
                warnings.warn(message, PluginWarning, stacklevel=2)
        return found


def _origin(entry_point: EntryPoint) -> str:
    found = entry_point.dist
    return "an unnamed package" if found is None else f"{found.name} {found.version}"

"""Registries of parts by name: those of h3sim, and those of other packages' entry points."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from h3sim.values.errors import SchedulerError, UnknownNameError, raised_words
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.metadata import EntryPoint


NO_PLUGINS_VARIABLE = "H3SIM_NO_PLUGINS"
"""The environment variable that disables plug-ins if it is 1."""
_BUILT_IN_ORIGIN = "h3sim"
"""The origin of parts that are not plug-ins."""
_MAX_PLUGINS = 1000
"""Most entry points of a group that are used: to list them, each is imported."""

PartT = TypeVar("PartT")


class Guard:
    """Calls users' code: its exceptions become errors that name the function that raised them.

    *make_error* turns a message into an error. SystemExit is caught too, so that user code cannot
    end the program; KeyboardInterrupt is not, since it comes from the user.

    >>> Guard(ValueError, shows_arguments=True).call("half", lambda n: 1 / n, 0)
    Traceback (most recent call last):
    ValueError: half(0) raised ZeroDivisionError: division by zero
    """

    __slots__ = ("_shows_arguments", "make_error")

    def __init__(
        self, make_error: Callable[[str], Exception], *, shows_arguments: bool = False
    ) -> None:
        self.make_error = make_error
        self._shows_arguments = shows_arguments

    def call(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:
        """Call *function* and return its result; *name* is its name in errors.

        A `SchedulerError`, as a driver raises, is passed on: it already names its scheduler.
        """
        try:
            return function(*arguments)
        except SchedulerError:
            raise
        except (Exception, SystemExit) as error:
            shown = ", ".join(map(repr, arguments)) if self._shows_arguments else ""
            raise self.make_error(f"{name}({shown}) raised {raised_words(error)}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Generic[PartT]):
    """A part, its name, and its origin: "h3sim", or a package and its version."""

    name: str
    part: PartT
    origin: str

    @property
    def is_own(self) -> bool:
        """True if it is part of h3sim."""
        return self.origin == _BUILT_IN_ORIGIN


class PluginWarning(RuntimeWarning):
    """A plug-in of another package is ignored."""


class PluginRegistry(Generic[PartT]):
    """Parts of one *kind*: the *built_in* ones, and those of an entry point *group*.

    A built-in part given as "module:name" is imported on first use. Plug-ins are searched for when
    all names, or one that is not built in, are first requested; each is loaded once, on first use.
    A plug-in that cannot be loaded or called, or whose name is taken, is ignored with one
    `PluginWarning`.

    >>> registry = PluginRegistry("h3sim.colours", "colour", {"red": lambda: 0xFF0000})
    >>> registry.named("red")(), registry.names()
    (16711680, ('red',))
    """

    def __init__(self, group: str, kind: str, built_in: Mapping[str, PartT | str]) -> None:
        self._group = group
        self._kind = kind
        self._built_in = dict(built_in)
        self._entry_point_by_name: dict[str, EntryPoint] | None = None  # None: not searched yet
        self._loaded_plugins: dict[str, PartT | None] = {}  # None: it is ignored

    def named(self, name: str) -> PartT:
        """Return the part of that name.

        Raises:
            UnknownNameError: if there is none.
        """
        key: object = name  # callers may ignore the annotation
        if isinstance(key, str) and name in self._built_in:
            return self._built_in_part(name)
        part = self._plugin(name) if isinstance(key, str) else None
        if part is None:
            raise UnknownNameError(self._kind, name, self.names())
        return part

    def __contains__(self, name: object) -> bool:
        """Return whether there is a part of that name; loads plug-ins only if none is built in."""
        return name in self._built_in or name in self.names()

    def names(self) -> tuple[str, ...]:
        """Return the names of all parts, in alphabetical order."""
        plugins = (name for name in self._entry_points() if self._plugin(name) is not None)
        return tuple(sorted([*self._built_in, *plugins]))

    def listed(self) -> tuple[Listed[PartT], ...]:
        """Return all parts with their origin, in alphabetical order."""
        entries = [
            Listed(name=name, part=self._built_in_part(name), origin=_BUILT_IN_ORIGIN)
            for name in self._built_in
        ]
        for name, entry_point in self._entry_points().items():
            part = self._plugin(name)
            if part is not None:
                entries.append(Listed(name=name, part=part, origin=_origin(entry_point)))
        return tuple(sorted(entries, key=lambda entry: entry.name))

    def forget(self) -> None:
        """Forget the plug-ins: the next use searches for them, and warns, again."""
        self._entry_point_by_name = None
        self._loaded_plugins.clear()

    def _built_in_part(self, name: str) -> PartT:
        """Return a built-in part, importing it if it is given as "module:name"."""
        part = self._built_in[name]
        if isinstance(part, str):
            module, _, attribute = part.partition(":")
            part = self._built_in[name] = cast("PartT", getattr(import_module(module), attribute))
        return part

    def _entry_points(self) -> dict[str, EntryPoint]:
        if os.environ.get(NO_PLUGINS_VARIABLE) == "1":
            return {}
        if self._entry_point_by_name is None:
            self._entry_point_by_name = self._find_entry_points()
        return self._entry_point_by_name

    def _find_entry_points(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        # Sorted, because the order of installed packages differs between machines, and the first
        # of several plug-ins of the same name is used.
        entry_points = sorted(
            entry_points_of(self._group),
            key=lambda entry_point: (entry_point.name, entry_point.value),
        )
        for number, entry_point in enumerate(entry_points):
            if number == _MAX_PLUGINS:
                self._warn(entry_point, f"it and all behind it are more than {_MAX_PLUGINS}")
                break
            if entry_point.name in self._built_in or entry_point.name in found:
                self._warn(entry_point, "the name is taken")
            else:
                found[entry_point.name] = entry_point
        return found

    def _plugin(self, name: str) -> PartT | None:
        """Return the plug-in of that name, loading it on first use; None if there is none."""
        entry_point = self._entry_points().get(name)
        if entry_point is None:
            return None
        if name not in self._loaded_plugins:
            self._loaded_plugins[name] = self._load(entry_point)
        return self._loaded_plugins[name]

    def _load(self, entry_point: EntryPoint) -> PartT | None:
        try:
            part: object = entry_point.load()
        # A plug-in may fail in any way, and SystemExit in one must not end the program.
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
    """Return the entry points of a *group*; packages with damaged metadata are skipped."""
    import importlib.metadata  # on use: importing h3sim should stay quick

    try:
        return list(importlib.metadata.entry_points(group=group))
    # A damaged file of any installed package makes the call fail, with any exception: then each
    # package is read on its own.
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
    package = entry_point.dist
    return "an unnamed package" if package is None else f"{package.name} {package.version}"

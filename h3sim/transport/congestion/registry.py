"""Controllers by name: those of h3sim, and plug-ins."""

from __future__ import annotations

import functools
import os
import warnings
from typing import TYPE_CHECKING, cast

from h3sim.errors import UnknownNameError
from h3sim.transport.congestion.aioquic import AioquicRenoController
from h3sim.transport.congestion.bbr import BbrController
from h3sim.transport.congestion.constant import ConstantRateController
from h3sim.transport.congestion.cubic import CubicController
from h3sim.transport.congestion.linux import LinuxCubicController
from h3sim.transport.congestion.quicly import QuiclyCubicController, QuiclyRenoController
from h3sim.transport.congestion.reno import NewRenoController

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.metadata import EntryPoint

    from h3sim.transport.congestion.base import CongestionController, ControllerSettings

    Factory = Callable[[ControllerSettings], CongestionController]

__all__ = ["ENTRY_POINT_GROUP", "NO_PLUGINS_VARIABLE", "controller_names", "make_controller"]

ENTRY_POINT_GROUP = "h3sim.congestion"
"""Where a package announces a controller: a name, and what makes one from settings."""
NO_PLUGINS_VARIABLE = "H3SIM_NO_PLUGINS"
"""The environment variable that, set to 1, leaves plug-ins out."""

_BUILT_IN: Mapping[str, Factory] = {
    "bbr": BbrController,
    "constant": ConstantRateController,
    "cubic": CubicController,
    "cubic-linux": LinuxCubicController,
    "cubic-quicly": QuiclyCubicController,
    "newreno": NewRenoController,
    "reno-aioquic": AioquicRenoController,
    "reno-quicly": QuiclyRenoController,
}


def make_controller(name: str, settings: ControllerSettings) -> CongestionController:
    """Return a new controller of that name.

    Raises:
        UnknownNameError: if there is none.
        InputError: if the settings lack what it needs.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> make_controller("cubik", ControllerSettings(max_datagram_bytes=1200))
    Traceback (most recent call last):
    ...
    h3sim.errors.UnknownNameError: no controller is called 'cubik'; did you mean cubic? \
(`h3sim list controllers` shows all)
    """
    factory = _BUILT_IN.get(name) or _plug_ins().get(name)
    if factory is None:
        raise UnknownNameError("controller", name, controller_names())
    return factory(settings)


def controller_names() -> tuple[str, ...]:
    """Return the names of all controllers, plug-ins among them, in alphabetical order.

    >>> "newreno" in controller_names()
    True
    """
    return tuple(sorted({*_BUILT_IN, *_plug_ins()}))


def _plug_ins() -> Mapping[str, Factory]:
    return {} if os.environ.get(NO_PLUGINS_VARIABLE) == "1" else _loaded_plug_ins()


@functools.cache
def _loaded_plug_ins() -> Mapping[str, Factory]:
    """Load each once, when first an unknown name or the list is asked for."""
    import importlib.metadata  # on use: importing h3sim should stay quick

    found = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    loaded: dict[str, Factory] = {}
    for entry_point in sorted(found, key=lambda found: (found.name, found.value)):
        if entry_point.name in _BUILT_IN or entry_point.name in loaded:
            _warn(entry_point, "the name is taken")
            continue
        factory = _load(entry_point)
        if factory is not None:
            loaded[entry_point.name] = factory
    return loaded


def _load(entry_point: EntryPoint) -> Factory | None:
    try:
        factory: object = entry_point.load()
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way
        _warn(entry_point, f"{type(error).__name__}: {error}")
        return None
    if not callable(factory):
        _warn(entry_point, "it cannot be called")
        return None
    return cast("Factory", factory)


def _warn(entry_point: EntryPoint, reason: str) -> None:
    message = f"the congestion controller {entry_point.name!r} ({entry_point.value}) is left out"
    warnings.warn(f"{message}: {reason}", RuntimeWarning, stacklevel=2)

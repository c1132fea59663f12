"""Controllers by name: those of h3sim, and plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.errors import InputError, Problem, raised_words
from h3sim.plugins import NO_PLUGINS_VARIABLE, PluginRegistry
from h3sim.transport.congestion.controller import CongestionController

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.transport.congestion.settings import ControllerSettings

    Factory = Callable[[ControllerSettings], CongestionController]

__all__ = [
    "ENTRY_POINT_GROUP",
    "NO_PLUGINS_VARIABLE",
    "controller_names",
    "is_controller",
    "make_controller",
]

ENTRY_POINT_GROUP = "h3sim.congestion"
"""Where a package announces a controller: a name, and what makes one from settings."""

_HERE = "h3sim.transport.congestion"
BUILT_IN: dict[str, Factory | str] = {
    "bbr": f"{_HERE}.bbr:BbrController",
    "constant": f"{_HERE}.constant:ConstantRateController",
    "cubic": f"{_HERE}.cubic:CubicController",
    "cubic-aioquic": f"{_HERE}.aioquic:AioquicCubicController",
    "cubic-linux": f"{_HERE}.linux:LinuxCubicController",
    "cubic-quicly": f"{_HERE}.quicly:QuiclyCubicController",
    "newreno": f"{_HERE}.reno:NewRenoController",
    "reno-aioquic": f"{_HERE}.aioquic:AioquicRenoController",
    "reno-quicly": f"{_HERE}.quicly:QuiclyRenoController",
}
"""Controllers that come with h3sim, by name; each is imported when it is asked for."""

REGISTRY: PluginRegistry[Factory] = PluginRegistry(ENTRY_POINT_GROUP, "controller", BUILT_IN)
"""Controllers, plug-ins among them, by name."""


def make_controller(name: str, settings: ControllerSettings) -> CongestionController:
    """Return a new controller of that name.

    Raises:
        UnknownNameError: if there is none.
        InputError: if the settings lack what it needs, or a plug-in cannot be made, or makes
            something else.
        ControllerError: if a plug-in begins with a window that cannot be; so do its methods, for
            whatever it does wrong.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> make_controller("newrino", ControllerSettings(max_datagram_bytes=1200))
    Traceback (most recent call last):
    ...
    h3sim.errors.UnknownNameError: no controller is called 'newrino'; did you mean newreno? \
(`h3sim list controllers` shows all)
    """
    factory = REGISTRY.named(name)
    return factory(settings) if name in BUILT_IN else _guarded(factory, name, settings)


def _guarded(factory: Factory, name: str, settings: ControllerSettings) -> CongestionController:
    from h3sim.transport.congestion.guarded import GuardedController  # on use: for plug-ins

    try:
        made: object = factory(settings)
    except InputError:  # of the settings
        raise
    # Anything may go wrong in code of somebody else's, and one that exits must not take us along.
    except (Exception, SystemExit) as error:
        raise _not_made(name, f"making one raised {raised_words(error)}") from error
    if not isinstance(made, CongestionController):
        what = f"makes a {type(made).__name__}, which derives from no CongestionController"
        raise _not_made(name, what)
    return GuardedController(made, name=name, packet_bytes=settings.max_datagram_bytes)


def _not_made(name: str, message: str) -> InputError:
    return InputError([Problem(key=name, message=message)], "congestion control")


def is_controller(name: str) -> bool:
    """Return whether a controller is called *name*; for those of h3sim no plug-in is looked for.

    >>> is_controller("cubic"), is_controller("cubism")
    (True, False)
    """
    return name in REGISTRY


def controller_names() -> tuple[str, ...]:
    """Return the names of all controllers, plug-ins among them, in alphabetical order.

    >>> "newreno" in controller_names()
    True
    """
    return REGISTRY.names()

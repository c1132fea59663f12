"""Congestion controllers by name, and their settings; plug-ins are checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from h3sim.schema import format_value
from h3sim.transport.congestion.controller import CongestionController
from h3sim.values.errors import (
    ControllerError,
    InputError,
    UnknownNameError,
    ValidationIssue,
    raised_words,
)
from h3sim.values.plugins import Guard, PluginRegistry
from h3sim.values.units import as_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


_K_INITIAL_WINDOW_PACKETS = 10
_K_INITIAL_WINDOW_BYTES = 14_720
"""kInitialWindow (RFC 9002 § 7.2): ten datagrams, but not more than these bytes."""
_K_MINIMUM_WINDOW_PACKETS = 2
"""kMinimumWindow (RFC 9002 § 7.2), and the least of the initial window."""
MAX_WINDOW_BYTES = 2**30
"""A bound above the bandwidth-delay product of any path (RFC 7323 § 2.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Settings of a controller; None selects the value of the controller's specification.

    Raises:
        InputError: listing every value that is out of range.

    >>> settings = ControllerSettings(max_datagram_bytes=1280)
    >>> settings.initial_congestion_window, settings.minimum_window_bytes
    (12800, 2560)
    >>> ControllerSettings(max_datagram_bytes=1472, beta=1.5)
    Traceback (most recent call last):
    ...
    h3sim.values.errors.InputError: congestion control: beta: must be above 0 and below 1, is 1.5
    """

    max_datagram_bytes: int
    initial_window_bytes: int | None = None
    beta: float | None = None
    hystart: bool = False
    search: bool = False
    rate_bps: int | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise InputError(problems, "congestion control")

    @property
    def initial_congestion_window(self) -> int:
        """The window before the first acknowledgement (RFC 9002 § 7.2)."""
        if self.initial_window_bytes is not None:
            return self.initial_window_bytes
        datagram_bytes = self.max_datagram_bytes
        most_bytes = max(_K_INITIAL_WINDOW_BYTES, _K_MINIMUM_WINDOW_PACKETS * datagram_bytes)
        return min(_K_INITIAL_WINDOW_PACKETS * datagram_bytes, most_bytes)

    @property
    def minimum_window_bytes(self) -> int:
        """The smallest window (kMinimumWindow, RFC 9002 § 7.2)."""
        return _K_MINIMUM_WINDOW_PACKETS * self.max_datagram_bytes

    def _problems(self) -> Iterator[ValidationIssue]:
        """Yield the errors of the values."""
        for key in ("max_datagram_bytes", "rate_bps"):
            value = getattr(self, key)
            if value is not None and value < 1:
                yield ValidationIssue(key=key, message=f"must be at least 1, is {value}")
        window, packet_bytes = self.initial_window_bytes, max(1, self.max_datagram_bytes)
        if window is not None and not packet_bytes <= window <= MAX_WINDOW_BYTES:
            message = f"must be {packet_bytes:,} (a packet) to {MAX_WINDOW_BYTES:,}, is {window:,}"
            yield ValidationIssue(key="initial_window_bytes", message=message)
        if self.beta is not None and not 0 < self.beta < 1:
            yield ValidationIssue(
                key="beta", message=f"must be above 0 and below 1, is {self.beta}"
            )


_PLUGIN_VALUE_LIMIT = 1 << 64
"""Windows, thresholds and rates of plug-ins are smaller: floats are computed from them."""


class CheckedController(CongestionController):
    """A proxy that validates the windows of a plug-in *controller* called *name*.

    Built-in controllers run without it, since tests hold them to the same contract. A window of
    less than a packet, *packet_bytes*, would never let anything out.

    Raises:
        ControllerError: on construction and in each method, if the controller raises or exits, or
            sets an invalid window, threshold or rate.

    >>> class Closed(CongestionController):
    ...     congestion_window, ssthresh = 0, None
    >>> CheckedController(Closed(), name="closed", packet_bytes=1200)
    Traceback (most recent call last):
    h3sim.values.errors.ControllerError: the controller 'closed' sets congestion_window to 0 when \
it is made; it must be a whole number of bytes, at least 1,200 (a packet) and below 2^64
    """

    def __init__(self, controller: CongestionController, *, name: str, packet_bytes: int) -> None:
        self.controller = controller
        self._guard = Guard(partial(ControllerError, name))
        self._packet_bytes = packet_bytes
        self._copy_window("when it is made")

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Forward a packet that is sent."""
        self._pass_on("on_sent", packet, bytes_in_flight)

    def on_acked(self, *event: Any) -> None:
        """Forward the packets that one acknowledgement newly acknowledges."""
        self._pass_on("on_acked", *event)

    def on_lost(self, *event: Any) -> None:
        """Forward packets that are declared lost together."""
        self._pass_on("on_lost", *event)

    def on_congestion_experienced(self, sent_at_ns: int, now_ns: int) -> None:
        """Forward new marks."""
        self._pass_on("on_congestion_experienced", sent_at_ns, now_ns)

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Forward losses that span the period of RFC 9002 § 7.6."""
        self._pass_on("on_persistent_congestion", now_ns)

    def on_spurious_loss(self, now_ns: int) -> None:
        """Forward that the last losses were spurious."""
        self._pass_on("on_spurious_loss", now_ns)

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return the rate at which packets leave, or None."""
        rate_bps = self._pass_on("pacing_rate_bps", rtt)
        rate = as_integer(rate_bps)
        if rate_bps is not None and (rate is None or not 1 <= rate < _PLUGIN_VALUE_LIMIT):
            requirement = "it must be None, or a whole number of bit/s, at least 1 and below 2^64"
            found = format_value(rate_bps)
            raise self._guard.make_error(f"pacing_rate_bps() returns {found}; {requirement}")
        return rate

    def _pass_on(self, method: str, *arguments: Any) -> Any:
        """Call the controller's method, and validate its window afterwards."""
        result = self._guard.call(method, getattr(self.controller, method), *arguments)
        self._copy_window(f"in {method}()")
        return result

    def _copy_window(self, when: str) -> None:
        """Validate and copy the controller's window and slow start threshold.

        *when* is the end of an error's first words: "in on_ack()".
        """
        for attribute in ("congestion_window", "ssthresh"):
            if not hasattr(self.controller, attribute):
                raise self._guard.make_error(f"has no {attribute} {when}")
        window, ssthresh = self.controller.congestion_window, self.controller.ssthresh
        n_bytes, threshold = as_integer(window), as_integer(ssthresh)
        if n_bytes is None or not self._packet_bytes <= n_bytes < _PLUGIN_VALUE_LIMIT:
            limits = f"at least {self._packet_bytes:,} (a packet) and below 2^64"
            requirement = f"it must be a whole number of bytes, {limits}"
            found = format_value(window)
            raise self._guard.make_error(f"sets congestion_window to {found} {when}; {requirement}")
        if ssthresh is not None and (threshold is None or not 0 <= threshold < _PLUGIN_VALUE_LIMIT):
            requirement = "it must be None, or a whole number of bytes below 2^64"
            found = format_value(ssthresh)
            raise self._guard.make_error(f"sets ssthresh to {found} {when}; {requirement}")
        self.congestion_window, self.ssthresh = n_bytes, threshold


class CheckedEcnController(CheckedController):
    """The same for a plug-in that responds to marks."""

    responds_to_ecn: ClassVar[bool] = True


if TYPE_CHECKING:
    Factory = Callable[[ControllerSettings], CongestionController]


ENTRY_POINT_GROUP = "h3sim.congestion"
"""The entry-point group of controller plug-ins: a name, and a factory that takes settings."""

_PACKAGE = "h3sim.transport.congestion"
BUILT_IN: dict[str, Factory | str] = {
    "bbr": f"{_PACKAGE}.bbr:BbrController",
    "bbr1": f"{_PACKAGE}.bbr1:Bbr1Controller",
    "constant": f"{_PACKAGE}.loss_based:ConstantRateController",
    "cubic": f"{_PACKAGE}.loss_based:CubicController",
    "cubic-aioquic": f"{_PACKAGE}.aioquic:AioquicCubicController",
    "cubic-linux": f"{_PACKAGE}.linux:LinuxCubicController",
    "cubic-quicly": f"{_PACKAGE}.quicly:QuiclyCubicController",
    "newreno": f"{_PACKAGE}.loss_based:NewRenoController",
    "reno-aioquic": f"{_PACKAGE}.aioquic:AioquicRenoController",
    "reno-quicly": f"{_PACKAGE}.quicly:QuiclyRenoController",
}
"""Built-in controllers by name; each is imported on first use."""

REGISTRY: PluginRegistry[Factory] = PluginRegistry(ENTRY_POINT_GROUP, "controller", BUILT_IN)
"""Controllers by name, plug-ins included."""


def controller_named(name_or_factory: Factory | str) -> tuple[str, Factory | None]:
    """Return the name of a controller, and its factory if it is not a registered one.

    A factory is a class or function that takes `ControllerSettings`; it has its own name.

    Raises:
        InputError: if it is neither a name nor a factory, or a factory has the name of a built-in
            controller.
        UnknownNameError: if no controller has that name.

    >>> controller_named("bbr")
    ('bbr', None)
    """
    if isinstance(name_or_factory, str):
        if not is_controller(name_or_factory):
            raise UnknownNameError("controller", name_or_factory, controller_names())
        return name_or_factory, None
    code: object = name_or_factory  # callers may ignore the annotation
    if not callable(code):
        message = (
            "must be a name, or a class or function that takes ControllerSettings and returns a"
            f" CongestionController, is {format_value(name_or_factory)}"
        )
        raise InputError.at("", message)
    made_by = getattr(name_or_factory, "func", name_or_factory)  # of a functools.partial
    name = getattr(made_by, "__name__", "")
    name = name if name.isidentifier() else type(name_or_factory).__name__
    if name in BUILT_IN:
        message = f"{name!r} is the name of a built-in controller: rename the class or function"
        raise InputError.at("", message)
    return name, name_or_factory


def make_controller(
    name: str, settings: ControllerSettings, factory: Factory | None = None
) -> CongestionController:
    """Return a new controller of that name, made by *factory* if one is given.

    Raises:
        UnknownNameError: if there is no such controller.
        InputError: if a required setting is missing, or a plug-in cannot be constructed, or
            returns something else.
        ControllerError: if a plug-in starts with an invalid window; its methods raise the same for
            any invalid state.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> make_controller("newrino", ControllerSettings(max_datagram_bytes=1200))
    Traceback (most recent call last):
    ...
    h3sim.values.errors.UnknownNameError: no controller is called 'newrino'; did you mean newreno? \
(`h3sim list controllers` shows all)
    """
    if factory is not None:
        return _make_plugin(factory, name, settings)
    registered = REGISTRY.named(name)
    return registered(settings) if name in BUILT_IN else _make_plugin(registered, name, settings)


def _make_plugin(factory: Factory, name: str, settings: ControllerSettings) -> CongestionController:
    """Return the controller of a plug-in, checked and wrapped for checks."""
    try:
        controller: object = factory(settings)
    except InputError:  # of the settings
        raise
    # Third-party code may raise anything, and one that exits must not end the process.
    except (Exception, SystemExit) as error:
        raise _plugin_error(name, f"making one raised {raised_words(error)}") from error
    if not isinstance(controller, CongestionController):
        message = f"makes a {type(controller).__name__}, which derives from no CongestionController"
        raise _plugin_error(name, message)
    check = CheckedEcnController if controller.responds_to_ecn else CheckedController
    return check(controller, name=name, packet_bytes=settings.max_datagram_bytes)


def _plugin_error(name: str, message: str) -> InputError:
    return InputError([ValidationIssue(key=name, message=message)], "congestion control")


def is_controller(name: str) -> bool:
    """Return whether a controller is called *name*; plug-ins are looked up only for unknown names.

    >>> is_controller("cubic"), is_controller("cubism")
    (True, False)
    """
    return name in REGISTRY


def controller_names() -> tuple[str, ...]:
    """Return the names of all controllers, plug-ins included, in alphabetical order.

    >>> "newreno" in controller_names()
    True
    """
    return REGISTRY.names()


def responds_to_ecn(name: str, factory: Factory | None = None) -> bool:
    """Return whether the controller of that name, or of *factory*, responds to marks.

    >>> responds_to_ecn("cubic"), responds_to_ecn("cubic-aioquic")
    (True, False)
    """
    # A function does not tell: then its packets are Not-ECT if its controllers do not respond.
    return bool(getattr(factory or REGISTRY.named(name), "responds_to_ecn", True))

"""Congestion controllers in other processes: the line protocol `h3sim-controller/1`.

docs/conformance-protocol.md describes it.
"""

from __future__ import annotations

import json
import weakref
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from h3sim.schedulers.driver import DriverProcess
from h3sim.transport.congestion import CongestionController

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator

__all__ = ["CONTROLLER_PROTOCOL", "ControllerDriver"]

CONTROLLER_PROTOCOL: Final = "h3sim-controller/1"
"""Name and version of the protocol, as sent in `hello`."""
_STATE: Final = "{'window': bytes, 'ssthresh': bytes or null, 'rate_bps': whole number or null}"


class ControllerDriver:
    """A factory of controllers that *command* runs, each in a process of its own."""

    def __init__(self, command: Sequence[str], *, timeout_s: float = 5.0) -> None:
        self.command, self.timeout_s = tuple(command), timeout_s

    def start(self) -> None:
        """Start the command once, as a test.

        Raises:
            InputError: if it cannot be started.
            SchedulerError: if it does not answer `hello`.
        """
        process = DriverProcess(self.command, self.timeout_s)
        try:
            process.greet(CONTROLLER_PROTOCOL)
        finally:
            process.finish()

    def __call__(self, settings: ControllerSettings) -> CongestionController:
        """Return a new controller."""
        return _DrivenController(DriverProcess(self.command, self.timeout_s), settings)


class _DrivenController(CongestionController):
    """A controller in another process; events wait until its state is needed."""

    responds_to_ecn: ClassVar[bool] = True

    def __init__(self, process: DriverProcess, settings: ControllerSettings) -> None:
        self._process = process
        self._finalizer = weakref.finalize(self, process.finish)
        process.greet(CONTROLLER_PROTOCOL)
        self._lines: list[str] = []
        self._answer: dict[str, Any] = {}
        self._tell(
            "new",
            max_datagram_bytes=settings.max_datagram_bytes,
            initial_window_bytes=settings.initial_congestion_window,
            rate_bps=settings.rate_bps,
        )
        self._ask()

    def __getattr__(self, name: str) -> Any:
        """Return a value of BBR's model."""
        if name.startswith("_") or name not in self._answer:
            raise AttributeError(f"the driver's state has no {name}", name=name, obj=self)
        return self._answer[name]

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Pass on a packet; the answer matters if nothing else was in flight."""
        n_bytes, at_ns = packet.size_bytes, packet.sent_at_ns
        self._tell(
            "sent", number=packet.number, at_ns=at_ns, bytes=n_bytes, in_flight=bytes_in_flight
        )
        if bytes_in_flight <= n_bytes:
            self._ask()

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Pass on an acknowledgement."""
        self._tell(
            "acked",
            numbers=[packet.number for packet in packets],
            at_ns=now_ns,
            in_flight=bytes_in_flight,
            latest_rtt_ns=rtt.latest_rtt_ns,
            smoothed_rtt_ns=rtt.smoothed_rtt_ns,
            min_rtt_ns=rtt.min_rtt_ns,
            unused=is_cwnd_underutilized,
        )
        self._ask()

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Pass on losses."""
        numbers = [packet.number for packet in packets]
        self._tell(
            "lost",
            numbers=numbers,
            at_ns=now_ns,
            in_flight=bytes_in_flight,
            next_number=next_number,
        )
        self._ask()

    def on_congestion_experienced(self, sent_at_ns: int, now_ns: int) -> None:
        """Pass on marks."""
        self._tell("marked", sent_at_ns=sent_at_ns, at_ns=now_ns)
        self._ask()

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Pass on that a timer has expired."""
        self._tell("timer", at_ns=now_ns)
        self._ask()

    def on_spurious_loss(self, now_ns: int) -> None:
        """Pass on that losses were spurious."""
        self._tell("spurious", at_ns=now_ns)
        self._ask()

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:  # noqa: ARG002
        """Return the rate of the last answer."""
        rate: int | None = self._answer["rate_bps"]
        return rate

    def _tell(self, op: str, **values: Any) -> None:
        self._lines.append(json.dumps({"op": op, **values}, separators=(",", ":")) + "\n")

    def _ask(self) -> None:
        """Send what waits, and take over the state after it."""
        lines, self._lines = [*self._lines, '{"op":"state"}\n'], []
        answer = self._process.ask("".join(lines), "state")
        if not isinstance(answer, dict) or not _is_state(answer):
            raise self._process.failed("state", answer, _STATE)
        self._answer = answer
        self.congestion_window, self.ssthresh = answer["window"], answer["ssthresh"]


def _is_state(answer: dict[str, Any]) -> bool:
    """Return whether the values that every controller has are whole numbers, or null."""
    types = {name: type(answer.get(name, False)) for name in ("window", "ssthresh", "rate_bps")}
    # `isinstance` would accept true.
    return types.pop("window") is int and all(kind in (int, NoneType) for kind in types.values())

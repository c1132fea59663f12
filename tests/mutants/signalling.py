"""Signals that come to the server in a wrong way."""

from __future__ import annotations

from typing import Any

from h3sim.engine.signalling import MetadataSignalling, WireSignalling
from h3sim.signals import Eps


class HeardAsTheyCome(WireSignalling):
    """Hands frames over as they arrive: each on a stream of its own."""

    def on_message_arrived(self, number: Any, now_ns: int) -> None:
        self._apply(self._receiver.on_message(*self._frames[number]), now_ns)


class Mumbles(WireSignalling):
    """Loses what was said with a request."""

    def on_request_arrived(self, stream_id: int, resource: Any, now_ns: int) -> None:
        self._with_request.pop(stream_id, None)
        super().on_request_arrived(stream_id, resource, now_ns)


class NewsIsLost(MetadataSignalling):
    """Takes no notice of what becomes known of a stream that is open."""

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        pass


class SignalsLittle(MetadataSignalling):
    """Leaves out of a request what has become known by then."""

    def on_requested(self, stream_id: int, resource: Any) -> None:
        self._known_states.clear()
        super().on_requested(stream_id, resource)


class LastHeardCounts(WireSignalling):
    """Takes what a request says for newer than what the control stream said before."""

    def on_request_arrived(self, stream_id: int, resource: Any, now_ns: int) -> None:
        signal = self._with_request.get(stream_id)
        super().on_request_arrived(stream_id, resource, now_ns)
        if signal is not None:
            self._streams.update(stream_id, signal)


class KeepsTheFirstWord(WireSignalling):
    """Says nothing of what becomes known later."""

    def on_changed(self, resource: Any, change: Any, now_ns: int) -> None:
        pass


class ChangesAll(WireSignalling):
    """Takes what becomes known of one resource for all that were requested."""

    requested: tuple[int, ...] = ()

    def on_request_arrived(self, stream_id: int, resource: Any, now_ns: int) -> None:
        self.requested = (*self.requested, stream_id)
        super().on_request_arrived(stream_id, resource, now_ns)

    def on_changed(self, resource: Any, change: Any, now_ns: int) -> None:
        self._send([(stream_id, Eps(urgency=0)) for stream_id in self.requested])

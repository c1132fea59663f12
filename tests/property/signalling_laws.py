"""Laws of signals on their way up: in what order they are heard, and what is known in the end."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import h3sim
from h3sim.http import StreamSender
from h3sim.signals import ORPHANS, H2Priority


def check_the_control_stream_keeps_its_order(load: Any) -> None:
    """In draft-22 what is said of streams is heard in the order of their requests."""
    reported = [signal for signal in load.trace.signals if signal.signal.depends_on != ORPHANS]
    heard = list(dict.fromkeys(signal.element_id for signal in reported if signal.element_id >= 0))
    assert heard == sorted(heard), "frames were heard in another order than they were sent"
    at_ns = [signal.at_ns for signal in load.trace.signals]
    assert at_ns == sorted(at_ns)


def check_signals_without_delay_are_as_good_as_known(sent: Any, known: Any) -> None:
    """Packets leave as they do where the server knows by itself."""
    assert sent.trace.order == known.trace.order
    assert sent.trace.packet_rows == known.trace.packet_rows
    assert sent.timings == known.timings


def check_the_last_word_counts(make: Any, signalling: Any, seed: int) -> None:
    """Once all has come, in whatever order, the server has the last word about each element."""
    source = Random(seed)
    scheduler, policy, frames = Listener(), Talker(source), []
    signals = make(
        policy,
        StreamSender(scheduler, turn_bytes=1),  # type: ignore[arg-type]
        signalling,
        lambda number, _: frames.append(number),
        message_bytes=signalling.message_bytes(is_http2=False),
    )
    signals.on_connected()
    stream_ids = range(0, 4 * N_REQUESTS, 4)
    for stream_id in stream_ids:
        signals.on_requested(stream_id, None)
    coming = [Coming(signals.on_message_arrived, (number,)) for number in frames]
    coming += [Coming(signals.on_request_arrived, (stream_id, None)) for stream_id in stream_ids]
    source.shuffle(coming)
    for at_ns, (hear, what) in enumerate(coming):
        hear(*what, at_ns)
    assert scheduler.expected == policy.message


N_REQUESTS = 6


class Coming(NamedTuple):
    """What comes, and who hears it."""

    hear: object
    what: tuple[Any, ...]


class Talker:
    """A policy that changes its mind: each request says something of one element before it."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.message: dict[Any, Any] = {}

    def on_connected(self) -> list[Any]:
        return [self._saying(-1)]

    def on_requested(self, stream_id: int, resource: Any) -> list[Any]:
        earlier = self._source.choice([-1, *range(0, stream_id, 4)])
        return [self._saying(earlier), self._saying(stream_id)]

    def on_changed(self, resource: Any, change: Any) -> list[Any]:
        return []

    def on_closed(self, stream_id: int) -> list[Any]:
        return []

    def _saying(self, element_id: int) -> Any:
        self.message[element_id] = H2Priority(weight=self._source.randint(1, 256))
        return element_id, self.message[element_id]


class Listener:
    """A scheduler that keeps what it is told, and sends nothing."""

    def __init__(self) -> None:
        self.expected: dict[Any, Any] = {}

    def open(self, element_id: int, signal: Any) -> None:
        assert element_id not in self.expected, f"{element_id} is opened twice"
        self.expected[element_id] = signal

    def update(self, element_id: int, signal: Any) -> None:
        assert element_id in self.expected, f"{element_id} is not open"
        self.expected[element_id] = signal

    def deactivate(self, stream_id: int) -> None:
        """Never called: nothing is sent."""

    def close(self, stream_id: int) -> None:
        """Never called: no stream ends."""


def changed_at(load: Any, id_: str) -> Any:
    """Return when the server learnt of a change for that resource's stream, None if it did not."""
    page, requests = load.page, load.trace.requests
    streams = {page.resources[request.resource].id: request.stream_id for request in requests}
    heard = [s.at_ns for s in load.trace.signals if s.element_id == streams[id_]]
    return heard[1] if len(heard) > 1 else None


def sent_at(load: Any, id_: str) -> list[int]:
    """Return when the packets of that resource left."""
    page, requests = load.page, load.trace.requests
    streams = {page.resources[request.resource].id: request.stream_id for request in requests}
    return [row[0] for row in load.trace.packet_rows if row[2] == streams[id_]]


def loaded_as(load: Any, page: Any) -> Any:
    """Return the load of another page over the same, at a constant rate."""
    return h3sim.simulate(
        page,
        scheme=load.scheme,
        network=load.network,
        transport=load.protocol.value,
        handshake=load.spec.mode.value,
        send_buffer_kb=load.spec.buffer_bytes / 1000,
        seed=load.seed,
    )


def changing(load: Any) -> Any:
    """Return the one resource of the page that changes."""
    return next(resource for resource in load.page.resources if resource.priority_changes)


def check_an_early_change_equals_an_initial_one(load: Any) -> None:
    """A hint that changes before the first byte can leave is as good as one in the page."""
    resource = changing(load)
    (change,) = resource.priority_changes
    hint = change.fetchpriority.value
    twin = load.page.with_(resource.id, fetchpriority=hint, priority_changes=None)
    assert loaded_as(load, twin).trace.packet_rows == load.trace.packet_rows


def check_a_change_after_the_last_byte_changes_nothing(load: Any) -> None:
    """Packets leave as they do without the change, if all of the resource had left before it."""
    resource = changing(load)
    heard_at_ns = changed_at(load, resource.id)
    assert heard_at_ns is None or heard_at_ns > max(sent_at(load, resource.id))
    twin = load.page.with_(resource.id, priority_changes=None)
    assert loaded_as(load, twin).trace.packet_rows == load.trace.packet_rows

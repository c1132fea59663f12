"""Header compression between a load and a transport that is scripted: what is carried, and when."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.engine.environment import LoadEnvironment
from h3sim.engine.header_compression import HeaderTransport, is_critical
from h3sim.engine.transport import TransportTrace
from h3sim.headers import CodecSettings, HeaderCompression
from h3sim.http import SectionSender
from h3sim.schedulers import FifoScheduler
from h3sim.signals import H2Priority
from h3sim.trace import PacketRows
from tests.helpers import page_of

IMAGE = {"kind": "image", "bytes": 300, "discovered": {"at": "time"}}
PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 300}, *({**IMAGE, "id": name} for name in "abc")
)
FIELDS = ((b"x-shared", b"s" * 60),)
LONG = ((b"x-long", b"\xff" * 2000),)


class Inner:
    """A transport that carries nothing by itself, and notes what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []
        self.watched: dict[int, int] = {}
        self.drained: list[int] = []
        self.request_streams = self
        self.rows: list[tuple[Any, ...]] = []
        self.n_pumps = 0
        self.application: Any = None

    def begin(self, application: Any) -> None:
        self.application = application

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        self.calls.append(("request", stream_id, n_bytes))

    def send_signal(self, number: int, n_bytes: int) -> None:
        self.calls.append(("signal", number, n_bytes))

    def pump(self) -> None:
        self.n_pumps += 1

    def watch(self, stream_id: int, n_bytes: int) -> None:
        self.watched[stream_id] = n_bytes

    def take_drained(self) -> list[int]:
        drained, self.drained = self.drained, []
        return drained

    def carried(self) -> TransportTrace:
        return TransportTrace(PacketRows.of(self.rows))


class Application:
    """Notes what it is told, and requests each resource in its order."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def on_connected(self, now_ns: int) -> None:
        self.told.append(("connected", now_ns))

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        self.told.append(("request", stream_id, now_ns))

    def on_signal_arrived(self, number: int, now_ns: int) -> None:
        self.told.append(("signal", number, now_ns))

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        self.told.append(("delivered", stream_id, contiguous, now_ns))

    def on_drained(self) -> None:
        self.told.append(("drained",))

    def resource_of(self, stream_id: int) -> int:
        return stream_id // 4


class Carried:
    """A transport with header compression over `Inner`; every section has the same fields."""

    def __init__(self, codec: Any = "qpack", fields: Any = FIELDS, **settings: int) -> None:
        self.environment, self.inner = LoadEnvironment(), Inner()
        self.streams = SectionSender(FifoScheduler(), turn_bytes=1200)
        lists = ((fields, fields),) * len(PAGE.resources)
        headers = HeaderCompression(codec=codec, lists=lists, settings=CodecSettings(**settings))
        inner: Any = self.inner
        self.transport = HeaderTransport(self.environment, inner, self.streams, PAGE, headers)
        self.application = Application()
        self.transport.begin(self.application)

    @property
    def told(self) -> list[tuple[Any, ...]]:
        """What the application was told since the last time."""
        told, self.application.told = self.application.told, []
        return told

    def respond(self, stream_id: int, watched: int = 0) -> tuple[list[tuple[int, int, int]], int]:
        """Send a response at once; return the parts before it, and the size of its section."""
        self.transport.watch(stream_id, watched)
        self.streams.open(stream_id, H2Priority())
        self.streams.send(stream_id, 300)
        parts, n_bytes = [], 0
        while (chunk := self.streams.take()) is not None:
            if is_critical(chunk[0]):
                parts.append(chunk)
            else:
                n_bytes = sum(chunk[1:])
        return parts, n_bytes - 300


def test_requests_and_what_they_refer_to_go_up_in_this_order() -> None:
    carried = Carried()
    for stream_id in (0, 4, 8):
        carried.transport.send_signal(stream_id, 20)
        carried.transport.send_request(stream_id, 5000)
    calls = [(kind, number) for kind, number, _ in carried.inner.calls]
    # QPACK's encoder states the capacity of its table, and inserts a field when it returns. Frames
    # of the load and parts of its stream have the numbers of one sequence.
    assert calls == [
        *[("signal", 0), ("signal", 1), ("request", 0)],
        *[("signal", 2), ("signal", 3), ("request", 4)],
        *[("signal", 4), ("request", 8)],
    ]
    sizes = {call: n_bytes for call, (*_, n_bytes) in zip(calls, carried.inner.calls, strict=True)}
    assert [sizes["signal", number] for number in (0, 2, 4)] == [20, 20, 20]
    assert min(sizes["request", 0], sizes["signal", 3]) > 40
    assert max(sizes["request", 4], sizes["request", 8]) < 10


def test_a_request_waits_for_what_it_refers_to_and_a_signal_for_nothing() -> None:
    carried = Carried()
    carried.transport.send_signal(7, 20)
    carried.transport.send_request(0, 0)
    carried.transport.send_request(4, 0)
    application = carried.inner.application
    application.on_request_arrived(4, 5)
    application.on_request_arrived(0, 6)
    application.on_signal_arrived(0, 7)
    assert carried.told == [("request", 0, 6), ("signal", 7, 7)]
    application.on_signal_arrived(1, 8)
    assert carried.told == []
    application.on_signal_arrived(2, 9)
    assert carried.told == [("request", 4, 9)]


def test_the_decoder_s_stream_is_watched_to_its_end_and_leaves_with_the_answer() -> None:
    carried = Carried()
    carried.transport.send_request(0, 0)
    carried.transport.send_request(4, 0)
    application = carried.inner.application
    for number in range(2):
        application.on_signal_arrived(number, 4)
    application.on_request_arrived(4, 5)
    parts = []
    while (chunk := carried.streams.take()) is not None:
        parts.append(chunk)
    assert parts
    assert carried.inner.watched == {
        stream_id: offset + n_bytes for stream_id, offset, n_bytes in parts
    }
    # Whatever brought the request to the server lets the server send.
    assert carried.inner.n_pumps == 0


def test_an_insertion_is_acknowledged_by_the_decoder_s_stream() -> None:
    carried = Carried(blocked_streams=0)
    for stream_id in (0, 4, 8):
        carried.transport.send_request(stream_id, 0)
    # No stream may be blocked, so the field is inserted, and not referred to.
    assert min(n_bytes for kind, _, n_bytes in carried.inner.calls if kind == "request") > 40
    application = carried.inner.application
    for number in range(2):
        application.on_signal_arrived(number, 4)
    while (chunk := carried.streams.take()) is not None:
        application.on_delivered(chunk[0], chunk[1] + chunk[2], 9)
    carried.transport.send_request(12, 0)
    assert carried.inner.calls[-1][2] < 10


def test_a_response_waits_for_what_it_refers_to() -> None:
    carried = Carried()
    carried.respond(0)
    [part], size = carried.respond(4)
    assert carried.inner.watched[4] == size
    assert carried.inner.watched[part[0]] == part[2]
    application = carried.inner.application
    application.on_delivered(4, size + 100, 5)
    application.on_delivered(4, size + 200, 6)
    assert carried.told == []
    application.on_delivered(3, 3, 8)
    application.on_delivered(part[0], part[2], 9)
    assert carried.told == [("delivered", 4, 200, 9)]
    application.on_delivered(4, size + 300, 12)
    assert carried.told == [("delivered", 4, 300, 12)]


@pytest.mark.parametrize(("watched", "is_told"), [(100, True), (101, False)])
def test_the_threshold_of_a_response_counts_from_the_end_of_its_section(
    watched: int, is_told: bool
) -> None:
    carried = Carried("static")
    _, size = carried.respond(0, watched)
    carried.inner.application.on_delivered(0, size + 100, 5)
    assert carried.told == ([("delivered", 0, 100, 5)] if is_told else [])
    assert carried.inner.watched[0] == size + watched
    carried.transport.watch(0, 250)
    assert carried.inner.watched[0] == size + 250


def test_before_a_response_can_be_read_its_section_alone_is_watched() -> None:
    carried = Carried()
    _, size = carried.respond(0, 200)
    carried.transport.watch(0, 250)
    assert carried.inner.watched[0] == size


def test_a_long_section_is_there_with_its_last_byte() -> None:
    carried = Carried("static", LONG)
    _, size = carried.respond(0)
    assert size > 1200
    assert carried.inner.watched[0] == size


def test_nothing_is_delivered_before_it_can_be_read() -> None:
    carried = Carried()
    [first], size = carried.respond(0)
    [second], later_size = carried.respond(4)
    application = carried.inner.application
    application.on_delivered(0, size + 300, 5)
    application.on_delivered(4, later_size + 200, 6)
    application.on_delivered(first[0], first[2], 8)
    application.on_delivered(second[0], second[2], 9)
    critical = [(0, 8, *first, 0, 8), (0, 9, *second, 0, 9)]
    readable = (1, 5, 0, 0, size + 300, 1, 5)
    early = [(2, 6, 4, 0, later_size + 90, 1, 6), (2, 6, 4, later_size + 90, 110, 1, 6)]
    lost = (3, None, 4, later_size + 200, 100, 2, None)
    again = (4, 12, 4, later_size + 200, 100, 3, 12)
    carried.inner.rows = [readable, critical[0], *early, critical[1], lost, again]
    rows = [tuple(row) for row in carried.transport.carried().packet_rows]
    assert rows == [readable, *((*row[:6], 9) for row in early), lost, again]


def test_an_encoder_refers_to_what_was_acknowledged() -> None:
    carried = Carried("qcram")
    sizes = []
    for stream_id, now_ns in ((0, 0), (4, 1), (8, 2)):
        if stream_id == 8:
            carried.inner.drained = [0]
        carried.environment.advance_to(now_ns)
        carried.transport.send_request(stream_id, 0)
        sizes.append(carried.inner.calls[-1][2])
    # Both of the first two carry the field; the third refers to that of the first, which arrived.
    assert min(sizes[:2]) > 40
    assert sizes[2] < 10


def test_the_application_is_told_what_the_transport_reports() -> None:
    carried = Carried()
    carried.inner.application.on_connected(3)
    carried.inner.application.on_drained()
    carried.transport.pump()
    assert carried.told == [("connected", 3), ("drained",)]
    assert carried.inner.n_pumps == 1
    assert carried.inner.application.resource_of(8) == 2

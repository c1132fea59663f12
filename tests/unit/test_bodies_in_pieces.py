"""Bodies that take time: a response exists piece by piece, and its stream pauses in between."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.http import HeadersFirstSender, SendBufferRefill, StreamSender
from h3sim.page import page_from_dict
from h3sim.page.model import page_to_dict
from h3sim.schedulers import FifoScheduler, RoundRobinScheduler
from h3sim.signals import H2Priority
from h3sim.values.errors import PageError
from h3sim.values.units import ms, to_ms

RTT_MS = 40
LINKS = h3sim.load_network("fibre").with_(rate_mbps=10, rtt_ms=RTT_MS)
FLUSHED = {"id": "/", "kind": "document", "bytes": 30_000, "header_bytes": 200, "server_ms": 100}
BODY = [[0, 5000], [300, 5000], [800, 20_000]]
STYLE = {
    "id": "a.css",
    "kind": "stylesheet",
    "bytes": 20_000,
    "discovered": {"by": "/", "at": "offset", "offset_bytes": 2000},
}
IMAGE = {
    "id": "b.png",
    "kind": "image",
    "bytes": 100_000,
    "discovered": {"by": "/", "at": "offset", "offset_bytes": 9000},
}
EVERYWHERE: list[dict[str, Any]] = [
    {"network": "marx-2019"},
    {"network": "marx-2019", "reorder": "4:1-3"},
    {"network": "marx-2019", "send_buffer_kb": 50},
    *(
        {"network": LINKS, "transport": transport, "loss": loss, **others}
        for transport in ("quic", "tcp", "http1")
        for loss in (0, 0.05)
        for others in ({}, {"send_buffer_kb": 8})
        if transport != "http1" or not others
    ),
    {"network": LINKS, "header_compression": "qpack"},
    {"network": LINKS, "header_compression": "hpack", "transport": "tcp"},
]


def page(body: Any = BODY, **others: Any) -> Any:
    root = FLUSHED | ({"body": body} if body else {}) | others
    resources = [root, STYLE, IMAGE]
    return page_from_dict({"format": "h3sim-page/1", "name": "flushed", "resources": resources})


def first_sent_ns(load: Any, end: int) -> Any:
    """When the byte before offset *end* of the root's stream was first sent."""
    rows = load.trace.packet_rows
    return min(row[0] for row in rows if row[2] == 0 and row[3] < end <= row[3] + row[4])


@pytest.mark.parametrize("options", EVERYWHERE)
@pytest.mark.parametrize("scheme", ["fifo", "rr", "nghttp2"])
def test_nothing_is_sent_before_it_exists(options: dict[str, Any], scheme: str) -> None:
    if options.get("send_buffer_kb") and options.get("transport") == "http1":
        pytest.skip("a send buffer belongs to the scheduler")
    load = h3sim.simulate(page(), scheme=scheme, **options)
    request = load.trace.requests[0]
    ready_ns = request.arrived_at_ns + ms(100)
    front = request.length_bytes - 30_000
    available = front
    for after_ms, n_bytes in BODY:
        assert first_sent_ns(load, available + 1) >= ready_ns + ms(after_ms)
        available += n_bytes
    assert load.page_load_ms > 900


def test_children_of_a_flushed_head_are_found_while_the_rest_is_produced() -> None:
    seen = {
        body: h3sim.simulate(page(pieces), scheme="rr", network=LINKS)
        for body, pieces in (("flushed", BODY), ("late", [[800, 30_000]]), ("at once", None))
    }
    requested = {
        body: {row.resource: to_ms(row.requested_at_ns) for row in load.trace.requests}
        for body, load in seen.items()
    }
    style, image = 1, 2
    assert requested["flushed"][style] == pytest.approx(requested["at once"][style], abs=5)
    assert requested["late"][style] - requested["at once"][style] == pytest.approx(800, abs=15)
    # The image is named in the second piece, 300 ms after the first.
    assert requested["flushed"][image] - requested["at once"][image] == pytest.approx(300, abs=15)


def test_one_piece_at_once_is_no_piece() -> None:
    for options in EVERYWHERE:
        loads = [
            h3sim.simulate(page(body), scheme="rr", **options) for body in (None, [[0, 30_000]])
        ]
        assert loads[0].trace.digest() == loads[1].trace.digest()


@pytest.mark.parametrize("buffer_bytes", [0, 1500, 10_000])
@pytest.mark.parametrize("refill", SendBufferRefill)
def test_a_paused_stream_lets_others_pass_and_resumes(buffer_bytes: int, refill: Any) -> None:
    streams = StreamSender(
        FifoScheduler(), turn_bytes=1000, buffer_bytes=buffer_bytes, send_buffer_refill=refill
    )
    for stream_id in (0, 4):
        streams.open(stream_id, H2Priority())
    streams.provide(0, 1500)
    streams.send(0, 4000)
    streams.send(4, 1200)
    taken = list(iter(streams.take, None))
    assert taken == [(0, 0, 1000), (0, 1000, 500), (4, 0, 1000), (4, 1000, 200)]
    assert not streams.has_data
    assert streams.take_drained() == [4]
    streams.provide(0, 4000)
    assert sum(n_bytes for _, _, n_bytes in iter(streams.take, None)) == 2500
    assert streams.take_drained() == [0]


def test_a_stream_that_resumes_keeps_its_place_in_first_in_first_out() -> None:
    streams = StreamSender(FifoScheduler(), turn_bytes=1000)
    for stream_id in (0, 4):
        streams.open(stream_id, H2Priority())
    streams.provide(0, 500)
    streams.send(0, 1500)
    streams.send(4, 3000)
    assert [streams.take(), streams.take()] == [(0, 0, 500), (4, 0, 1000)]
    streams.provide(0, 1500)
    assert streams.take() == (0, 500, 1000)


def test_round_robin_shares_with_a_stream_while_it_has_something() -> None:
    streams = StreamSender(RoundRobinScheduler(), turn_bytes=1000)
    for stream_id in (0, 4):
        streams.open(stream_id, H2Priority())
    streams.provide(0, 2000)
    streams.send(0, 4000)
    streams.send(4, 6000)
    order = [streams.take() for _ in range(6)]
    assert [taken and taken[0] for taken in order] == [0, 4, 0, 4, 4, 4]
    streams.provide(0, 4000)
    assert sorted((streams.take() or (9,))[0] for _ in range(4)) == [0, 0, 4, 4]


def test_headers_leave_before_any_of_the_body_exists() -> None:
    streams = HeadersFirstSender(FifoScheduler(), turn_bytes=1000)
    streams.open(0, H2Priority())
    streams.provide(0, 100)
    streams.send(0, 1100, 100)
    assert (streams.take(), streams.take()) == ((0, 0, 100), None)
    streams.provide(0, 1100)
    assert streams.take() == (0, 100, 1000)


def test_a_window_and_the_pieces_both_limit_a_stream() -> None:
    streams = StreamSender(FifoScheduler(), turn_bytes=1000, stream_window_bytes=800)
    streams.open(0, H2Priority())
    streams.provide(0, 500)
    streams.send(0, 2000)
    assert (streams.take(), streams.take()) == ((0, 0, 500), None)
    streams.provide(0, 2000)
    assert (streams.take(), streams.take()) == ((0, 500, 300), None)
    streams.on_limit(0, 5000)
    assert streams.take() == (0, 800, 1000)


def test_a_page_file_keeps_its_pieces_and_edits_of_its_size_do() -> None:
    read = page_from_dict(page_to_dict(page()))
    assert read.resources == page().resources
    assert read.resources[0].body == ((0, 5000), (ms(300), 5000), (ms(800), 20_000))
    assert read.resources[0].resized(40_000).body[-1] == (ms(800), 30_000)
    assert read.with_("/", bytes=9999, body=[[1, 9999]]).resources[0].body == ((ms(1), 9999),)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([[0, 10]], "body: must be 30,000 bytes in all .* is 10"),
        ([[5, 29_999], [4, 1]], "body: must be in order of time"),
        ([[0]], r"body\[0\]: must be \[ms, bytes\]"),
        ([[0, 0], [-1, 30_000]], r"body\[1\]\[0\]: must"),
        (7, "body: must be a list"),
    ],
)
def test_pieces_that_cannot_be_are_refused(body: Any, message: str) -> None:
    with pytest.raises(PageError, match=message):
        page(body)

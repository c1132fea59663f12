"""HTTP/2's flow control: what its windows cost, who announces them, and where they do nothing."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.page import page_from_dict
from h3sim.transport.flow_control import FlowReceiver
from h3sim.transport.profile import profile_from_dict
from h3sim.transport.rtt import RttEstimator
from h3sim.values.errors import InputError
from h3sim.values.units import ms

RTT_MS = 33
FAST = h3sim.load_network("fibre").with_(rate_mbps=1000, rtt_ms=RTT_MS, queue_bytes=10**8)
TCP = h3sim.load_profile("linux-tcp")


def page(*sizes: int, **root: Any) -> Any:
    """A document, and images that it asks for at its beginning."""
    found = {"by": "/", "at": "request"}
    resources: list[Any] = [{"id": "/", "kind": "document", "bytes": sizes[0], **root}]
    for number, n_bytes in enumerate(sizes[1:]):
        resources.append(
            {"id": f"{number}.png", "kind": "image", "bytes": n_bytes, "discovered": found}
        )
    document = {"format": "h3sim-page/1", "name": "windows", "resources": resources}
    return page_from_dict(document)


def load(loaded: Any, own: Any = None, **options: Any) -> Any:
    profile = TCP.with_(tcp_client=own or {})
    defaults: dict[str, Any] = {
        "scheme": "rr",
        "network": FAST,
        "cc": "constant",
        "handshake": "none",
    }
    options = defaults | {"transport": "tcp", "transport_profile": profile} | options
    return h3sim.simulate(loaded, **options)


def windows(stream: int, connection: int = 2**30, **others: int) -> dict[str, int]:
    return {"stream_window_bytes": stream, "connection_window_bytes": connection, **others}


@pytest.mark.parametrize("both", [(65_535, 65_535), (65_536, 2**30), (2**30, 65_536)])
def test_a_used_up_window_is_the_throughput_per_round_trip(both: tuple[int, int]) -> None:
    # The figures of a reported download: 23 MB over a path of 33 ms.
    seen_ms = load(page(23_000_000), windows(*both)).page_load_ms
    assert seen_ms == pytest.approx(23_000_000 / min(both) * RTT_MS, rel=0.03)


def test_windows_of_streams_add_up_and_that_of_the_connection_is_shared() -> None:
    sizes = (1_000_000,) * 4
    alone = load(page(sizes[0]), windows(65_536)).page_load_ms
    assert load(page(*sizes), windows(65_536)).page_load_ms == pytest.approx(alone, rel=0.1)
    shared = load(page(*sizes), windows(2**30, 65_536)).page_load_ms
    assert shared == pytest.approx(4 * alone, rel=0.05)


def test_no_more_is_sent_than_was_announced() -> None:
    window = 65_536
    rows = list(load(page(1_000_000, header_bytes=300), windows(window)).trace.packet_rows)
    delivered = [(at_ns or 0, offset + n_bytes) for _, _, _, offset, n_bytes, _, at_ns in rows]
    for sent_at_ns, _, _, offset, n_bytes, _, _ in rows:
        known_ns = sent_at_ns - ms(RTT_MS) // 2  # what an announcement can be about
        read_bytes = max((end for at_ns, end in delivered if at_ns <= known_ns), default=300)
        assert offset + n_bytes <= max(read_bytes, 300) + window


def test_windows_that_never_bind_change_no_byte() -> None:
    sizes = (500_000,) * 3
    default, large = load(page(*sizes)), load(page(*sizes), windows(2**30))
    assert default.trace.digest() == large.trace.digest()
    assert load(page(*sizes), windows(65_536)).trace.digest() != large.trace.digest()


def test_http_1_and_quic_have_no_windows_of_http_2() -> None:
    narrow = TCP.with_(tcp_client=windows(65_536, 65_536))
    for transport in ("http1", "quic"):
        options: Any = {"transport": transport, "network": FAST, "scheme": "rr"}
        seen = [
            h3sim.simulate(page(1_000_000), transport_profile=profile, **options).page_load_ms
            for profile in (TCP, narrow)
        ]
        assert seen[0] == seen[1]


def test_a_window_update_is_a_frame_on_the_uplink() -> None:
    def up(client: dict[str, int]) -> int:
        wire = load(page(400_000), client, record_packets=True).trace.wire
        return sum(row.size_bytes for row in wire if not row.is_down)

    # Each one raised by 1,000 bytes has 9 of header, 4 of payload and 22 of its record.
    often, never = up(windows(2**30, window_update_bytes=1000)), up(windows(2**30))
    assert often - never >= 20 * 35


def test_headers_pass_a_window_that_is_used_up() -> None:
    small = {"bytes": 0, "header_bytes": 200}
    found = {"by": "/", "at": "request", "delay_ms": 200}
    blocked = {"id": "/", "kind": "document", "bytes": 2_000_000}
    redirect = {"id": "a", "kind": "fetch", "discovered": found, **small}
    document = {"format": "h3sim-page/1", "name": "p", "resources": [blocked, redirect]}
    seen = load(page_from_dict(document), windows(2**30, 65_536))
    delivered = [row[-1] for row in seen.trace.packet_rows if row[2] == 4]
    assert 0 < delivered[0] < ms(200 + 1.2 * RTT_MS)


def test_an_upload_waits_for_the_windows_of_its_server() -> None:
    upload = page(100, request_bytes=2_000_000)
    seen = {
        server: load(upload, scheme=None, client="curl", server=server).page_load_ms
        for server in ("nghttp2", "go-h2", "rfc9218")
    }
    # Eight round trips of slow start: neither 1 MiB nor nginx's windows last less than that.
    assert seen["go-h2"] == pytest.approx(seen["rfc9218"], abs=5)
    assert seen["rfc9218"] < 9 * RTT_MS
    # 65,535 bytes are reached after three of them.
    assert seen["nghttp2"] == pytest.approx((3 + 2_000_000 / 65_535) * RTT_MS, rel=0.03)


def test_a_window_that_grows_once_headers_have_arrived_costs_a_round_trip() -> None:
    body = page(500_000, header_bytes=200)
    at_once = load(body, windows(2**30)).page_load_ms
    later = load(body, windows(2**30, initial_stream_window_bytes=65_536)).page_load_ms
    assert later - at_once == pytest.approx(RTT_MS, abs=6)


def test_a_window_that_limits_its_sender_doubles_up_to_its_maximum() -> None:
    rtt = RttEstimator(initial_ns=ms(100))
    flow = FlowReceiver(stream_window=100, connection_window=10**6, max_window=350, rtt=rtt)
    ends = (60, 120, 260, 500, 900)
    limits: list[Any] = []
    for number, end in enumerate(ends):
        limits += flow.on_bytes(0, end, ms(100) * number)
    windows_seen = [limit - end for end, (_, limit) in zip(ends, limits, strict=True)]
    assert windows_seen == [100, 200, 350, 350, 350]
    growing = windows(65_536, max_window_bytes=2**24)
    assert (
        load(page(5_000_000), growing).page_load_ms
        < load(page(5_000_000), windows(65_536)).page_load_ms / 3
    )


def test_a_client_brings_its_windows_and_a_profile_takes_precedence() -> None:
    body = page(1_000_000)
    node = load(body, scheme=None, client="node", server="rfc9218")
    go = load(body, scheme=None, client="go", server="rfc9218")
    assert node.page_load_ms > 5 * go.page_load_ms
    wide = load(body, windows(2**24, 2**24), scheme=None, client="node", server="rfc9218")
    assert wide.page_load_ms == pytest.approx(go.page_load_ms, rel=0.2)


def test_an_unknown_key_is_answered_by_the_nearest_and_by_where_all_are() -> None:
    document = {"format": "h3sim-profile/1", "name": "x", "tcp_client": {"strem_window_bytes": 1}}
    with pytest.raises(InputError, match=r"stream_window_bytes.*docs/"):
        profile_from_dict(document)

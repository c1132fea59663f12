"""HTTP/3 over QMux: its records, the order of its bytes, its windows, and what it refuses."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import h3sim
from h3sim.page import page_from_dict
from h3sim.transport.network import Protocol
from h3sim.values.errors import InputError
from h3sim.values.units import ms

RTT_MS = 40
PATH = h3sim.load_network("fibre").with_(rate_mbps=100, rtt_ms=RTT_MS, queue_bytes=10**8)
LINUX = h3sim.load_profile("linux-tcp")
TCP = 20 + 12
TLS = 5 + 17  # a record's header, its type and tag
SIZE = 2  # the Size field of a record of QMux


def page(*sizes: int, **root: Any) -> Any:
    """A document, and images that it requests at its beginning."""
    found = {"by": "/", "at": "request"}
    resources: list[Any] = [{"id": "/", "kind": "document", "bytes": sizes[0], **root}]
    for number, n_bytes in enumerate(sizes[1:]):
        resources.append(
            {"id": f"{number}.png", "kind": "image", "bytes": n_bytes, "discovered": found}
        )
    return page_from_dict({"format": "h3sim-page/1", "name": "qmux", "resources": resources})


def load(loaded: Any, profile: Any = LINUX, **options: Any) -> Any:
    defaults: dict[str, Any] = {
        "scheme": "fifo",
        "network": PATH,
        "transport": "qmux",
        "handshake": "none",
        "record_packets": True,
    }
    return h3sim.simulate(loaded, transport_profile=profile, **defaults | options)


def data_bytes(loaded: Any, *, is_down: bool) -> list[int]:
    """The bytes of TCP's stream in each segment that has any."""
    sizes = [row.size_bytes for row in loaded.trace.wire if row.is_down is is_down]
    return [n_bytes - TCP for n_bytes in sizes if n_bytes > TCP]


def test_a_small_response_is_one_frame_in_one_record() -> None:
    small = load(page(1000, request_bytes=100))
    header = 1 + 1 + 2  # the type of a STREAM frame, its stream and its length; no offset
    assert data_bytes(small, is_down=True) == [TLS + SIZE + header + 1000]
    assert data_bytes(small, is_down=False) == [TLS + SIZE + header + 100]


def test_a_record_of_tls_holds_a_record_of_qmux_with_whole_frames() -> None:
    large = load(page(40_000))
    delivered = {row[-1]: row[3] + row[4] for row in large.trace.packet_rows}
    # 16,384 bytes less Size, and STREAM headers with offsets of 0, 2 and 4 bytes.
    first = 2**14 - SIZE - 4
    second = first + 2**14 - SIZE - 6
    assert sorted(delivered.values()) == [first, second, 40_000]
    overhead = 3 * (TLS + SIZE) + 4 + 6 + 8
    assert sum(data_bytes(large, is_down=True)) == 40_000 + overhead


def test_the_handshake_is_that_of_tcp_and_tls() -> None:
    first = {
        transport: load(page(1000), transport=transport, handshake="1-rtt", cc="newreno")
        for transport in ("tcp", "qmux")
    }
    begun = {name: each.trace.requests[0].arrived_at_ns for name, each in first.items()}
    assert begun["qmux"] == pytest.approx(begun["tcp"], abs=ms(0.1))
    assert begun["tcp"] > ms(2.5 * RTT_MS)


@pytest.mark.parametrize("seed", range(4))
def test_streams_share_one_order_of_delivery(seed: int) -> None:
    path = PATH.with_(rate_mbps=5, loss=0.05)
    lossy = load(page(3000, *[20_000] * 6), scheme="rr", network=path, seed=seed)
    times: dict[tuple[int, int], list[int]] = {}  # in the order in which the bytes left first
    for _, _, stream_id, offset, _, _, at_ns in lossy.trace.packet_rows:
        times.setdefault((stream_id, offset), []).extend([] if at_ns is None else [at_ns])
    assert any(row[1] is None for row in lossy.trace.packet_rows)
    delivered = [min(each) for each in times.values()]
    assert all(early <= late for early, late in pairwise(delivered))


@pytest.mark.parametrize("scheme", ["fifo", "chrome-eps", "rr", "p+"])
def test_the_scheduler_picks_as_over_quic(scheme: str) -> None:
    # Without losses and with a socket that holds next to nothing, both send what it picks next.
    profile = LINUX.with_(tcp={"notsent_lowat_bytes": 1, "data_frame_bytes": 1200})
    kinds = ("image", "stylesheet", "fetch", "script", "font", "image")
    resources: list[Any] = [{"id": "/", "kind": "document", "bytes": 30_000}]
    for number, kind in enumerate(kinds):
        found = {"by": "/", "at": "request"}
        sizes = {"bytes": 50_000 - 7_000 * number, "header_bytes": 100}
        resources.append({"id": f"{number}", "kind": kind, "discovered": found, **sizes})
    ready = page_from_dict({"format": "h3sim-page/1", "name": "ready", "resources": resources})
    ends = {}
    for transport in ("quic", "qmux"):
        rows = load(ready, profile, transport=transport, scheme=scheme).trace.packet_rows
        last = {stream_id: place for place, (_, _, stream_id, *_) in enumerate(rows)}
        ends[transport] = sorted(last, key=last.__getitem__)
    assert ends["qmux"] == ends["quic"]


def test_headers_wait_for_their_turn_unlike_those_of_http_2() -> None:
    two = page_from_dict(
        {
            "format": "h3sim-page/1",
            "name": "two",
            "resources": [
                {"id": "/", "kind": "document", "bytes": 400_000},
                {
                    "id": "a",
                    "kind": "fetch",
                    "bytes": 0,
                    "header_bytes": 200,
                    "discovered": {"by": "/", "at": "request", "delay_ms": 1},
                },
            ],
        }
    )
    ends = {name: load(two, transport=name).timings for name in ("tcp", "qmux")}
    document, redirect = ends["qmux"]
    assert redirect.finished_ms >= document.finished_ms
    document, redirect = ends["tcp"]
    assert redirect.finished_ms < document.finished_ms


def test_its_windows_are_those_of_quic() -> None:
    narrow = {"stream_window_bytes": 100_000, "connection_window_bytes": 2**30}
    seen = {
        table: load(page(3_000_000), LINUX.with_(**{table: narrow}), cc="constant").page_load_ms
        for table in ("quic_client", "tcp_client")
    }
    # At most a window in each round trip.
    assert seen["quic_client"] > 3_000_000 / 100_000 * RTT_MS
    assert seen["tcp_client"] < seen["quic_client"] / 3


def test_no_more_is_sent_than_was_announced() -> None:
    window = 100_000
    profile = LINUX.with_(quic_client={"stream_window_bytes": window})
    rows = list(load(page(1_000_000), profile).trace.packet_rows)
    delivered = [(at_ns or 0, offset + n_bytes) for _, _, _, offset, n_bytes, _, at_ns in rows]
    for sent_at_ns, _, _, offset, n_bytes, _, _ in rows:
        known_ns = sent_at_ns - ms(RTT_MS) // 2
        read_bytes = max((end for at_ns, end in delivered if at_ns <= known_ns), default=0)
        assert offset + n_bytes <= read_bytes + window


def test_an_upload_waits_for_the_windows_of_its_server() -> None:
    upload = page(100, request_bytes=2_000_000)
    narrow = LINUX.with_(quic={"stream_window_bytes": 100_000})
    assert load(upload, narrow).page_load_ms > 2_000_000 / 100_000 * RTT_MS
    assert load(upload).page_load_ms < 12 * RTT_MS


def test_limits_are_frames_on_the_uplink() -> None:
    def up(window: int) -> int:
        profile = LINUX.with_(quic_client={"stream_window_bytes": window})
        return sum(data_bytes(load(page(400_000), profile), is_down=False))

    # Raised once more than half is used: by the fourth record of 16 KiB, so six times.
    assert up(100_000) - up(2**30) == 6 * (TLS + SIZE + 6)


def test_pieces_qpack_and_cross_traffic_go_over_it() -> None:
    pieces = page(3000, 20_000, body=[[0, 1000], [300, 2000]])
    assert load(pieces).timings[0].completion_ms > 300
    busy = load(
        h3sim.load_page("davies-meenan"),
        header_compression="qpack",
        network=PATH.with_(rate_mbps=5, queue_bdp=2),
        cross_traffic="cubic",
        send_buffer_kb=50,
        handshake="1-rtt",
    )
    assert len(busy.timings) == len(busy.page.resources)


def test_it_is_http_3_in_a_har_and_has_its_name_everywhere_else() -> None:
    seen = load(page(1000))
    assert seen.protocol is Protocol.QMUX
    assert seen.configuration["transport"] == "qmux"
    (entry,) = seen.to_har()["log"]["entries"]
    assert entry["response"]["httpVersion"] == "h3"


def test_a_profile_in_cleartext_is_refused() -> None:
    with pytest.raises(InputError, match="transport: 'qmux' needs TLS"):
        load(page(1000), h3sim.load_profile("linux-tcp-h2o"))

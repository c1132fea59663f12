"""What a recording tells of its network and of the load as a whole, worked by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.advice.search import network_uncertainty
from h3sim.cli.main import main
from h3sim.importers import import_page
from h3sim.importers.path_estimation import (
    EstimatedPath,
    EstimatedRtt,
    Transfer,
    estimated_path,
    estimated_rtt,
    packet_rate_bps,
    path_of,
    peak_rate_bps,
    record_rate_bps,
    server_times,
)
from h3sim.importers.recorded_request import ConnectionInfo, RecordedRequest
from h3sim.load import LoadConfig
from h3sim.load.network_path import recorded_network
from h3sim.page import Kind, Page, RecordedLoad
from h3sim.values.errors import InputError, PageError
from h3sim.values.units import ms

if TYPE_CHECKING:
    from pathlib import Path

SITE = "https://shop.example"
KNOWN = RecordedLoad(rtt_ns=ms(20), rtt_from="a handshake", rate_bps=8_000_000, rate_from="x")


# The estimators


def opened(handshake_ms: float | None, *waits_ms: float, host: str = SITE) -> list[RecordedRequest]:
    """Return requests over one connection, the first of which opened it."""
    requests = []
    for number, wait_ms in enumerate(waits_ms):
        request = observed(100.0 * number, 100.0 * number + wait_ms, 100.0 * number + wait_ms + 5)
        request.url = host
        request.reached = ConnectionInfo(handshake_ms=None if number else handshake_ms)
        requests.append(request)
    return requests


def test_the_rtt_is_the_median_of_connections() -> None:
    hosts = [(50, "https://a.example"), (18, "https://b.example"), (22, "https://c.example")]
    rtt = estimated_rtt([each for ms_, host in hosts for each in opened(ms_, 90, host=host)])
    assert rtt is not None
    assert rtt.rtt_ms == 22


def test_a_shorter_wait_than_the_handshake_is_the_rtt() -> None:
    # A handshake holds what either end took for it; 20 is less than half, and no answer.
    rtt = estimated_rtt(opened(60, 90, 45, 20))
    assert rtt is not None
    assert rtt.rtt_ms == 45


def test_an_opening_that_may_hold_tls_only_bounds_the_rtt() -> None:
    requests = opened(None, 45, 300)
    requests[0].reached = ConnectionInfo(connect_ms=100)
    rtt = estimated_rtt(requests)
    assert rtt is not None
    assert rtt.rtt_ms == 45


def test_an_opening_that_is_longer_than_a_wait_holds_two_round_trips() -> None:
    # 100 ms with a wait of 70: TCP and TLS took 50 each, and 70 has the server's time in it.
    requests = opened(None, 70, 300)
    requests[0].reached = ConnectionInfo(connect_ms=100)
    assert estimated_rtt(requests).rtt_ms == 50
    # No wait is shorter: the recorder may leave TLS out.
    requests = opened(None, 120, 300)
    requests[0].reached = ConnectionInfo(connect_ms=100)
    assert estimated_rtt(requests).rtt_ms == 100


RECORD = 16_000


def test_the_rate_over_tcp_is_the_pace_of_records_without_stalls() -> None:
    # 30 records 10 ms apart; one is lost, the next 20 come after a stall of 100 ms twice as fast.
    times = [*range(10, 310, 10), 410, *range(415, 510, 5), *range(520, 720, 10)]
    records = [Transfer(0, at_ms, RECORD) for at_ms in times]
    n_packets = -(-RECORD // 1500)
    rate_bps = (RECORD + 58 * n_packets) * 8 * 1000 / 10
    assert record_rate_bps(records, 40) == pytest.approx(rate_bps)
    path = estimated_path(EstimatedRtt(40, "x"), records)
    assert path is not None
    assert path.rate_from == f"the pace of {len(times)} TLS records"


def test_pieces_that_were_read_at_once_have_no_pace() -> None:
    times, at_ms = [], 0.0
    for gap_ms in (1, 7, 2, 20, 1, 11, 4, 31, 1, 3, 15, 2, 1, 9, 6, 26, 1, 5, 13, 2, 18, 3):
        at_ms += gap_ms
        times.append(at_ms)
    assert record_rate_bps([Transfer(0, at_ms, RECORD) for at_ms in times], 40) is None
    assert record_rate_bps([Transfer(0, at_ms, 65_536) for at_ms in range(0, 900, 10)], 40) is None
    assert record_rate_bps([Transfer(0, 5, RECORD)] * 30, 40) is None


@pytest.mark.parametrize("network", ["dsl", "4g"])
def test_the_network_of_a_load_over_tcp_is_found_again(network: str, tmp_path: Path) -> None:
    truth = h3sim.load_network(network)
    load = h3sim.simulate("davies-meenan", scheme="chrome-eps", network=network, transport="tcp")
    path = tmp_path / "load.har"
    path.write_text(json.dumps(load.to_har()), encoding="utf-8")
    known = h3sim.importers.read_har(path).recorded_load
    assert known.rtt_ns == pytest.approx(truth.rtt_ns, rel=0.15)
    assert known.rate_bps == pytest.approx(truth.down.rate_bps, rel=0.2)


def test_without_handshakes_the_rtt_is_the_shortest_wait_that_another_bears_out() -> None:
    rtt = estimated_rtt(opened(None, 200, 5, 41, 44, 0.2))
    assert rtt is not None
    assert rtt.rtt_ms == 41
    assert rtt.rtt_from == "the shortest waits for first bytes"
    only = estimated_rtt(opened(None, 70))
    assert only is not None
    assert only.rtt_ms == 70


def test_the_path_is_that_to_the_host_of_the_root() -> None:
    near = opened(10, 30, host="https://cdn.example/a")
    assert path_of([*near, *opened(80, 200)], root=len(near)) is None  # too few bytes for a rate
    for each in near:
        each.body_bytes = 20_000
    path = path_of([*near, *opened(80, 200)], root=len(near))
    assert path is not None
    assert path.rtt_ms == 80


def test_the_pace_of_packets_is_the_rate_whatever_loss_held_back() -> None:
    # 1,442 bytes each 10 ms; of 40 packets ten were held back and came with the next.
    times = [10.0 * number for number in range(1, 41) if not 10 < number <= 20]
    pieces = [Transfer(at_ms - 10, at_ms, 1384) for at_ms in times]
    pieces += [Transfer(200, 210, 1384)] * 10
    assert packet_rate_bps(pieces) == pytest.approx(1442 * 8 * 100)
    assert packet_rate_bps([Transfer(0, 10, 16_000)] * 40) is None


def test_the_rate_is_the_most_that_came_as_a_whole_within_a_window_or_longer() -> None:
    transfers = [Transfer(0, 1000, 10_000), Transfer(1000, 1100, 20_000)]
    assert peak_rate_bps(transfers, 100) == pytest.approx(20_000 * 8 / 0.1)
    # When the bytes of one that overlaps came is not known: by 1,650 they all had.
    both = [*transfers, Transfer(1050, 1650, 30_000)]
    assert peak_rate_bps(both, 100) == pytest.approx(20_000 * 8 / 0.1)
    more = [*transfers, Transfer(1050, 1650, 130_000)]
    assert peak_rate_bps(more, 100) == pytest.approx(150_000 * 8 / 0.65)


def test_responses_that_share_a_link_do_not_add_up_to_more_than_it_carries() -> None:
    # One after the other over 1 Mbit/s, 20 kB each, all with first bytes at once: taken as spread
    # evenly, the first 160 ms would seem to have brought 36.7 kB.
    transfers = [Transfer(0, 160 * number, 20_000) for number in (1, 2, 3)]
    assert peak_rate_bps(transfers, 100) == pytest.approx(1_000_000)


def test_pieces_are_put_together_without_a_rate_that_was_not_there() -> None:
    pieces = [Transfer(at_ms, at_ms + 1, 125) for at_ms in range(1000)]
    assert peak_rate_bps(pieces, 100) == pytest.approx(1_000_000)


def test_what_came_faster_than_a_window_is_judged_by_its_own_time() -> None:
    assert peak_rate_bps([Transfer(0, 40, 5000)], 100) == pytest.approx(5000 * 8 / 0.04)


@pytest.mark.parametrize(
    ("rtt", "transfers"),
    [
        (EstimatedRtt(20, "x"), [Transfer(0, 9, 9000)]),
        (None, [Transfer(0, 9, 90_000)]),
    ],
    ids=["less than an initial window", "no round trip"],
)
def test_a_recording_that_tells_too_little_gives_no_network(
    rtt: EstimatedRtt | None, transfers: list[Transfer]
) -> None:
    assert estimated_path(rtt, transfers) is None


def observed(sent_ms: float, first_ms: float, end_ms: float) -> RecordedRequest:
    request = RecordedRequest(key="", url=SITE)
    request.sent_ms, request.first_byte_ms, request.end_ms = sent_ms, first_ms, end_ms
    return request


def path(rate_bps: int) -> EstimatedPath:
    return EstimatedPath(20, "x", rate_bps, "y")


def test_a_server_thinks_for_what_nothing_else_explains() -> None:
    requests = [
        observed(0, 70, 100),  # alone: 70 ms less the RTT
        observed(50, 120, 130),  # 1,000 bytes of the first come meanwhile, in 10 ms of the link
        observed(130, 140, 150),  # quicker than the RTT
    ]
    requests[0].body_bytes = 1000
    assert server_times(requests, path(800_000), [20, 20, 20], [0] * 3) == [50, 40, 0]
    assert server_times(requests, path(800_000), [20, 50, 20], [0] * 3) == pytest.approx(
        [50, 10, 0]
    )


def test_over_one_connection_another_response_may_have_gone_first() -> None:
    requests = [observed(0, 70, 100), observed(50, 120, 130)]
    requests[0].body_bytes = 1000
    for request in requests:
        request.protocol = "h2"
    # Of the 70 ms the RTT, and the 30 ms in which the other one came.
    assert server_times(requests, path(800_000), [20, 20], [0] * 2) == [50, 20]


def test_files_that_waited_like_others_of_their_host_wait_for_no_server() -> None:
    # A document of 300 ms, four files that a busy machine held up, and one that was computed.
    waits_ms = [320, 20.5, 24, 32, 35, 250]
    requests = [observed(0, wait_ms, wait_ms + 1) for wait_ms in waits_ms]
    for request in requests[1:]:
        request.resolved_kind = Kind.IMAGE
    times_ms = server_times(requests, path(800_000), [20] * 6, [0] * 6)
    assert times_ms == pytest.approx([300, 0.5, 0.5, 0.5, 0.5, 230])
    # The least of three files tells nothing of the others.
    times_ms = server_times(requests[:4], path(800_000), [20] * 4, [0] * 4)
    assert times_ms == pytest.approx([300, 0.5, 4, 12])


# From a HAR


def entry(path: str, start_ms: int, size: int, **timings: float) -> dict[str, Any]:
    return {
        "startedDateTime": f"2026-01-02T03:04:05.{start_ms:03}Z",
        "time": sum(value for name, value in timings.items() if name != "ssl" and value > 0),
        "request": {"method": "GET", "url": f"{SITE}{path}", "headers": []},
        "response": {
            "status": 200,
            "httpVersion": "HTTP/2.0",
            "headers": [],
            "headersSize": 100,
            "bodySize": size,
            "content": {"mimeType": "text/html" if path == "/" else "image/png", "size": size},
        },
        "timings": timings,
        "pageref": "page_1",
    }


# Navigation to 30 ms: TCP; to 60: TLS; to 61 the request; the first byte at 141, all at 241.
ENTRIES = [
    entry("/", 0, 29_900, connect=60, ssl=30, send=1, wait=80, receive=100),
    entry("/a.png", 250, 69_900, send=0, wait=30, receive=140),
]
HAR: dict[str, Any] = {
    "log": {
        "pages": [
            {
                "id": "page_1",
                "pageTimings": {"onLoad": 430, "_largestContentfulPaint": 425},
                "_visualMetrics": {"SpeedIndex": 300},
            }
        ],
        "entries": ENTRIES,
    }
}


def har_file(folder: Path, document: Any = HAR) -> Path:
    path = folder / "shop.har"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_har_tells_network_milestones_and_server(tmp_path: Path) -> None:
    page = import_page(har_file(tmp_path)).page
    # Two round trips before the request had left, at 61 ms, a load begins to connect.
    assert page.to_dict()["recorded_load"] == {
        "rtt_ms": 30.0,
        "rtt_from": "handshakes and shortest waits of the page's own host",
        # 50,000 bytes in 100 of the 140 ms of the image: 4 Mbit/s.
        "rate_mbps": 4.0,
        "rate_from": "2 transfers",
        "rtt_estimates_ms": {"handshakes and shortest waits of the page's own host": 30.0},
        # The document, 30 kB, arrived between 31 ms after 61 and 241 ms; the image in 140 ms.
        "rate_estimates_mbps": {"2 transfers": 4.0, "the fastest of 2 responses": 4.0},
        "network_within": 2.0,
        "protocol": "http/2.0",
        "finished_ms": 419.0,
        "load_event_ms": 429.0,
        "largest_paint_ms": 424.0,
        "speed_index_ms": 299.0,
        "completed_ms": {"/": 240.0, "a.png": 419.0},
        "n_bytes": 100_000,
    }
    assert [resource.server_ns for resource in page.resources] == [ms(50), 0]
    assert Page.from_json(page.to_json()) == page


@pytest.mark.parametrize(
    ("connect", "ssl", "rtt_ms"),
    [(60, 30, 30.0), (25, 25, 25.0), (20, 45, 20.0)],
    ids=["TLS is in it", "QUIC", "TLS is beside it"],
)
def test_the_handshake_of_the_transport_is_one_round_trip(
    tmp_path: Path, connect: float, ssl: float, rtt_ms: float
) -> None:
    timings = {"connect": connect, "ssl": ssl, "send": 1, "wait": 80, "receive": 100}
    document = {"log": {"entries": [entry("/", 0, 29_900, **timings), ENTRIES[1]]}}
    known = import_page(har_file(tmp_path, document)).page.recorded_load
    assert known is not None
    assert known.rtt_ns == ms(rtt_ms)


BEACON_HOST = "https://beacons.example"


def beacon(number: int, start_ms: int) -> dict[str, Any]:
    made = entry("/", start_ms, 20, send=0, wait=99.99, receive=0.01)
    made["request"]["url"] = f"{BEACON_HOST}/{number}.gif"
    made["response"]["content"]["mimeType"] = "image/gif"
    return made


def test_whole_responses_are_no_packets_however_small_and_many(tmp_path: Path) -> None:
    """The beacons' pace, 120 bytes each 0.1 ms or less, is that of the clock."""
    image = entry("/a.png", 130, 199_900, send=0, wait=100, receive=400)
    beacons = [beacon(number, 120 + number) for number in range(40)]
    document = {"log": {"entries": [ENTRIES[0], image, *beacons]}}
    known = import_page(har_file(tmp_path, document)).page.recorded_load
    assert known is not None
    # 200 kB in 400 ms, and at most the beacons, 4.8 kB, beside them.
    assert known.rate_bps == pytest.approx(4_000_000, rel=0.05)


def test_one_piece_of_many_small_responses_does_not_make_packets_of_large_ones() -> None:
    pieces = [Transfer(100.0, 100.01 + number / 100, 120) for number in range(40)]
    pieces += [Transfer(100.0 + 32 * number, 132.0 + 32 * number, 16_000) for number in range(12)]
    assert packet_rate_bps(pieces) is None


def test_a_burst_within_an_idle_load_shows_how_unsure_its_rate_is(tmp_path: Path) -> None:
    """The document, 30 kB in 12 ms, is all that arrived within 100 ms."""
    page = entry("/", 0, 29_900, send=0, wait=80, receive=12)
    calls = [entry(f"/{n}.json", n * 900 + n, 300, send=0, wait=80, receive=2) for n in (1, 2)]
    imported = import_page(har_file(tmp_path, {"log": {"entries": [page, *calls]}}))
    known = imported.page.recorded_load
    assert known is not None
    assert known.rate_bps == pytest.approx(30_000 * 8 / 0.1, rel=0.02)
    # No earlier than 80 ms after its request, and in 20 ms at least.
    fastest_bps = 30_000 * 8 / 0.02
    assert known.rate_estimates_bps["the fastest of 3 responses"] == fastest_bps
    assert known.network_within == pytest.approx(fastest_bps / known.rate_bps, abs=0.01)
    assert "verdicts allow for a factor of 5" in str(imported)


def test_a_pace_that_no_interval_kept_up_is_that_of_reads() -> None:
    # Ten packets are read at once each 40 ms: 2.8 Mbit/s, not the 23 of the pace.
    pieces = []
    for burst in range(50):
        times = [40.0 * burst + 0.5 * number for number in range(10)]
        pieces += [Transfer(max(0.0, at_ms - 0.5), at_ms, 1400) for at_ms in times]
    assert packet_rate_bps(pieces) == pytest.approx(1458 * 8 / 0.5e-3)
    path = estimated_path(EstimatedRtt(20, "x"), pieces)
    assert path is not None
    # Three bursts begin and end within 100 ms.
    assert path.rate_bps == pytest.approx(3 * 14_000 * 8 / 0.1, rel=0.1)
    assert path.within == pytest.approx(1458 * 8 / 0.5e-3 / path.rate_bps, rel=0.01)


def test_whole_responses_bound_a_pace_from_below() -> None:
    # 200 kB arrived within 400 ms, whatever the pace of the pieces that were recorded.
    pieces = [Transfer(20.0 * number, 20.0 * number + 20, 1400) for number in range(40)]
    whole = [Transfer(0, 400, 200_000, is_response=True)]
    path = estimated_path(EstimatedRtt(20, "x"), pieces, responses=whole)
    assert path is not None
    assert (path.rate_bps, path.rate_from) == (4_000_000, "1 whole responses")
    assert path.within == pytest.approx(4_000_000 / (1458 * 8 / 0.02), rel=0.01)


def test_what_was_read_in_an_instant_did_not_arrive_in_it() -> None:
    path = estimated_path(EstimatedRtt(20, "x"), [Transfer(80, 80.2, 24_000, is_response=True)])
    assert path is not None
    assert path.rate_bps == 24_000 * 8 * 100  # in 10 ms


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.7", ""])
def test_a_neighbour_on_the_same_machine_tells_nothing_of_the_way_to_the_page(address: str) -> None:
    near = opened(0.2, 0.5, host="https://agent.example")
    near[0].reached = near[0].reached._replace(address=address)
    far = opened(None, 77, 90)
    far[0].body_bytes = 20_000
    path = path_of([*near, *far], root=1)
    assert path is not None
    assert path.rtt_ms == 77


def test_a_proxy_that_answers_handshakes_at_once_is_not_the_host() -> None:
    far = opened(0.2, 77, 90)
    far[0].body_bytes = 20_000
    path = path_of(far, root=0)
    assert path is not None
    assert path.rtt_ms == 77
    lan = opened(0.2, 0.6, 0.7)
    lan[0].body_bytes = 20_000
    path = path_of(lan, root=0)
    assert path is not None
    assert path.rtt_ms == 0.2


def test_the_waits_for_the_page_bound_its_round_trip_time() -> None:
    far = opened(140, 300, host="https://cdn.example")
    near = opened(None, 30, 90)
    near[0].body_bytes = 20_000
    path = path_of([*far, *near], root=1)
    assert path is not None
    assert path.rtt_ms == 30


# What a file states of its network


def shaped_har(**of_page: Any) -> dict[str, Any]:
    (page,) = HAR["log"]["pages"]
    return {"log": {**HAR["log"], "pages": [{**page, **of_page}]}}


def test_the_traffic_shaping_of_webpagetest_is_the_network(tmp_path: Path) -> None:
    shaping = {
        "_bwDown": 5000,
        "_bwUp": "1000",
        "_latency": 28,
        "_plr": 1,
        "_connectivity": "Cable",
    }
    imported = import_page(har_file(tmp_path, shaped_har(**shaping)))
    known = imported.page.recorded_load
    assert known is not None
    # The handshake took 30 ms: 28 of the shaper, and the path's own.
    assert (known.rtt_ns, known.rate_bps, known.up_bps) == (ms(30), 5_000_000, 1_000_000)
    network = recorded_network(imported.page)
    assert network is not None
    assert network.down is not None
    assert network.up is not None
    assert (network.down.rate_bps, network.up.rate_bps) == (5_000_000, 1_000_000)
    assert (network.down.loss, network.up.loss) == (0.01, 0.01)
    assert known.rate_estimates_bps == {
        "WebPageTest's traffic shaping, as the file states": 5_000_000,
        "2 transfers": 4_000_000,
        "the fastest of 2 responses": 4_000_000,
    }
    report = str(imported)
    assert "5 Mbit/s from WebPageTest's traffic shaping, as the file states" in report
    assert "4 Mbit/s from 2 transfers" in report
    assert Page.from_json(imported.page.to_json()) == imported.page


def test_a_profile_of_browsertime_is_the_network(tmp_path: Path) -> None:
    document = shaped_har(_meta={"connectivity": "cable"})
    known = import_page(har_file(tmp_path, document)).page.recorded_load
    assert known is not None
    assert known.rate_bps == 5_000_000
    assert known.rate_from == "Browsertime's profile cable, as the file states"
    for unshaped in ("native", "my office", ""):
        document = shaped_har(_meta={"connectivity": unshaped})
        known = import_page(har_file(tmp_path, document)).page.recorded_load
        assert known is not None
        assert known.rate_from == "2 transfers"


def test_a_limit_that_the_responses_exceeded_was_not_in_effect(tmp_path: Path) -> None:
    shaping = {"_bwDown": 400, "_bwUp": 400, "_latency": 400}
    known = import_page(har_file(tmp_path, shaped_har(**shaping))).page.recorded_load
    assert known is not None
    assert known.rate_bps == 4_000_000
    assert known.network_within == 10


def test_an_imposed_network_is_surer_than_an_estimate(tmp_path: Path) -> None:
    shaping = {"_bwDown": 5000, "_bwUp": 1000, "_latency": 200}
    known = import_page(har_file(tmp_path, shaped_har(**shaping))).page.recorded_load
    assert known is not None
    assert (known.rtt_ns, known.network_within) == (ms(200), 1.25)


ROWS_AT_ONCE_MS = (("/", 0, 100, "text/html"), ("/a.png", 110, 100, "image/png"))
ROWS_OVER_3G_MS = (("/", 0, 3000, "text/html"), ("/a.png", 3010, 1000, "image/png"))


def lighthouse_result(method: str, rows_ms: Any = ROWS_AT_ONCE_MS, **audits: Any) -> dict[str, Any]:
    rows = [
        {
            "url": path if "://" in path else f"{SITE}{path}",
            "protocol": "h2",
            "networkRequestTime": start_ms,
            "networkEndTime": start_ms + took_ms,
            "transferSize": 20_000,
            "statusCode": 200,
            "mimeType": mime,
        }
        for path, start_ms, took_ms, mime in rows_ms
    ]
    throttling = {
        "rttMs": 150,
        "throughputKbps": 1638.4,
        "requestLatencyMs": 562.5,
        "downloadThroughputKbps": 1474.56,
        "uploadThroughputKbps": 675,
    }
    return {
        "lighthouseVersion": "12.0.0",
        "finalUrl": f"{SITE}/",
        "configSettings": {"throttlingMethod": method, "throttling": throttling},
        "audits": {"network-requests": {"details": {"items": rows}}, **audits},
    }


MEASURED = {
    "network-rtt": {
        "details": {
            "items": [{"origin": "https://cdn.example", "rtt": 9}, {"origin": SITE, "rtt": 31}]
        }
    },
    "network-server-latency": {"details": {"items": [{"origin": SITE, "serverResponseTime": 42}]}},
    "diagnostics": {"details": {"items": [{"rtt": 9, "throughput": 12_345_678.9}]}},
}


def test_devtools_throttling_describes_the_load_that_lighthouse_recorded(tmp_path: Path) -> None:
    result = lighthouse_result("devtools", ROWS_OVER_3G_MS, **MEASURED)
    page = import_page(har_file(tmp_path, result)).page
    known = page.recorded_load
    assert known is not None
    assert (known.rtt_ns, known.rate_bps, known.up_bps) == (ms(562.5), 1_474_560, 675_000)
    # 3,000 ms are two round trips to connect, one of the request, one of slow start, and 750 ms;
    # 1,000 ms are one round trip, 108.5 ms for 20 kB, and 329 ms.
    assert [round(each.server_ns / 10**6) for each in page.resources] == [750, 329]


@pytest.mark.parametrize("method", ["simulate", "provided"])
def test_simulated_or_foreign_throttling_says_nothing_of_the_recorded_load(
    method: str, tmp_path: Path
) -> None:
    page = import_page(har_file(tmp_path, lighthouse_result(method, **MEASURED))).page
    known = page.recorded_load
    assert known is not None
    assert (known.rtt_ns, known.rate_bps) == (ms(31), 12_345_679)
    assert known.network_within == 2
    # Three round trips and one of slow start are more than 100 ms. 31 ms and 13 ms for 20 kB are
    # less, and the rest is the server's.
    assert [round(each.server_ns / 10**6) for each in page.resources] == [0, 56]


def test_without_a_stated_network_whole_responses_bound_it(tmp_path: Path) -> None:
    known = import_page(har_file(tmp_path, lighthouse_result("simulate"))).page.recorded_load
    assert known is not None
    assert known.rtt_ns == ms(100)  # of the shortest response
    assert known.rtt_from == "the shortest response of the page's own host"
    assert known.rate_bps == pytest.approx(40_000 * 8 / 0.110, rel=0.01)


def test_a_round_trip_that_a_proxy_answered_is_bounded_by_the_responses(tmp_path: Path) -> None:
    near = {"details": {"items": [{"origin": SITE, "rtt": 0.003}]}}
    result = lighthouse_result("simulate", **{**MEASURED, "network-rtt": near})
    known = import_page(har_file(tmp_path, result)).page.recorded_load
    assert known is not None
    assert known.rtt_ns == ms(100)


def test_hosts_have_the_round_trip_times_that_lighthouse_observed(tmp_path: Path) -> None:
    rows_ms = (*ROWS_AT_ONCE_MS, ("https://cdn.example/b.png", 120, 60, "image/png"))
    result = lighthouse_result("simulate", rows_ms, **MEASURED)
    page = import_page(har_file(tmp_path, result)).page
    assert {host.name: host.rtt_ns for host in page.hosts} == {"cdn.example": ms(9)}


def test_a_verdict_is_as_unsure_as_the_estimates_are_apart() -> None:
    config = LoadConfig()
    assert network_uncertainty([shop()], config) == 2
    assert network_uncertainty([shop(replace(KNOWN, network_within=3.5)), shop()], config) == 3.5
    assert network_uncertainty([shop(replace(KNOWN, network_within=1.25))], config) == 1.25
    assert network_uncertainty([shop()], replace(config, network="4g")) == 1


# As the network of loads


def shop(known: RecordedLoad | None = KNOWN) -> Page:
    return replace(h3sim.load_page("http2rulez"), recorded_load=known)


def test_the_network_of_the_recording_is_the_usual_one() -> None:
    load = h3sim.simulate(shop(), scheme="fifo")
    assert load.network == recorded_network(shop())
    assert (load.network.name, load.network.rtt_ns) == ("recorded", ms(20))
    assert load.configuration["rate_mbps"] == 8.0
    assert load.configuration["queue_bytes"] == 65_536
    assert load.notes == ["over its recorded network, estimated: RTT from a handshake, rate from x"]


def test_a_page_without_a_recorded_network_is_loaded_as_ever() -> None:
    plain = h3sim.simulate("http2rulez", scheme="fifo")
    assert plain.network.name == "marx-2019"
    assert plain.trace == h3sim.simulate("http2rulez", scheme="fifo", network="marx-2019").trace


def test_a_recording_of_which_no_network_can_be_told_asks_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    untimed = [{**each, "timings": {}, "time": -1} for each in ENTRIES]
    path = str(har_file(tmp_path, {"log": {"entries": untimed}}))
    for command in (["run"], ["recommend"], ["search"]):
        assert main([*command, path]) == 2
        assert "network: must be given: the recording of shop.example" in capsys.readouterr().err
    assert main(["run", path, "--network", "cable"]) == 0


def test_a_network_that_is_asked_for_goes_before_the_recorded_one() -> None:
    assert h3sim.simulate(shop(), scheme="fifo", network="cable").network.name == "cable"


def test_what_is_changed_of_the_recorded_network_is_told() -> None:
    load = h3sim.simulate(shop(), scheme="fifo", rtt_ms=40)
    assert load.network.name == "recorded with rtt_ms=40"


def test_half_the_rtt_is_half_of_that_of_the_recorded_network() -> None:
    found = h3sim.what_if(shop(), scheme="rr")
    half = h3sim.simulate(shop(), scheme="rr", browser="parse", rtt_ms=10)
    (row,) = (row for row in found.rows if row.what == "half the RTT")
    assert row.load_event_ms == half.load_event_ms


def test_options_are_held_against_the_network_of_the_page() -> None:
    config = LoadConfig(handshake="0-rtt")
    assert (
        h3sim.simulate(shop(), scheme="fifo", handshake="0-rtt").spec.mode.value == config.handshake
    )
    with pytest.raises(InputError, match="needs links"):
        h3sim.simulate("http2rulez", handshake="0-rtt")
    with pytest.raises(InputError, match="interval_ms: applies only to a constant rate"):
        h3sim.simulate(shop(), interval_ms=5)


def test_pages_that_load_alike_over_other_networks_are_other_cells_of_a_store(
    tmp_path: Path,
) -> None:
    store = tmp_path / "loads.db"
    for rate_bps, times in ((8_000_000, 1), (4_000_000, 2)):
        page = shop(replace(KNOWN, rate_bps=rate_bps))
        results = h3sim.sweep(page, schemes=["fifo"], store=store, executor="serial")
        rate_mbps = results.column("rate_mbps")
        assert rate_mbps == [rate_bps / 10**6], times


def test_a_rate_without_a_round_trip_is_refused() -> None:
    with pytest.raises(
        PageError, match="rtt_ms: is missing: a network needs a rate and a round-trip"
    ):
        RecordedLoad(rate_bps=10**6)


def test_a_mistake_of_an_option_is_told_by_its_switch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.json"
    path.write_text(shop().to_json(), encoding="utf-8")
    assert main(["run", str(path), "--interval-ms", "5"]) == 2
    assert "--interval-ms: applies only to a constant rate" in capsys.readouterr().err

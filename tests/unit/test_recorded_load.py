"""What a recording tells of its network and of the load as a whole, worked by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.capture import import_page
from h3sim.capture.inference.estimates import (
    Transfer,
    estimated_path,
    peak_rate_bps,
    server_times,
)
from h3sim.capture.inference.observed import Observed
from h3sim.cli.main import main
from h3sim.errors import InputError, PageError
from h3sim.page import Page, RecordedLoad
from h3sim.study import LoadConfig
from h3sim.study.recorded_network import recorded_network
from h3sim.units import ms

if TYPE_CHECKING:
    from pathlib import Path

SITE = "https://shop.example"
KNOWN = RecordedLoad(rtt_ns=ms(20), rtt_from="a handshake", rate_bps=8_000_000, rate_from="x")


# The estimators


def test_the_rtt_is_the_median_handshake() -> None:
    path = estimated_path([50, 18, 22], [3], [Transfer(0, 100, 20_000)])
    assert path is not None
    assert path[:2] == (22, "the median of 3 handshakes")


def test_without_handshakes_the_rtt_is_the_lowest_decile_of_waits() -> None:
    waits_ms = [float(number) for number in range(1, 21)]
    path = estimated_path([], waits_ms, [Transfer(0, 100, 20_000)])
    assert path is not None
    assert path[:2] == (3, "the lowest decile of times to first bytes")


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
    ("handshakes", "transfers"),
    [([20], [Transfer(0, 9, 9000)]), ([], [Transfer(0, 9, 90_000)])],
    ids=["less than an initial window", "no round trip"],
)
def test_a_recording_that_tells_too_little_gives_no_network(
    handshakes: list[float], transfers: list[Transfer]
) -> None:
    assert estimated_path(handshakes, [], transfers) is None


def observed(sent_ms: float, first_ms: float, end_ms: float) -> Observed:
    request = Observed(key="", url=SITE)
    request.sent_ms, request.first_byte_ms, request.end_ms = sent_ms, first_ms, end_ms
    return request


def test_a_server_thinks_for_what_nothing_else_explains() -> None:
    requests = [
        observed(0, 70, 100),  # alone: 70 ms less the RTT
        observed(50, 120, 130),  # the first arrives meanwhile
        observed(130, 140, 150),  # alone, and quicker than the RTT
    ]
    assert server_times(requests, 20) == [50, None, 0]


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
    assert page.to_dict()["recorded_load"] == {
        "rtt_ms": 30.0,
        "rtt_from": "a handshake",
        # 50,000 bytes in 100 of the 140 ms of the image: 4 Mbit/s.
        "rate_mbps": 4.0,
        "rate_from": "2 transfers",
        "protocol": "http/2.0",
        "finished_ms": 420.0,
        "load_event_ms": 430.0,
        "largest_paint_ms": 425.0,
        "speed_index_ms": 300.0,
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


def test_a_network_that_is_asked_for_goes_before_the_recorded_one() -> None:
    assert h3sim.simulate(shop(), scheme="fifo", network="cable").network.name == "cable"


def test_what_is_changed_of_the_recorded_network_is_told() -> None:
    load = h3sim.simulate(shop(), scheme="fifo", rtt_ms=40)
    assert load.network.name == "recorded with rtt_ms=40"


def test_options_are_held_against_the_network_of_the_page() -> None:
    config = LoadConfig(handshake="0-rtt")
    assert (
        h3sim.simulate(shop(), scheme="fifo", handshake="0-rtt").spec.mode.value == config.handshake
    )
    with pytest.raises(InputError, match="needs links"):
        h3sim.simulate("http2rulez", handshake="0-rtt")
    with pytest.raises(InputError, match="interval_ms: goes with a constant rate"):
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
        PageError, match="rtt_ms: is missing: a network has a rate and a round-trip"
    ):
        RecordedLoad(rate_bps=10**6)


def test_a_mistake_of_an_option_is_told_by_its_switch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.json"
    path.write_text(shop().to_json(), encoding="utf-8")
    assert main(["run", str(path), "--interval-ms", "5"]) == 2
    assert "--interval-ms: goes with a constant rate" in capsys.readouterr().err

"""BBRv3 in the steady state: throughput, queue, and its share beside CUBIC."""

from __future__ import annotations

import pytest

import h3sim
from h3sim.values.units import to_ms
from tests.helpers import page_of

RATE_MBPS, RTT_MS = 5.0, 40
WATCHED = page_of(
    {"id": "/", "kind": "document", "bytes": 100},
    {"id": "end", "kind": "image", "bytes": 1, "discovered": {"at": "time", "delay_ms": 25_000}},
)


def rates_mbps(flows: str, *, queue_bdp: float, transport: str = "quic") -> list[float]:
    load = h3sim.simulate(
        WATCHED,
        network="fibre",
        rate_mbps=RATE_MBPS,
        rtt_ms=RTT_MS,
        queue_bdp=queue_bdp,
        cross_traffic=flows,
        transport=transport,
    )
    return [each.rate_mbps or 0 for each in load.cross_traffic]


@pytest.mark.parametrize("transport", ["quic", "tcp"])
@pytest.mark.parametrize("queue_bdp", [0.5, 1, 5])
def test_a_flow_alone_fills_the_path_whatever_the_queue(transport: str, queue_bdp: float) -> None:
    (rate_mbps,) = rates_mbps("bbr", queue_bdp=queue_bdp, transport=transport)
    # 5 % are headers, 1 % is left by the pacing margin; a ProbeRTT of 0.2 s at half of the window
    # each 5 s takes 2 %.
    assert rate_mbps > 0.91 * RATE_MBPS


def test_a_flow_alone_leaves_the_queue_empty_but_for_its_probes() -> None:
    page = page_of({"id": "/", "kind": "document", "bytes": 15_000_000})
    waits_ms: dict[str, list[float]] = {}
    for cc in ("bbr", "cubic"):
        load = h3sim.simulate(
            page, network="fibre", rate_mbps=2 * RATE_MBPS, rtt_ms=RTT_MS, queue_bdp=5, cc=cc
        )
        columns = load.trace.packet_rows.columns
        waits_ms[cc] = sorted(
            to_ms(arrived_ns - sent_ns) - RTT_MS / 2
            for sent_ns, arrived_ns in zip(columns.sent_at_ns, columns.arrived_at_ns, strict=True)
            if arrived_ns is not None and sent_ns > 2 * 10**9
        )
    # The serialization of a packet takes 1 ms. UP adds a quarter of a product, 10 ms, per round
    # for the three rounds of a plateau, once in 40 round trips.
    median, most = len(waits_ms["bbr"]) // 2, waits_ms["bbr"][-1]
    assert waits_ms["bbr"][median] < 3
    assert most < 1.25 * RTT_MS + 2  # a window gain of 2.25
    assert waits_ms["cubic"][len(waits_ms["cubic"]) // 2] > RTT_MS


@pytest.mark.parametrize("queue_bdp", [0.25, 1, 5])
def test_equal_flows_share_about_evenly(queue_bdp: float) -> None:
    rates = rates_mbps("bbr + bbr", queue_bdp=queue_bdp)
    assert sum(rates) ** 2 / (2 * sum(rate**2 for rate in rates)) > 0.95
    assert sum(rates) > 0.9 * RATE_MBPS


@pytest.mark.parametrize("queue_bdp", [0.25, 0.5, 1])
def test_cubic_keeps_its_share_of_a_shallow_queue(queue_bdp: float) -> None:
    """Version 1 takes nearly all there, since it does not respond to losses."""
    share = {}
    for cc in ("bbr", "bbr1"):
        bbr, cubic = rates_mbps(f"{cc} + cubic", queue_bdp=queue_bdp)
        share[cc] = cubic / (bbr + cubic)
    assert share["bbr"] > 0.4
    assert share["bbr1"] < 0.2


def test_a_deep_queue_favours_cubic() -> None:
    """A window of two products is little where the queue holds five."""
    bbr, cubic = rates_mbps("bbr + cubic", queue_bdp=5)
    assert 0.15 < bbr / (bbr + cubic) < 0.5

"""Flows through one bottleneck get what theory gives them."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.engine import cross_traffic, endpoints
from h3sim.values.versions import build
from tests.helpers import page_of

# Its last resource is asked for at the end: so long the flows are watched.
PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 100},
    {"id": "end", "kind": "image", "bytes": 1, "discovered": {"at": "time", "delay_ms": 20_000}},
)
RATE_MBPS = 5.0


def watched(flows: str) -> h3sim.Load:
    return h3sim.simulate(
        PAGE, network="fibre", rate_mbps=RATE_MBPS, rtt_ms=40, queue_bdp=1, cross_traffic=flows
    )


def check_no_more_than_the_link_passes(load: h3sim.Load) -> None:
    """All flows together carry what the bottleneck passes in the time, and no more."""
    n_bytes = sum(each.n_bytes for each in load.cross_traffic)
    assert n_bytes * 8 <= RATE_MBPS * 1000 * load.page_load_ms


@pytest.mark.parametrize("cc", ["cubic", "newreno"])
def test_equal_flows_share_about_evenly(cc: str) -> None:
    load = watched(f"{cc} + {cc}")
    rates = [each.rate_mbps or 0 for each in load.cross_traffic]
    # Jain's index of two is 1 where they are equal, and 0.5 where one has all. Headers take 5 %.
    assert sum(rates) ** 2 / (2 * sum(rate**2 for rate in rates)) > 0.95
    assert 0.85 * RATE_MBPS < sum(rates) < RATE_MBPS
    check_no_more_than_the_link_passes(load)


def test_a_video_takes_its_mean_rate() -> None:
    (video,) = watched("on-off:2:1000").cross_traffic
    # 20 segments of 250,000 bytes begin within the 20 s, and one at their end.
    assert video.n_bytes == pytest.approx(20 * 250_000, rel=0.06)


def test_a_bulk_flow_takes_what_a_video_leaves() -> None:
    load = watched("cubic + on-off:1:1000")
    bulk, video = (each.rate_mbps or 0 for each in load.cross_traffic)
    assert video == pytest.approx(1, rel=0.1)
    assert 0.8 * (RATE_MBPS - 1) < bulk < RATE_MBPS - 1
    check_no_more_than_the_link_passes(load)


@pytest.mark.skipif(build() == "compiled", reason="no part of it can be broken from outside")
def test_flows_over_links_of_their_own_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(*args: Any, links: Any, **options: Any) -> Any:
        del links
        return endpoints.EndpointFactory(*args, **options)

    check_no_more_than_the_link_passes(watched("cubic + cubic"))
    monkeypatch.setattr(cross_traffic, "EndpointFactory", alone)
    with pytest.raises(AssertionError):
        check_no_more_than_the_link_passes(watched("cubic + cubic"))

"""Drops of a queue and losses on the way are told apart: in links, traces, counts and reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.export.chrome_trace import load_to_chrome_trace
from h3sim.export.tables import metrics_of
from h3sim.page import page_from_dict
from h3sim.reporting.animation import scene_of
from h3sim.reporting.lane_layout import lane_of
from h3sim.reporting.load_sections import describe_loads
from h3sim.transport import Jitter, LinkProfile, Network
from h3sim.transport.link import Link
from h3sim.transport.link_profile import FqCoDel, LinkJitter
from h3sim.values.rng import substream
from h3sim.values.units import ms

if TYPE_CHECKING:
    from h3sim.load import Load
    from h3sim.page import Page

QUEUE = LinkProfile(rate_bps=2_000_000, queue_packets=5)
LOSS = LinkProfile(rate_bps=2_000_000, loss=0.05)
BOTH = replace(QUEUE, loss=0.01)
LISTED = LinkProfile(rate_bps=2_000_000, loss_list=(9, 20, 31))
FAIR = replace(QUEUE, fq_codel=FqCoDel())
FAIR_WITH_ROOM = LinkProfile(rate_bps=2_000_000, fq_codel=FqCoDel())


def page_of_hosts(*hosts: str) -> Page:
    entries: list[dict[str, Any]] = [{"id": "/", "kind": "document", "bytes": 2000}]
    entries += [
        {
            "id": f"https://{host}/{n}.png",
            "kind": "image",
            "bytes": 60_000,
            "host": host,
            "discovered": {"by": "/", "at": "complete"},
        }
        for host in hosts
        for n in range(3)
    ]
    return page_from_dict({"format": "h3sim-page/1", "name": "hosts", "resources": entries})


PAGE = page_of_hosts("a.example")


def load_over(down: LinkProfile, **options: Any) -> Load:
    up = LinkProfile(rate_bps=2_000_000)
    network = Network(name="x", rtt_ns=ms(60), down=down, up=up)
    return h3sim.simulate(PAGE, scheme="rr", network=network, **options)


def lost_numbers(load: Load) -> set[int]:
    return {row[5] for row in load.trace.packet_rows if row[1] is None}


def test_a_link_reports_whether_its_queue_dropped_the_packet_or_it_was_lost() -> None:
    profile = LinkProfile(rate_bps=1_000_000, burst_bytes=0, queue_bytes=3000, loss_list=(1,))
    link = Link(profile, rtt_ns=0, streams=lambda purpose: substream(0, purpose))
    assert link.send(0, 1250) is not None
    assert link.send(0, 1250) is None
    assert not link.has_dropped
    assert link.send(0, 1250) is None
    assert link.has_dropped


@pytest.mark.parametrize("transport", ["quic", "tcp"])
@pytest.mark.parametrize(
    ("down", "drops", "loses"),
    [
        (QUEUE, True, False),
        (FAIR, True, False),
        (LOSS, False, True),
        (LISTED, False, True),
        (BOTH, True, True),
    ],
)
def test_each_lost_packet_was_dropped_by_a_queue_that_can_be_full_or_lost_on_a_lossy_way(
    down: LinkProfile, drops: bool, loses: bool, transport: str
) -> None:
    load = load_over(down, transport=transport)
    lost, dropped = lost_numbers(load), set(load.trace.queue_drops)
    assert [*load.trace.queue_drops] == sorted(dropped)
    assert bool(dropped & lost) is drops
    assert bool(lost - dropped) is loses
    assert (load.packets.lost, load.packets.queue_drops) == (len(lost), len(dropped & lost))


def test_numbers_of_dropped_packets_are_those_of_the_merged_connections() -> None:
    page = page_of_hosts("a.example", "b.example")
    network = Network(name="x", rtt_ns=ms(60), down=QUEUE)
    load = h3sim.simulate(page, network=network, connections="per-host")
    assert len(load.connections) == 3
    assert load.packets.queue_drops > 0
    assert lost_numbers(load) == set(load.trace.queue_drops)
    assert load.packets.queue_drops == sum(each.packets.queue_drops for each in load.connections)


@pytest.mark.parametrize(
    ("down", "is_random"),
    [
        (QUEUE, False),
        (LISTED, False),
        (LOSS, True),
        (replace(QUEUE, jitter=LinkJitter(mean_ns=ms(2))), True),
        (replace(QUEUE, hold=Jitter.parse("4:2")), False),
        (replace(QUEUE, hold=Jitter.parse("4:1-3")), True),
        (replace(QUEUE, hold=Jitter.parse("25%:2")), True),
    ],
)
def test_a_network_is_random_if_another_seed_gives_another_load(
    down: LinkProfile, is_random: bool
) -> None:
    loads = [load_over(down, seed=seed) for seed in range(3)]
    assert loads[0].network.is_random is is_random
    assert (len({load.trace.digest() for load in loads}) > 1) is is_random


@pytest.mark.usefixtures("unpainted")
def test_a_report_calls_only_what_is_random_random() -> None:
    words = {
        name: " ".join(describe_loads([load_over(down)], None).verdict)
        for name, down in (("queue", QUEUE), ("loss", LOSS), ("both", BOTH))
    }
    assert "dropped by the queue" in words["queue"]
    assert "random: every seed" in words["queue"]
    assert "lost" not in words["queue"]
    assert "another seed" not in words["queue"]
    for name in ("loss", "both"):
        assert "lost" in words[name]
        assert "another seed" in words[name]
    assert "queue" not in words["loss"]
    pair = [load_over(QUEUE), load_over(QUEUE, transport="tcp")]
    assert "random" not in " ".join(describe_loads(pair, None).verdict)


def test_the_text_of_a_run_names_what_the_queue_dropped() -> None:
    queue, loss, both = (
        dict(metrics_of(load_over(each)))["downlink packets"] for each in (QUEUE, LOSS, BOTH)
    )
    assert "dropped by the queue" in queue
    assert "lost" not in queue
    assert "dropped" not in loss
    assert "lost on the way" in both
    assert "dropped by the queue" in both


def test_figures_mark_dropped_packets_otherwise_than_lost_ones() -> None:
    load = load_over(BOTH)
    lane = lane_of(load, load.page_load_ms)
    assert len(lane.dropped_ms) == load.packets.queue_drops
    assert len(lane.lost_ms) == load.packets.lost - load.packets.queue_drops
    where = Counter(loss.is_dropped for loss in scene_of(load).losses)
    assert where[True] > 0 < where[False]


def test_a_chrome_trace_names_the_two_fates() -> None:
    names = Counter(event["name"] for event in load_to_chrome_trace(load_over(BOTH))["traceEvents"])
    assert names["dropped by the queue"] > 0 < names["lost on the way"]


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_packets_of_an_upload_are_counted_as_those_of_the_client(transport: str) -> None:
    resources = [{"id": "/", "kind": "document", "bytes": 1000, "request_bytes": 500_000}]
    page = page_from_dict({"format": "h3sim-page/1", "name": "upload", "resources": resources})
    up = LinkProfile(rate_bps=2_000_000, loss_list=(9, 20, 31))
    network = Network(name="x", rtt_ns=ms(60), down=LinkProfile(rate_bps=2_000_000), up=up)
    load = h3sim.simulate(page, network=network, transport=transport)
    packets = load.packets
    # At most 1,500 bytes fit a packet, and what is lost is sent again.
    assert packets.sent_bytes == 1000
    assert packets.uplink_sent is not None
    assert packets.uplink_bytes is not None
    assert packets.uplink_lost == 3
    assert packets.uplink_sent > 500_000 / 1500
    assert 500_000 + 3 * 1000 < packets.uplink_bytes < 500_000 + 3 * 1500
    assert dict(metrics_of(load))["uplink packets"] == f"{packets.uplink_sent} sent, 3 lost"
    assert load.to_dict()["packets"]["uplink_sent"] == packets.uplink_sent


def test_without_packets_of_the_client_none_are_counted() -> None:
    load = h3sim.simulate(PAGE)  # at a constant rate
    assert load.packets.uplink_sent is None
    assert "uplink packets" not in dict(metrics_of(load))


def test_the_client_s_packets_in_a_queue_are_counted_once_and_with_all_connections() -> None:
    page = page_of_hosts("a.example", "b.example")
    one, several = (
        h3sim.simulate(
            page,
            network=Network(name="x", rtt_ns=ms(60), down=FAIR_WITH_ROOM, up=FAIR_WITH_ROOM),
            connections=connections,
        )
        for connections in ("single", "per-host")
    )
    for load in (one, several):
        assert load.packets.uplink_lost == 0
        counts = [each.packets for each in load.connections]
        assert load.packets.uplink_sent == sum(each.uplink_sent or 0 for each in counts)
    assert len(several.connections) > 1

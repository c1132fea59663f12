"""CoDel, FQ-CoDel and marks in the steady state, against RFC 8289, RFC 8290 and closed forms."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

import h3sim
from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.link_profile import FqCoDel
from h3sim.transport.packets import NOT_ECT
from h3sim.transport.quic import QuicPacket, QuicSettings
from h3sim.transport.quic.recovery import Recovery
from h3sim.values.units import ms, to_ms
from tests.helpers import page_of
from tests.theory.test_links_theory import PseudocodeCoDel
from tests.unit.fair_link_path import FairPath, Flow

DOWNLOAD = page_of({"id": "/", "kind": "document", "bytes": 8_000_000})
RATE_MBPS = 5.0
RTT_MS = 40
PACKET_MS = 1308 * 8 / RATE_MBPS / 1000
"""How long a packet of 1280 bytes, and its IP header, takes."""


def download(**options: Any) -> h3sim.Load:
    settings: dict[str, Any] = {
        "network": "fibre",
        "rate_mbps": RATE_MBPS,
        "rtt_ms": RTT_MS,
        "cc": "cubic",
    }
    return h3sim.simulate(DOWNLOAD, scheme="fifo", queue_bytes=10**6, **settings, **options)


def waits_ms(load: h3sim.Load) -> list[tuple[float, float]]:
    """Return when each packet left its sender, and how long it waited in the queue."""
    columns = load.trace.packet_rows.columns
    pairs = zip(columns.sent_at_ns, columns.arrived_at_ns, strict=True)
    base_ms = RTT_MS / 2 + PACKET_MS
    return [
        (to_ms(sent_ns), to_ms(at_ns - sent_ns) - base_ms)
        for sent_ns, at_ns in pairs
        if at_ns is not None
    ]


@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize("queue_discipline", ["codel", "fq-codel"])
def test_codel_holds_the_standing_queue_at_its_target_and_the_link_busy(
    queue_discipline: str, ecn: bool
) -> None:
    load = download(queue_discipline=queue_discipline, ecn=ecn)
    # RFC 8289 § 3: what persists is the least wait of an interval. The first seconds are those of
    # slow start, which fills the queue of 1 MB before the first signal is back.
    waits = [(at_ms, wait) for at_ms, wait in waits_ms(load) if at_ms > 4000]
    persists = [
        min(wait for _, wait in group)
        for _, group in itertools.groupby(waits, key=lambda entry: entry[0] // 1000)
    ]
    assert max(persists) <= 5 + PACKET_MS
    # Bytes of the page over the time: headers take 5 %, the start a second.
    assert 8 * 8_000_000 / load.page_load_ms / 1000 > 0.88 * RATE_MBPS


def test_drop_tail_lets_the_queue_stand() -> None:
    waits = [wait for at_ms, wait in waits_ms(download()) if 4000 < at_ms < 8000]
    assert min(waits) > 100


PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 100},
    {"id": "end", "kind": "image", "bytes": 1, "discovered": {"at": "time", "delay_ms": 20_000}},
)


def shares(flows: str, queue_discipline: str) -> list[float]:
    load = h3sim.simulate(
        PAGE,
        network="fibre",
        rate_mbps=RATE_MBPS,
        rtt_ms=RTT_MS,
        queue_bdp=4,
        queue_discipline=queue_discipline,
        cross_traffic=flows,
    )
    rates = [each.rate_mbps or 0 for each in load.cross_traffic]
    assert 0.85 * RATE_MBPS < sum(rates) < RATE_MBPS
    return [rate / sum(rates) for rate in rates]


@pytest.mark.parametrize("flows", ["cubic + newreno", "cubic + bbr", "bbr + newreno + cubic"])
def test_flow_queues_share_evenly_whatever_the_controllers(flows: str) -> None:
    """RFC 8290 § 1: flow isolation. Without it the same flows share otherwise."""
    each = 1 / len(flows.split("+"))
    assert shares(flows, "fq-codel") == pytest.approx([each] * len(flows.split("+")), rel=0.07)


@pytest.mark.parametrize("load", [1.02, 1.3, 3])
def test_a_flow_queue_drops_what_the_pseudocode_drops(load: float) -> None:
    service_ns, source = ms(1), random.Random(2)
    arrivals_ns, now_ns = [], 0
    for pause_ns in (0, ms(700)):
        now_ns += pause_ns
        for _ in range(4000):
            now_ns += round(service_ns / load * source.uniform(0.5, 1.5))
            arrivals_ns.append(now_ns)
    path, flow = FairPath(fq_codel=FqCoDel()), Flow()
    for at_ns in arrivals_ns:
        path.put(flow, at_ns, 1000, NOT_ECT)
    path.run()
    dropped = [number for number, at_ns in flow.fates.items() if at_ns is None]
    assert dropped == PseudocodeCoDel(arrivals_ns, 1000, service_ns).run()
    assert dropped


@pytest.mark.parametrize(("cc", "beta"), [("newreno", 0.5), ("cubic", 0.7)])
@pytest.mark.parametrize("every", [200, 1000])
def test_periodic_marks_give_the_window_of_periodic_losses(
    cc: str, beta: float, every: int
) -> None:
    """With a mark per *every* packets the mean window of AIMD is sqrt(a (1 + b) / (2 (1 - b) p)).

    That is RFC 9438 § 4.3 (its equation of AIMD(a, b)); at this RTT CUBIC is Reno-friendly, which
    grows by a = 3 (1 - b) / (1 + b), so both have the mean of Reno, sqrt(3 / (2 p)).
    """
    size, rtt_ns = 1000, ms(20)
    settings = ControllerSettings(max_datagram_bytes=size, initial_window_bytes=10 * size)
    recovery = Recovery(
        make_controller(cc, settings),
        QuicSettings(initial_rtt_ns=rtt_ns),
        peer_max_ack_delay_ns=0,
    )
    controller = recovery.controller
    number = marks = 0
    mean_of: list[float] = []
    for round_number in range(4000):
        n_packets = controller.congestion_window // size
        at_ns = round_number * rtt_ns
        for index in range(n_packets):
            recovery.next_number = number + index + 1
            sent_ns = at_ns + index * rtt_ns // n_packets
            recovery.on_sent(QuicPacket(number + index, sent_ns, size, [], None, (), True))
        for index in range(n_packets):
            marks += not (number + index + 1) % every
            sent_ns = at_ns + index * rtt_ns // n_packets
            recovery.on_ack(((0, number + index),), 0, sent_ns + rtt_ns, marks)
        number += n_packets
        mean_of.append(n_packets)
    mean = sum(mean_of[500:]) / len(mean_of[500:])
    assert mean == pytest.approx(math.sqrt(1.5 * every), rel=0.1), beta

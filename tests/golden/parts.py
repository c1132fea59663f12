"""Links, pacers, estimators and senders, each driven by the same random numbers, recorded.

What a load rarely comes upon is here as well: traces of opportunities, managed queues, jitter of
each distribution, rates that change, limits, losses at any moment.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from h3sim.http import HeadersFirstSender, SectionSender, StreamSender
from h3sim.http.send_buffer import SendBufferRefill
from h3sim.schedulers import FifoScheduler, Retransmit, RoundRobinScheduler
from h3sim.signals import H2Priority
from h3sim.transport.bottleneck import TokenBucket
from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.link import make_link
from h3sim.transport.link_profile import CoDel, Distribution, Jitter, LinkJitter, LinkProfile
from h3sim.transport.pacing import AioquicPacer, Pacer
from h3sim.transport.rtt import RttEstimator
from h3sim.values import rng
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).with_name("parts.json")
_N: Final = 500
_LINKS: Final[dict[str, dict[str, Any]]] = {
    "serial": {"rate_bps": 2_000_000, "burst_bytes": 0, "frame_overhead_bytes": 14},
    "bucket, bytes": {"rate_bps": 3_000_000, "queue_bytes": 9000},
    "bucket, packets": {"rate_bps": 3_000_000, "queue_packets": 4, "loss": 0.1},
    "bdp, bursts": {"rate_bps": 3_000_000, "queue_bdp": 0.7, "loss": 0.1, "loss_burst": 3.0},
    "codel": {"rate_bps": 1_500_000, "codel": CoDel(target_ns=ms(5), interval_ns=ms(40))},
    "codel, short": {
        "rate_bps": 1_000_000,
        "codel": CoDel(target_ns=ms(2), interval_ns=ms(9)),
        "queue_bytes": 30_000,
        "loss": 0.05,
    },
    "codel, packets": {"rate_bps": 900_000, "codel": CoDel(), "queue_packets": 12},
    "trace": {"mahimahi": (1, 2, 2, 9, 20), "queue_packets": 9},
    "trace, codel": {"mahimahi": (3, 4, 30), "codel": CoDel(target_ns=ms(1), interval_ns=ms(9))},
    "listed": {"rate_bps": 9_000_000, "loss_list": (3, 4, 90), "loss_list_from_bytes": 700},
    "held": {"rate_bps": 9_000_000, "hold": Jitter(every=4, min_overtaken=0, max_overtaken=3)},
    **{
        f"{law.value}, {'over' if reorder else 'in order'}": {
            "rate_bps": 20_000_000,
            "loss": 0.02,
            "jitter": LinkJitter(
                mean_ns=ms(8), deviation_ns=ms(6), distribution=law, reorder=reorder
            ),
        }
        for law in Distribution
        for reorder in (False, True)
    },
}


def _link(profile: dict[str, Any], *, upward: bool) -> Iterator[object]:
    """Yield when each packet arrives: in crowds, and after rests."""
    source = random.Random("links")
    link = make_link(
        LinkProfile(**profile),
        rtt_ns=ms(31) + 1,
        streams=lambda purpose: rng.substream(7, purpose),
        upward=upward,
    )
    now_ns = 0
    for _ in range(_N):
        now_ns += source.choice((0, 0, 1, ms(1), ms(3), ms(8), ms(20)))
        yield link.send(now_ns, source.choice((40, 686, 1200, 1500)))
    yield link.offered, link.queue_drops, link.loss_drops


def _bucket() -> Iterator[object]:
    """Yield when packets leave a bucket whose rate changes."""
    source = random.Random("bucket")
    bucket = TokenBucket(rate_bps=1_000_000, burst_bytes=3000)
    now_ns = 0
    for _ in range(_N):
        now_ns += source.choice((0, ms(1), ms(4), ms(30)))
        if source.random() < 0.1:
            bucket.change_rate(now_ns, source.choice((300_000, 1_000_000, 7_000_000)))
        yield bucket.ready_at_ns(now_ns), bucket.leaves_at_ns(now_ns, source.choice((40, 1500)))


def _pacer(kind: type[Pacer], gain: float | None, controller: str) -> Iterator[object]:
    """Yield what a pacer lets go: bursts, rests, small packets, before and after an RTT."""
    source = random.Random("pacer")
    made = ControllerSettings(max_datagram_bytes=1000, rate_bps=2_000_000)
    rtt = RttEstimator(initial_ns=ms(100))
    pacer = kind(
        make_controller(controller, made), rtt, gain=gain, burst_bytes=2500, packet_bytes=1000
    )
    now_ns = 0
    for number in range(_N):
        now_ns += source.choice((0, 1, 400, ms(1), ms(6)))
        if number % 20 == 10:
            rtt.on_sample(source.randint(ms(1), ms(90)))
        if number % 5 == 0:
            pacer.begin()
        if number % 60 == 59:
            pacer.end()
        size = source.choice((1000, 1000, 60))
        allows = pacer.allows(now_ns), pacer.allows_part(size, now_ns)
        if allows[1]:
            pacer.on_sent(size, now_ns)
        yield allows, pacer.rate_bps, pacer.empty_at_ns, pacer.ready_at_ns, pacer.due_at_ns


def _rtt() -> Iterator[object]:
    """Yield what an estimator makes of samples and delays of acknowledgements."""
    source = random.Random("rtt")
    rtt = RttEstimator(initial_ns=ms(333))
    yield rtt.probe_timeout_ns(ms(25)), rtt.loss_delay_ns()
    for _ in range(_N):
        rtt.on_sample(source.randint(ms(10), ms(60)), source.choice((0, ms(5), ms(30))))
        yield rtt.smoothed_rtt_ns, rtt.probe_timeout_ns(ms(25)), rtt.loss_delay_ns()


def _sender(kind: type[StreamSender], scheduler: Callable[[], Any], **how: Any) -> Iterator[object]:
    """Yield what a sender gives out while bytes are lost, acknowledged, and limits are raised."""
    source = random.Random("sender")
    lost = FifoScheduler() if how.get("retransmit") is Retransmit.PRIORITY else None
    sender = kind(scheduler(), turn_bytes=1000, lost_scheduler=lost, **how)
    if isinstance(sender, SectionSender):
        sender.take_sections(lambda stream_id: 50 + stream_id, lambda _: 0)
    flying: list[tuple[int, int, int]] = []
    sizes = {4 * n: source.choice((0, 700, 2500, 6000)) for n in range(12)}
    stream_limit = connection_limit = 3000
    for number in range(_N):
        what = source.random()
        if number % 8 == 0 and number // 8 < 12:
            stream_id = 4 * (number // 8)
            sender.open(stream_id, H2Priority())
            sender.send(stream_id, sizes[stream_id] + 100, 100)
        elif what < 0.55:
            span = sender.take(source.choice((None, 300, 1000)))
            flying += [] if span is None else [span]
            yield span
        elif what < 0.65 and flying:
            sender.on_lost(*flying.pop(source.randrange(len(flying))))
        elif what < 0.8 and flying:
            sender.on_acked(*flying.pop(source.randrange(len(flying))))
        elif what < 0.9:
            connection_limit += 1500
            sender.on_limit(None, connection_limit)
        else:
            stream_limit += 700
            for stream_id in sizes:
                sender.on_limit(stream_id, stream_limit)
        yield sender.has_data, sender.has_drained, sender.take_drained()


_SENDERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"retransmit": Retransmit.FIRST, "retains_until_acked": True},
    {"retransmit": Retransmit.PRIORITY, "requeues": True, "retains_until_acked": True},
    {"buffer_bytes": 2200},
    {
        "buffer_bytes": 2200,
        "send_buffer_refill": SendBufferRefill.WHEN_EMPTY,
        "retransmit": Retransmit.FIRST,
    },
    {"stream_window_bytes": 3000, "connection_window_bytes": 3000, "retains_until_acked": True},
    {
        "stream_window_bytes": 3000,
        "connection_window_bytes": 3000,
        "buffer_bytes": 4000,
        "retransmit": Retransmit.PRIORITY,
    },
)


def _drives() -> dict[str, Callable[[], Iterator[object]]]:
    drives: dict[str, Callable[[], Iterator[object]]] = {"rtt": _rtt, "bucket": _bucket}
    for name, profile in _LINKS.items():
        for upward in (False, True):
            way = "up" if upward else "down"
            drives[f"{name}, {way}"] = lambda p=profile, u=upward: _link(p, upward=u)  # type: ignore[misc]
    for kind in (Pacer, AioquicPacer):
        for gain, controller in ((None, "constant"), (1.25, "newreno"), (None, "newreno")):
            drives[f"{kind.__name__}, {gain}, {controller}"] = (
                lambda k=kind, g=gain, c=controller: _pacer(k, g, c)  # type: ignore[misc]
            )
    for sender in (StreamSender, HeadersFirstSender, SectionSender):
        for scheduler in (FifoScheduler, RoundRobinScheduler):
            for number, how in enumerate(_SENDERS):
                drives[f"{sender.__name__}, {scheduler.__name__}, {number}"] = (
                    lambda k=sender, s=scheduler, h=how: _sender(k, s, **h)  # type: ignore[misc]
                )
    return drives


def compute() -> dict[str, Any]:
    """Return a digest of all that each part answered."""
    return {
        name: hashlib.sha256(repr([*drive()]).encode()).hexdigest()[:16]
        for name, drive in _drives().items()
    }


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is recorded."""
    return json.dumps(document, indent=1) + "\n"

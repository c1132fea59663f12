"""Links against closed forms. Sampled figures are allowed four standard deviations of theirs."""

from __future__ import annotations

import random
from collections import deque
from itertools import groupby, pairwise
from math import sqrt
from statistics import fmean, stdev
from typing import Any

import pytest

from h3sim.transport.link import GilbertElliottLoss, RandomLoss, make_link
from h3sim.transport.link_profile import CoDel, Distribution, LinkJitter, LinkProfile
from h3sim.values.rng import substream
from h3sim.values.units import NS_PER_MS, NS_PER_S, ms

N_PACKETS = 200_000
DEVIATIONS = 4


def link(rtt_ns: int = 0, **profile: Any) -> Any:
    return make_link(
        LinkProfile(**profile), rtt_ns=rtt_ns, streams=lambda purpose: substream(1, purpose)
    )


# Loss


def losses(process: Any) -> list[Any]:
    return [process.is_lost() for _ in range(N_PACKETS)]


@pytest.mark.parametrize(("loss", "burst"), [(0.02, 5), (0.02, 15), (0.2, 3), (0.5, 1)])
def test_gilbert_elliott_loses_its_share_in_bursts_of_its_mean(loss: Any, burst: Any) -> None:
    lost = losses(GilbertElliottLoss(loss=loss, burst=burst, source=substream(1, "loss")))
    to_good, to_bad = 1 / burst, loss / burst / (1 - loss)
    correlation = 1 - to_good - to_bad  # of neighbours; the variance of the mean grows with it
    variance = loss * (1 - loss) * (1 + correlation) / (1 - correlation) / N_PACKETS
    assert fmean(lost) == pytest.approx(loss, abs=DEVIATIONS * sqrt(variance))

    lengths = [sum(run) for is_lost, run in groupby(lost) if is_lost]
    variance = burst * (burst - 1) / len(lengths)  # of geometric lengths; with 1 all are alike
    assert fmean(lengths) == pytest.approx(burst, abs=DEVIATIONS * sqrt(variance) + 1e-9)
    singles = sum(length == 1 for length in lengths) / len(lengths)
    variance = to_good * (1 - to_good) / len(lengths)
    assert singles == pytest.approx(to_good, abs=DEVIATIONS * sqrt(variance) + 1e-9)


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.5])
def test_random_loss_loses_its_share_and_forgets_what_was_before(loss: Any) -> None:
    lost = losses(RandomLoss(loss, substream(1, "loss")))
    allowed = DEVIATIONS * sqrt(loss * (1 - loss) / N_PACKETS)
    assert fmean(lost) == pytest.approx(loss, abs=allowed)
    after_loss = [after for before, after in pairwise(lost) if before]
    allowed = DEVIATIONS * sqrt(loss * (1 - loss) / len(after_loss))
    assert fmean(after_loss) == pytest.approx(loss, abs=allowed)


# Queues


def test_the_delay_of_a_queue_that_grows_is_the_surplus_over_the_rate() -> None:
    # 1250 bytes take 10 ms and come every 8 ms: the n-th waits n * 2 ms.
    down = link(rate_bps=1_000_000, burst_bytes=0)
    for n in range(1000):
        assert down.send(n * ms(8), 1250) == n * ms(8) + n * ms(2) + ms(10)


def test_a_full_queue_delays_by_its_size_over_the_rate() -> None:
    # 25000 bytes at 2 Mbit/s are 100 ms; twenty packets of 1250 bytes fill them exactly.
    down = link(rtt_ns=ms(40), rate_bps=2_000_000, burst_bytes=0, queue_bdp=2.5)
    arrivals = [(now_ms, down.send(ms(now_ms), 1250)) for now_ms in range(1000)]
    delays = [at_ns - ms(now_ms + 20) for now_ms, at_ns in arrivals if at_ns is not None]
    assert max(delays) == ms(100)
    assert set(delays[50:]) == {ms(100)}  # each takes the place of one that just left


def test_packets_that_arrive_at_random_wait_as_pollaczek_and_khinchine_derive() -> None:
    # M/D/1 at load 1/2: on average half a service time, within 3 %: waits of neighbours are
    # correlated, and over seeds the mean of 200000 has a deviation of about 0.7 %.
    service_ns, load = ms(1), 0.5
    source = random.Random(1)
    down = link(rate_bps=8_000_000, burst_bytes=0)
    now_ns, waited_ns = 0, 0
    for _ in range(N_PACKETS):
        now_ns += round(source.expovariate(load / service_ns))
        waited_ns += down.send(now_ns, 1000) - now_ns - service_ns
    expected_ns = load * service_ns / (2 * (1 - load))
    assert waited_ns / N_PACKETS == pytest.approx(expected_ns, rel=0.03)


@pytest.mark.parametrize(
    "profile",
    [
        {"rate_bps": 2_000_000, "queue_bytes": 26_215, "frame_overhead_bytes": 14},
        {"rate_bps": 168_270_000, "queue_packets": 100, "burst_bytes": 0},
        {"mahimahi": (1,), "queue_packets": 10},
        {"mahimahi": (3, 3, 10), "queue_packets": 10},
    ],
)
def test_the_throughput_of_a_link_that_always_has_packets_is_its_rate(profile: Any) -> None:
    # At 40 us, 300 Mbit/s are offered. At the ends a bucket, a period or a packet may be missing.
    down = link(**profile)
    n_bytes, overhead_bytes = 1486, profile.get("frame_overhead_bytes", 0)
    arrived = [down.send(n * 40_000, n_bytes) for n in range(50_000)]
    delivered = [at_ns for at_ns in arrived if at_ns is not None and at_ns <= 2 * NS_PER_S]
    bits = 8 * (n_bytes + overhead_bytes) * len(delivered)
    expected_bits = 2 * float(LinkProfile(**profile).mean_rate_bps)  # type: ignore[arg-type]
    assert bits == pytest.approx(expected_bits, abs=8 * 3 * 1514)
    assert down.queue_drops > 0


# CoDel


class PseudocodeCoDel:
    """RFC 8289 § 5 line by line, over a queue in which packets really wait."""

    def __init__(self, arrivals_ns: list[int], n_bytes: int, service_ns: int) -> None:
        self.arrivals_ns, self.n_bytes, self.service_ns = arrivals_ns, n_bytes, service_ns
        self.target_ns, self.interval_ns = 5 * NS_PER_MS, 100 * NS_PER_MS
        self.queue: deque[Any] = deque()
        self.dropped: list[Any] = []
        self.first_above = self.drop_next = self.count = self.lastcount = 0
        self.dropping = False

    def run(self) -> Any:
        now = 0
        coming: deque[Any] = deque(enumerate(self.arrivals_ns))
        while coming or self.queue:
            if not self.queue:
                now = max(now, coming[0][1])
            while coming and coming[0][1] <= now:
                self.queue.append(coming.popleft())
            if self.dequeue(now) is not None:
                now += self.service_ns
        return self.dropped

    def dodequeue(self, now: Any) -> Any:
        if not self.queue:
            self.first_above = 0
            return None, False
        packet = self.queue.popleft()
        if now - packet[1] < self.target_ns or len(self.queue) * self.n_bytes <= self.n_bytes:
            self.first_above = 0
        elif self.first_above == 0:
            self.first_above = now + self.interval_ns
        else:
            return packet, now >= self.first_above
        return packet, False

    def control_law(self, now: Any) -> Any:
        return now + int(self.interval_ns / sqrt(self.count))

    def dequeue(self, now: Any) -> Any:
        packet, ok_to_drop = self.dodequeue(now)
        if self.dropping:
            self.dropping = ok_to_drop
            while self.dropping and now >= self.drop_next:
                self.dropped.append(packet[0])
                self.count += 1
                packet, ok_to_drop = self.dodequeue(now)
                if ok_to_drop:
                    self.drop_next = self.control_law(self.drop_next)
                else:
                    self.dropping = False
        elif ok_to_drop:
            self.dropped.append(packet[0])
            packet, _ = self.dodequeue(now)
            self.dropping = True
            delta = self.count - self.lastcount
            recent = now - self.drop_next < 16 * self.interval_ns
            self.count = delta if delta > 1 and recent else 1
            self.drop_next = self.control_law(now)
            self.lastcount = self.count
        return packet


@pytest.mark.parametrize("load", [1.02, 1.3, 3])
def test_codel_drops_what_its_pseudocode_drops_from_a_queue_that_stands(load: Any) -> None:
    # Two surges with a pause, so that the second starts at the dropping rate of the first.
    service_ns, source = ms(1), random.Random(2)
    arrivals_ns, now_ns = [], 0
    for pause_ns in (0, ms(700)):
        now_ns += pause_ns
        for _ in range(4000):
            now_ns += round(service_ns / load * source.uniform(0.5, 1.5))
            arrivals_ns.append(now_ns)
    down = link(rate_bps=8_000_000, burst_bytes=0, codel=CoDel())
    dropped = [n for n, at_ns in enumerate(arrivals_ns) if down.send(at_ns, 1000) is None]
    expected = PseudocodeCoDel(arrivals_ns, 1000, service_ns).run()
    # But for the last two: it lets those pass, with no more than a packet behind them.
    assert [n for n in dropped if n < 7998] == expected
    assert dropped[0] < 4000 < dropped[-1]


# Jitter


@pytest.mark.parametrize(
    ("distribution", "mean_ms", "deviation_ms"),
    [
        (Distribution.UNIFORM, 10, 4 / sqrt(3)),  # within 4 ms of the mean
        (Distribution.NORMAL, 10, 2),
        (Distribution.PARETO, 10, 2),
    ],
)
def test_the_extra_delay_has_its_mean_and_deviation(
    distribution: Any, mean_ms: float, deviation_ms: float
) -> None:
    is_uniform = distribution is Distribution.UNIFORM
    jitter = LinkJitter(
        mean_ns=ms(mean_ms),
        deviation_ns=ms(4 if is_uniform else deviation_ms),
        distribution=distribution,
        reorder=True,
    )
    down = link(jitter=jitter)
    extra_ms = [down.send(0, 1) / 1e6 for _ in range(50_000)]
    allowed_ms = DEVIATIONS * deviation_ms / sqrt(len(extra_ms))
    assert fmean(extra_ms) == pytest.approx(mean_ms, abs=allowed_ms)
    # Within 5 %: that of the Pareto distribution's deviation is the widest, 1.2 %.
    assert stdev(extra_ms) == pytest.approx(deviation_ms, rel=0.05)

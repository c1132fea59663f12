"""Laws of links, for any profile and any packets."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st

from h3sim.transport.link import Link, PlainLink, make_link
from h3sim.transport.link_profile import (
    CoDel,
    Distribution,
    FqCoDel,
    Jitter,
    LinkJitter,
    LinkProfile,
)
from h3sim.transport.packets import CE, ECT, NOT_ECT
from h3sim.values.rng import substream
from h3sim.values.units import NS_PER_MS, NS_PER_S
from tests.effort import law
from tests.unit.fair_link_path import FairPath, Flow, NoCoDel

LAW = law(150, usual=60)

sizes = st.one_of(st.integers(1, 1514), st.sampled_from([1, 1250, 1500, 1514]))
gaps_ns = st.one_of(
    st.just(0), st.integers(0, 3_000_000), st.integers(0, 9).map(lambda n: n * NS_PER_MS)
)
packets = st.lists(st.tuples(gaps_ns, sizes), min_size=1, max_size=120).map(
    lambda sent: list(
        zip(accumulate(gap for gap, _ in sent), (size for _, size in sent), strict=True)
    )
)
rates_bps = st.one_of(
    st.sampled_from([1_000_000, 2_000_000, 12_000_000]), st.integers(10_000, 10**9)
)
traces = st.lists(st.integers(0, 30), min_size=1, max_size=12).map(
    lambda times: (*sorted(times), max(*times, 1))
)
queues = st.one_of(  # type: ignore[var-annotated]
    st.just({}),
    st.integers(1514, 20_000).map(lambda n: {"queue_bytes": n}),
    st.integers(1, 12).map(lambda n: {"queue_packets": n}),
)
losses = st.one_of(  # type: ignore[var-annotated]
    st.just({}),
    st.floats(0, 0.9).map(lambda p: {"loss": p}),
    st.tuples(st.floats(0, 0.5), st.floats(1, 20)).map(
        lambda pair: {"loss": pair[0], "loss_burst": pair[1]}
    ),
    st.lists(st.integers(0, 100), min_size=1, max_size=20).map(
        lambda numbers: {"loss_list": tuple(numbers)}
    ),
)
jitters = st.builds(
    lambda mean_ns, share, distribution: LinkJitter(
        mean_ns=mean_ns, deviation_ns=max(1, mean_ns * share // 10), distribution=distribution
    ),
    st.integers(1, 50_000_000),
    st.integers(1, 10),
    st.sampled_from(Distribution),
)


@st.composite
def profiles(draw: Any, *, jittered: bool = True) -> Any:
    """Any link that keeps the order of its packets."""
    kind = draw(st.sampled_from(["rate", "trace", "none"]))
    values = draw(losses) | {"jitter": draw(st.none() | jitters) if jittered else None}
    values["frame_overhead_bytes"] = draw(st.sampled_from([0, 14]))
    if kind == "none":
        return LinkProfile(**values)
    if kind == "rate":
        values["rate_bps"] = draw(rates_bps)
        values["burst_bytes"] = draw(st.sampled_from([0, 1514, 5000]))
    else:
        values["mahimahi"] = draw(traces)
    values["codel"] = draw(st.sampled_from([None, CoDel(), CoDel(target_ns=1, interval_ns=1000)]))
    return LinkProfile(**values, **draw(queues))


plain_profiles = st.builds(
    lambda rate_bps, burst_bytes, overhead_bytes, queue, loss: LinkProfile(
        rate_bps=rate_bps,
        burst_bytes=burst_bytes,
        frame_overhead_bytes=overhead_bytes,
        **queue,
        **loss,
    ),
    st.sampled_from([999_983, 1_000_000, 3_000_000, 12_000_000]),
    st.sampled_from([0, 1514, 5000]),
    st.sampled_from([0, 14]),
    queues,
    losses,
)


def send(profile: Any, sent: Any, rtt_ns: int = 0, seed: int = 0) -> Any:
    """Return the link and when each packet arrives."""
    link = make_link(profile, rtt_ns=rtt_ns, streams=lambda purpose: substream(seed, purpose))
    return link, [link.send(now_ns, n_bytes) for now_ns, n_bytes in sent]


@LAW
@given(profiles(), packets, st.integers(0, 10**9))
def test_no_packet_arrives_before_its_delay_has_passed(
    profile: Any, sent: Any, rtt_ns: int
) -> None:
    _, arrivals = send(profile, sent, rtt_ns)
    for (now_ns, _), at_ns in zip(sent, arrivals, strict=True):
        assert at_ns is None or at_ns >= now_ns + rtt_ns // 2


@LAW
@given(profiles(), packets)
def test_packets_arrive_in_the_order_sent(profile: Any, sent: Any) -> None:
    _, arrivals = send(profile, sent)
    delivered = [at_ns for at_ns in arrivals if at_ns is not None]
    assert delivered == sorted(delivered)


@LAW
@example(LinkProfile(rate_bps=10**6, queue_packets=2), [(0, 1000)] * 5, 0, 0)
@given(plain_profiles, packets, st.integers(0, 10**9), st.integers(0, 3))
def test_the_one_function_of_a_plain_link_does_what_its_parts_do(
    profile: Any, sent: Any, rtt_ns: int, seed: int
) -> None:
    quick, arrivals = send(profile, sent, rtt_ns, seed)
    assert isinstance(quick, PlainLink)
    link = Link(profile, rtt_ns=rtt_ns, streams=lambda purpose: substream(seed, purpose))
    assert arrivals == [link.send(now_ns, n_bytes) for now_ns, n_bytes in sent]
    assert (quick.offered, quick.queue_drops) == (link.offered, link.queue_drops)
    assert quick.loss_drops == link.loss_drops


@LAW
@given(profiles(), packets)
def test_each_packet_is_delivered_dropped_or_lost(profile: Any, sent: Any) -> None:
    link, arrivals = send(profile, sent)
    delivered = sum(at_ns is not None for at_ns in arrivals)
    assert link.offered == len(sent) == delivered + link.queue_drops + link.loss_drops
    if profile.queue_bytes is None and profile.queue_packets is None and profile.codel is None:
        assert link.queue_drops == 0
    if not (profile.loss or profile.loss_list):
        assert link.loss_drops == 0


@LAW
@given(profiles(), packets)
def test_equal_links_do_the_same(profile: Any, sent: Any) -> None:
    assert send(profile, sent, seed=3)[1] == send(profile, sent, seed=3)[1]


@LAW
@given(profiles(jittered=False), packets, packets)
def test_the_nth_packet_behind_the_queue_meets_the_same_fate_whatever_is_sent(
    profile: Any, sent: Any, others: Any
) -> None:
    fates = []
    for packets_ in (sent, others):
        link = make_link(profile, rtt_ns=0, streams=lambda purpose: substream(0, purpose))
        fate = []
        for now_ns, n_bytes in packets_:
            dropped = link.queue_drops
            arrives_at_ns = link.send(now_ns, n_bytes)
            if link.queue_drops == dropped:
                fate.append(arrives_at_ns is None)
        fates.append(fate)
    shared = min(map(len, fates))
    assert fates[0][:shared] == fates[1][:shared]


@LAW
@given(jitters, losses, packets)
def test_losses_do_not_move_the_jitter(jitter: Any, loss: Any, sent: Any) -> None:
    _, free = send(LinkProfile(jitter=replace_order(jitter)), sent)
    _, lossy = send(LinkProfile(jitter=replace_order(jitter), **loss), sent)
    assert all(at_ns in (None, expected) for at_ns, expected in zip(lossy, free, strict=True))


def replace_order(jitter: Any) -> Any:
    return LinkJitter(
        mean_ns=jitter.mean_ns,
        deviation_ns=jitter.deviation_ns,
        distribution=jitter.distribution,
        reorder=True,
    )


@LAW
@given(st.integers(1, 5), st.integers(0, 4), st.integers(0, 4), packets)
def test_a_hold_delays_every_nth_packet_only_and_as_far_as_it_may(
    every: Any, low: Any, more: Any, sent: Any
) -> None:
    hold = Jitter(every=every, min_overtaken=low, max_overtaken=low + more)
    _, free = send(LinkProfile(rate_bps=8_000_000), sent)
    _, held = send(LinkProfile(rate_bps=8_000_000, hold=hold), sent)
    for number, ((_, n_bytes), plain_ns, at_ns) in enumerate(
        zip(sent, free, held, strict=True), start=1
    ):
        times = {k + 0.5 if k else 0 for k in range(low, low + more + 1)}
        allowed = times if number % every == 0 else {0}
        assert (at_ns - plain_ns) / (n_bytes * 1000) in allowed


# Beside the link, models that count in another way


def bucket_model(rate_bps: Any, burst_bytes: int, limit_bytes: int, sent: Any) -> Any:
    """Tokens as fractions of a byte, and the queue as a list that is looked through."""
    per_ns = Fraction(rate_bps, 8 * NS_PER_S)
    tokens = Fraction(burst_bytes)
    counted_at = 0
    before = 0
    waiting: list[Any] = []
    arrivals: list[Any] = []
    for now_ns, n_bytes in sent:
        backlog = sum(size for at_ns, size in waiting if int(at_ns) > now_ns)
        if limit_bytes is not None and backlog + n_bytes > limit_bytes:
            arrivals.append(None)
            continue
        start = max(now_ns, before)
        tokens = min(burst_bytes, tokens + (start - counted_at) * per_ns)
        leaves = start + max(0, (n_bytes - tokens) / per_ns)
        tokens += (leaves - start) * per_ns - n_bytes
        counted_at = before = leaves
        waiting.append((leaves, n_bytes))
        arrivals.append(int(leaves))
    return arrivals


@LAW
@given(rates_bps, st.integers(1514, 6000), st.none() | st.integers(1514, 20_000), packets)
def test_a_link_passes_what_a_bucket_of_tokens_passes(
    rate_bps: Any, burst_bytes: int, limit_bytes: int, sent: Any
) -> None:
    profile = LinkProfile(rate_bps=rate_bps, burst_bytes=burst_bytes, queue_bytes=limit_bytes)
    assert send(profile, sent)[1] == bucket_model(rate_bps, burst_bytes, limit_bytes, sent)


def trace_model(times_ms: Any, limit_packets: Any, sent: Any) -> list[Any]:
    """Mahimahi's loop: opportunity by opportunity, over packets that really wait."""
    coming: deque[Any] = deque(enumerate(sent))
    queue: deque[Any] = deque()
    arrivals: dict[Any, Any] = {}
    cycle = 0
    while coming or queue:
        for at_ms in times_ms:
            at_ns = (cycle * times_ms[-1] + at_ms) * NS_PER_MS
            while coming and coming[0][1][0] < at_ns:
                number, (_, n_bytes) = coming.popleft()
                if len(queue) < limit_packets:
                    queue.append([number, n_bytes])
            left_bytes = 1500
            while left_bytes and queue:
                used = min(left_bytes, queue[0][1])
                queue[0][1] -= used
                left_bytes -= used
                if queue[0][1] == 0:
                    arrivals[queue.popleft()[0]] = at_ns
        cycle += 1
    return [arrivals.get(number) for number in range(len(sent))]


@LAW
@given(traces, st.integers(1, 12), packets)
def test_a_link_passes_what_mahimahi_passes(times_ms: Any, limit_packets: Any, sent: Any) -> None:
    profile = LinkProfile(mahimahi=times_ms, queue_packets=limit_packets)
    assert send(profile, sent)[1] == trace_model(times_ms, limit_packets, sent)


@LAW
@given(profiles(jittered=False), packets)
def test_never_more_waits_than_the_queue_holds(profile: Any, sent: Any) -> None:
    limit_bytes, limit_packets = profile.queue_limit_bytes(0), profile.queue_packets
    link = make_link(profile, rtt_ns=0, streams=lambda purpose: substream(0, purpose))
    accepted = []
    for now_ns, n_bytes in sent:
        at_ns = link.send(now_ns, n_bytes)
        if at_ns is not None:
            accepted.append((at_ns, n_bytes + profile.frame_overhead_bytes))
        waiting = [size for leaves_ns, size in accepted if leaves_ns > now_ns]
        assert limit_bytes is None or sum(waiting) <= limit_bytes
        assert limit_packets is None or len(waiting) <= limit_packets


# FQ-CoDel

fair_sends = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5 * 10**6), st.integers(40, 1514)), max_size=60
)


@LAW
@given(profiles(jittered=False), fair_sends, st.booleans())
def test_each_packet_of_a_fair_link_has_one_fate_and_flows_keep_their_order(
    profile: Any, sent: Any, marks: bool
) -> None:
    assume(profile.mean_rate_bps is not None)
    fair = replace(profile, codel=None, fq_codel=FqCoDel(target_ns=1, interval_ns=1000), ecn=marks)
    path, flows = FairPath.of(fair), [Flow(), Flow(), Flow()]
    for flow, at_ns, n_bytes in sent:
        path.put(flows[flow], at_ns, n_bytes, ECT if n_bytes % 2 else NOT_ECT)
    path.run()
    link = path.link
    delivered = sum(at_ns is not None for flow in flows for at_ns in flow.fates.values())
    assert link.offered == len(sent) == delivered + link.queue_drops + link.loss_drops
    for flow in flows:
        arrivals = [at_ns for at_ns in flow.fates.values() if at_ns is not None]
        assert arrivals == sorted(arrivals)
    marked = sum(ecn == CE for flow in flows for ecn in flow.codepoints.values())
    assert marked == link.ecn_marks
    assert marks or not marked


@LAW
@given(profiles(jittered=False), packets, st.integers(0, 10**9))
def test_a_fair_link_with_one_flow_and_no_drops_is_a_plain_one(
    profile: Any, sent: Any, rtt_ns: int
) -> None:
    assume(profile.mean_rate_bps is not None)
    endless = replace(profile, codel=None, queue_bytes=None, queue_packets=None, queue_bdp=None)
    _, arrivals = send(endless, sent, rtt_ns)
    path, flow = FairPath.of(replace(endless, fq_codel=NoCoDel), rtt_ns), Flow()
    for at_ns, n_bytes in sent:
        path.put(flow, at_ns, n_bytes)
    path.run()
    assert [flow.fates[number] for number in range(len(sent))] == arrivals

"""Both forms of a link, and what they are made of, by hand: the plain one does all in one step."""

from __future__ import annotations

import random
from typing import Any

import pytest

from h3sim.transport.bottleneck import OpportunityTrace, TokenBucket
from h3sim.transport.link import Link, PlainLink, make_link
from h3sim.transport.link_profile import (
    CoDel,
    Distribution,
    Jitter,
    LinkJitter,
    LinkProfile,
    make_draw,
)
from h3sim.values.units import mbps, ms
from tests.unit.test_links import Scripted, arrivals_ms

FORMS = pytest.mark.parametrize("form", [Link, PlainLink])


def made(form: type[Link], *numbers: float, **profile: Any) -> Link:
    return form(LinkProfile(**profile), rtt_ns=0, streams=lambda _: Scripted(*numbers))  # type: ignore[return-value, arg-type]


@FORMS
def test_each_packet_counts_once_as_offered_and_once_as_what_became_of_it(form: Any) -> None:
    down = made(form, rate_bps=mbps(1), burst_bytes=0, queue_bytes=2000, loss_list=(1,))
    # 12 ms for 1500 bytes; 501 do not fit beside them, 500 do, and are the second that goes.
    assert arrivals_ms(down, (0, 1500), (0, 501), (0, 500), (16, 125)) == [12, None, None, 17]
    assert (down.offered, down.queue_drops, down.loss_drops) == (4, 1, 1)


QUEUED = pytest.mark.parametrize(
    "make",
    [
        lambda **profile: made(Link, **profile),
        lambda **profile: made(PlainLink, **profile),
        # A target that nothing ever waits for: CoDel drops nothing, and the queue is left.
        lambda **profile: made(Link, codel=CoDel(target_ns=ms(60_000)), **profile),
    ],
    ids=["link", "plain", "codel"],
)


@QUEUED
def test_a_queue_holds_exactly_its_bytes(make: Any) -> None:
    down = make(rate_bps=mbps(1), burst_bytes=0, queue_bytes=2000)
    assert arrivals_ms(down, (0, 1000), (0, 1001), (0, 1000), (0, 1)) == [8, None, 16, None]
    # At 8 ms the first has left, the instant included.
    assert down.send(ms(8) - 1, 1) is None
    assert arrivals_ms(down, (8, 1001), (8, 1000), (8, 1)) == [None, 24, None]


@QUEUED
def test_a_queue_holds_exactly_its_packets(make: Any) -> None:
    down = make(rate_bps=mbps(1), burst_bytes=0, queue_packets=2)
    assert arrivals_ms(down, (0, 125), (0, 125), (0, 1), (1, 125), (1, 1)) == [1, 2, None, 3, None]


@QUEUED
@pytest.mark.parametrize("queue", [{"queue_bytes": 1600}, {"queue_packets": 1}])
def test_what_passes_at_once_never_stood_in_the_queue(make: Any, queue: Any) -> None:
    down = make(rate_bps=mbps(1), burst_bytes=2000, **queue)
    # Tokens for 2000 bytes; then one of 1600 waits, and nothing beside it.
    packets = [(0, 1000), (0, 1000), (0, 1600), (0, 1)]
    assert arrivals_ms(down, *packets) == [0, 0, 12.8, None]


def test_codel_counts_from_when_a_packet_came_whenever_that_was() -> None:
    fates = []
    for start_ms in (0, 10_000):
        down = made(Link, rate_bps=mbps(1), burst_bytes=0, codel=CoDel())
        # 10 ms each, and one each 5 ms: what waits grows by 5 ms with each.
        arrived = arrivals_ms(down, *[(start_ms + 5 * index, 1250) for index in range(80)])
        fates.append([None if at_ms is None else at_ms - start_ms for at_ms in arrived])
    assert fates[0] == fates[1]
    assert 0 < fates[0].count(None) < 20


@FORMS
def test_what_a_frame_adds_takes_its_time(form: Any) -> None:
    down = made(form, rate_bps=mbps(1), burst_bytes=0, frame_overhead_bytes=25)
    assert arrivals_ms(down, (0, 100), (0, 100)) == [1, 2]


@FORMS
def test_a_rate_of_fractional_nanoseconds_is_kept_at_any_time(form: Any) -> None:
    # 375 bytes are 3000 bits: a millisecond at 3 Mbit/s. Tokens for 1000 bytes are there.
    down = made(form, rate_bps=mbps(3), burst_bytes=1000)
    packets = [(10, 1000), (10, 375), (10, 375), (20, 1375), (20, 375)]
    assert arrivals_ms(down, *packets) == [10, 11, 12, 21, 22]


@FORMS
@pytest.mark.parametrize(("drawn", "arrives"), [(0.2499, False), (0.25, True), (0.9, True)])
def test_a_packet_is_lost_below_the_probability(form: Any, drawn: float, arrives: bool) -> None:
    down = made(form, drawn, rate_bps=mbps(1), loss=0.25)
    assert (down.send(0, 100) is not None) is arrives


@pytest.mark.parametrize(("size_bytes", "is_lost"), [(99, False), (100, True), (101, True)])
def test_a_list_of_losses_counts_packets_from_so_many_bytes_on(
    size_bytes: int, is_lost: bool
) -> None:
    down = made(Link, loss_list=(0,), loss_list_from_bytes=100)
    assert (down.send(0, size_bytes) is None) is is_lost


@pytest.mark.parametrize(
    ("profile", "form"),
    [
        ({}, PlainLink),
        ({"loss": 0.1}, PlainLink),
        ({"loss_list": (1,)}, PlainLink),
        ({"rate_bps": None}, Link),
        ({"loss_list": (1,), "loss_list_from_bytes": 10}, Link),
        ({"jitter": LinkJitter(mean_ns=5)}, Link),
        ({"hold": Jitter.parse("4:1")}, Link),
        ({"codel": CoDel()}, Link),
    ],
)
def test_a_link_is_plain_unless_it_does_more_than_pass_queue_and_lose(
    profile: Any, form: type[Link]
) -> None:
    settings = {"rate_bps": mbps(1), **profile}
    assert type(make_link(LinkProfile(**settings), rtt_ns=0, streams=random.Random)) is form


class TestTokenBucket:
    def test_it_turns_to_a_packet_when_that_before_it_has_left(self) -> None:
        bucket = TokenBucket(rate_bps=mbps(3), burst_bytes=1000)
        assert bucket.ready_at_ns(ms(10)) == ms(10)
        assert [bucket.leaves_at_ns(ms(10), n) for n in (1000, 750)] == [ms(10), ms(12)]
        assert [bucket.ready_at_ns(ms(at)) for at in (10, 12, 13)] == [ms(12), ms(12), ms(13)]

    def test_accepted_packets_leave_at_their_announced_time_whatever_the_rate(self) -> None:
        # A byte takes 8000 ns, then 4000; 500 of the 1500 are beyond the tokens.
        bucket = TokenBucket(rate_bps=mbps(1), burst_bytes=1000)
        assert bucket.leaves_at_ns(0, 1500) == ms(4)
        bucket.change_rate(ms(1), mbps(2))
        assert [bucket.leaves_at_ns(ms(1), 500) for _ in range(2)] == [ms(6), ms(8)]
        # It has rested: 1000 bytes at once, and no more.
        assert [bucket.leaves_at_ns(ms(99), n) for n in (1000, 500)] == [ms(99), ms(101)]

    def test_tokens_that_are_there_stay(self) -> None:
        bucket = TokenBucket(rate_bps=mbps(1), burst_bytes=1000)
        assert bucket.leaves_at_ns(ms(5), 600) == ms(5)
        # 400 were left, and 125 came within a millisecond.
        bucket.change_rate(ms(6), mbps(2))
        assert [bucket.leaves_at_ns(ms(6), n) for n in (525, 100)] == [ms(6), ms(6.4)]

    def test_a_full_bucket_stays_full(self) -> None:
        bucket = TokenBucket(rate_bps=mbps(1), burst_bytes=1000)
        bucket.change_rate(ms(1000), mbps(2))
        assert [bucket.leaves_at_ns(ms(1000), n) for n in (1000, 100)] == [ms(1000), ms(1000.4)]

    def test_what_leaves_first_at_a_new_rate_leaves_behind_a_part_of_a_nanosecond(self) -> None:
        bucket = TokenBucket(rate_bps=mbps(3), burst_bytes=0)
        assert bucket.leaves_at_ns(0, 1) == 2666
        bucket.change_rate(0, mbps(1))
        assert bucket.leaves_at_ns(0, 125) == 2667 + ms(1)


def test_a_trace_turns_to_a_packet_at_the_opportunity_that_has_bytes_left() -> None:
    trace = OpportunityTrace([2, 5])
    assert trace.ready_at_ns(0) == ms(2)
    assert trace.leaves_at_ns(0, 1000) == ms(2)
    assert trace.ready_at_ns(ms(1)) == ms(2)
    assert trace.leaves_at_ns(ms(1), 500) == ms(2)
    assert trace.ready_at_ns(ms(1)) == ms(5)
    # At an opportunity itself it is gone; they come again each 5 ms.
    assert [trace.ready_at_ns(ms(at)) for at in (2, 5, 7, 11)] == [ms(5), ms(7), ms(10), ms(12)]


def test_a_draw_of_zero_counts_as_the_least_that_is_above_zero() -> None:
    """`random.Random.random` gives multiples of 2**-53; that one lies 8.21 deviations below."""

    class Zero(random.Random):
        def random(self) -> float:
            return 0.0

    jitter = LinkJitter(mean_ns=10_000, deviation_ns=1000, distribution=Distribution.NORMAL)
    assert make_draw(jitter, Zero())() == pytest.approx(10_000 - 8210, abs=10)

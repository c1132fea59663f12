"""Measures of what was sent, against counts that go byte by byte and packet by packet."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import groupby
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from h3sim.metrics import hol_blocking
from h3sim.metrics.hol import count_packets, frames_by_number, loss_bursts
from h3sim.metrics.multiplexing import (
    Sent,
    fairness,
    inversion_bytes,
    reprioritization_delays_ns,
    streams_in_flight,
)
from h3sim.metrics.visual import Element, seen_at_ns, speed_index_ns
from h3sim.signals import Eps, H2Priority, Signal
from h3sim.trace import Delivery, PacketRows, Request, Trace, with_delivery
from tests.effort import law

Row: TypeAlias = tuple[int, int | None, int, int, int, int]
FRAMES = st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(0, 4))
PACKETS = st.lists(
    st.tuples(st.booleans(), st.integers(1, 3), st.lists(FRAMES, min_size=1, max_size=2)),
    max_size=8,
)
SENT = st.lists(
    st.builds(Sent, st.integers(0, 12), st.integers(0, 3), st.integers(1, 9)), max_size=12
).map(lambda sent: sorted(sent, key=lambda row: row.at_ns))
SPANS = st.dictionaries(
    st.integers(0, 3), st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=4
)
SIGNALS: st.SearchStrategy[list[tuple[int, int, Signal]]] = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(-1, 3),
        st.integers(0, 3).map(lambda n: Eps(urgency=n)) | st.just(H2Priority()),
    ),
    max_size=6,
).map(lambda signals: sorted(signals, key=lambda signal: signal[0]))


def element_of(share: float | None, times: list[int], shares: list[int]) -> Element:
    """Return an element that is painted in parts, and complete at the last of *times*."""
    *partial, ready_ns = sorted(times)
    fifths = sorted(set(shares))
    paints = tuple((at_ns, Fraction(n, 5)) for at_ns, n in zip(partial, fifths, strict=False))
    return Element(share, False, ready_ns, paints)


TIMES = st.lists(st.integers(0, 9), min_size=1, max_size=4)
FIFTHS = st.lists(st.integers(1, 4), max_size=3)
ELEMENTS = st.lists(
    st.builds(element_of, st.sampled_from([None, 0, 0.25, 0.5, 0.75]), TIMES, FIFTHS), max_size=4
)
TEXT = st.none() | st.builds(element_of, st.none(), TIMES, FIFTHS)


def rows_of(packets: list[tuple[bool, int, list[tuple[int, int, int]]]]) -> list[Row]:
    """Return rows of packets (whether it is lost, how long under way, its frames), sent in turn."""
    return [
        (number, None if is_lost else number + took, *frame, number)
        for number, (is_lost, took, frames) in enumerate(packets)
        for frame in frames
    ]


def trace_of(rows: list[Row]) -> Trace:
    streams = sorted({row[2] for row in rows})
    return Trace(
        delivery=Delivery.STREAM,
        requests=tuple(Request(stream_id, n, 0, 0, 0) for n, stream_id in enumerate(streams)),
        signals=(),
        packet_rows=with_delivery(rows, Delivery.STREAM),
    )


@law(200)
@given(PACKETS)
def test_a_packet_goes_again_if_one_of_its_bytes_does(
    packets: list[tuple[bool, int, list[tuple[int, int, int]]]],
) -> None:
    rows = rows_of(packets)
    seen: set[tuple[int, int]] = set()
    again = set()
    for _, _, stream_id, offset, n_bytes, number in rows:
        these = {(stream_id, at) for at in range(offset, offset + n_bytes)}
        if these & seen:
            again.add(number)
        seen |= these
    lost = sum(is_lost for is_lost, _, _ in packets)
    assert count_packets(trace_of(rows)) == (len(packets), lost, len(again))


@law(100)
@given(PACKETS, st.randoms(use_true_random=False))
def test_bursts_are_runs_of_lost_packets_in_the_order_of_their_numbers(
    packets: list[tuple[bool, int, list[tuple[int, int, int]]]], source: object
) -> None:
    rows = rows_of(packets)
    runs = [len([*run]) for is_lost, run in groupby(p[0] for p in packets) if is_lost]
    expected = dict(sorted(Counter(runs).items()))
    source.shuffle(rows)  # type: ignore[attr-defined]
    assert loss_bursts(rows) == loss_bursts(PacketRows.of([(*r, None) for r in rows])) == expected
    by_number = [None if is_lost else len(frames) for is_lost, _, frames in packets]
    found = frames_by_number(trace_of(rows_of(packets)))
    assert [None if frames is None else len(frames) for frames in found] == by_number


@law(100)
@given(PACKETS)
def test_bytes_wait_for_the_last_of_all_that_lie_before_them(
    packets: list[tuple[bool, int, list[tuple[int, int, int]]]],
) -> None:
    """Of their own stream. What brings nothing new does not count, nor what is never delivered."""
    rows = [row for row in rows_of(packets) if row[4]]
    first_at: dict[tuple[int, int], int] = {}
    brought: list[Row] = []
    for row in sorted(rows, key=lambda row: row[1] or 0):
        _, at_ns, stream_id, offset, n_bytes, _ = row
        new = {(stream_id, byte) for byte in range(offset, offset + n_bytes)} - first_at.keys()
        if at_ns is not None and new:
            first_at |= dict.fromkeys(new, at_ns)
            brought.append(row)
    n_blocked = delay_ns = 0
    for _, at_ns, stream_id, offset, n_bytes, _ in brought:
        times = [first_at.get((stream_id, byte), -1) for byte in range(offset + n_bytes)]
        if at_ns is not None and -1 not in times and max(times) > at_ns:
            n_blocked += n_bytes
            delay_ns += max(times) - at_ns
    found = hol_blocking(trace_of(rows))
    assert (found.stream_bytes, found.stream_delay_ns) == (n_blocked, delay_ns)


# Multiplexing


@law(60)
@given(SENT, st.integers(1, 5))
def test_streams_in_flight_are_those_of_the_window_that_ends_with_a_packet(
    sent: list[Sent], window_ns: int
) -> None:
    counts = [
        len({r.stream_id for r in sent[: n + 1] if r.at_ns > row.at_ns - window_ns})
        for n, row in enumerate(sent)
    ]
    expected = Fraction(sum(counts), len(counts)) if counts else None
    assert streams_in_flight(sent, window_ns) == expected


@law(100)
@given(SENT, SPANS, st.integers(1, 5))
def test_jains_index_is_of_those_that_could_send_all_through_a_window(
    sent: list[Sent], spans: dict[int, tuple[int, int]], window_ns: int
) -> None:
    """Jain, Chiu, Hawe 1984: the square of the sum over n times the sum of squares."""
    found = []
    for begin in range(0, 13, window_ns):
        window = range(begin, begin + window_ns)
        ready = [
            stream_id
            for stream_id, (start, stop) in spans.items()
            if start <= window[0] and window[-1] < stop
        ]
        got = [
            sum(r.n_bytes for r in sent if r.stream_id == stream_id and r.at_ns in window)
            for stream_id in ready
        ]
        if len(ready) >= 2 and any(got):
            found.append(Fraction(sum(got) ** 2, len(got) * sum(n * n for n in got)))
    expected = sum(found, Fraction(0)) / len(found) if found else None
    assert fairness(sent, spans, window_ns) == expected


@law(100)
@given(SENT, SPANS, SIGNALS)
def test_a_byte_is_inverted_if_a_more_urgent_stream_could_have_sent(
    sent: list[Sent], spans: dict[int, tuple[int, int]], signals: list[tuple[int, int, Signal]]
) -> None:
    ranked = [
        (at, of, reported.urgency) for at, of, reported in signals if isinstance(reported, Eps)
    ]
    inverted = 0
    for row in sent:
        ranks = {of: urgency for at, of, urgency in ranked if at <= row.at_ns}
        ready = [of for of, (start, stop) in spans.items() if start <= row.at_ns < stop]
        if row.stream_id in ranks:
            mine = ranks[row.stream_id]
            inverted += row.n_bytes * any(ranks[of] < mine for of in ready if of in ranks)
    is_ranked = any(of >= 0 for _, of, _ in ranked)
    assert inversion_bytes(sent, spans, signals) == (inverted if is_ranked else None)


@law(100)
@given(SENT, SIGNALS)
def test_a_raise_waits_for_the_next_packet_of_its_stream(
    sent: list[Sent], signals: list[tuple[int, int, Signal]]
) -> None:
    ranked = [
        (at, of, reported.urgency) for at, of, reported in signals if isinstance(reported, Eps)
    ]
    expected = []
    for n, (at_ns, stream_id, urgency) in enumerate(ranked):
        before = [u for _, of, u in ranked[:n] if of == stream_id][-1:]
        after = [r.at_ns for r in sent if r.stream_id == stream_id and r.at_ns >= at_ns][:1]
        if before and urgency < before[0]:
            expected += [left_at_ns - at_ns for left_at_ns in after]
    assert reprioritization_delays_ns(sent, signals) == expected


# What is seen


def seen_share(
    first_paint_ns: int, elements: list[Element], text: Element | None, at_ns: int
) -> Fraction:
    """Return how much of the viewport is seen: nothing before the first paint.

    Text is there from then on, or as far as it has been painted. Where elements overlap, of what
    they cover.
    """
    if at_ns < first_paint_ns:
        return Fraction(0)
    covered = sum((Fraction(e.share or 0) for e in elements), Fraction(0))
    rest = max(Fraction(0), 1 - covered)
    shown = rest * (Fraction(1) if text is None else painted_share(text, at_ns))
    shown += sum(Fraction(e.share or 0) * painted_share(e, at_ns) for e in elements)
    return shown / max(covered, Fraction(1))


def painted_share(element: Element, at_ns: int) -> Fraction:
    """Return the share of an element that has been painted."""
    if at_ns >= element.ready_at_ns:
        return Fraction(1)
    return max((share for when, share in element.partial if when <= at_ns), default=Fraction(0))


@law(100)
@given(st.integers(0, 9), ELEMENTS, TEXT, st.integers(0, 9), st.sampled_from([0, 1, 5, 17, 20]))
def test_the_speed_index_is_the_integral_of_what_is_not_seen(
    first_paint_ns: int,
    elements: list[Element],
    text: Element | None,
    origin_ns: int,
    twentieths: int,
) -> None:
    if not any(element.share for element in elements):
        assert speed_index_ns(first_paint_ns, elements, text=text) is None
        assert seen_at_ns(first_paint_ns, elements, Fraction(1), text=text) is None
        return
    seen = [seen_share(first_paint_ns, elements, text, at_ns) for at_ns in range(10)]
    assert seen == sorted(seen)
    integral = sum((1 - share for share in seen), Fraction(0))
    found = speed_index_ns(first_paint_ns, elements, text=text, origin_ns=origin_ns)
    assert found == integral - origin_ns
    share = Fraction(twentieths, 20)
    first = next(at_ns for at_ns in range(first_paint_ns, 10) if seen[at_ns] >= share)
    assert seen_at_ns(first_paint_ns, elements, share, text=text) == first

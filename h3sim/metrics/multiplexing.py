"""Measures of multiplexing, and of the effect of priorities.

They are of what the server sent, in the order in which it left. Ranks are what it was told: of
urgencies, buckets and strict priorities the more important one; a tree has no rank.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from h3sim.signals import BucketPriority, Eps, Rank, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.signals import Signal
    from h3sim.trace import Trace


class Sent(NamedTuple):
    """Bytes of one stream that left the server."""

    at_ns: int
    stream_id: int
    n_bytes: int


def sent_bytes(trace: Trace) -> list[Sent]:
    """Return what left the server, in that order; what was sent again counts again."""
    return [Sent(row[0], row[2], row[4]) for row in trace.packet_rows]


def interleaving(order: Sequence[int]) -> Fraction | None:
    """Return 1 less the sum of squared run lengths over the square of all: 0 is one after another.

    *order* is the stream of each packet as sent. Round robin of n packets comes to 1 - 1/n.

    >>> interleaving([0, 0, 4, 4]), interleaving([0, 4, 0, 4])
    (Fraction(1, 2), Fraction(3, 4))
    """
    if not order:
        return None
    runs = [sum(1 for _ in run) for _, run in groupby(order)]
    return 1 - Fraction(sum(n * n for n in runs), len(order) ** 2)


def streams_in_flight(sent: Sequence[Sent], window_ns: int) -> Fraction | None:
    """Return how many streams there are, on average, among what was sent within *window_ns*.

    It is looked at with each packet: how many streams have one in the window that ends with it.

    >>> streams_in_flight([Sent(0, 0, 9), Sent(1, 4, 9), Sent(5, 4, 9)], 2)
    Fraction(4, 3)
    """
    if not sent:
        return None
    inside: Counter[int] = Counter()
    oldest = total = 0
    for row in sent:
        inside[row.stream_id] += 1
        # The window is open at its old end, so that windows side by side share no packet.
        while sent[oldest].at_ns <= row.at_ns - window_ns:
            gone = sent[oldest].stream_id
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            oldest += 1
        total += len(inside)
    return Fraction(total, len(sent))


def fairness(
    sent: Iterable[Sent], spans: Mapping[int, tuple[int, int]], window_ns: int
) -> Fraction | None:
    """Return Jain's index of the streams that could send, in windows of *window_ns*.

    *spans* says from when to when each stream had something to send. A window counts for the
    streams that had so all the time, where there are two at least; the result is the mean over
    windows: 1 if each got the same, 1/n if one of n got all.

    >>> both = {0: (0, 4), 4: (0, 4)}
    >>> fairness([Sent(0, 0, 9), Sent(1, 4, 9), Sent(2, 4, 9), Sent(3, 4, 9)], both, 2)
    Fraction(3, 4)
    """
    got: dict[int, Counter[int]] = {}
    for row in sent:
        got.setdefault(row.at_ns // window_ns, Counter())[row.stream_id] += row.n_bytes
    found: list[Fraction] = []
    for number, shares in sorted(got.items()):
        begin, end = number * window_ns, (number + 1) * window_ns
        # All the window through: a stream that came late got less, and was not treated unfairly.
        ready = [s for s, (start, stop) in spans.items() if start <= begin and end <= stop]
        n_bytes = sum(shares[stream_id] for stream_id in ready)
        if len(ready) > 1 and n_bytes:
            squares = sum(shares[stream_id] ** 2 for stream_id in ready)
            found.append(Fraction(n_bytes**2, len(ready) * squares))
    return sum(found, Fraction(0)) / len(found) if found else None


def rank_of(signal: Signal) -> tuple[int, ...] | None:
    """Return the place of a signal in strict order, lower first; None for a place in a tree.

    >>> rank_of(Eps(urgency=1)), rank_of(BucketPriority(bucket=63, level=1))
    ((1,), (-63,))
    """
    match signal:
        case Eps():
            return (signal.urgency,)
        case BucketPriority():
            return (-signal.bucket,)
        case Rank():
            return (signal.value,)
        case StrictPriority() if signal.depends_on is None:
            return (-signal.strict,)
        case _:
            return None


def inversion_bytes(
    sent: Iterable[Sent],
    spans: Mapping[int, tuple[int, int]],
    signals: Iterable[tuple[int, int, Signal]],
) -> int | None:
    """Return how many bytes were sent while a more important stream had something to send.

    *signals* are (told at, stream, signal), in that order. None where the server was told of no
    rank. Streams of which it was told none are left out.

    >>> told = [(0, 0, Eps(urgency=3)), (0, 4, Eps(urgency=1))]
    >>> inversion_bytes([Sent(1, 0, 9), Sent(2, 4, 9)], {0: (0, 2), 4: (0, 3)}, told)
    9
    """
    changes = [(at_ns, stream_id, rank_of(signal)) for at_ns, stream_id, signal in signals]
    if not any(rank is not None and stream_id >= 0 for _, stream_id, rank in changes):
        return None
    ranks: dict[int, tuple[int, ...]] = {}
    n_applied = inverted = 0
    # A packet leaves after all that the server is told at its instant.
    for row in sent:
        while n_applied < len(changes) and changes[n_applied][0] <= row.at_ns:
            _, stream_id, rank = changes[n_applied]
            if rank is not None:
                ranks[stream_id] = rank
            n_applied += 1
        mine = ranks.get(row.stream_id)
        if mine is not None and any(
            rank < mine
            for stream_id, rank in ranks.items()
            if stream_id in spans and spans[stream_id][0] <= row.at_ns < spans[stream_id][1]
        ):
            inverted += row.n_bytes
    return inverted


def reprioritization_delays_ns(
    sent: Sequence[Sent], signals: Iterable[tuple[int, int, Signal]]
) -> list[int]:
    """Return, for each raise of an open stream, how long until its next packet left.

    A raise is a signal of a lower rank than the one before; where nothing of the stream was left,
    it is not counted.

    >>> told = [(0, 4, Eps(urgency=3)), (5, 4, Eps(urgency=1))]
    >>> reprioritization_delays_ns([Sent(1, 4, 9), Sent(9, 4, 9)], told)
    [4]
    """
    times: dict[int, list[int]] = {}
    for row in sent:
        times.setdefault(row.stream_id, []).append(row.at_ns)
    ranks: dict[int, tuple[int, ...]] = {}
    found = []
    for at_ns, stream_id, signal in signals:
        rank, before = rank_of(signal), ranks.get(stream_id)
        if rank is None:
            continue
        ranks[stream_id] = rank
        if before is not None and rank < before:
            after = next((time for time in times.get(stream_id, ()) if time >= at_ns), None)
            if after is not None:
                found.append(after - at_ns)
    return found


def slope(values: Sequence[int | Fraction]) -> Fraction | None:
    """Return how much *values* rise from one to the next, by least squares; None of fewer than 2.

    Of the times to first byte in the order of requests it is Koshiba's measure (2016): without
    priorities it rises, with a tree that shares it stays flat.

    >>> slope([10, 20, 30]), slope([5, 5])
    (Fraction(10, 1), Fraction(0, 1))
    """
    n = len(values)
    if n < 2:
        return None
    # With indexes centred, twice over, all stays whole.
    centred = [2 * index - (n - 1) for index in range(n)]
    squares = sum(index * index for index in centred)
    return Fraction(2 * sum(i * value for i, value in zip(centred, values, strict=True)), squares)

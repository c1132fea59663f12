"""Metrics of multiplexing, and of the effect of priorities.

They describe what the server sent, in the order in which it left. Ranks follow from the signals
that the server received: the more important urgency, bucket or strict priority has the lower rank;
a tree has no ranks.
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
    """Return the data that left the server, in that order; retransmissions count again."""
    return [Sent(row[0], row[2], row[4]) for row in trace.packet_rows]


def interleaving(order: Sequence[int]) -> Fraction | None:
    """Return 1 minus the sum of squared run lengths over the square of all: 0 is sequential.

    *order* is the stream of each packet as sent. Round robin of n packets yields 1 - 1/n.

    >>> interleaving([0, 0, 4, 4]), interleaving([0, 4, 0, 4])
    (Fraction(1, 2), Fraction(3, 4))
    """
    if not order:
        return None
    runs = [sum(1 for _ in run) for _, run in groupby(order)]
    return 1 - Fraction(sum(n * n for n in runs), len(order) ** 2)


def streams_in_flight(sent: Sequence[Sent], window_ns: int) -> Fraction | None:
    """Return the mean number of streams among the packets sent within *window_ns*.

    It is sampled at each packet: the streams with a packet in the window that ends with it.

    >>> streams_in_flight([Sent(0, 0, 9), Sent(1, 4, 9), Sent(5, 4, 9)], 2)
    Fraction(4, 3)
    """
    if not sent:
        return None
    packets_by_stream: Counter[int] = Counter()  # in the window that ends with the current packet
    oldest = total = 0
    for row in sent:
        packets_by_stream[row.stream_id] += 1
        # The window excludes its start, so that adjacent windows share no packet.
        while sent[oldest].at_ns <= row.at_ns - window_ns:
            stream_id = sent[oldest].stream_id
            packets_by_stream[stream_id] -= 1
            if not packets_by_stream[stream_id]:
                del packets_by_stream[stream_id]
            oldest += 1
        total += len(packets_by_stream)
    return Fraction(total, len(sent))


def fairness(
    sent: Iterable[Sent], spans: Mapping[int, tuple[int, int]], window_ns: int
) -> Fraction | None:
    """Return Jain's index of the streams that could send, in windows of *window_ns*.

    *spans* holds the start and end of the time in which each stream had data to send. A window
    counts the streams that had data throughout it, if there are at least two; the result is the
    mean over windows: 1 if all got the same, 1/n if one of n got everything.

    >>> both = {0: (0, 4), 4: (0, 4)}
    >>> fairness([Sent(0, 0, 9), Sent(1, 4, 9), Sent(2, 4, 9), Sent(3, 4, 9)], both, 2)
    Fraction(3, 4)
    """
    bytes_by_window: dict[int, Counter[int]] = {}
    for row in sent:
        bytes_by_stream = bytes_by_window.setdefault(row.at_ns // window_ns, Counter())
        bytes_by_stream[row.stream_id] += row.n_bytes
    indexes: list[Fraction] = []
    for number, bytes_by_stream in sorted(bytes_by_window.items()):
        begin, end = number * window_ns, (number + 1) * window_ns
        # A stream that had data during a part of the window got less, but not unfairly so.
        ready = [s for s, (start, stop) in spans.items() if start <= begin and end <= stop]
        n_bytes = sum(bytes_by_stream[stream_id] for stream_id in ready)
        if len(ready) > 1 and n_bytes:
            squares = sum(bytes_by_stream[stream_id] ** 2 for stream_id in ready)
            indexes.append(Fraction(n_bytes**2, len(ready) * squares))
    return sum(indexes, Fraction(0)) / len(indexes) if indexes else None


def rank_of(signal: Signal) -> tuple[int, ...] | None:
    """Return the rank of a signal, comparable with those of its kind: the lowest is sent first.

    None for a tree, in which streams share bandwidth and have no order.

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
    """Return how many bytes were sent while a more important stream had data to send.

    *spans* holds the start and end of the time in which each stream had data to send; *signals* are
    (received at, stream, signal) in order of time. Streams without a rank are left out; None if
    there are no others.

    >>> signals = [(0, 0, Eps(urgency=3)), (0, 4, Eps(urgency=1))]
    >>> inversion_bytes([Sent(1, 0, 9), Sent(2, 4, 9)], {0: (0, 2), 4: (0, 3)}, signals)
    9
    """
    changes = [(at_ns, stream_id, rank_of(signal)) for at_ns, stream_id, signal in signals]
    # Negative ids are those of placeholders.
    if not any(rank is not None and stream_id >= 0 for _, stream_id, rank in changes):
        return None
    ranks: dict[int, tuple[int, ...]] = {}
    n_applied = inverted = 0
    for row in sent:
        # A packet leaves after all signals that the server receives at the same instant.
        while n_applied < len(changes):
            at_ns, stream_id, rank = changes[n_applied]
            if at_ns > row.at_ns:
                break
            if rank is not None:
                ranks[stream_id] = rank
            n_applied += 1
        rank_of_sent = ranks.get(row.stream_id)
        if rank_of_sent is None:
            continue
        for stream_id, rank in ranks.items():
            start_ns, end_ns = spans.get(stream_id, (0, 0))
            if rank < rank_of_sent and start_ns <= row.at_ns < end_ns:
                inverted += row.n_bytes
                break
    return inverted


def reprioritization_delays_ns(
    sent: Sequence[Sent], signals: Iterable[tuple[int, int, Signal]]
) -> list[int]:
    """Return the time from each raise of a stream's priority to the next packet of the stream.

    A raise is a signal with a lower rank than the stream's previous one; it is not counted if the
    stream had nothing left to send. *signals* are (received at, stream, signal) in order of time.

    >>> signals = [(0, 4, Eps(urgency=3)), (5, 4, Eps(urgency=1))]
    >>> reprioritization_delays_ns([Sent(1, 4, 9), Sent(9, 4, 9)], signals)
    [4]
    """
    sent_times: dict[int, list[int]] = {}
    for row in sent:
        sent_times.setdefault(row.stream_id, []).append(row.at_ns)
    ranks: dict[int, tuple[int, ...]] = {}
    delays = []
    for at_ns, stream_id, signal in signals:
        rank, previous = rank_of(signal), ranks.get(stream_id)
        if rank is None:
            continue
        ranks[stream_id] = rank
        if previous is not None and rank < previous:
            next_ns = next((t_ns for t_ns in sent_times.get(stream_id, ()) if t_ns >= at_ns), None)
            if next_ns is not None:
                delays.append(next_ns - at_ns)
    return delays


def slope(values: Sequence[int | Fraction]) -> Fraction | None:
    """Return the least-squares slope of *values* over their indices; None for fewer than 2.

    Applied to times to first byte in request order, it is Koshiba's metric (2016): without
    priorities it rises, with a tree that shares bandwidth it stays flat.

    >>> slope([10, 20, 30]), slope([5, 5])
    (Fraction(10, 1), Fraction(0, 1))
    """
    n = len(values)
    if n < 2:
        return None
    # Twice the distance of each index from the mean index, which is an integer.
    doubled = [2 * index - (n - 1) for index in range(n)]
    squares = sum(index * index for index in doubled)
    return Fraction(2 * sum(i * value for i, value in zip(doubled, values, strict=True)), squares)

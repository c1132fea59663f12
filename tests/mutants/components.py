"""Other parts of a load that are broken on purpose: server, browser, receiver, ranges, metrics."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from h3sim import metrics
from h3sim.browser import RenderingBrowser, ReplayBrowser, ScheduledRequest
from h3sim.http import StreamSender
from h3sim.load import painting
from h3sim.trace import ConnectionOrder, RecordOrder, StreamOrder
from h3sim.values.ranges import Ranges


class StepOfEight(int):
    """A step between stream ids that leaves out every second one."""


class RepeatingSender(StreamSender):
    """Sends the second packet of each stream twice."""

    def __init__(self, scheduler: Any, *, turn_bytes: int, **options: Any) -> None:
        super().__init__(scheduler, turn_bytes=turn_bytes, **options)
        self._repeat: Any = None

    def take(self) -> Any:  # type: ignore[override]
        chunk, self._repeat = self._repeat, None
        if chunk is None:
            chunk = super().take()
            if chunk is not None and chunk[1] == 1400:
                self._repeat = chunk
        return chunk


class GenerousSender(StreamSender):
    """Puts two turns into a packet."""

    def __init__(self, scheduler: Any, *, turn_bytes: int, **options: Any) -> None:
        super().__init__(scheduler, turn_bytes=2 * turn_bytes, **options)


class BackwardSender(StreamSender):
    """Sends the second of two chunks first."""

    def __init__(self, scheduler: Any, *, turn_bytes: int, **options: Any) -> None:
        super().__init__(scheduler, turn_bytes=turn_bytes, **options)
        self._held: Any = None

    def take(self) -> Any:  # type: ignore[override]
        if self._held is not None:
            held, self._held = self._held, None
            return held
        first, second = super().take(), super().take()
        if second is None:
            return first
        self._held = first
        return second


class LastInFirstOutSender(StreamSender):
    """Takes from the wrong end of its send buffer."""

    def take(self) -> Any:  # type: ignore[override]
        self._buffer._chunks.rotate(1)
        return super().take()


class DoubleChargingSender(StreamSender):
    """Charges each turn twice."""

    def __init__(self, scheduler: Any, *, turn_bytes: int, **options: Any) -> None:
        charge = scheduler.charge

        def charge_twice(stream_id: int, n_bytes: int) -> None:
            charge(stream_id, n_bytes)
            charge(stream_id, n_bytes)

        scheduler.charge = charge_twice
        super().__init__(scheduler, turn_bytes=turn_bytes, **options)


class EagerBrowser(ReplayBrowser):
    """Asks at the trigger, whatever the delay."""

    def on_delivered(self, resource: Any, contiguous_bytes: int, now_ns: int) -> list[Any]:
        due = super().on_delivered(resource, contiguous_bytes, now_ns)
        return [ScheduledRequest(now_ns, child) for _, child in due]


class TwoThreads(RenderingBrowser):
    """Lets the next task begin a millisecond before the one before it ends."""

    def __init__(self, page: Any, model: Any, tight_mode: Any) -> None:
        super().__init__(page, model, tight_mode)
        end = self._record.end
        self._record.end = lambda index, now_ns: end(index, now_ns + 1_000_000)  # type: ignore[method-assign]


class EagerScripts(RenderingBrowser):
    """Runs a script as soon as the parser comes upon it, there or not."""

    def _run_in_order(self, position: Any, after: Any, now_ns: int) -> bool:
        self._main_thread.start(self._script_task(position, after, now_ns), now_ns)
        return True


class HastyLoadEvent(RenderingBrowser):
    """Says that all is loaded when the document is."""

    def _end(self, now_ns: int) -> Any:
        n_open, self._requests.__class__.n_open = self._requests.__class__.n_open, 0  # type: ignore[assignment, method-assign]
        try:
            return super()._end(now_ns)
        finally:
            self._requests.__class__.n_open = n_open  # type: ignore[method-assign]


class UnstyledPaint(RenderingBrowser):
    """Paints as soon as the head is parsed, with whatever styles there are."""

    def __init__(self, page: Any, model: Any, tight_mode: Any) -> None:
        super().__init__(page, model, tight_mode)
        self._renderer.styles.blocking = list  # type: ignore[method-assign]


_critical_path = metrics.critical_path


def path_without_waiting(activities: Any, latency_ns: int, *, to: Any) -> list[Any]:
    """Forgets what went by between two steps."""
    steps = _critical_path(activities, latency_ns, to=to)  # type: ignore[arg-type]
    return [step._replace(blocking_ns=0, bandwidth_ns=0) for step in steps]


class ImpatientConnection(ConnectionOrder):
    """Delivers what has arrived, holes or not."""

    def on_packet(
        self, row: Any, stream_id: int, offset: Any, n_bytes: int, now_ns: int
    ) -> list[Any]:
        self.delivered_at_ns[row] = now_ns
        return [(stream_id, offset + n_bytes)]


class NotesArrivals(StreamOrder):
    """Delivers in order, and writes down that all was delivered when it arrived."""

    def __init__(self, delivered_at_ns: int) -> None:
        super().__init__([None] * 10_000)
        self._arrivals = delivered_at_ns

    def on_packet(self, row: Any, stream_id: int, offset: Any, n_bytes: int, now_ns: int) -> Any:
        self._arrivals[row] = now_ns
        return super().on_packet(row, stream_id, offset, n_bytes, now_ns)


class IgnoresRecords(RecordOrder):
    """Delivers by record, and writes down that all was delivered when it arrived."""

    def __init__(self, delivered_at_ns: int) -> None:
        super().__init__([None] * 10_000)
        self._arrivals = delivered_at_ns
        self._newest_ns = 0

    def on_row(self, row: Any, stream_id: int, offset: Any, n_bytes: int) -> None:
        super().on_row(row, stream_id, offset, n_bytes)
        self._arrivals[row] = self._newest_ns

    def on_frame(self, stream_id: int, offset: Any, n_bytes: int, now_ns: int) -> Any:
        self._newest_ns = now_ns
        return super().on_frame(stream_id, offset, n_bytes, now_ns)


class UntidyRanges(Ranges):
    """Counts bytes as new that are known."""

    def add(self, start: Any, stop: Any) -> Any:
        super().add(start, stop)
        return stop - start


class SplitRanges(Ranges):
    """Keeps spans apart that touch."""

    def spans(self) -> list[Any]:
        return [half for a, b in super().spans() for half in ((a, a + 1), (a + 1, b))]


_hol_blocking = metrics.hol_blocking
_byte_index_ns = metrics.byte_index_ns


def hol_of_streams_alone(trace: Any) -> Any:
    """Forgets that one order over the connection waits."""
    return _hol_blocking(trace)._replace(connection_bytes=0, connection_delay_ns=0)


def hol_of_all(trace: Any) -> Any:
    """Lets every packet wait, even where nothing is missing."""
    n_bytes = sum(row[4] for row in trace.packet_rows)
    return metrics.HolBlocking(n_bytes, 1, n_bytes, 1)


def byte_index_sampled_before(
    finished: Any, *, origin_ns: int = 0, sample_ns: int | None = None
) -> Any:
    """Counts what completes between two samples at the first of them."""
    index = _byte_index_ns(finished, origin_ns=origin_ns, sample_ns=sample_ns)
    return index if sample_ns is None or index is None else index - sample_ns


def lower_bound_with_empty_packets(responses: Any, *, interval_ns: int, delay_ns: int = 0) -> Any:
    """Lets every response take a packet more than it does."""
    return metrics.lower_bounds.lower_bound_ns(
        [job._replace(n_packets=job.n_packets + 1) for job in responses],
        interval_ns=Fraction(interval_ns),
        delay_ns=delay_ns,
    )


def stacks_of_one(trace: Any) -> dict[int, int]:
    """Counts stacks as if each held one packet."""
    return {1: len(set(trace.delivered_at_ns))}


_painted_share = painting.painted_share
_updates = painting.updates


def share_counted_twice(image_format: Any, n_bytes: int, of_bytes: int) -> Fraction:
    """Takes twice as much for painted."""
    return 2 * _painted_share(image_format, n_bytes, of_bytes)


def share_of_the_next_packet(image_format: Any, n_bytes: int, of_bytes: int) -> Fraction:
    """Paints a packet ahead."""
    return _painted_share(image_format, min(n_bytes + 1400, of_bytes - 1), of_bytes)


def endless_updates(arrivals: Any, every_ns: int, until_ns: int) -> Any:
    """Paints a complete image once more as incomplete."""
    yield from _updates(arrivals, every_ns, until_ns)
    yield until_ns + 10**9, arrivals[-1][1] - 1

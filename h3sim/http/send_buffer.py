"""The send buffer between scheduler and transport, and thresholds of sent bytes."""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal
    from h3sim.transport.endpoint import FrameHeader


class SendBufferRefill(enum.Enum):
    """When a send buffer takes something in."""

    CONTINUOUS = "continuous"
    """As soon as a turn fits: whatever leaves makes room."""
    WHEN_EMPTY = "when-empty"
    """Once it is empty and something may leave: it is filled with what waits then, and with nothing
    more until that has left.

    Under this reading the means of Marx 2019, Table 2, move with the buffer as the paper's do
    (`make validate-send-buffer`)."""


class SendBuffer:
    """Holds chunks (stream, offset, bytes), first in, first out, up to *limit_bytes* of them.

    >>> buffer = SendBuffer(1000)
    >>> buffer.put((0, 0, 700)); buffer.has_room(301), buffer.take(500), buffer.take(500)
    (False, (0, 0, 500), (0, 500, 200))
    """

    __slots__ = ("_chunks", "_limit_bytes", "_n_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._chunks: deque[tuple[int, int, int]] = deque()
        self._n_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def has_room(self, n_bytes: int) -> bool:
        """Return whether so many bytes more fit; an empty buffer takes any."""
        return not self._chunks or self._n_bytes + n_bytes <= self._limit_bytes

    def put(self, chunk: tuple[int, int, int]) -> None:
        """Append a chunk."""
        self._chunks.append(chunk)
        self._n_bytes += chunk[2]

    def take(
        self, max_bytes: int | None, header: FrameHeader | None = None, least: int = 0
    ) -> tuple[int, int, int] | None:
        """Return the first chunk, or as much of it as goes; what is left of it stays first.

        That is *max_bytes*, less what *header* says. None where there is no chunk, or fewer than
        *least* bytes would go.
        """
        if not self._chunks:
            return None
        stream_id, offset, n_bytes = self._chunks[0]
        if header is not None and max_bytes is not None:
            max_bytes -= header.measure(stream_id, offset)
            if max_bytes < least:
                return None
        self._chunks.popleft()
        if max_bytes is not None and n_bytes > max_bytes:
            self._chunks.appendleft((stream_id, offset + max_bytes, n_bytes - max_bytes))
            n_bytes = max_bytes
        self._n_bytes -= n_bytes
        return stream_id, offset, n_bytes


class ByteThresholds:
    """A scheduler that counts what each stream was charged for, and calls at marks.

    Only loads in which there are marks have one: counting costs something with every packet.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.signals import H2Priority
    >>> passed = []
    >>> marks = ByteThresholds().around(FifoScheduler())
    >>> marks.open(0, H2Priority()); marks.activate(0)
    >>> marks.watch(0, 2000, lambda: passed.append("there"))
    >>> marks.charge(0, 1400); passed
    []
    >>> marks.charge(0, 1400); passed
    ['there']
    """

    def __init__(self) -> None:
        self._given: dict[int, int] = {}
        self._marks: dict[int, list[tuple[int, Callable[[], None]]]] = {}

    def around(self, scheduler: Scheduler) -> ByteThresholds:
        """Follow *scheduler*; return itself, which is told all in its stead."""
        self._scheduler = scheduler
        # Who has one of these is asked for it, so it is there only where the scheduler has it.
        for name in ("requeue", "block", "on_lost"):
            if hasattr(scheduler, name):
                setattr(self, name, getattr(scheduler, name))
        return self

    def watch(self, stream_id: int, n_bytes: int, call: Callable[[], None]) -> None:
        """Call once *n_bytes* of a stream were given out; equal marks in the order made."""
        marks = self._marks.setdefault(stream_id, [])
        marks.append((n_bytes, call))
        # By the number alone: calls have no order, and the sort leaves equal marks as they were
        # made.
        marks.sort(key=lambda mark: mark[0])

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up a stream."""
        self._scheduler.open(stream_id, signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal by *signal*."""
        self._scheduler.update(stream_id, signal)

    def activate(self, stream_id: int) -> None:
        """Activate a stream."""
        self._scheduler.activate(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate it."""
        self._scheduler.deactivate(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget it, with its marks."""
        self._scheduler.close(stream_id)
        self._marks.pop(stream_id, None)
        self._given.pop(stream_id, None)

    def pick(self) -> int | None:
        """Return who sends next."""
        return self._scheduler.pick()

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Count what was sent, and call at the marks that it passed."""
        # Before the marks: what they change must find the turn paid for.
        self._scheduler.charge(stream_id, n_bytes)
        marks = self._marks.get(stream_id)
        if marks:
            given = self._given[stream_id] = self._given.get(stream_id, 0) + n_bytes
            while marks and marks[0][0] <= given:
                marks.pop(0)[1]()

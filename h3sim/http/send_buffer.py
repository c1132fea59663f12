"""The send buffer between scheduler and transport, and thresholds of sent bytes."""

from __future__ import annotations

import enum
from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal
    from h3sim.transport.endpoint import FrameHeader


class SendBufferRefill(enum.Enum):
    """The time at which a send buffer takes data from the scheduler."""

    CONTINUOUS = "continuous"
    """As soon as a quantum fits: whatever leaves makes room."""
    WHEN_EMPTY = "when-empty"
    """Once it is empty and something may leave: it takes the data waiting then, and nothing more
    until that has left.

    Under this reading the means of Marx 2019, Table 2, move with the buffer as the paper's do
    (`make validate-send-buffer`)."""


class SendBuffer:
    """A FIFO of chunks (stream, offset, bytes), up to *limit_bytes* in all.

    >>> buffer = SendBuffer(1000)
    >>> buffer.put((0, 0, 700)); buffer.has_room(301), buffer.take(500), buffer.take(500)
    (False, (0, 0, 500), (0, 500, 200))
    """

    __slots__ = ("_chunks", "_limit_bytes", "n_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._chunks: deque[tuple[int, int, int]] = deque()
        self.n_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def has_room(self, n_bytes: int) -> bool:
        """Return whether *n_bytes* more fit; an empty buffer takes any."""
        return not self._chunks or self.n_bytes + n_bytes <= self._limit_bytes

    def put(self, chunk: tuple[int, int, int]) -> None:
        """Append a chunk."""
        _, _, n_bytes = chunk
        self._chunks.append(chunk)
        self.n_bytes += n_bytes

    def take(
        self, max_bytes: int | None, header: FrameHeader | None = None, min_bytes: int = 0
    ) -> tuple[int, int, int] | None:
        """Return the first chunk, or the part of it that fits; the remainder stays first.

        The limit is *max_bytes* less the length of *header*. None without a chunk, or if fewer
        than *min_bytes* would fit.
        """
        if not self._chunks:
            return None
        stream_id, offset, n_bytes = self._chunks[0]
        if header is not None and max_bytes is not None:
            max_bytes -= header.measure(stream_id, offset)
            if max_bytes < min_bytes:
                return None
        self._chunks.popleft()
        if max_bytes is not None and n_bytes > max_bytes:
            self._chunks.appendleft((stream_id, offset + max_bytes, n_bytes - max_bytes))
            n_bytes = max_bytes
        self.n_bytes -= n_bytes
        return stream_id, offset, n_bytes


class ByteThresholds:
    """A scheduler proxy that counts the bytes charged to each stream, and calls back at thresholds.

    Only loads with thresholds use it: counting costs time with every packet.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.signals import H2Priority
    >>> passed = []
    >>> scheduler = ByteThresholds().around(FifoScheduler())
    >>> scheduler.open(0, H2Priority()); scheduler.activate(0)
    >>> scheduler.watch(0, 2000, lambda: passed.append("there"))
    >>> scheduler.charge(0, 1400); passed
    []
    >>> scheduler.charge(0, 1400); passed
    ['there']
    """

    def __init__(self) -> None:
        self._sent_bytes: dict[int, int] = {}
        self._callbacks: dict[int, list[tuple[int, Callable[[], None]]]] = {}
        """The thresholds ahead of each stream, the lowest first, with their callbacks."""

    def around(self, scheduler: Scheduler) -> ByteThresholds:
        """Wrap *scheduler*, and return the proxy."""
        self._scheduler = scheduler
        # Optional methods: present only if the scheduler has them, since callers check for them.
        for name in ("requeue", "block", "on_lost"):
            if hasattr(scheduler, name):
                setattr(self, name, getattr(scheduler, name))
        return self

    def watch(self, stream_id: int, n_bytes: int, call: Callable[[], None]) -> None:
        """Register a callback after *n_bytes* of a stream; equal ones in order of registration."""
        callbacks = self._callbacks.setdefault(stream_id, [])
        callbacks.append((n_bytes, call))
        # By the number alone: callbacks have no order, and a stable sort keeps that of equal ones.
        callbacks.sort(key=itemgetter(0))

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open a stream."""
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
        """Close it, and drop its callbacks."""
        self._scheduler.close(stream_id)
        self._callbacks.pop(stream_id, None)
        self._sent_bytes.pop(stream_id, None)

    def pick(self) -> int | None:
        """Return the stream to send next."""
        return self._scheduler.pick()

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Count bytes that were sent, and run the callbacks of thresholds that they reach."""
        # Before the callbacks, whose changes must find the quantum charged.
        self._scheduler.charge(stream_id, n_bytes)
        callbacks = self._callbacks.get(stream_id)
        if callbacks:
            sent_bytes = self._sent_bytes[stream_id] = self._sent_bytes.get(stream_id, 0) + n_bytes
            while callbacks:
                threshold_bytes, call = callbacks[0]
                if threshold_bytes > sent_bytes:
                    break
                del callbacks[0]
                call()

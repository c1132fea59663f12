"""What is left to send of one stream."""

from __future__ import annotations

from bisect import insort

from h3sim.ranges import Ranges

__all__ = ["OutgoingStream"]


class OutgoingStream:
    """A stream of *size* bytes, of which the peer takes *limit* as yet."""

    __slots__ = (
        "_acked",
        "acked_to",
        "has_ended",
        "is_active",
        "limit",
        "lost",
        "next",
        "size",
        "stop",
    )

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.next = 0
        """The first byte that was never given out."""
        self.has_ended = False
        """Whether its end was given out."""
        self.limit = limit
        self.stop = size if size < limit else limit
        """Up to where it may go as yet; asked for with each packet, so kept."""
        self.lost: list[tuple[int, int]] = []
        """What was given out and must go again, lowest first."""
        self.acked_to = 0
        """Up to where the peer has all bytes."""
        self._acked: Ranges | None = None
        """What the peer has, as long as that has holes."""
        self.is_active = False
        """Whether it takes part in the scheduler."""

    def raise_limit(self, limit: int) -> None:
        """Take up to *limit* from now on."""
        self.limit = limit
        self.stop = self.size if self.size < limit else limit

    def grow(self, n_bytes: int) -> None:
        """Note that *n_bytes* more are to be sent."""
        self.size += n_bytes
        self.raise_limit(self.limit)

    def has_new(self) -> bool:
        """Return whether it has bytes that were never given out and may be, or its end."""
        # The end alone is something to send, too, and needs no credit of flow control.
        return not self.has_ended and (self.next < self.limit or self.next == self.size)

    def next_span(self) -> tuple[int, int]:
        """Return where its next bytes begin, and where those that follow on them end."""
        return self.lost[0] if self.lost else (self.next, self.size)

    def ack(self, offset: int, n_bytes: int) -> bool:
        """Record that the peer has these bytes for good; return whether it has all now."""
        stop = offset + n_bytes
        acked = self._acked
        if acked is None and offset == self.acked_to:
            # Ranges are for holes: nearly all acknowledgements are the next bytes, and cost a
            # comparison.
            self.acked_to = stop
            return stop >= self.size and self.has_ended
        if stop > self.acked_to:
            if acked is None:
                acked = self._acked = Ranges()
                acked.add(0, self.acked_to)
            acked.add(offset, stop)
            self.acked_to = acked.contiguous
            if self.acked_to == acked.end:
                self._acked = None
        return self.has_ended and self.acked_to >= self.size

    def lose(self, offset: int, n_bytes: int) -> None:
        """Take back these bytes, as far as the peer has not got them after all."""
        # Nothing but the end was lost: without bytes no span stands for it.
        if not n_bytes and not self.size:
            self.has_ended = False
        for span in self.missing(offset, offset + n_bytes):
            insort(self.lost, span)

    def take_lost(self, max_bytes: int) -> tuple[int, int]:
        """Return the first of what must go again, up to *max_bytes*: an offset and a length."""
        start, stop = self.lost[0]
        if stop - start > max_bytes:
            self.lost[0] = (start + max_bytes, stop)
            return start, max_bytes
        del self.lost[0]
        return start, stop - start

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return what is left of a span without what was acknowledged, or waits to go again.

        >>> stream = OutgoingStream(100, 100)
        >>> stream.lost = [(20, 30)]
        >>> stream.missing(10, 40)
        [(10, 20), (30, 40)]
        """
        done = [(0, self.acked_to)] if self._acked is None else self._acked.spans()
        left = []
        for a, b in sorted([*done, *self.lost]):
            if b <= start:
                continue
            if a >= stop:
                break
            if a > start:
                left.append((start, a))
            start = b
        if start < stop:
            left.append((start, stop))
        return left

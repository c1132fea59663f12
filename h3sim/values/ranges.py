"""Byte ranges: which bytes of a stream have arrived, without a byte of content.

>>> received = Ranges()
>>> received.add(0, 10), received.add(20, 30), received.add(5, 20)
(10, 10, 10)
>>> received.spans(), received.contiguous
([(0, 30)], 30)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Ranges:
    """A growing set of byte offsets, kept as sorted spans that neither touch nor overlap."""

    __slots__ = ("_starts", "_stops")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def add(self, start: int, stop: int) -> int:
        """Add the bytes from *start* up to, but without, *stop*; return how many were new.

        Raises:
            ValueError: if the range runs backwards or starts below zero.
        """
        if not 0 <= start <= stop:
            raise ValueError(f"not a byte range: [{start}, {stop})")
        if start == stop:
            return 0
        starts, stops = self._starts, self._stops
        if stops and start >= stops[-1]:  # in order, the common case: no search is needed
            if start == stops[-1]:
                stops[-1] = stop
            else:
                starts.append(start)
                stops.append(stop)
            return stop - start
        # The spans from *first* up to *end* overlap or touch the new one (hence bisect_left in the
        # stops and bisect_right in the starts), and are merged with it.
        first = bisect_left(stops, start)
        end = bisect_right(starts, stop)
        if first == end:
            starts.insert(first, start)
            stops.insert(first, stop)
            return stop - start
        known = 0
        for index in range(first, end):
            low, high = starts[index], stops[index]
            # Without min() and max(): calling them takes several times as long, for each packet.
            known += (high if high < stop else stop) - (low if low > start else start)
        starts[first:end] = [min(start, starts[first])]
        stops[first:end] = [max(stop, stops[end - 1])]
        return stop - start - known

    @property
    def contiguous(self) -> int:
        """The number of contiguous bytes from offset 0."""
        return self._stops[0] if self._starts and self._starts[0] == 0 else 0

    @property
    def end(self) -> int:
        """The offset after the last byte in the set; 0 if it is empty."""
        return self._stops[-1] if self._stops else 0

    def last_spans(self, most: int) -> tuple[tuple[int, int], ...]:
        """Return at most *most* of the highest spans, highest first, as (first, last) inclusive.

        >>> received = Ranges()
        >>> received.add(0, 3), received.add(5, 6)
        (3, 1)
        >>> received.last_spans(8)
        ((5, 5), (0, 2))
        """
        starts, stops = self._starts, self._stops
        if len(starts) == 1:  # the common case, for each acknowledgement
            return ((starts[0], stops[0] - 1),)
        return tuple(
            (starts[index], stops[index] - 1)
            for index in range(len(starts) - 1, max(-1, len(starts) - 1 - most), -1)
        )

    def spans(self) -> list[tuple[int, int]]:
        """Return the spans in rising order, each as (start, stop)."""
        return list(zip(self._starts, self._stops, strict=True))

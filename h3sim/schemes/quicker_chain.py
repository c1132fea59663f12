"""The chain of dfifo, as the code of Marx 2019 keeps it (Quicker)."""

from __future__ import annotations

__all__ = ["QuickerChain"]


class QuickerChain:
    """The one chain of a tree, and the stream that each class takes for its last (Quicker).

    When the last stream of a class leaves the tree, its parent takes its place; that may be a
    stream of a higher class. What is requested next in the class then goes right below that one,
    and so before streams of the higher class that came after it.
    """

    def __init__(self) -> None:
        self._tails: dict[str, int | None] = {}
        self._above: dict[int, int | None] = {}
        self._below: dict[int | None, int | None] = {}

    def append(self, stream_id: int, class_names: list[str]) -> int | None:
        """Put a stream below the last of the first class that has one; return that one."""
        above = None
        for name in class_names:
            above = self._tails.get(name)
            if above is not None:
                break
        # Exclusive: whoever stood below that one now stands below the new stream.
        below = self._below.get(above)
        self._above[stream_id], self._below[stream_id] = above, below
        self._below[above] = stream_id
        if below is not None:
            self._above[below] = stream_id
        self._tails[class_names[0]] = stream_id
        return above

    def neighbours(self, stream_id: int) -> tuple[int | None, int | None]:
        """Return the streams right above and right below one."""
        return self._above[stream_id], self._below.get(stream_id)

    def remove(self, stream_id: int) -> None:
        """Take out a stream, if it stands in the chain."""
        if stream_id not in self._above:
            return
        above, below = self._above.pop(stream_id), self._below.pop(stream_id)
        self._below[above] = below
        if below is not None:
            self._above[below] = above
        # Several classes may have come to the same last stream.
        for name, tail in self._tails.items():
            if tail == stream_id:
                self._tails[name] = above

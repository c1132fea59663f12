"""What happens among the streams of one bucket: the levels of `BucketScheduler`."""

from __future__ import annotations

from typing import Final

from h3sim.compiling import mypyc_attr
from h3sim.schedulers.ordered import OrderedStreams
from h3sim.schedulers.rounds import Rounds

__all__ = ["SEQUENTIAL", "Bucket"]

# The concurrency levels by the numbers that go over the wire, bucket * 4 + level.
SEQUENTIAL: Final = 2
"""The level of streams that go one at a time, and by turns with those that share."""
_EXCLUSIVE: Final = 3
_SHARED: Final = 1


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Bucket:
    """The active streams of one bucket."""

    __slots__ = ("exclusive", "sequential", "shared", "shared_is_next")

    def __init__(self) -> None:
        self.exclusive = OrderedStreams()
        self.sequential = OrderedStreams()
        self.shared = Rounds()
        self.shared_is_next = False

    def first(self) -> int | None:
        """Return who sends next: level 3 before all, then levels 2 and 1 by turns."""
        exclusive = self.exclusive.first
        if exclusive is not None:
            return exclusive
        sequential, shared = self.sequential.first, self.shared.first
        if sequential is None or (self.shared_is_next and shared is not None):
            return shared
        return sequential

    def is_empty(self) -> bool:
        """Return whether no stream of it is active."""
        return self.first() is None

    def join(self, stream_id: int, level: int, arrival: int) -> None:
        """Activate a stream of that level, before all that arrived later."""
        if level == _SHARED:
            self.shared.join(stream_id)
        else:
            queue = self.exclusive if level == _EXCLUSIVE else self.sequential
            queue.put(stream_id, arrival)

    def leave(self, stream_id: int, level: int) -> None:
        """Take a stream of that level out."""
        if level == _SHARED:
            self.shared.leave(stream_id)
        else:
            (self.exclusive if level == _EXCLUSIVE else self.sequential).drop(stream_id)

    def charge(self, stream_id: int, level: int) -> None:
        """End the turn of a stream of that level."""
        # A turn of level 3 leaves the alternation as it was: it goes before both others, and is
        # nobody's share.
        if level == _SHARED:
            self.shared.took_turn(stream_id)
            self.shared_is_next = False
        elif level == SEQUENTIAL:
            self.shared_is_next = True

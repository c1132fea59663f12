"""Slow schedulers that are obviously right, to run beside one that is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.conformance.reference_buckets import ReferenceBuckets
from h3sim.conformance.reference_strict import ReferenceStrict
from h3sim.conformance.reference_tree import ReferenceTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.signals import Signal

__all__ = [
    "ReferenceBuckets",
    "ReferenceOrder",
    "ReferenceRounds",
    "ReferenceStrict",
    "ReferenceTree",
]


class _Listed:
    """What is open with its signal, and what is active."""

    def __init__(self) -> None:
        self._signals: dict[int, Signal] = {}
        self._active: list[int] = []

    @property
    def ids(self) -> list[int]:
        """The ids of all open streams."""
        return list(self._signals)

    @property
    def sending(self) -> list[int]:
        """The ids of the streams that have data."""
        return list(self._active)

    def open(self, stream_id: int, signal: Signal) -> None:
        """Write down what is wanted for the stream."""
        self._signals[stream_id] = signal

    def update(self, stream_id: int, signal: Signal) -> None:
        """Write down what is wanted now."""
        self._signals[stream_id] = signal

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        if stream_id not in self._active:
            self._active.append(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        if stream_id in self._active:
            self._active.remove(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)
        del self._signals[stream_id]


class ReferenceOrder(_Listed):
    """One stream at a time, that of the least *rank(stream_id, signal)*; then that of the least id.

    With the id as the rank this is first in, first out; with the urgency, RFC 9218 for responses
    that are not incremental.

    >>> reference = ReferenceOrder(lambda stream_id, signal: signal)
    >>> for stream_id, signal in ((0, 7), (4, 3)):
    ...     reference.open(stream_id, signal)
    ...     reference.activate(stream_id)
    >>> reference.pick()
    4
    """

    def __init__(self, rank: Callable[[int, Any], Any]) -> None:
        super().__init__()
        self._rank = rank

    def pick(self) -> int | None:
        """Search for the least rank."""
        ranks = [(self._rank(key, self._signals[key]), key) for key in self._active]
        return min(ranks)[1] if ranks else None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Change nothing."""


class ReferenceRounds(_Listed):
    """A turn for each in a round, by id; whoever joins waits for the next round."""

    def __init__(self) -> None:
        super().__init__()
        self._round = 0
        self._rounds: dict[int, int] = {}

    def activate(self, stream_id: int) -> None:
        """Put the stream among those that take turns from the next round on."""
        if stream_id not in self._active:
            self._rounds[stream_id] = self._round + 1
        super().activate(stream_id)

    def pick(self) -> int | None:
        """Search for whose round came first."""
        turns = [(self._rounds[key], key) for key in self._active]
        return min(turns)[1] if turns else None

    def charge(self, stream_id: int, n_bytes: int) -> None:  # noqa: ARG002 - a turn is a turn
        """Move the stream to the next round."""
        self._round = self._rounds[stream_id]
        self._rounds[stream_id] += 1

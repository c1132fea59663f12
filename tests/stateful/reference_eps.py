"""EPS as a list of streams that is searched for each pick."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from h3sim.schedulers import Mixed
from h3sim.signals import Eps


@dataclass
class Stream:
    """A stream; *place* is its place in the queue of those that share, *used* what of its turn."""

    id: int
    wanted: Eps
    is_active: bool = False
    place: int = 0
    round: int = 0
    used: int = 0
    was_charged: bool = False
    is_first_turn: bool = False


class ReferenceEps:
    """Behaves as `h3sim.schedulers.EpsScheduler` says that it does."""

    def __init__(self, mixed: Any, turn: Any) -> None:
        self.mixed, self.turn = mixed, turn
        self.streams: list[Any] = []
        self.places = 0
        self.shared_goes: defaultdict[Any, Any] = defaultdict(bool)

    def open(self, stream_id: int, signal: Any) -> None:
        self.streams.append(Stream(stream_id, self._wanted(signal)))

    def update(self, stream_id: int, signal: Any) -> None:
        stream, wanted = self._stream(stream_id), self._wanted(signal)
        if wanted == stream.wanted:
            return
        was_active = stream.is_active
        self.deactivate(stream_id)
        stream.wanted = wanted
        if was_active:
            self.activate(stream_id)

    def activate(self, stream_id: int) -> None:
        stream = self._stream(stream_id)
        if stream.is_active:
            return
        others = self._level(stream.wanted.urgency)
        stream.round = min(((s.round, s.id) for s in others), default=(0, 0))[0]
        stream.is_active = True
        stream.is_first_turn = stream.wanted.incremental and not stream.was_charged
        self._queue(stream)

    def deactivate(self, stream_id: int) -> None:
        stream = self._stream(stream_id)
        if stream.is_active and stream.used:
            self.shared_goes[stream.wanted.urgency] = not self._shares(stream)
        stream.is_active, stream.used = False, 0

    def close(self, stream_id: int) -> None:
        self.deactivate(stream_id)
        self.streams.remove(self._stream(stream_id))

    def pick(self) -> Any:
        active = [stream for stream in self.streams if stream.is_active]
        if not active:
            return None
        urgency = min(stream.wanted.urgency for stream in active)
        level = self._level(urgency)
        if self.mixed is Mixed.SHARED_LIST:
            return min(level, key=lambda stream: (stream.round, stream.id)).id
        alone = [stream for stream in level if not self._shares(stream)]
        shared = [stream for stream in level if self._shares(stream)]
        is_their_half = self.mixed is Mixed.HALVES and self.shared_goes[urgency]
        if shared and (is_their_half or not alone):
            return min(shared, key=lambda stream: stream.place).id
        return min(stream.id for stream in alone)

    def charge(self, stream_id: int, n_bytes: int) -> None:
        stream = self._stream(stream_id)
        stream.was_charged = True
        in_bytes = self.turn.size_bytes is not None
        stream.used += n_bytes if in_bytes else 1
        turns = stream.used // (self.turn.size_bytes if in_bytes else self.turn.packets)
        # With halves, a turn that goes on leaves the word with its own kind.
        self.shared_goes[stream.wanted.urgency] = self._shares(stream) == (not turns)
        if not turns:
            return
        stream.used = 0
        if stream.wanted.incremental and len(self._level(stream.wanted.urgency)) > 1:
            stream.round += turns
        stream.is_first_turn = False
        self._queue(stream)

    @property
    def ids(self) -> list[Any]:
        """The ids of all open streams."""
        return [stream.id for stream in self.streams]

    @property
    def sending(self) -> list[Any]:
        """The ids of the streams that have data."""
        return [stream.id for stream in self.streams if stream.is_active]

    def _shares(self, stream: Any) -> Any:
        """Say whether the stream takes turns at its urgency, now."""
        if self.mixed is Mixed.ALL_SHARE:
            return True
        if self.mixed is Mixed.FIRST_TURN and stream.is_first_turn:
            return False
        return stream.wanted.incremental

    def _level(self, urgency: Any) -> list[Any]:
        return [s for s in self.streams if s.is_active and s.wanted.urgency == urgency]

    def _stream(self, stream_id: int) -> Any:
        return next(stream for stream in self.streams if stream.id == stream_id)

    def _queue(self, stream: Any) -> None:
        self.places += 1
        stream.place = self.places

    @staticmethod
    def _wanted(signal: Any) -> Any:
        return signal if isinstance(signal, Eps) else Eps()

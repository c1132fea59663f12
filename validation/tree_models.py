"""Servers of HTTP/2 as the model has them: a tree, and when a stream begins and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers import Queueing, TreeRules, TreeScheduler
from h3sim.signals import H2Priority
from validation.http2_frames import FIRST_WINDOW
from validation.tree_scripts import FRAME_BYTES, WARM_UP, Ask, Prioritize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from validation.tree_scripts import Round

__all__ = ["MODELS", "H2oModel", "NghttpdModel", "NodeModel"]


class _Model:
    """Writes DATA frames: (stream, bytes) each, in *data*."""

    queueing: Queueing

    def __init__(self, stream_window: int) -> None:
        self.data: list[tuple[int, int]] = []
        self._stream_window = stream_window
        self._windows: dict[int, int] = {}
        self._tree = TreeScheduler.of_server(self.queueing)
        self._left: dict[int, int] = {}

    def run(self, rounds: Iterable[Round]) -> list[tuple[int, int]]:
        """Return what is sent in a connection, from the warm-up on."""
        self._take(WARM_UP)
        self._end_batch()
        self._burst(FIRST_WINDOW)
        for each in rounds:
            for event in each.events:
                if isinstance(event, Ask):
                    self._take(event)
                elif isinstance(event, Prioritize):
                    self._tree.prioritize(event.stream_id, event.priority)
                else:
                    self._widen(event.stream_id, event.n_bytes)
            self._end_batch()
            self._burst(min(each.window_bytes, self._sendable()))
        return self.data

    def _take(self, ask: Ask) -> None:
        self._tree.open(ask.stream_id, ask.priority or H2Priority())
        self._left[ask.stream_id] = ask.size_bytes
        # The warm-up has to take the whole window of the connection.
        is_first = ask is WARM_UP
        self._windows[ask.stream_id] = ask.size_bytes if is_first else self._stream_window

    def _widen(self, stream_id: int, n_bytes: int) -> None:
        was_shut = not self._windows[stream_id]
        self._windows[stream_id] += n_bytes
        if was_shut and self._left[stream_id]:
            self._tree.activate(stream_id)

    def _sendable(self) -> int:
        return sum(min(left, self._windows[stream_id]) for stream_id, left in self._left.items())

    def _most(self, stream_id: int) -> int:
        """Return how much of a stream may go in a frame."""
        return min(FRAME_BYTES, self._left[stream_id], self._windows[stream_id])

    def _end_batch(self) -> None:
        """Note that all that was sent at once has been read."""

    def _burst(self, window_bytes: int) -> None:
        """Send as much as the window lets, which may be carried on from the last time."""
        raise NotImplementedError

    def _send(self, stream_id: int, n_bytes: int) -> bool:
        """Send a frame; return whether the stream has ended."""
        self.data.append((stream_id, n_bytes))
        self._tree.charge(stream_id, n_bytes)
        self._left[stream_id] -= n_bytes
        self._windows[stream_id] -= n_bytes
        if not self._left[stream_id]:
            self._tree.deactivate(stream_id)
            return True
        if not self._windows[stream_id]:
            self._tree.block(stream_id)
        return False


class NghttpdModel(_Model):
    """A body begins once its batch was read, a stream closes with its last frame."""

    queueing = Queueing.NGHTTP2
    _window = 0

    def __init__(self, stream_window: int) -> None:
        super().__init__(stream_window)
        self._beginning: list[int] = []

    def _take(self, ask: Ask) -> None:
        super()._take(ask)
        self._beginning.append(ask.stream_id)

    def _end_batch(self) -> None:
        for stream_id in self._beginning:
            self._tree.activate(stream_id)
        self._beginning.clear()

    def _burst(self, window_bytes: int) -> None:
        self._window += window_bytes
        while self._window and (stream_id := self._tree.pick()) is not None:
            n_bytes = min(self._window, self._most(stream_id))
            self._window -= n_bytes
            if self._send(stream_id, n_bytes):
                self._tree.close(stream_id)


class NodeModel(NghttpdModel):
    """nghttp2's session without the streams that it closed."""

    def __init__(self, stream_window: int) -> None:
        super().__init__(stream_window)
        queueing = self.queueing
        self._tree = TreeScheduler(
            queueing=queueing,
            orphans=queueing.orphans,
            unknown_parent=queueing.unknown_parent,
            rules=TreeRules.NODE,
        )


class H2oModel(_Model):
    """A body begins with its request; frames fill a buffer, the last one cut to fit.

    Streams close once that is written.
    """

    queueing = Queueing.H2O
    _BUFFER_BYTES = 81_920
    """H2O_HTTP2_DEFAULT_OUTBUF_SIZE."""
    _HEADER_BYTES = 9
    _window = 0

    def _take(self, ask: Ask) -> None:
        super()._take(ask)
        self._tree.activate(ask.stream_id)

    def _burst(self, window_bytes: int) -> None:
        self._window += window_bytes
        while self._window and self._tree.pick() is not None:
            self._fill_buffer()

    def _fill_buffer(self) -> None:
        room, ended = self._BUFFER_BYTES, []
        while room > self._HEADER_BYTES and self._window:
            stream_id = self._tree.pick()
            if stream_id is None:
                break
            room_left = room - self._HEADER_BYTES
            n_bytes = min(self._window, room_left, self._most(stream_id))
            room -= n_bytes + self._HEADER_BYTES
            self._window -= n_bytes
            if self._send(stream_id, n_bytes):
                ended.append(stream_id)
        for stream_id in ended:
            self._tree.close(stream_id)


MODELS: dict[str, type[_Model]] = {"nghttpd": NghttpdModel, "node": NodeModel, "h2o": H2oModel}
"""A model of each server that is driven."""

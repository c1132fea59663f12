"""Servers of HTTP/2 as the model has them: a tree, and when a stream begins and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers import Queueing, TreeScheduler
from h3sim.signals import H2Priority
from validation.http2_frames import FIRST_WINDOW
from validation.tree_scripts import FRAME_BYTES, WARM_UP, Ask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from validation.tree_scripts import Round

__all__ = ["MODELS", "H2oModel", "NghttpdModel"]


class _Model:
    """Writes DATA frames: (stream, bytes) each, in *data*."""

    queueing: Queueing

    def __init__(self) -> None:
        self.data: list[tuple[int, int]] = []
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
                else:
                    self._tree.prioritize(event.stream_id, event.priority)
            self._end_batch()
            self._burst(each.window_bytes)
        return self.data

    def _take(self, ask: Ask) -> None:
        self._tree.open(ask.stream_id, ask.priority or H2Priority())
        self._left[ask.stream_id] = ask.size_bytes

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
        if self._left[stream_id]:
            return False
        self._tree.deactivate(stream_id)
        return True


class NghttpdModel(_Model):
    """A body begins once its batch was read, a stream closes with its last frame."""

    queueing = Queueing.NGHTTP2
    _window = 0

    def __init__(self) -> None:
        super().__init__()
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
            n_bytes = min(FRAME_BYTES, self._window, self._left[stream_id])
            self._window -= n_bytes
            if self._send(stream_id, n_bytes):
                self._tree.close(stream_id)


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
            most = min(FRAME_BYTES, self._window, room - self._HEADER_BYTES)
            n_bytes = min(most, self._left[stream_id])
            room -= n_bytes + self._HEADER_BYTES
            self._window -= n_bytes
            if self._send(stream_id, n_bytes):
                ended.append(stream_id)
        for stream_id in ended:
            self._tree.close(stream_id)


MODELS: dict[str, type[_Model]] = {"nghttpd": NghttpdModel, "h2o": H2oModel}
"""A model of each server that is driven."""

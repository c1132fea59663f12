"""What the server itself says of priorities, between what it hears and its scheduler."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from h3sim import http

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.http import ByteMarks, StreamSender
    from h3sim.page import Page, Resource, ServerPriority
    from h3sim.schemes import Scheme
    from h3sim.signals import Signal

__all__ = ["ServerWord", "has_marks", "has_word"]


_SERVER_PRIORITIES = attrgetter("server_priorities")


def has_word(page: Page, scheme: Scheme) -> bool:
    """Return whether the server has a word of its own: most loads have none, and pay nothing."""
    return (
        scheme.doubts_clients or bool(scheme.hints) or any(map(_SERVER_PRIORITIES, page.resources))
    )


def has_marks(page: Page, scheme: Scheme) -> bool:
    """Return whether it says something once so many bytes of a response were given out."""
    return has_word(page, scheme) and any(
        word.after_bytes for resource in page.resources for word in scheme.said_by_server(resource)
    )


class ServerWord:
    """Tells the scheduler what the client wants, the origin says, or the server makes of both.

    A response's own word is merged with the client's (RFC 9218 § 8) when the response is ready,
    or once so many bytes of it were given out. What a client says later replaces both (§ 7). A
    server that doubts clients goes by types once advice looks bad.
    """

    def __init__(
        self,
        streams: StreamSender,
        scheme: Scheme,
        *,
        resource_of: Callable[[int], Resource],
        now_ns: Callable[[], int],
        marks: ByteMarks | None,
    ) -> None:
        self._streams = streams
        self._scheme = scheme
        self._resource_of = resource_of
        self._now_ns = now_ns
        self._marks = marks
        self._wanted: dict[int, Signal] = {}
        self._judge = http.AdviceJudge() if scheme.doubts_clients else None
        self.record: list[tuple[int, int, Signal]] = []
        """What it told the scheduler of its own accord, as `PrioritySignalling.record` has it."""

    def open(self, element_id: int, signal: Signal) -> None:
        """Take up a stream or placeholder that the client asks for."""
        self._wanted[element_id] = signal
        self._streams.open(element_id, signal)
        if self._judge is not None and element_id >= 0:
            kind = self._resource_of(element_id).kind
            for changed, ruled in self._judge.on_open(element_id, kind, signal):
                self._say(changed, ruled)

    def update(self, element_id: int, signal: Signal) -> None:
        """Record that the client wants something else."""
        ruled = None if self._judge is None else self._judge.on_update(element_id, signal)
        if ruled is None:
            self._wanted[element_id] = signal
            self._streams.update(element_id, signal)
            return
        for changed, instead in ruled:
            self._say(changed, instead)

    def on_response(self, stream_id: int) -> None:
        """Record that a response is ready, with what the origin says of it."""
        for word in self._scheme.said_by_server(self._resource_of(stream_id)):
            if not word.after_bytes:
                self._merge(stream_id, word)
            elif self._marks is not None:
                self._merge_later(stream_id, word, self._marks)

    def on_closed(self, stream_id: int) -> None:
        """Forget a stream."""
        self._wanted.pop(stream_id, None)
        if self._judge is not None:
            self._judge.on_closed(stream_id)

    def _merge(self, stream_id: int, word: ServerPriority) -> None:
        merged = word.merged_with(self._wanted[stream_id])
        # A word that changes nothing is no signal, neither for the scheduler nor in the trace.
        if merged != self._wanted[stream_id]:
            self._say(stream_id, merged)

    def _merge_later(self, stream_id: int, word: ServerPriority, marks: ByteMarks) -> None:
        marks.watch(stream_id, word.after_bytes, lambda: self._merge(stream_id, word))

    def _say(self, element_id: int, signal: Signal) -> None:
        self._wanted[element_id] = signal
        self.record.append((self._now_ns(), element_id, signal))
        self._streams.update(element_id, signal)

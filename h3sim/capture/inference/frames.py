"""What requests over HTTP/2 said of their place in the tree, as WebPageTest records it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from h3sim.page import Group, RecordedFrom, RecordedPriority
from h3sim.signals import DEFAULT_WEIGHT, MAX_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.inference.observed import Observed
    from h3sim.capture.source.fields import Fields

__all__ = ["StreamFrame", "frame_of", "recorded_frames"]

_GROUPS = {
    3: Group.LEADERS,
    5: Group.UNBLOCKED,
    7: Group.BACKGROUND,
    9: Group.SPECULATIVE,
    11: Group.FOLLOWERS,
    13: Group.URGENT_START,
}
"""The idle streams of Firefox, which it declares on each connection (`Http2Session.h`)."""


class StreamFrame(NamedTuple):
    """The priority in the HEADERS of a request: stream 0 is the root of the tree."""

    stream_id: int
    parent_id: int
    weight: int
    exclusive: bool


def frame_of(entry: Fields) -> StreamFrame | None:
    """Return what an entry of WebPageTest's HAR says of its stream, None where it says nothing."""
    stream_id, parent_id, weight = (
        entry.number(f"_http2_stream_{name}") for name in ("id", "dependency", "weight")
    )
    if not stream_id or parent_id is None or parent_id < 0:
        return None
    known = DEFAULT_WEIGHT if weight is None else round(weight)
    return StreamFrame(
        stream_id=round(stream_id),
        parent_id=round(parent_id),
        weight=min(max(known, 1), MAX_WEIGHT),
        exclusive=entry.flag("_http2_stream_exclusive"),
    )


def recorded_frames(
    requests: Mapping[int, Observed], ids: Mapping[int, str]
) -> dict[int, RecordedPriority]:
    """Return the frames of requests by their index, with parents by the *ids* of the page.

    Streams are told apart by their connection. Firefox's idle streams are its classes. A parent
    that is not in the page says nothing, and so is left out.
    """
    streams = {
        (_connection(request), request.frame.stream_id): ids[index]
        for index, request in requests.items()
        if request.frame is not None
    }
    found = {}
    for index, request in requests.items():
        frame = request.frame
        if frame is None:
            continue
        browser = RecordedFrom(request.browser) if request.browser else None
        group = _GROUPS.get(frame.parent_id) if browser is RecordedFrom.FIREFOX else None
        parent = "" if not frame.parent_id else streams.get((_connection(request), frame.parent_id))
        if group is not None:
            found[index] = RecordedPriority(browser=browser, group=group, weight=frame.weight)
        elif parent is not None and parent != ids[index]:
            found[index] = RecordedPriority(
                browser=browser,
                depends_on=parent,
                weight=frame.weight,
                exclusive=frame.exclusive or None,
            )
    return found


def _connection(request: Observed) -> str:
    """Return what tells the connection of a request: its name, or else the host."""
    return request.reached.connection or urlsplit(request.url).netloc

"""A JSON file as parts with places, so that a reader need not hold all of it.

>>> import io
>>> from h3sim.capture.source.json_cursor import JsonCursor
>>> text = '{"log": {"creator": {}, "entries": [1, 2]}, "x": 3} {"y": 4}'
>>> for part in parts(JsonCursor(io.StringIO(text).read), lambda *note: None):
...     print(*part)
log {}
log.creator {}
log.entries []
log.entries[0] 1
log.entries[1] 2
x 3
event 2 {'y': 4}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.documents import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.capture.source.json_cursor import JsonCursor

__all__ = ["parts"]

_OPENED = ("log",)
"""The objects of which the members are parts: what is read of them can be long."""


def parts(cursor: JsonCursor, note: Callable[[str, str], None]) -> Iterator[tuple[str, Any]]:
    """Yield each part of a file with its place: items of lists, members of objects, whole values.

    What is opened is yielded empty before what is in it. A member that stands twice is noted and
    passed over. Several objects, one after the other, are the events of a log: the members of the
    first, then "event 2" and so on.

    Raises:
        BrokenJsonError: where it is no JSON; what was yielded before is good.
    """
    if cursor.peek() == "[":
        yield from _items(cursor, "")
    else:
        yield from _members(cursor, "", note)
    number = 1
    while cursor.peek():
        number += 1
        yield f"event {number}", cursor.value()


def _items(cursor: JsonCursor, prefix: str) -> Iterator[tuple[str, Any]]:
    for index in cursor.items():
        yield f"{prefix}[{index}]", cursor.value()


def _members(
    cursor: JsonCursor, prefix: str, note: Callable[[str, str], None]
) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for name in cursor.members():
        key = f"{prefix}{name}"
        if name in seen:
            note(key if len(key) < 100 else shown(key), "stands twice: only the first is read")
            continue
        seen.add(name)
        opening = cursor.peek()
        if opening == "[":
            yield key, []
            yield from _items(cursor, key)
        elif opening == "{" and key in _OPENED:
            yield key, {}
            yield from _members(cursor, f"{key}.", note)
        else:
            yield key, cursor.value()

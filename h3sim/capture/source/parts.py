"""A JSON file as parts with places, so that a reader need not hold all of it.

>>> import io
>>> from h3sim.capture.source.json_cursor import JsonCursor
>>> text = '{"log": {"creator": {}, "entries": [1, 2]}, "x": 3} {"y": 4}'
>>> for part in parts(JsonCursor(io.StringIO(text).read), lambda *note: None):
...     print(part.key, part.value)
log {}
log.creator {}
log.entries []
log.entries[0] 1
log.entries[1] 2
x 3
event 2 {'y': 4}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.documents import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.capture.source.json_cursor import JsonCursor

__all__ = ["JsonPart", "parts"]

_OPENED = ("log",)
"""The path of the object of which the members are parts: what is read of them can be long."""


class JsonPart(NamedTuple):
    """A value of a file and where it stands, which no name of a member can be mistaken for."""

    path: tuple[str, ...]
    """The members that lead to it, such as ("log", "entries"); () for an item of a list at the top
    and for a value behind the first."""
    value: Any
    item: int | None = None
    """Where in the list there it stands, from 0."""
    line: int = 0
    """Which of several values it is, one after the other, from 2; 0 for what is in the first."""

    @property
    def key(self) -> str:
        """Its position in words, for messages."""
        if self.line:
            return f"event {self.line}"
        return ".".join(self.path) + ("" if self.item is None else f"[{self.item}]")


def parts(cursor: JsonCursor, note: Callable[[str, str], None]) -> Iterator[JsonPart]:
    """Yield each part of a file: items of lists, members of objects, whole values.

    What is opened is yielded empty before what is in it. A member that stands twice is noted and
    passed over. Several objects, one after the other, are the events of a log: the members of the
    first, then "event 2" and so on.

    Raises:
        BrokenJsonError: where it is no JSON; what was yielded before is good.
    """
    if cursor.peek() == "[":
        yield from _items(cursor, ())
    else:
        yield from _members(cursor, (), note)
    line = 1
    while cursor.peek():
        line += 1
        yield JsonPart((), cursor.value(), line=line)


def _items(cursor: JsonCursor, path: tuple[str, ...]) -> Iterator[JsonPart]:
    for index in cursor.items():
        yield JsonPart(path, cursor.value(), index)


def _members(
    cursor: JsonCursor, above: tuple[str, ...], note: Callable[[str, str], None]
) -> Iterator[JsonPart]:
    seen: set[str] = set()
    for name in cursor.members():
        path = (*above, name)
        if name in seen:
            key = ".".join(path)
            note(key if len(key) < 100 else shown(key), "stands twice: only the first is read")
            continue
        seen.add(name)
        opening = cursor.peek()
        if opening == "[":
            yield JsonPart(path, [])
            yield from _items(cursor, path)
        elif opening == "{" and path == _OPENED:
            yield JsonPart(path, {})
            yield from _members(cursor, path, note)
        else:
            yield JsonPart(path, cursor.value())

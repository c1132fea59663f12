"""Takes values out of an entry of a recording; what is of a wrong type is noted, and not used.

>>> notes = []
>>> values = {"bodySize": -7, "time": "12.5", "url": 3}
>>> entry = Fields(values, "entries[0]", lambda *note: notes.append(note))
>>> entry.size("bodySize"), entry.number("time"), entry.text("url")
(None, 12.5, '')
>>> notes[1]
('entries[0].url', 'must be text, is 3')
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.documents import is_quantity, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.capture.source.parts import JsonPart

__all__ = ["Fields"]

_UNKNOWN = -1
"""What HAR 1.2 writes for a size that is not known."""
_LONGEST_NUMBER = 40


class Fields:
    """An object of a recording, and the place where it stands."""

    __slots__ = ("_entry", "_note", "key")

    def __init__(self, entry: dict[str, Any], key: str, note: Callable[[str, str], None]) -> None:
        self._entry = entry
        self._note = note
        self.key = key

    @classmethod
    def of(cls, part: JsonPart, note: Callable[[str, str], None]) -> Fields | None:
        """Return the object that a part of a file is, None after noting that it is none."""
        if isinstance(part.value, dict):
            return cls(part.value, part.key, note)
        note(part.key, f"skipped: must be an object, is {shown(part.value)}")
        return None

    def __contains__(self, name: str) -> bool:
        return name in self._entry

    def raw(self, name: str) -> Any:
        """Return whatever stands there, None if nothing."""
        return self._entry.get(name)

    def text(self, *names: str) -> str:
        """Return the text under the first of *names* that has one, "" if none has."""
        for name in names:
            value = self._entry.get(name)
            if isinstance(value, str) and value:
                return value
            if value not in (None, ""):
                self.wrong(name, f"must be text, is {shown(value)}")
        return ""

    def name(self, *names: str) -> str:
        """Return the text or number under the first of *names* that has one, "" for none."""
        for name in names:
            value = self._entry.get(name)
            if isinstance(value, str) and value:
                return value
            if is_quantity(value):
                return f"{value:.15g}"
        return ""

    def number(self, *names: str) -> float | None:
        """Return the first number under *names*; a number may be written as text."""
        for name in names:
            value = self._number(name)
            if value is not None:
                return value
        return None

    def size(self, *names: str) -> int | None:
        """Return the first number of bytes under *names*; -1 means that it is not known."""
        for name in names:
            value = self._number(name)
            if value is None or value == _UNKNOWN:
                continue
            if value >= 0:
                return round(value)
            self.wrong(name, f"must be a number of bytes, is {shown(self._entry[name])}")
        return None

    def duration(self, *names: str) -> float | None:
        """Return the first duration under *names*; negative ones mean that it is not known."""
        value = self.number(*names)
        return value if value is not None and value >= 0 else None

    def flag(self, *names: str) -> bool:
        """Return whether any of *names* holds true; a number or text may stand for it."""
        return any(self._entry.get(name) in (True, 1, "1", "true", "True") for name in names)

    def table(self, name: str) -> Fields:
        """Return the object there, an empty one if there is none."""
        value = self._entry.get(name)
        if isinstance(value, dict):
            return Fields(value, self._key_of(name), self._note)
        if value is not None:
            self.wrong(name, f"must be an object, is {shown(value)}")
        return Fields({}, self._key_of(name), self._note)

    def tables(self, name: str) -> list[Fields]:
        """Return the objects of the list there; what is none is noted and left out."""
        return [Fields(item, key, self._note) for key, item in self._items(name, dict, "an object")]

    def texts(self, name: str) -> list[str]:
        """Return the texts of the list there; what is none is noted and left out."""
        return [item for _, item in self._items(name, str, "text")]

    def _items(self, name: str, kind: type, noun: str) -> Iterator[tuple[str, Any]]:
        value = self._entry.get(name)
        if value is not None and not isinstance(value, list):
            self.wrong(name, f"must be a list, is {shown(value)}")
            return
        for index, item in enumerate(value or ()):
            key = f"{self._key_of(name)}[{index}]"
            if isinstance(item, kind):
                yield key, item
            else:
                self._note(key, f"must be {noun}, is {shown(item)}")

    def wrong(self, name: str, message: str) -> None:
        """Note what is wrong with the value under *name*."""
        self._note(self._key_of(name), message)

    def _number(self, name: str) -> float | None:
        value = self._entry.get(name)
        if value is None or value == "":
            return None
        number = value
        if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
            try:
                number = float(value)
            except ValueError:
                number = value
        if is_quantity(number):
            return float(number)
        self.wrong(name, f"must be a number, is {shown(value)}")
        return None

    def _key_of(self, name: str) -> str:
        return f"{self.key}.{name}" if self.key else name

"""Early QPACK's decoder: a field waits for its entry, and not a section for others."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.compression.base import CodecSettings, Decoded, Held, field_bytes
from h3sim.compression.early_qpack_lines import read_lines
from h3sim.compression.wire import encode_integer, entry_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.compression.base import Field
    from h3sim.compression.early_qpack_lines import Delete, Line

__all__ = ["EarlyQpackDecoder"]


@dataclass(slots=True)
class _Section:
    """A section that is being put together: its fields, None where one is missing."""

    stream_id: int
    n_bytes: int
    fields: list[Field | None]
    n_missing: int = 0


@dataclass(slots=True)
class _Entry:
    """An entry, and how often it was referred to so far."""

    field: Field
    n_references: int = 0


class EarlyQpackDecoder:
    """Parks a field whose entry has not come; the section is done when all its fields are there.

    What a section inserts is inserted at once, whatever else of it is missing.
    """

    def __init__(self, settings: CodecSettings) -> None:
        del settings  # The encoder keeps within the table.
        self._table: dict[int, _Entry] = {}
        self._parked: dict[int, list[tuple[_Section, int, Line]]] = {}
        """By the index of the entry that is missing."""
        self._deletes: dict[int, int] = {}
        """References after which an entry goes, by its index."""
        self._gone: list[int] = []
        self._incomplete: dict[int, _Section] = {}

    @property
    def table_bytes(self) -> int:
        """The size of the dynamic table now."""
        return sum(entry_bytes(*entry.field) for entry in self._table.values())

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Take what the section has; return what is whole now."""
        lines, deletes = read_lines(data)
        section = _Section(stream_id, len(data), [None] * len(lines), len(lines))
        self._incomplete[stream_id] = section
        decoded = self._take((section, at, line) for at, line in enumerate(lines))
        if not lines:
            decoded.append(self._finish(section))
        # After the lines: the encoder's counts include the references of this section.
        self._note(deletes)
        return decoded

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Do nothing: there is no encoder stream."""
        del data
        return []

    def take_feedback(self) -> bytes:
        """Return the entries that are gone, as a bitmap behind its length."""
        if not self._gone:
            return b""
        bitmap = bytearray(max(self._gone) // 8 + 1)
        for index in self._gone:
            bitmap[index // 8] |= 1 << index % 8
        self._gone.clear()
        return encode_integer(len(bitmap), 8) + bytes(bitmap)

    @property
    def held(self) -> Held:
        """The sections that are not whole: as they came, and the fields that are there."""
        sections = self._incomplete.values()
        return Held(
            sum(section.n_bytes for section in sections),
            sum(field_bytes(field for field in s.fields if field is not None) for s in sections),
        )

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams whose sections are not whole, in the order in which they came."""
        return tuple(self._incomplete)

    def _take(self, lines: Iterable[tuple[_Section, int, Line]]) -> list[Decoded]:
        """Resolve what can be resolved, and what was parked for that."""
        decoded = []
        todo = deque(lines)
        while todo:
            section, at, line = todo.popleft()
            if line.entry is not None and line.entry.slot not in self._table:
                self._parked.setdefault(line.entry.slot, []).append((section, at, line))
                continue
            field = self._resolve(line)
            section.fields[at] = field
            section.n_missing -= 1
            if line.at is not None:
                self._table[line.at] = _Entry(field)
                todo.extend(self._parked.pop(line.at, ()))
                # It may have been deleted before it came, without ever being referred to.
                self._drop(line.at)
            if not section.n_missing:
                decoded.append(self._finish(section))
        return decoded

    def _resolve(self, line: Line) -> Field:
        if line.entry is None:
            return line.name, line.value or b""
        entry = self._table[line.entry.slot]
        entry.n_references += 1
        name, value = entry.field
        self._drop(line.entry.slot)
        return name, value if line.value is None else line.value

    def _note(self, deletes: Iterable[Delete]) -> None:
        for delete in deletes:
            self._deletes[delete.slot] = delete.n_references
            self._drop(delete.slot)

    def _drop(self, index: int) -> None:
        """Drop an entry that is deleted, if all references to it were read."""
        entry = self._table.get(index)
        if entry is not None and self._deletes.get(index) == entry.n_references:
            del self._table[index], self._deletes[index]
            self._gone.append(index)

    def _finish(self, section: _Section) -> Decoded:
        del self._incomplete[section.stream_id]
        whole = tuple(field for field in section.fields if field is not None)
        return Decoded(section.stream_id, whole)

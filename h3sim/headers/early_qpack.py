"""Early QPACK (draft-bishop-quic-http-and-qpack, 2017): the encoder assigns table indexes.

Follows draft-bishop-quic-http-and-qpack (2017): integers, strings and the static table are HPACK's.
The bit patterns are our own, with the same lengths as the draft's.

| bits | followed by |
|---|---|
| `1T` index (6) | the entry itself: T static, else dynamic |
| `01T` name (5) | insert with the name of an entry: new index, value |
| `0010` new index (4) | insert: name, value |
| `0011` index (4) | delete: the number of references |
| `0001T` name (3) | literal with the name of an entry: value |
| `0000` | literal: name, value |

Nothing is evicted implicitly. The encoder deletes an entry and sends the number of its references;
the decoder removes it once it has read as many, and confirms; only then is its index free again.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from h3sim.headers.base import (
    CodecError,
    CodecSettings,
    Decoded,
    Encoded,
    FieldSection,
    Held,
    field_bytes,
    is_indexed,
)
from h3sim.headers.wire import (
    STATIC_TABLE,
    TruncatedError,
    WireReader,
    encode_integer,
    encode_string,
    entry_bytes,
    static_index,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.headers.base import Field


_INDEX_BITS = 8
"""Prefix of an index, or a count, that has a byte of its own."""


class TableReference(NamedTuple):
    """A reference to an entry of the static table or the dynamic one."""

    is_static: bool
    slot: int
    """Index of the entry in its table."""


class Line(NamedTuple):
    """A field line: its literal strings, and the entry for the others, if any."""

    entry: TableReference | None
    name: bytes
    value: bytes | None
    """None for the value of the entry."""
    at: int | None = None
    """Index at which the field is inserted; None if it is not."""


class Delete(NamedTuple):
    """Instruction to delete an entry once that many references to it were read."""

    slot: int
    n_references: int


# Comments below name the rows of the module's table that the bits are from.


def write_line(line: Line) -> bytes:
    """Return the encoded line."""
    entry, name, value, at = line
    if entry is None:
        # `0010`, or `0000`.
        head = encode_integer(at, 4, 0x20) if at is not None else b"\0"
        return head + encode_string(name) + encode_string(value or b"")
    if value is None:
        # `1T`
        return encode_integer(entry.slot, 6, 0xC0 if entry.is_static else 0x80)
    if at is None:
        # `0001T`
        head = encode_integer(entry.slot, 3, 0x18 if entry.is_static else 0x10)
    else:
        # `01T`
        head = encode_integer(entry.slot, 5, 0x60 if entry.is_static else 0x40)
        head += encode_integer(at, _INDEX_BITS)
    return head + encode_string(value)


def delete_line(delete: Delete) -> bytes:
    """Return the encoded instruction."""
    # `0011`
    return encode_integer(delete.slot, 4, 0x30) + encode_integer(delete.n_references, _INDEX_BITS)


def read_lines(data: bytes) -> tuple[list[Line], list[Delete]]:
    """Return the lines and deletions of a section, with references to the static table resolved.

    >>> read_lines(write_line(Line(None, b"a", b"b", at=3)) + delete_line(Delete(2, 7)))
    ([Line(entry=None, name=b'a', value=b'b', at=3)], [Delete(slot=2, n_references=7)])
    """
    reader = WireReader(data)
    lines: list[Line] = []
    deletes: list[Delete] = []
    while not reader.is_done:
        first = reader.peek()
        if first & 0xF0 == 0x30:  # `0011`
            deletes.append(Delete(reader.integer(4), reader.integer(_INDEX_BITS)))
        else:
            lines.append(_look_up(_read_line(reader, first)))
    return lines, deletes


def _read_line(reader: WireReader, first: int) -> Line:
    """Return the line that starts with byte *first* (draft-ietf-quic-qpack-00 § 3)."""
    if first & 0x80:  # `1T`
        return Line(TableReference(bool(first & 0x40), reader.integer(6)), b"", None)
    if first & 0x40:  # `01T`
        entry = TableReference(bool(first & 0x20), reader.integer(5))
        at = reader.integer(_INDEX_BITS)
        return Line(entry, b"", reader.string(), at)
    if first & 0x20:  # `0010`
        at = reader.integer(4)
        return Line(None, reader.string(), reader.string(), at)
    if first & 0x10:  # `0001T`
        entry = TableReference(bool(first & 0x08), reader.integer(3))
        return Line(entry, b"", reader.string())
    reader.integer(4)  # `0000`
    return Line(None, reader.string(), reader.string())


def _look_up(line: Line) -> Line:
    if line.entry is None or not line.entry.is_static:
        return line
    name, value = STATIC_TABLE[line.entry.slot - 1]
    return Line(None, name, value if line.value is None else line.value, line.at)


_RESERVE_BYTES = 256
"""Bytes of the table that the encoder keeps free, as in the prototype (kMinFree)."""


@dataclass(slots=True)
class _Entry:
    """An entry of the encoder's table."""

    index: int
    field: Field
    stream_id: int
    """The section that inserts it."""
    n_references: int = 0
    is_acked: bool = False

    @property
    def n_bytes(self) -> int:
        """The size of the entry in the table."""
        return entry_bytes(*self.field)


class EarlyQpackEncoder:
    """The encoder of the prototype, and two variants that Frindell 2017 suggests.

    *avoids_vulnerable* applies QCRAM's rule: it refers to no entry whose section is not yet
    acknowledged, and inserts no field twice. *keeps_used* never deletes an entry that was referred
    to.
    """

    def __init__(
        self,
        settings: CodecSettings,
        *,
        avoids_vulnerable: bool = False,
        keeps_used: bool = False,
    ) -> None:
        self._capacity = settings.table_bytes
        self._avoids_vulnerable = avoids_vulnerable
        self._keeps_used = keeps_used
        self._entries: dict[int, _Entry] = {}
        """The valid entries by index, in insertion order."""
        self._deleted: dict[int, _Entry] = {}
        """Deleted entries whose removal the decoder has not confirmed."""
        self._entry_of: dict[Field | bytes, _Entry] = {}
        """The entry to refer to for each field and each name."""
        self._inserted_by_stream: dict[int, list[_Entry]] = {}
        self._free_indexes: list[int] = []
        """A heap, so that the lowest index, which is the shortest, is used first."""
        self._n_indexes = 0
        self._valid_bytes = 0
        self._deleted_bytes = 0
        self.n_evicted = 0
        """The entries that were deleted so far."""
        self._feedback = b""
        """Bytes of the decoder stream that are no complete bitmap yet."""

    @property
    def table_bytes(self) -> int:
        """The size of the table, including deleted entries not yet evicted."""
        return self._valid_bytes + self._deleted_bytes

    def start(self) -> bytes:
        """Return nothing: there is no encoder stream."""
        return b""

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the section, with its inserts and deletions."""
        return Encoded(
            stream_id, b"".join([self._encode_line(field, stream_id) for field in fields])
        )

    def on_acked(self, stream_id: int) -> None:
        """Record that the entries inserted by a section are safe."""
        for entry in self._inserted_by_stream.pop(stream_id, ()):
            entry.is_acked = True

    def on_feedback(self, data: bytes) -> None:
        """Free the indices of removed entries; *data* has bitmaps of them, preceded by lengths."""
        self._feedback += data
        while self._feedback:
            reader = WireReader(self._feedback)
            try:
                n_bytes = reader.integer(8)
            except TruncatedError:
                return
            ends = reader.at + n_bytes
            if ends > len(self._feedback):
                return
            self._take_bitmap(self._feedback[reader.at : ends])
            self._feedback = self._feedback[ends:]

    def on_packet_boundary(self) -> None:
        """Do nothing."""

    def _take_bitmap(self, bitmap: bytes) -> None:
        """Free the entries that the decoder confirms as removed."""
        for index in range(8 * len(bitmap)):
            is_removed = bitmap[index // 8] >> index % 8 & 1
            if is_removed:
                if index not in self._deleted:
                    raise CodecError(f"entry {index} is gone, and was not deleted")
                self._deleted_bytes -= self._deleted.pop(index).n_bytes
                heapq.heappush(self._free_indexes, index)

    def _encode_line(self, field: Field, stream_id: int) -> bytes:
        """Return the line for a field, and deletions that made room for it."""
        static = static_index(field)
        if static is not None:
            return write_line(Line(TableReference(True, static), b"", None))
        same = self._entry_of.get(field)
        if same is not None and self._is_safe(same, stream_id):
            return write_line(Line(self._refer(same), b"", None))
        name, value = field
        deleted = b""
        at = None
        if is_indexed(field) and not (same is not None and self._avoids_vulnerable):
            deleted = self._make_room(entry_bytes(name, value))
            # None if the table is full of deleted entries whose removal is not confirmed yet.
            at = self._free_index(entry_bytes(name, value))
        # After making room, so that the name is not that of an entry deleted just now.
        line = write_line(Line(self._name_reference(name, stream_id), name, value, at))
        if at is not None:
            self._insert(_Entry(at, field, stream_id))
        return line + deleted

    def _name_reference(self, name: bytes, stream_id: int) -> TableReference | None:
        """Return a reference to an entry with that name, if one is safe."""
        static = static_index(name)
        if static is not None:
            return TableReference(True, static)
        entry = self._entry_of.get(name)
        if entry is None or not self._is_safe(entry, stream_id):
            return None
        return self._refer(entry)

    def _refer(self, entry: _Entry) -> TableReference:
        """Return a reference to a dynamic entry, and count it for a later deletion."""
        entry.n_references += 1
        return TableReference(False, entry.index)

    def _is_safe(self, entry: _Entry, stream_id: int) -> bool:
        """Return whether a section may refer to an entry."""
        return not self._avoids_vulnerable or entry.is_acked or entry.stream_id == stream_id

    def _make_room(self, n_bytes: int) -> bytes:
        """Delete entries with the fewest references until there is room; return instructions."""
        limit = self._capacity - min(_RESERVE_BYTES, self._capacity)
        if self._valid_bytes + n_bytes <= limit or n_bytes > self._capacity:
            return b""
        instructions = []
        # The sort is stable: of entries with equally many references the oldest goes first.
        for entry in sorted(self._entries.values(), key=lambda entry: entry.n_references):
            if self._valid_bytes + n_bytes <= limit or (self._keeps_used and entry.n_references):
                break
            instructions.append(self._delete(entry))
        return b"".join(instructions)

    def _delete(self, entry: _Entry) -> bytes:
        """Delete an entry; it takes room until the decoder confirms its removal."""
        del self._entries[entry.index]
        self._valid_bytes -= entry.n_bytes
        self.n_evicted += 1
        self._deleted[entry.index] = entry
        self._deleted_bytes += entry.n_bytes
        # The name may be that of a newer entry now. No older entry takes its place: references by
        # name would keep it from being deleted, and save nothing overall.
        for key in (entry.field, entry.field[0]):
            if self._entry_of.get(key) is entry:
                del self._entry_of[key]
        return delete_line(Delete(entry.index, entry.n_references))

    def _free_index(self, n_bytes: int) -> int | None:
        """Return an index for an entry of that size; None if the table is full."""
        if self.table_bytes + n_bytes > self._capacity:
            return None
        if self._free_indexes:
            return heapq.heappop(self._free_indexes)
        self._n_indexes += 1
        return self._n_indexes - 1

    def _insert(self, entry: _Entry) -> None:
        """Add an entry, and make it the newest of its field and name."""
        self._entries[entry.index] = entry
        self._valid_bytes += entry.n_bytes
        self._entry_of[entry.field] = entry
        name, _ = entry.field
        older = self._entry_of.get(name)
        # An older entry to which sections may refer is more useful than a newer, vulnerable one.
        if older is None or not (self._avoids_vulnerable and older.is_acked):
            self._entry_of[name] = entry
        self._inserted_by_stream.setdefault(entry.stream_id, []).append(entry)


@dataclass(slots=True)
class _Section:
    """A section of which not all fields are decoded."""

    stream_id: int
    n_bytes: int
    fields: list[Field | None]
    """None for fields whose entry has not arrived."""
    n_missing: int = 0


@dataclass(slots=True)
class _DecoderEntry:
    """An entry, and the number of references to it so far."""

    field: Field
    n_references: int = 0


class EarlyQpackDecoder:
    """Decoder of single fields, each of which waits for its entry.

    Inserts of a section take effect at once, even if other fields of it wait.
    """

    def __init__(self, settings: CodecSettings) -> None:
        del settings  # the encoder enforces the size of the table
        self._table: dict[int, _DecoderEntry] = {}
        self._waiting_lines: dict[int, list[tuple[_Section, int, Line]]] = {}
        """Waiting fields by the index of the missing entry: section, position, line."""
        self._references_before_removal: dict[int, int] = {}
        """The number of references after which an entry is removed, by its index."""
        self._removed_indexes: list[int] = []
        """Entries whose removal is not confirmed to the encoder yet."""
        self._incomplete: dict[int, _Section] = {}

    @property
    def table_bytes(self) -> int:
        """The size of the dynamic table now."""
        return sum(entry_bytes(*entry.field) for entry in self._table.values())

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Process a section; return those that are complete now."""
        lines, deletes = read_lines(data)
        section = _Section(stream_id, len(data), [None] * len(lines), len(lines))
        self._incomplete[stream_id] = section
        decoded = self._resolve_lines((section, at, line) for at, line in enumerate(lines))
        if not lines:
            decoded.append(self._finish(section))
        # After the lines, since the encoder's counts include references in this section.
        self._add_deletes(deletes)
        return decoded

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Do nothing: there is no encoder stream."""
        del data
        return []

    def take_feedback(self) -> bytes:
        """Return the removed entries, as a bitmap after its length."""
        if not self._removed_indexes:
            return b""
        bitmap = bytearray(max(self._removed_indexes) // 8 + 1)
        for index in self._removed_indexes:
            bitmap[index // 8] |= 1 << index % 8
        self._removed_indexes.clear()
        return encode_integer(len(bitmap), 8) + bytes(bitmap)

    @property
    def held(self) -> Held:
        """The bytes of incomplete sections: as encoded, and of the fields decoded so far."""
        sections = self._incomplete.values()
        return Held(
            sum(section.n_bytes for section in sections),
            sum(
                field_bytes(field for field in section.fields if field is not None)
                for section in sections
            ),
        )

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams whose sections are incomplete, in arrival order."""
        return tuple(self._incomplete)

    def _resolve_lines(self, lines: Iterable[tuple[_Section, int, Line]]) -> list[Decoded]:
        """Resolve the lines that can be resolved, and the fields that waited for them."""
        decoded = []
        pending = deque(lines)
        while pending:
            section, at, line = pending.popleft()
            if line.entry is not None and line.entry.slot not in self._table:
                self._waiting_lines.setdefault(line.entry.slot, []).append((section, at, line))
                continue
            field = self._resolve(line)
            section.fields[at] = field
            section.n_missing -= 1
            if line.at is not None:
                self._table[line.at] = _DecoderEntry(field)
                pending.extend(self._waiting_lines.pop(line.at, ()))
                # Its deletion may have arrived before it, if nothing refers to it.
                self._remove_if_done(line.at)
            if not section.n_missing:
                decoded.append(self._finish(section))
        return decoded

    def _resolve(self, line: Line) -> Field:
        """Return the field of a line, counting the reference."""
        if line.entry is None:
            return line.name, line.value or b""
        entry = self._table[line.entry.slot]
        entry.n_references += 1
        name, value = entry.field
        self._remove_if_done(line.entry.slot)
        return name, value if line.value is None else line.value

    def _add_deletes(self, deletes: Iterable[Delete]) -> None:
        for delete in deletes:
            self._references_before_removal[delete.slot] = delete.n_references
            self._remove_if_done(delete.slot)

    def _remove_if_done(self, index: int) -> None:
        """Remove a deleted entry, if all references to it were read."""
        entry = self._table.get(index)
        if entry is not None and self._references_before_removal.get(index) == entry.n_references:
            del self._table[index], self._references_before_removal[index]
            self._removed_indexes.append(index)

    def _finish(self, section: _Section) -> Decoded:
        del self._incomplete[section.stream_id]
        fields = tuple(field for field in section.fields if field is not None)
        return Decoded(section.stream_id, fields)

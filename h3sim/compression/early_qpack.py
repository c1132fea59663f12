"""Early QPACK (draft-bishop-quic-http-and-qpack, 2017): the encoder says where entries go.

Nothing is evicted by itself. The encoder deletes an entry and says how many references it made; the
decoder lets it go once it has read as many, and says so; only then is its index free again.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.compression.base import CodecError, CodecSettings, Encoded, FieldSection
from h3sim.compression.early_qpack_lines import (
    Delete,
    Line,
    TableReference,
    delete_line,
    write_line,
)
from h3sim.compression.indexing import is_indexed
from h3sim.compression.wire import TruncatedError, WireReader, entry_bytes, static_index

if TYPE_CHECKING:
    from h3sim.compression.base import Field

__all__ = ["EarlyQpackEncoder"]

_MIN_FREE_BYTES = 256
"""What the encoder keeps free, as the prototype did (kMinFree); at most the table."""


@dataclass(slots=True)
class _Entry:
    """An entry of the encoder's table."""

    index: int
    field: Field
    stream_id: int
    """The section that brings it."""
    n_references: int = 0
    is_acked: bool = False

    @property
    def n_bytes(self) -> int:
        """What it takes of the table."""
        return entry_bytes(*self.field)


class EarlyQpackEncoder:
    """The encoder of the prototype, and two that Frindell 2017 suggests.

    *avoids_vulnerable* applies QCRAM's rule: it refers to no entry whose section is not yet
    acknowledged, and inserts none a second time. *keeps_used* never deletes an entry that was
    referred to.
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
        """The valid ones, by index, in the order of insertion."""
        self._deleted: dict[int, _Entry] = {}
        """Those of which the decoder has not yet said that they are gone."""
        self._found: dict[Field | bytes, _Entry] = {}
        self._brought_by: dict[int, list[_Entry]] = {}
        self._free: list[int] = []
        self._n_indexes = 0
        self._valid_bytes = 0
        self._deleted_bytes = 0
        self._feedback = b""

    @property
    def table_bytes(self) -> int:
        """What the table takes, with what is deleted and not yet gone."""
        return self._valid_bytes + self._deleted_bytes

    def start(self) -> bytes:
        """Return nothing: there is no encoder stream."""
        return b""

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the section, with the entries that it brings and those that it deletes."""
        return Encoded(stream_id, b"".join([self._line(field, stream_id) for field in fields]))

    def on_acked(self, stream_id: int) -> None:
        """Record that the entries are safe that a section brought."""
        for entry in self._brought_by.pop(stream_id, ()):
            entry.is_acked = True

    def on_feedback(self, data: bytes) -> None:
        """Free indices; *data* are bitmaps of them, each behind its length."""
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
        for index in range(8 * len(bitmap)):
            if bitmap[index // 8] >> index % 8 & 1:
                if index not in self._deleted:
                    raise CodecError(f"entry {index} is gone, and was not deleted")
                self._deleted_bytes -= self._deleted.pop(index).n_bytes
                heapq.heappush(self._free, index)

    def _line(self, field: Field, stream_id: int) -> bytes:
        fixed = static_index(field)
        if fixed is not None:
            return write_line(Line(TableReference(True, fixed), b"", None))
        same = self._found.get(field)
        if same is not None and self._is_safe(same, stream_id):
            return write_line(Line(self._refer(same), b"", None))
        name, value = field
        deleted = b""
        at = None
        if is_indexed(field) and not (same is not None and self._avoids_vulnerable):
            deleted = self._make_room(entry_bytes(name, value))
            # None where entries that were deleted are not gone yet: they take room until the
            # decoder says so.
            at = self._free_index(entry_bytes(name, value))
        # After room was made, so that the name is not that of an entry which has just been deleted.
        line = write_line(Line(self._named(name, stream_id), name, value, at))
        if at is not None:
            self._insert(_Entry(at, field, stream_id))
        return line + deleted

    def _named(self, name: bytes, stream_id: int) -> TableReference | None:
        fixed = static_index(name)
        if fixed is not None:
            return TableReference(True, fixed)
        entry = self._found.get(name)
        if entry is None or not self._is_safe(entry, stream_id):
            return None
        return self._refer(entry)

    def _refer(self, entry: _Entry) -> TableReference:
        entry.n_references += 1
        return TableReference(False, entry.index)

    def _is_safe(self, entry: _Entry, stream_id: int) -> bool:
        return not self._avoids_vulnerable or entry.is_acked or entry.stream_id == stream_id

    def _make_room(self, n_bytes: int) -> bytes:
        """Delete what was referred to least until there is room; return the instructions."""
        limit = self._capacity - min(_MIN_FREE_BYTES, self._capacity)
        if self._valid_bytes + n_bytes <= limit or n_bytes > self._capacity:
            return b""
        instructions = []
        # The sort is stable: of those referred to equally often the oldest goes first.
        for entry in sorted(self._entries.values(), key=lambda entry: entry.n_references):
            if self._valid_bytes + n_bytes <= limit or (self._keeps_used and entry.n_references):
                break
            instructions.append(self._delete(entry))
        return b"".join(instructions)

    def _delete(self, entry: _Entry) -> bytes:
        del self._entries[entry.index]
        self._valid_bytes -= entry.n_bytes
        self._deleted[entry.index] = entry
        self._deleted_bytes += entry.n_bytes
        # A newer entry may have taken the name over. Older ones of that name are not looked for: to
        # refer to them by name would keep them from being deleted, and saves nothing on the whole.
        for key in (entry.field, entry.field[0]):
            if self._found.get(key) is entry:
                del self._found[key]
        return delete_line(Delete(entry.index, entry.n_references))

    def _free_index(self, n_bytes: int) -> int | None:
        if self.table_bytes + n_bytes > self._capacity:
            return None
        if self._free:
            return heapq.heappop(self._free)
        self._n_indexes += 1
        return self._n_indexes - 1

    def _insert(self, entry: _Entry) -> None:
        self._entries[entry.index] = entry
        self._valid_bytes += entry.n_bytes
        self._found[entry.field] = entry
        older = self._found.get(entry.field[0])
        # A name that may be referred to serves better than a newer one that may not yet.
        if older is None or not (self._avoids_vulnerable and older.is_acked):
            self._found[entry.field[0]] = entry
        self._brought_by.setdefault(entry.stream_id, []).append(entry)

"""What HPACK makes of field sections, in bytes: an encoder that counts instead of writing."""

from __future__ import annotations

import functools
from collections import deque
from typing import TYPE_CHECKING

from h3sim.compression.rfc7541 import HUFFMAN_BITS, STATIC_TABLE
from h3sim.compression.wire import encode_integer, entry_bytes, static_index

if TYPE_CHECKING:
    from h3sim.compression.base import Field, FieldSection

__all__ = ["HpackSizes"]

_INDEXED_BITS, _INDEXING_BITS, _LITERAL_BITS = 7, 6, 4
"""Prefixes of the three representations: a field of a table, a literal that becomes an entry, and
one that does not (RFC 7541 §§ 6.1, 6.2.1, 6.2.2)."""


class HpackSizes:
    """The encoder of one direction, with a dynamic table of *table_bytes* (RFC 7541 § 4).

    Which literals become entries is up to an encoder; it does as Chromium's: all fields but
    pseudo-header fields, and of these `:authority` (DefaultPolicy in quiche's
    http2/hpack/hpack_encoder.cc).

    >>> sizes = HpackSizes()
    >>> fields = ((b":method", b"GET"), (b":authority", b"www.example.com"))
    >>> sizes.section_bytes(fields), sizes.section_bytes(fields)
    (15, 2)
    """

    def __init__(self, table_bytes: int = 4096) -> None:
        self._table_bytes = table_bytes
        self._entries: deque[Field] = deque()
        """The dynamic table, newest first."""
        self._used_bytes = 0
        self._n_inserted = 0
        self._newest: dict[Field | bytes, int] = {}
        """For each field of the table, and each name: the number of its newest entry, from 1 on as
        they were inserted."""

    def section_bytes(self, fields: FieldSection) -> int:
        """Return the size of a section; the next one may refer to its fields."""
        return sum(self._field_bytes(field) for field in fields)

    def _field_bytes(self, field: Field) -> int:
        # No index is 0 in HPACK, so `or` goes on only where there is none.
        index = static_index(field) or self._dynamic_index(field)
        if index is not None:
            return len(encode_integer(index, _INDEXED_BITS))
        name, value = field
        name_index = static_index(name) or self._dynamic_index(name) or 0
        is_entry = not name.startswith(b":") or name == b":authority"
        n_bytes = len(encode_integer(name_index, _INDEXING_BITS if is_entry else _LITERAL_BITS))
        n_bytes += _string_bytes(value) + (0 if name_index else _string_bytes(name))
        if is_entry:
            self._insert(field)
        return n_bytes

    def _dynamic_index(self, key: Field | bytes) -> int | None:
        """Return the index of a field, or of the newest one with that name."""
        # The index of an entry counts how many are newer.
        number = self._newest.get(key)
        return None if number is None else len(STATIC_TABLE) + 1 + self._n_inserted - number

    def _insert(self, field: Field) -> None:
        """Add an entry; the oldest leave for it, all if it is too large (RFC 7541 § 4.4)."""
        n_bytes = entry_bytes(*field)
        while self._entries and self._used_bytes + n_bytes > self._table_bytes:
            self._drop_oldest()
        if n_bytes <= self._table_bytes:
            self._entries.appendleft(field)
            self._used_bytes += n_bytes
            self._n_inserted += 1
            self._newest[field] = self._newest[field[0]] = self._n_inserted

    def _drop_oldest(self) -> None:
        number = self._n_inserted + 1 - len(self._entries)
        field = self._entries.pop()
        self._used_bytes -= entry_bytes(*field)
        for key in (field, field[0]):
            if self._newest[key] == number:  # no later entry is alike
                del self._newest[key]


@functools.lru_cache(maxsize=1024)
def _string_bytes(value: bytes) -> int:
    """Return what a string literal takes, Huffman coded where that is shorter (RFC 7541 § 5.2)."""
    coded = (sum(HUFFMAN_BITS[byte] for byte in value) + 7) // 8
    n_bytes = min(coded, len(value))
    return len(encode_integer(n_bytes, 7)) + n_bytes

"""HPACK over unordered streams, decoded in sequence, and HPACK-encoded sizes.

The drafts of HTTP over QUIC of 2016 and 2017 worked this way (draft-ietf-quic-http-00 to -03). The
`hpack` package encodes and decodes (RFC 7541).
"""

from __future__ import annotations

import functools
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.headers.base import (
    CodecError,
    CodecSettings,
    Decoded,
    Encoded,
    FieldSection,
    Held,
    is_indexed,
)
from h3sim.headers.wire import (
    HUFFMAN_BITS,
    STATIC_TABLE,
    WireReader,
    encode_integer,
    entry_bytes,
    import_extra,
    static_index,
)

if TYPE_CHECKING:
    from h3sim.headers.base import Field


_SEQUENCE_BITS = 8
"""Prefix of a block's sequence number."""
_MAX_LIST_BYTES = 2**32
"""Limit of decoded lists; hpack's default of 64 KiB guards against attacks, and here is none."""


class HpackEncoder:
    """Encoder that numbers its blocks, so that the decoder can restore their order."""

    def __init__(self, settings: CodecSettings) -> None:
        self._hpack: Any = import_extra("hpack").Encoder()
        self._hpack.header_table_size = settings.table_bytes
        self._next_number = 0
        self.n_evicted: int | None = None
        """None: the library does not report evictions."""

    def start(self) -> bytes:
        """Return nothing: a table size update is part of the first block."""
        return b""

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the number of the block, and the block."""
        # The third item means "sensitive", the package's term for a never-indexed literal.
        marked = [(name, value, not is_indexed((name, value))) for name, value in fields]
        prefix = encode_integer(self._next_number, _SEQUENCE_BITS)
        self._next_number += 1
        return Encoded(stream_id, prefix + self._hpack.encode(marked))

    def on_acked(self, stream_id: int) -> None:
        """Do nothing."""

    def on_feedback(self, data: bytes) -> None:
        """Do nothing."""

    def on_packet_boundary(self) -> None:
        """Do nothing."""


class _WaitingBlock(NamedTuple):
    """Received block: its size with the sequence number, and the encoded fields."""

    stream_id: int
    n_bytes: int
    fields: bytes


class HpackDecoder:
    """Decoder of blocks in sequence: a block waits until all before it are decoded."""

    def __init__(self, settings: CodecSettings) -> None:
        hpack: Any = import_extra("hpack")
        self._malformed_error: type[Exception] = hpack.HPACKError
        self._hpack: Any = hpack.Decoder(max_header_list_size=_MAX_LIST_BYTES)
        self._hpack.max_allowed_table_size = settings.table_bytes
        self._waiting: dict[int, _WaitingBlock] = {}
        """Received blocks by their number."""
        self._held_bytes = 0
        self._next_number = 0

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Decode the blocks that are in sequence now.

        Raises:
            CodecError: if a block is malformed.
        """
        reader = WireReader(data)
        number = reader.integer(_SEQUENCE_BITS)
        self._waiting[number] = _WaitingBlock(stream_id, len(data), data[reader.at :])
        self._held_bytes += len(data)
        decoded = []
        while self._next_number in self._waiting:
            block = self._waiting.pop(self._next_number)
            self._next_number += 1
            self._held_bytes -= block.n_bytes
            decoded.append(Decoded(block.stream_id, self._decode(block.fields)))
        return decoded

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Do nothing: there is no encoder stream."""
        del data
        return []

    def take_feedback(self) -> bytes:
        """Return nothing."""
        return b""

    def _decode(self, block: bytes) -> FieldSection:
        try:
            fields = self._hpack.decode(block, raw=True)
        except self._malformed_error as error:
            raise CodecError(f"a block cannot be decoded: {error}") from error
        return tuple((bytes(name), bytes(value)) for name, value in fields)

    @property
    def held(self) -> Held:
        """The bytes of waiting blocks, as encoded: no part of them can be decoded."""
        return Held(self._held_bytes, self._held_bytes)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams whose blocks wait, in arrival order."""
        return tuple(block.stream_id for block in self._waiting.values())


_INDEXED_BITS = 7
"""Prefix of an indexed field (RFC 7541 § 6.1)."""
_INDEXING_BITS = 6
"""Prefix of a literal that becomes an entry (RFC 7541 § 6.2.1)."""
_LITERAL_BITS = 4
"""Prefix of a literal that becomes no entry (RFC 7541 § 6.2.2)."""


class HpackSizes:
    """The encoder of one direction, with a dynamic table of *table_bytes* (RFC 7541 § 4).

    An encoder may choose which literals become entries; this one follows Chromium's: all fields
    except pseudo-header fields, and of these `:authority` (DefaultPolicy in quiche's
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
        """The number of the newest entry of each field, and of each name.

        Entries are numbered from 1 in insertion order.
        """

    def section_bytes(self, fields: FieldSection) -> int:
        """Return the size of a section; the next one may refer to its fields."""
        return sum(self._field_bytes(field) for field in fields)

    def _field_bytes(self, field: Field) -> int:
        """Return the size of a field as encoded, and insert it if it is indexed."""
        # HPACK has no index 0, so `or` continues only if there is none.
        index = static_index(field) or self._dynamic_index(field)
        if index is not None:
            return len(encode_integer(index, _INDEXED_BITS))
        name, value = field
        name_index = static_index(name) or self._dynamic_index(name) or 0
        becomes_entry = not name.startswith(b":") or name == b":authority"
        n_bytes = len(
            encode_integer(name_index, _INDEXING_BITS if becomes_entry else _LITERAL_BITS)
        )
        n_bytes += _string_bytes(value) + (0 if name_index else _string_bytes(name))
        if becomes_entry:
            self._insert(field)
        return n_bytes

    def _dynamic_index(self, key: Field | bytes) -> int | None:
        """Return the index of a field, or of the newest one with that name."""
        # Dynamic indices follow the static ones; the newest entry has the lowest.
        number = self._newest.get(key)
        return None if number is None else len(STATIC_TABLE) + 1 + self._n_inserted - number

    def _insert(self, field: Field) -> None:
        """Add an entry, and evict the oldest; all if it is too large (RFC 7541 § 4.4)."""
        n_bytes = entry_bytes(*field)
        while self._entries and self._used_bytes + n_bytes > self._table_bytes:
            self._drop_oldest()
        if n_bytes <= self._table_bytes:
            self._entries.appendleft(field)
            self._used_bytes += n_bytes
            self._n_inserted += 1
            self._newest[field] = self._newest[field[0]] = self._n_inserted

    def _drop_oldest(self) -> None:
        """Evict the oldest entry (RFC 7541 § 4.3)."""
        number = self._n_inserted + 1 - len(self._entries)
        field = self._entries.pop()
        self._used_bytes -= entry_bytes(*field)
        for key in (field, field[0]):
            if self._newest[key] == number:  # no later entry is equal
                del self._newest[key]


@functools.lru_cache(maxsize=1024)
def _string_bytes(value: bytes) -> int:
    """Return the size of a string literal, Huffman coded if that is shorter (RFC 7541 § 5.2)."""
    coded = (sum(HUFFMAN_BITS[byte] for byte in value) + 7) // 8
    n_bytes = min(coded, len(value))
    return len(encode_integer(n_bytes, 7)) + n_bytes

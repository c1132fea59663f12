"""HPACK over streams without an order: blocks carry a number and are decoded in that order.

The drafts of HTTP over QUIC of 2016 and 2017 did so (draft-ietf-quic-http-00 to -03). The `hpack`
package does the coding (RFC 7541).
"""

from __future__ import annotations

from typing import Any

from h3sim.compression.base import CodecError, CodecSettings, Decoded, Encoded, FieldSection, Held
from h3sim.compression.indexing import is_indexed
from h3sim.compression.wire import WireReader, encode_integer, import_extra

__all__ = ["HpackDecoder", "HpackEncoder"]

_SEQUENCE_BITS = 8
_MOST_LIST_BYTES = 2**32
"""hpack refuses lists above 64 KiB; here they are the caller's own."""


class HpackEncoder:
    """Numbers the blocks; needs no acknowledgements."""

    def __init__(self, settings: CodecSettings) -> None:
        self._hpack: Any = import_extra("hpack").Encoder()
        self._hpack.header_table_size = settings.table_bytes
        self._next = 0

    def start(self) -> bytes:
        """Return nothing: a change of the table's size goes with the first block."""
        return b""

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the number of the block, and the block."""
        # The third says "sensitive", the package's word for a literal that is never indexed.
        marked = [(name, value, not is_indexed((name, value))) for name, value in fields]
        prefix = encode_integer(self._next, _SEQUENCE_BITS)
        self._next += 1
        return Encoded(stream_id, prefix + self._hpack.encode(marked))

    def on_acked(self, stream_id: int) -> None:
        """Do nothing."""

    def on_feedback(self, data: bytes) -> None:
        """Do nothing."""

    def on_packet_boundary(self) -> None:
        """Do nothing."""


class HpackDecoder:
    """Decodes a block once all before it are decoded."""

    def __init__(self, settings: CodecSettings) -> None:
        hpack: Any = import_extra("hpack")
        self._refused_error: type[Exception] = hpack.HPACKError
        self._hpack: Any = hpack.Decoder(max_header_list_size=_MOST_LIST_BYTES)
        self._hpack.max_allowed_table_size = settings.table_bytes
        self._waiting: dict[int, tuple[int, bytes, int]] = {}
        self._held_bytes = 0
        self._next = 0

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Decode what is in sequence now.

        Raises:
            CodecError: if a block is broken.
        """
        reader = WireReader(data)
        number = reader.integer(_SEQUENCE_BITS)
        self._waiting[number] = (stream_id, data, reader.at)
        self._held_bytes += len(data)
        decoded = []
        while self._next in self._waiting:
            stream_id, data, begins = self._waiting.pop(self._next)
            self._next += 1
            self._held_bytes -= len(data)
            decoded.append(Decoded(stream_id, self._decode(data[begins:])))
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
        except self._refused_error as error:
            raise CodecError(f"a block cannot be decoded: {error}") from error
        return tuple((bytes(name), bytes(value)) for name, value in fields)

    @property
    def held(self) -> Held:
        """The blocks that wait, as they came: nothing of them can be decoded."""
        return Held(self._held_bytes, self._held_bytes)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams whose blocks wait, in the order in which they came."""
        return tuple(stream_id for stream_id, _, _ in self._waiting.values())

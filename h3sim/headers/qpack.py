"""QPACK as deployed (RFC 9204): ls-qpack codes; encoder and decoder streams are read here."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.headers.base import CodecError, CodecSettings, Decoded, Encoded, FieldSection, Held
from h3sim.headers.wire import (
    ENTRY_OVERHEAD_BYTES,
    TruncatedError,
    WireReader,
    encode_integer,
    import_extra,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_INCREMENT_BITS = 6


class InstructionKind(enum.Enum):
    """The instructions of the encoder stream (RFC 9204 § 4.3)."""

    CAPACITY = "capacity"
    INSERT_STATIC_NAME = "insert with a name of the static table"
    INSERT_DYNAMIC_NAME = "insert with a name of the dynamic table"
    INSERT = "insert with a literal name"
    DUPLICATE = "duplicate"

    @property
    def is_insert(self) -> bool:
        """True if it adds an entry."""
        return self is not InstructionKind.CAPACITY


class Instruction(NamedTuple):
    """An instruction: `number` is its index or the capacity; strings where it has them."""

    kind: InstructionKind
    number: int = 0
    name: bytes = b""
    value: bytes = b""


class EncoderStream:
    """Reads instructions from an encoder stream that comes in pieces."""

    def __init__(self) -> None:
        self._partial = b""

    def feed(self, data: bytes) -> Iterator[Instruction]:
        """Yield the instructions that are whole now."""
        reader = WireReader(self._partial + data)
        consumed = 0
        found = []
        while not reader.is_done:
            try:
                found.append(_instruction(reader))
            except TruncatedError:
                break
            consumed = reader.at
        self._partial = (self._partial + data)[consumed:]
        yield from found


def _instruction(reader: WireReader) -> Instruction:
    first = reader.peek()
    if first & 0x80:
        kind = (
            InstructionKind.INSERT_STATIC_NAME
            if first & 0x40
            else InstructionKind.INSERT_DYNAMIC_NAME
        )
        return Instruction(kind, reader.integer(6), value=reader.string())
    if first & 0x40:
        return Instruction(InstructionKind.INSERT, name=reader.string(5), value=reader.string())
    if first & 0x20:
        return Instruction(InstructionKind.CAPACITY, reader.integer(5))
    return Instruction(InstructionKind.DUPLICATE, reader.integer(5))


def required_insert_count(section: bytes, *, max_table_bytes: int, inserted: int) -> int:
    """Return how many inserts a section needs; *inserted* is how many its reader has seen.

    Implements RFC 9204 § 4.5.1.1.

    >>> required_insert_count(bytes((4, 0)), max_table_bytes=100, inserted=10)
    9
    """
    encoded = WireReader(section).integer(8)
    if encoded == 0:
        return 0
    max_entries = max_table_bytes // ENTRY_OVERHEAD_BYTES
    full_range = 2 * max_entries
    most = inserted + max_entries
    # The number travels modulo the full range: this is the highest that can be meant.
    count = most // full_range * full_range + encoded - 1
    return count - full_range if count > most else count


def insert_count_increment(count: int) -> bytes:
    """Return the instruction of the decoder stream that *count* more inserts have come (§ 4.4.3).

    >>> insert_count_increment(5).hex()
    '05'
    """
    return encode_integer(count, _INCREMENT_BITS)


_NO_LINES = b"\0\0"
"""The prefix of a section without a line, which ls-qpack writes and does not read."""


class QpackEncoder:
    """ls-qpack's encoder.

    It keeps account of at most 64 unacknowledged sections per 5 to 6 kB of table; what comes on top
    does not refer to the table, whatever the limit of blocked streams is. That is ls-qpack's memory
    guard, and cannot be turned off through `pylsqpack`.
    """

    def __init__(self, settings: CodecSettings) -> None:
        pylsqpack: Any = import_extra("pylsqpack")
        self._refused_error: type[Exception] = pylsqpack.DecoderStreamError
        self._qpack: Any = pylsqpack.Encoder()
        self._settings = settings

    def start(self) -> bytes:
        """Return the instruction that sets the table's capacity."""
        settings = self._settings
        begin: bytes = self._qpack.apply_settings(settings.table_bytes, settings.blocked_streams)
        return begin

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the section and what it adds to the encoder stream.

        Raises:
            CodecError: if a field has no name, or one that is too long for ls-qpack.
        """
        try:
            instructions, section = self._qpack.encode(stream_id, list(fields))
        except (ValueError, RuntimeError) as error:
            raise CodecError(f"stream {stream_id}: {error}") from error
        return Encoded(stream_id, section, instructions)

    def on_acked(self, stream_id: int) -> None:
        """Do nothing: acknowledgements come on the decoder stream."""

    def on_feedback(self, data: bytes) -> None:
        """Take acknowledgements of sections, and counts of inserts.

        Raises:
            CodecError: if they are of what was never sent.
        """
        try:
            self._qpack.feed_decoder(data)
        except self._refused_error as error:
            raise CodecError(f"decoder stream: {error}") from error

    def on_packet_boundary(self) -> None:
        """Do nothing."""


class QpackDecoder:
    """ls-qpack's decoder, and the Insert Count Increments, which `pylsqpack` does not give.

    Without those an encoder never learns of inserts that no section referred to; one that may block
    no stream could then never use its table (RFC 9204 § 2.1.4).
    """

    def __init__(self, settings: CodecSettings) -> None:
        pylsqpack: Any = import_extra("pylsqpack")
        self._settings = settings
        self._qpack: Any = pylsqpack.Decoder(settings.table_bytes, settings.blocked_streams)
        self._blocked_error: type[Exception] = pylsqpack.StreamBlocked
        self._refused_error: type[Exception] = pylsqpack.DecompressionFailed
        self._broken_error: type[Exception] = pylsqpack.EncoderStreamError
        self._stream = EncoderStream()
        self._n_inserted = 0
        self._n_reported = 0
        self._feedback: list[bytes] = []
        self._waiting: dict[int, bytes] = {}
        self._held_bytes = 0

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Decode the section, unless inserts are missing that it needs.

        Raises:
            CodecError: if it is broken, or one stream too many would be blocked.
        """
        if data == _NO_LINES:
            return [Decoded(stream_id, ())]
        try:
            feedback, fields = self._qpack.feed_header(stream_id, data)
        except self._refused_error as error:
            raise CodecError(f"stream {stream_id}: {error}") from error
        except self._blocked_error:
            self._waiting[stream_id] = data
            self._held_bytes += len(data)
            return []
        return [self._decoded(stream_id, data, feedback, fields)]

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Take inserts; decode the sections that waited for them.

        Raises:
            CodecError: if they are broken, or do not fit into the table.
        """
        try:
            unblocked = self._qpack.feed_encoder(data)
        except self._broken_error as error:
            raise CodecError(f"encoder stream: {error}") from error
        # Only once ls-qpack has taken them: what it refuses is reported to nobody.
        self._n_inserted += sum(found.kind.is_insert for found in self._stream.feed(data))
        decoded = []
        for stream_id in unblocked:
            feedback, fields = self._qpack.resume_header(stream_id)
            section = self._waiting.pop(stream_id)
            self._held_bytes -= len(section)
            decoded.append(self._decoded(stream_id, section, feedback, fields))
        return decoded

    def take_feedback(self) -> bytes:
        """Return acknowledgements of sections, then the inserts that those do not imply."""
        unreported = self._n_inserted - self._n_reported
        if unreported > 0:
            self._feedback.append(insert_count_increment(unreported))
            self._n_reported = self._n_inserted
        data = b"".join(self._feedback)
        self._feedback.clear()
        return data

    @property
    def held(self) -> Held:
        """The sections that wait: ls-qpack keeps them as they came."""
        return Held(self._held_bytes, self._held_bytes)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams that are blocked, in the order in which they became so."""
        return tuple(self._waiting)

    def _decoded(
        self, stream_id: int, section: bytes, feedback: bytes, fields: Iterable[tuple[bytes, bytes]]
    ) -> Decoded:
        if feedback:
            self._feedback.append(feedback)
            needed = required_insert_count(
                section, max_table_bytes=self._settings.table_bytes, inserted=self._n_inserted
            )
            # An acknowledged section implies the inserts that it needed; to report those again is
            # an error (RFC 9204 § 4.4.3).
            self._n_reported = max(self._n_reported, needed)
        return Decoded(stream_id, tuple(fields))

"""QPACK as deployed (RFC 9204): ls-qpack encodes and decodes; instructions are parsed here."""

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
"""Prefix of an Insert Count Increment (RFC 9204 § 4.4.3)."""


class InstructionKind(enum.Enum):
    """The instructions of the encoder stream (RFC 9204 § 4.3)."""

    CAPACITY = "capacity"
    INSERT_STATIC_NAME = "insert with a name of the static table"
    INSERT_DYNAMIC_NAME = "insert with a name of the dynamic table"
    INSERT = "insert with a literal name"
    DUPLICATE = "duplicate"

    @property
    def is_insert(self) -> bool:
        """True if it inserts an entry."""
        return self is not InstructionKind.CAPACITY


class Instruction(NamedTuple):
    """Instruction of the encoder stream, with the operands that its kind has."""

    kind: InstructionKind
    number: int = 0
    """Index of an entry, or the capacity."""
    name: bytes = b""
    value: bytes = b""


class EncoderStream:
    """Parser of an encoder stream, which may arrive in pieces of any size."""

    def __init__(self) -> None:
        self._partial = b""

    def feed(self, data: bytes) -> Iterator[Instruction]:
        """Yield the instructions that are complete now."""
        data = self._partial + data
        reader = WireReader(data)
        n_parsed = 0
        complete = []
        while not reader.is_done:
            try:
                complete.append(_read_instruction(reader))
            except TruncatedError:
                break
            n_parsed = reader.at
        self._partial = data[n_parsed:]
        yield from complete


def _read_instruction(reader: WireReader) -> Instruction:
    """Read an encoder instruction (RFC 9204 § 4.3)."""
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
    """Return the Required Insert Count of a section, for a reader that has seen *inserted* inserts.

    Implements RFC 9204 § 4.5.1.1.

    >>> required_insert_count(bytes((4, 0)), max_table_bytes=100, inserted=10)
    9
    """
    encoded = WireReader(section).integer(8)
    if encoded == 0:
        return 0
    max_entries = max_table_bytes // ENTRY_OVERHEAD_BYTES
    full_range = 2 * max_entries
    max_count = inserted + max_entries
    # Only the remainder modulo the full range is encoded, plus 1, as 0 stands for no reference.
    count = max_count // full_range * full_range + encoded - 1
    return count - full_range if count > max_count else count


def insert_count_increment(count: int) -> bytes:
    """Return the Insert Count Increment instruction for *count* more inserts (§ 4.4.3).

    >>> insert_count_increment(5).hex()
    '05'
    """
    return encode_integer(count, _INCREMENT_BITS)


_EMPTY_SECTION = b"\0\0"
"""The prefix of a section without lines, which ls-qpack writes but does not read."""


class QpackEncoder:
    """ls-qpack's encoder.

    It tracks at most 64 unacknowledged sections per 5 to 6 kB of table; further sections do not
    refer to the table, whatever the limit of blocked streams. This memory guard of ls-qpack cannot
    be turned off through `pylsqpack`.
    """

    def __init__(self, settings: CodecSettings) -> None:
        pylsqpack: Any = import_extra("pylsqpack")
        self._malformed_error: type[Exception] = pylsqpack.DecoderStreamError
        self._qpack: Any = pylsqpack.Encoder()
        self._settings = settings
        self.n_evicted: int | None = None
        """None: the library does not report evictions."""

    def start(self) -> bytes:
        """Return the instruction that sets the table's capacity."""
        settings = self._settings
        capacity: bytes = self._qpack.apply_settings(settings.table_bytes, settings.blocked_streams)
        return capacity

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the section and its instructions on the encoder stream.

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
        """Process acknowledgements of sections, and insert counts.

        Raises:
            CodecError: if they acknowledge sections or inserts that were never sent.
        """
        try:
            self._qpack.feed_decoder(data)
        except self._malformed_error as error:
            raise CodecError(f"decoder stream: {error}") from error

    def on_packet_boundary(self) -> None:
        """Do nothing."""


class QpackDecoder:
    """ls-qpack's decoder, with the Insert Count Increments that `pylsqpack` lacks.

    Without them an encoder never learns of inserts that no section referred to; an encoder that may
    not block any stream could then never use its table (RFC 9204 § 2.1.4).
    """

    def __init__(self, settings: CodecSettings) -> None:
        pylsqpack: Any = import_extra("pylsqpack")
        self._settings = settings
        self._qpack: Any = pylsqpack.Decoder(settings.table_bytes, settings.blocked_streams)
        self._blocked_error: type[Exception] = pylsqpack.StreamBlocked
        self._malformed_error: type[Exception] = pylsqpack.DecompressionFailed
        self._broken_error: type[Exception] = pylsqpack.EncoderStreamError
        self._parser = EncoderStream()
        self._n_inserted = 0
        self._n_acknowledged = 0
        """Inserts that the encoder knows to have arrived."""
        self._feedback: list[bytes] = []
        self._waiting: dict[int, bytes] = {}
        """Encoded sections of blocked streams."""
        self._held_bytes = 0

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Decode the section, unless it needs inserts that are missing.

        Raises:
            CodecError: if it is malformed, or too many streams would be blocked.
        """
        if data == _EMPTY_SECTION:
            return [Decoded(stream_id, ())]
        try:
            feedback, fields = self._qpack.feed_header(stream_id, data)
        except self._malformed_error as error:
            raise CodecError(f"stream {stream_id}: {error}") from error
        except self._blocked_error:
            self._waiting[stream_id] = data
            self._held_bytes += len(data)
            return []
        return [self._finish_section(stream_id, data, feedback, fields)]

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Process inserts; decode the sections that waited for them.

        Raises:
            CodecError: if they are malformed, or do not fit into the table.
        """
        try:
            unblocked = self._qpack.feed_encoder(data)
        except self._broken_error as error:
            raise CodecError(f"encoder stream: {error}") from error
        # Only after ls-qpack has accepted them: rejected ones are not acknowledged.
        self._n_inserted += sum(each.kind.is_insert for each in self._parser.feed(data))
        decoded = []
        for stream_id in unblocked:
            feedback, fields = self._qpack.resume_header(stream_id)
            section = self._waiting.pop(stream_id)
            self._held_bytes -= len(section)
            decoded.append(self._finish_section(stream_id, section, feedback, fields))
        return decoded

    def take_feedback(self) -> bytes:
        """Return acknowledgements of sections, then the inserts that they do not imply."""
        increment = self._n_inserted - self._n_acknowledged
        if increment > 0:
            self._feedback.append(insert_count_increment(increment))
            self._n_acknowledged = self._n_inserted
        data = b"".join(self._feedback)
        self._feedback.clear()
        return data

    @property
    def held(self) -> Held:
        """The bytes of waiting sections: ls-qpack buffers them as encoded."""
        return Held(self._held_bytes, self._held_bytes)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The blocked streams, in the order in which they became so."""
        return tuple(self._waiting)

    def _finish_section(
        self, stream_id: int, section: bytes, feedback: bytes, fields: Iterable[tuple[bytes, bytes]]
    ) -> Decoded:
        """Return the decoded section, and queue its acknowledgement."""
        if feedback:
            self._feedback.append(feedback)
            needed = required_insert_count(
                section, max_table_bytes=self._settings.table_bytes, inserted=self._n_inserted
            )
            # The acknowledgement implies the inserts that the section needed; acknowledging those
            # again is an error (RFC 9204 § 4.4.3).
            self._n_acknowledged = max(self._n_acknowledged, needed)
        return Decoded(stream_id, tuple(fields))

"""What every header compression scheme promises, over links that lose, repeat and reorder."""

from __future__ import annotations

import functools
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import pylsqpack

from h3sim.headers import CodecSettings, DecodingEnd, EncodingEnd, StreamPart
from h3sim.headers.qpack import EncoderStream, InstructionKind, required_insert_count
from h3sim.headers.wire import WireReader, encode_integer, entry_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.headers import Codec, FieldSection

_REPEATS = 200
"""A choice from here on lets what arrives arrive once more."""


class Script(NamedTuple):
    """Sections to encode, and choices: which of what is under way arrives next, or to encode."""

    sections: tuple[FieldSection, ...]
    settings: CodecSettings
    choices: tuple[int, ...]


class Link:
    """A codec at work: `step` lets one thing happen; `decoded` is what came out."""

    def __init__(self, codec: Codec, script: Script) -> None:
        self.codec = codec
        self.script = script
        self.sender = EncodingEnd(codec.encoder)
        self.receiver = DecodingEnd(codec.decoder)
        self.decoded: dict[int, FieldSection] = {}
        self.sent: list[StreamPart] = []
        self._missing: dict[int, set[int]] = {}
        """Where the pieces of a section begin that have not come."""
        self._under_way: list[tuple[Callable[[StreamPart], None], StreamPart]] = []
        self._n_encoded = 0

    @property
    def is_done(self) -> bool:
        return self._n_encoded == len(self.script.sections) and not self._under_way

    def step(self, choice: int) -> None:
        can_encode = self._n_encoded < len(self.script.sections)
        pick = choice % (len(self._under_way) + can_encode)
        if pick == len(self._under_way):
            self._encode()
            return
        arrives, part = self._under_way[pick]
        if choice < _REPEATS:
            del self._under_way[pick]
        arrives(part)

    def run(self, after_each: Callable[[Link], None] = lambda _: None) -> None:
        for choice in self.script.choices:
            if self.is_done:
                return
            self.step(choice)
            after_each(self)
        while not self.is_done:
            self.step(0)
            after_each(self)

    def run_in_order(self, after_each: Callable[[Link], None]) -> None:
        """Let everything arrive in the order sent; choices say only when to encode."""
        choices = iter(self.script.choices)
        while not self.is_done:
            can_encode = self._n_encoded < len(self.script.sections)
            encodes = can_encode and (not self._under_way or next(choices, 0) % 2)
            self.step(len(self._under_way) if encodes else 0)
            after_each(self)

    def _encode(self) -> None:
        stream_id = 4 * self._n_encoded
        parts = self.sender.encode(stream_id, self.script.sections[self._n_encoded])
        self._n_encoded += 1
        self.sent += parts
        for part in parts:
            # In two pieces where there is something to cut: packets end where they like.
            pieces = part.split(len(part.data) // 2) if len(part.data) > 1 else (part,)
            self._under_way += [(self._deliver, piece) for piece in pieces]
            self._missing[stream_id] = {piece.offset for piece in pieces}

    def _deliver(self, part: StreamPart) -> None:
        for stream_id, fields in self.receiver.deliver(part):
            assert stream_id not in self.decoded, "a section is decoded once"
            self.decoded[stream_id] = fields
        feedback = self.receiver.take_feedback()
        if feedback is not None:
            self._under_way.append((self.sender.on_feedback, feedback))
        missing = self._missing.get(part.stream_id, set())  # type: ignore[arg-type]
        missing.discard(part.offset)
        if part.stream_id is not None and not missing:
            self._under_way.append((self._acknowledge, part))

    def _acknowledge(self, part: StreamPart) -> None:
        self.codec.encoder.on_acked(part.stream_id)  # type: ignore[arg-type]


def check_sections_decode_to_what_was_encoded(codec: Codec, script: Script) -> None:
    """What is decoded is what was encoded, at any time; and in the end all of it."""
    sections = {4 * number: fields for number, fields in enumerate(script.sections)}

    def check(link: Link) -> None:
        for stream_id, fields in link.decoded.items():
            assert fields == sections[stream_id]
        held = link.receiver.decoder.held
        assert bool(link.receiver.decoder.waiting) == bool(held.compressed)

    link = Link(codec, script)
    link.run(check)
    assert link.decoded.keys() == sections.keys()
    assert link.receiver.decoder.held == (0, 0)


def check_nothing_waits_in_order(codec: Codec, script: Script) -> None:
    """If what was sent arrives in the order sent, no section waits."""
    Link(codec, script).run_in_order(_check_nobody_waits)


def check_nothing_ever_waits(codec: Codec, script: Script) -> None:
    """No section waits for what another one brings, whatever the order."""
    Link(codec, script).run(_check_nobody_waits)


def check_the_table_keeps_its_limit(codec: Codec, script: Script) -> None:
    """The encoder's table never takes more than the decoder allows."""
    encoder = codec.encoder

    def check(link: Link) -> None:
        assert encoder.table_bytes <= script.settings.table_bytes  # type: ignore[attr-defined]

    Link(codec, script).run(check)


def check_the_decoder_keeps_no_more_than_the_encoder(codec: Codec, script: Script) -> None:
    """In order the decoder's table never takes more than it allows."""

    def check(link: Link) -> None:
        assert codec.decoder.table_bytes <= script.settings.table_bytes  # type: ignore[attr-defined]

    Link(codec, script).run_in_order(check)


def check_the_encoder_stream_keeps_its_limit(codec: Codec, script: Script) -> None:
    """What goes over QPACK's encoder stream never takes more than the table has."""
    link = Link(codec, script)
    link.run()
    stream, table = EncoderStream(), QpackTable(script.settings.table_bytes)
    for part in link.sent:
        if part.stream_id is None:
            for instruction in stream.feed(part.data):
                table.apply(instruction)


def check_few_streams_can_block(codec: Codec, script: Script) -> None:
    """No more streams than allowed could be blocked, as far as the encoder knows."""
    known = KnownInserts(script.settings)

    def check(link: Link) -> None:
        assert known.risked(link) <= script.settings.blocked_streams

    link = Link(codec, script)
    link.sender.on_feedback = known.watching(link.sender.on_feedback)  # type: ignore[assignment, method-assign]
    link.run(check)


def _check_nobody_waits(link: Link) -> None:
    assert link.receiver.decoder.waiting == ()


@functools.cache
def qpack_static_name(index: int) -> bytes:
    """Return a name of QPACK's static table, as the library knows it."""
    section = b"\0\0" + encode_integer(index, 6, 0xC0)
    return pylsqpack.Decoder(0, 0).feed_header(0, section)[1][0][0]


class QpackTable:
    """A table as the encoder stream builds it (RFC 9204 § 3.2)."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.capacity = 0
        self.entries: deque[tuple[bytes, bytes]] = deque()

    def apply(self, instruction: Any) -> None:
        kind, number, name, value = instruction
        if kind is InstructionKind.CAPACITY:
            assert number <= self.max_bytes, "the capacity is within the setting"
            self.capacity = number
            return
        if kind is InstructionKind.DUPLICATE:
            name, value = self.entries[-1 - number]
        elif kind is InstructionKind.INSERT_DYNAMIC_NAME:
            name = self.entries[-1 - number][0]
        elif kind is InstructionKind.INSERT_STATIC_NAME:
            name = qpack_static_name(number)
        assert entry_bytes(name, value) <= self.capacity, "an entry fits into the table"
        self.entries.append((name, value))
        while sum(entry_bytes(*entry) for entry in self.entries) > self.capacity:
            self.entries.popleft()


class KnownInserts:
    """What the encoder can know of the decoder, from the decoder stream (RFC 9204 § 2.1.4)."""

    def __init__(self, settings: CodecSettings) -> None:
        self._settings = settings
        self._data = b""
        self._stream_offset = 0
        self.count = 0
        self.acked: set[int] = set()
        self._needs: dict[int, int] = {}

    def watching(self, on_feedback: Callable[[StreamPart], None]) -> Callable[[StreamPart], None]:
        parts: dict[int, bytes] = {}

        def watched(part: StreamPart) -> None:
            on_feedback(part)
            parts.setdefault(part.offset, part.data)
            while self._stream_offset in parts:
                data = parts.pop(self._stream_offset)
                self._stream_offset += len(data)
                self._read(data)

        return watched

    def risked(self, link: Link) -> int:
        self._learn(link.sent)
        return sum(
            needs > self.count
            for stream_id, needs in self._needs.items()
            if stream_id not in self.acked
        )

    def _learn(self, sent: Sequence[StreamPart]) -> None:
        stream, inserted = EncoderStream(), 0
        for part in sent:
            if part.stream_id is None:
                inserted += sum(found.kind.is_insert for found in stream.feed(part.data))
            elif part.stream_id not in self._needs:
                self._needs[part.stream_id] = required_insert_count(
                    part.data, max_table_bytes=self._settings.table_bytes, inserted=inserted
                )

    def _read(self, data: bytes) -> None:
        reader = WireReader(data)
        while not reader.is_done:
            first = reader.peek()
            if first & 0x80:
                stream_id = reader.integer(7)
                self.acked.add(stream_id)
                self.count = max(self.count, self._needs[stream_id])
            elif first & 0x40:
                self.acked.add(reader.integer(6))
            else:
                self.count += reader.integer(6)

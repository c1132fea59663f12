"""Both ends of a codec with what lies between taken apart: parts that may arrive in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from h3sim.compression.base import (
        Decoded,
        FieldSection,
        SectionDecoder,
        SectionEncoder,
    )

__all__ = ["DecodingEnd", "EncodingEnd", "StreamPart"]


class StreamPart(NamedTuple):
    """Bytes of a stream from an offset on; `stream_id` None is the encoder or decoder stream.

    A field section begins its stream and ends with the part that `is_last`.
    """

    stream_id: int | None
    offset: int
    data: bytes
    is_last: bool = False

    def split(self, n_bytes: int) -> tuple[StreamPart, StreamPart]:
        """Return the first *n_bytes* and the rest."""
        first = StreamPart(self.stream_id, self.offset, self.data[:n_bytes])
        rest = StreamPart(self.stream_id, self.offset + n_bytes, self.data[n_bytes:], self.is_last)
        return first, rest


class _Assembly:
    """Bytes of one stream, in order whatever order they come in; what comes twice counts once."""

    __slots__ = ("_ends_at", "_parts", "_taken")

    def __init__(self) -> None:
        self._parts: dict[int, bytes] = {}
        self._taken = 0
        self._ends_at: int | None = None

    def add(self, part: StreamPart) -> bytes:
        """Return what is in order now and was not before."""
        if part.is_last:
            self._ends_at = part.offset + len(part.data)
        # What lies before has been read: a copy of it is let go.
        if part.offset >= self._taken:
            self._parts[part.offset] = part.data
        data = b""
        while self._taken in self._parts:
            found = self._parts.pop(self._taken)
            data += found
            self._taken += len(found)
        return data

    def is_whole(self) -> bool:
        """Whether all has come."""
        return self._ends_at == self._taken


class EncodingEnd:
    """An encoder with its streams: what it makes of a section are parts.

    >>> from h3sim.compression import make_codec
    >>> codec = make_codec("hpack")
    >>> sender, receiver = EncodingEnd(codec.encoder), DecodingEnd(codec.decoder)
    >>> fields = ((b"x-name", b"a value"),)
    >>> first, second = (sender.encode(stream_id, fields)[0] for stream_id in (0, 4))
    >>> receiver.deliver(second), receiver.decoder.held.compressed
    ([], 2)
    >>> [decoded.stream_id for decoded in receiver.deliver(first)]
    [0, 4]
    """

    def __init__(self, encoder: SectionEncoder) -> None:
        self.encoder = encoder
        self._n_instruction_bytes = 0
        self._decoder_stream = _Assembly()
        self._begin = encoder.start()

    def encode(self, stream_id: int, fields: FieldSection) -> list[StreamPart]:
        """Return the parts of a section: first what the encoder stream carries, if anything."""
        encoded = self.encoder.encode(stream_id, fields)
        instructions = self._begin + encoded.instructions
        self._begin = b""
        parts = []
        if instructions:
            parts.append(StreamPart(None, self._n_instruction_bytes, instructions))
            self._n_instruction_bytes += len(instructions)
        parts.append(StreamPart(stream_id, 0, encoded.section, is_last=True))
        return parts

    def on_feedback(self, part: StreamPart) -> None:
        """Take a part of the decoder stream."""
        data = self._decoder_stream.add(part)
        if data:
            self.encoder.on_feedback(data)


class DecodingEnd:
    """A decoder with its streams: takes parts in any order, each any number of times."""

    def __init__(self, decoder: SectionDecoder) -> None:
        self.decoder = decoder
        self._encoder_stream = _Assembly()
        self._sections: dict[int, tuple[_Assembly, list[bytes]]] = {}
        self._n_feedback_bytes = 0

    def deliver(self, part: StreamPart) -> list[Decoded]:
        """Take a part; return the sections that are decoded now."""
        if part.stream_id is None:
            data = self._encoder_stream.add(part)
            return self.decoder.on_instructions(data) if data else []
        assembly, pieces = self._sections.setdefault(part.stream_id, (_Assembly(), []))
        if assembly.is_whole():
            return []
        pieces.append(assembly.add(part))
        if not assembly.is_whole():
            return []
        section = b"".join(pieces)
        pieces.clear()
        return self.decoder.on_section(part.stream_id, section)

    def take_feedback(self) -> StreamPart | None:
        """Return what the decoder stream has to carry, or None."""
        data = self.decoder.take_feedback()
        if not data:
            return None
        self._n_feedback_bytes += len(data)
        return StreamPart(None, self._n_feedback_bytes - len(data), data)

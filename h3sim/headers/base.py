"""The interface of header compression schemes, and header lists in QIF."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from h3sim.page import Discovery, Kind, Page, Resource, TriggerEvent
from h3sim.schema import format_value, open_input, shown_path
from h3sim.values.errors import H3SimError, InputError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike


Field: TypeAlias = tuple[bytes, bytes]
"""A field line: its name, in lower case, and its value."""
FieldSection: TypeAlias = tuple[Field, ...]
"""The field lines of a request or response, in order (RFC 9114 § 4.1)."""

_DEFAULT_TABLE_BYTES = 4096
"""SETTINGS_HEADER_TABLE_SIZE of RFC 9113 § 6.5.2, and of Frindell's simulator."""
_DEFAULT_BLOCKED_STREAMS = 100
"""Chrome's value, and that of Frindell's simulator (max_blocking)."""


class CodecError(H3SimError, ValueError):
    """A section that cannot be encoded or decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecSettings:
    """The decoder's limits: bytes of the dynamic table, and blocked streams.

    Raises:
        ValueError: if one of them is negative.
    """

    table_bytes: int = _DEFAULT_TABLE_BYTES
    blocked_streams: int = _DEFAULT_BLOCKED_STREAMS

    def __post_init__(self) -> None:
        for name in ("table_bytes", "blocked_streams"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, is {getattr(self, name)}")


class Encoded(NamedTuple):
    """An encoded field section: bytes of its own stream, and of the encoder stream."""

    stream_id: int
    section: bytes
    instructions: bytes = b""


class Decoded(NamedTuple):
    """A decoded field section."""

    stream_id: int
    fields: FieldSection


class Held(NamedTuple):
    """The bytes that a decoder buffers for sections that it cannot finish yet.

    `compressed` applies to decoding in two steps, which buffers encoded sections until nothing is
    missing; `decompressed` to decoding as far as possible at once. For a scheme that cannot decode
    parts of a section the two are equal (Frindell 2017, point 4).
    """

    compressed: int
    decompressed: int


class SectionEncoder(Protocol):
    """The sending side of a scheme. A stream carries one section."""

    @property
    def n_evicted(self) -> int | None:
        """The entries that were evicted so far; None if the library does not report them."""

    def start(self) -> bytes:
        """Return the initial bytes of the encoder stream."""

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the encoded section, using the acknowledgements so far."""

    def on_acked(self, stream_id: int) -> None:
        """Record that the transport has acknowledged all bytes of a section."""

    def on_feedback(self, data: bytes) -> None:
        """Process bytes of the decoder stream, in order."""

    def on_packet_boundary(self) -> None:
        """Record that the next section begins in a new packet."""


class SectionDecoder(Protocol):
    """The receiving side of a scheme."""

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Process a complete section; return those that can be decoded now, in that order."""

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Process bytes of the encoder stream, in order; return the sections decoded now."""

    def take_feedback(self) -> bytes:
        """Return the bytes of the decoder stream since the last call."""

    @property
    def held(self) -> Held:
        """The bytes buffered for waiting sections."""

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams whose sections wait, in arrival order."""


class Codec(NamedTuple):
    """Both sides of a scheme, for one direction of a connection."""

    encoder: SectionEncoder
    decoder: SectionDecoder


def field_bytes(fields: Iterable[Field]) -> int:
    """Return the uncompressed size of a section: all names and values.

    >>> field_bytes([(b":method", b"GET")])
    10
    """
    return sum(len(name) + len(value) for name, value in fields)


_UNIQUE_VALUE_FIELDS = frozenset({b"content-length", b"if-modified-since", b"last-modified"})
"""Fields whose values hardly ever recur, so that entries for them would be wasted."""


def is_indexed(field: Field) -> bool:
    """Return whether the field should get an entry of the dynamic table.

    Implements proxygen's HeaderIndexingStrategy, which Frindell's simulator uses: no paths with a
    query or of an image, no lengths, no modification times.

    >>> is_indexed((b":path", b"/ajax?n=1")), is_indexed((b"accept", b"text/css"))
    (False, True)
    """
    name, value = field
    if name == b":path":
        return b"=" not in value and b"jpg" not in value
    return name not in _UNIQUE_VALUE_FIELDS


DEFAULT_BODY_BYTES = 10_000
"""The assumed size of a response of unknown size."""
_CONTENT_LENGTH = b"content-length"
_MAX_LENGTH_DIGITS = 12
"""A content-length of more digits is implausible, and counts as unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request with its response; times count from the first request.

    Either may be empty: a file of header lists may have one direction only.
    """

    requested_at_ns: int
    request: FieldSection
    response: FieldSection = ()
    responded_at_ns: int = 0


class TimedSection(NamedTuple):
    """A field section, with its encoding time."""

    at_ns: int
    fields: FieldSection


@dataclass(frozen=True, kw_only=True)
class HeaderLists:
    """The header lists of requests, or *of_responses*, which a sweep sends instead of a page.

    >>> lists = HeaderLists.of([TimedSection(0, ((b"a", b"b"),)), TimedSection(5, ((b"c", b"d"),))])
    >>> [section.at_ns for section in lists.sections], lists.page.resources[1].discovered.delay_ns
    ([0, 5], 5)
    """

    name: str = "header lists"
    exchanges: tuple[Exchange, ...]
    of_responses: bool = False

    @classmethod
    def of(cls, requests: Iterable[TimedSection], name: str = "header lists") -> HeaderLists:
        """Return the lists of *requests*, whose responses are unknown."""
        timed = (Exchange(requested_at_ns=at_ns, request=fields) for at_ns, fields in requests)
        return cls(name=name, exchanges=tuple(timed))

    @property
    def recorded_load(self) -> None:
        """None: lists do not describe the path that they were recorded over."""

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all lists and their times: equal for equal runs."""
        import hashlib  # on use, as for pages

        return hashlib.sha256(repr((self.exchanges, self.of_responses)).encode()).hexdigest()

    @property
    def total_bytes(self) -> int:
        """The bytes of all names and values of its direction."""
        return sum(len(n) + len(v) for section in self.sections for n, v in section.fields)

    @cached_property
    def sections(self) -> tuple[TimedSection, ...]:
        """The lists of its direction, in the order in which they are sent."""
        return (responses_of if self.of_responses else requests_of)(self.exchanges)

    @cached_property
    def in_order(self) -> tuple[Exchange, ...]:
        """The exchanges in request order, without those that lack its direction."""
        listed = (
            exchange
            for exchange in self.exchanges
            if (exchange.response if self.of_responses else exchange.request)
        )
        return tuple(sorted(listed, key=lambda exchange: exchange.requested_at_ns))

    @cached_property
    def page(self) -> Page:
        """The page that makes these requests at their times, independent of the responses.

        The size of a response is its content-length, or `DEFAULT_BODY_BYTES`.
        """
        first_ns = self.in_order[0].requested_at_ns
        resources = [
            Resource(
                id=str(number),
                kind=Kind.OTHER if number else Kind.DOCUMENT,
                size_bytes=_body_bytes(exchange.response),
                discovered=Discovery(
                    at=TriggerEvent.TIME, delay_ns=exchange.requested_at_ns - first_ns
                ),
            )
            for number, exchange in enumerate(self.in_order)
        ]
        resources[0] = replace(resources[0], discovered=None)
        return Page(name=self.name or "header lists", resources=tuple(resources))


def requests_of(exchanges: Iterable[Exchange]) -> tuple[TimedSection, ...]:
    """Return the requests by time; equal times keep their order."""
    timed = (
        TimedSection(exchange.requested_at_ns, exchange.request)
        for exchange in exchanges
        if exchange.request
    )
    return tuple(sorted(timed, key=lambda section: section.at_ns))


def responses_of(exchanges: Iterable[Exchange]) -> tuple[TimedSection, ...]:
    """Return the responses by start time; equal times keep their order."""
    timed = (
        TimedSection(exchange.responded_at_ns, exchange.response)
        for exchange in exchanges
        if exchange.response
    )
    return tuple(sorted(timed, key=lambda section: section.at_ns))


def _body_bytes(response: FieldSection) -> int:
    text = dict(response).get(_CONTENT_LENGTH, b"")
    if text.isdigit() and len(text) <= _MAX_LENGTH_DIGITS:
        return int(text)
    return DEFAULT_BODY_BYTES


_NOTHING_HELD = Held(0, 0)


@dataclass(slots=True)
class SectionTimes:
    """Times of a section: encoded, completely received, decoded."""

    encoded_at_ns: int
    arrived_at_ns: int = 0
    decoded_at_ns: int = 0

    @property
    def hol_ns(self) -> int:
        """The time it was blocked at the decoder by references to later data."""
        return self.decoded_at_ns - self.arrived_at_ns


@dataclass(slots=True)
class HeaderRun:
    """The sections in encoding order, and the bytes sent for them, encoder stream included.

    Packets are all that were sent, including lost ones.
    """

    sections: list[SectionTimes] = field(default_factory=list)
    n_bytes: int = 0
    uncompressed_bytes: int = 0
    n_packets: int = 0
    n_lost: int = 0
    max_held: Held = _NOTHING_HELD
    n_evicted: int | None = None
    """Entries evicted from the encoder's table; None if the library does not report them."""

    @classmethod
    def over(cls, runs: Iterable[HeaderRun]) -> HeaderRun:
        """Return the sums over several connections; of buffered bytes, the maximum."""
        total = cls()
        for run in runs:
            total.sections += run.sections
            total.n_bytes += run.n_bytes
            total.uncompressed_bytes += run.uncompressed_bytes
            total.n_packets += run.n_packets
            total.n_lost += run.n_lost
            total.note_held(run.max_held)
            if run.n_evicted is not None:
                total.n_evicted = (total.n_evicted or 0) + run.n_evicted
        return total

    def note_held(self, held: Held) -> None:
        """Record the bytes that a decoder buffers now."""
        self.max_held = Held(*map(max, held, self.max_held))


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


class _StreamAssembly:
    """Reassembly of one stream: bytes in order, each once, from parts in any order."""

    __slots__ = ("_early_parts", "_ends_at", "_n_in_order")

    def __init__(self) -> None:
        self._early_parts: dict[int, bytes] = {}
        self._n_in_order = 0
        self._ends_at: int | None = None

    def add(self, part: StreamPart) -> bytes:
        """Return the bytes that are in order now and were not before."""
        if part.is_last:
            self._ends_at = part.offset + len(part.data)
        # A duplicate of bytes that were returned already is ignored.
        if part.offset >= self._n_in_order:
            self._early_parts[part.offset] = part.data
        data = b""
        while self._n_in_order in self._early_parts:
            next_bytes = self._early_parts.pop(self._n_in_order)
            data += next_bytes
            self._n_in_order += len(next_bytes)
        return data

    def is_complete(self) -> bool:
        """Return whether the stream is complete."""
        return self._ends_at == self._n_in_order


class EncodingEnd:
    """An encoder with its streams: turns sections into stream parts.

    >>> from h3sim.headers import make_codec
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
        """Bytes of the encoder stream so far, the offset of its next part."""
        self._decoder_stream = _StreamAssembly()
        self._start_bytes = encoder.start()
        """Initial bytes of the encoder stream, which precede the first instructions."""

    def encode(self, stream_id: int, fields: FieldSection) -> list[StreamPart]:
        """Return the parts of a section: first those of the encoder stream, if any."""
        encoded = self.encoder.encode(stream_id, fields)
        instructions = self._start_bytes + encoded.instructions
        self._start_bytes = b""
        parts = []
        if instructions:
            parts.append(StreamPart(None, self._n_instruction_bytes, instructions))
            self._n_instruction_bytes += len(instructions)
        parts.append(StreamPart(stream_id, 0, encoded.section, is_last=True))
        return parts

    def on_feedback(self, part: StreamPart) -> None:
        """Process a part of the decoder stream."""
        data = self._decoder_stream.add(part)
        if data:
            self.encoder.on_feedback(data)


class DecodingEnd:
    """A decoder with its streams: accepts parts in any order, and duplicates."""

    def __init__(self, decoder: SectionDecoder) -> None:
        self.decoder = decoder
        self._encoder_stream = _StreamAssembly()
        self._sections: dict[int, tuple[_StreamAssembly, list[bytes]]] = {}
        """Reassembly and bytes so far of the section on each stream."""
        self._n_feedback_bytes = 0
        """Bytes of the decoder stream so far, the offset of its next part."""

    def deliver(self, part: StreamPart) -> list[Decoded]:
        """Process a part; return the sections that are decoded now."""
        if part.stream_id is None:
            data = self._encoder_stream.add(part)
            return self.decoder.on_instructions(data) if data else []
        assembly, pieces = self._sections.setdefault(part.stream_id, (_StreamAssembly(), []))
        if assembly.is_complete():
            return []
        pieces.append(assembly.add(part))
        if not assembly.is_complete():
            return []
        section = b"".join(pieces)
        pieces.clear()  # releases their memory
        return self.decoder.on_section(part.stream_id, section)

    def take_feedback(self) -> StreamPart | None:
        """Return the pending bytes of the decoder stream, or None."""
        data = self.decoder.take_feedback()
        if not data:
            return None
        self._n_feedback_bytes += len(data)
        return StreamPart(None, self._n_feedback_bytes - len(data), data)


_MAX_FILE_BYTES = 64 * 2**20
"""Size limit of files of header lists."""
_COMMENT_MARK = b"#"
_TIME_COMMENT = re.compile(rb"# at_ms (\d{1,9}(?:\.\d{1,9})?)")
"""Comment with the send time of the next list, an addition of h3sim to QIF."""


class HeaderListError(InputError):
    """A file of header lists that cannot be used."""


class TimedList(NamedTuple):
    """A header list of a file, with its send time in ms, if the file has it."""

    fields: FieldSection
    at_ms: float | None = None


def read_qif(path: str | PathLike[str]) -> tuple[TimedList, ...]:
    """Return the header lists of the file at *path*, in order.

    Raises:
        HeaderListError: if it cannot be read, has no lists, or has lines that are not fields.
    """
    with open_input(path, HeaderListError) as file:
        # One byte more than allowed detects a file that is too large without reading all of it.
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        message = f"is larger than {_MAX_FILE_BYTES >> 20} MiB"
        raise HeaderListError.at("", message, shown_path(path))
    return parse_qif(data, source=shown_path(path))


def parse_qif(data: bytes, *, source: str = "") -> tuple[TimedList, ...]:
    r"""Return the header lists that the bytes of a QIF file hold.

    >>> for fields, at_ms in parse_qif(b"# at_ms 2.5\n:method\tGET\nx\t\n\n:method\tPOST\n"):
    ...     print(at_ms, fields)
    2.5 ((b':method', b'GET'), (b'x', b''))
    None ((b':method', b'POST'),)

    Raises:
        HeaderListError: if there is none, or lines are no fields; each with its number.
    """
    reader = _QifParser()
    for number, line in enumerate(data.split(b"\n"), start=1):
        reader.take(number, line.removesuffix(b"\r"))
    # Ends the last list, which may lack its empty line.
    reader.take(0, b"")
    if not reader.lists and not reader.problems:
        reader.problems.append(ValidationIssue(key="", message="has no header lists"))
    if reader.problems:
        raise HeaderListError(reader.problems, source)
    return tuple(reader.lists)


class _QifParser:
    """Parser of the lines of a QIF file."""

    def __init__(self) -> None:
        self.lists: list[TimedList] = []
        self.problems: list[ValidationIssue] = []
        self._fields: list[Field] = []
        self._at_ms: float | None = None

    def take(self, number: int, text: bytes) -> None:
        """Process the line with that number."""
        if text.startswith(_COMMENT_MARK):
            timed = _TIME_COMMENT.fullmatch(text)
            if timed:
                self._at_ms = float(timed[1])
        elif text:
            name, tab, value = text.partition(b"\t")
            if not name or not tab:
                readable = format_value(text.decode("utf-8", "backslashreplace"))
                message = f"must be a name, a tab and a value, is {readable}"
                self.problems.append(ValidationIssue(key=f"line {number}", message=message))
            self._fields.append((name, value))
        elif self._fields:
            self.lists.append(TimedList(tuple(self._fields), self._at_ms))
            self._fields, self._at_ms = [], None

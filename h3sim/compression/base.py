"""What every header compression scheme offers: an encoder, a decoder, and values between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from h3sim.errors import H3SimError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Codec",
    "CodecError",
    "CodecSettings",
    "Decoded",
    "Encoded",
    "Field",
    "FieldSection",
    "Held",
    "SectionDecoder",
    "SectionEncoder",
    "field_bytes",
]

Field: TypeAlias = tuple[bytes, bytes]
"""A field line: its name, in small letters, and its value."""
FieldSection: TypeAlias = tuple[Field, ...]
"""The field lines of a request or of a response, in order (RFC 9114 § 4.1)."""

_DEFAULT_TABLE_BYTES = 4096
"""SETTINGS_HEADER_TABLE_SIZE as RFC 9113 § 6.5.2 has it, and Frindell's simulator."""
_DEFAULT_BLOCKED_STREAMS = 100
"""As Chrome has it, and Frindell's simulator (max_blocking)."""


class CodecError(H3SimError, ValueError):
    """A section cannot be encoded or decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecSettings:
    """What the decoder allows: the dynamic table's bytes, and how many streams may be blocked.

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
    """A field section as it travels: bytes of its own stream, and of the encoder stream."""

    stream_id: int
    section: bytes
    instructions: bytes = b""


class Decoded(NamedTuple):
    """A field section that is decoded now."""

    stream_id: int
    fields: FieldSection


class Held(NamedTuple):
    """The bytes that a decoder holds of sections that it cannot finish yet.

    `compressed` is what it holds if it decodes in two steps, and keeps a section as it came until
    nothing is missing; `decompressed` what it holds if it decodes as far as it can at once. For a
    scheme that cannot decode a part of a section the two are the same (Frindell 2017, point 4).
    """

    compressed: int
    decompressed: int


class SectionEncoder(Protocol):
    """The sending side of a scheme. A stream carries one section."""

    def start(self) -> bytes:
        """Return what the encoder stream begins with."""

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the section as it travels, given what was acknowledged so far."""

    def on_acked(self, stream_id: int) -> None:
        """Learn from the transport that all bytes of a section have arrived."""

    def on_feedback(self, data: bytes) -> None:
        """Take bytes of the decoder stream, in order."""

    def on_packet_boundary(self) -> None:
        """Learn that the next section begins in another packet than the last."""


class SectionDecoder(Protocol):
    """The receiving side of a scheme."""

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Take a whole section; return what can be decoded now, in the order it became so."""

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Take bytes of the encoder stream, in order; return what can be decoded now."""

    def take_feedback(self) -> bytes:
        """Return what the decoder stream has to carry since this was last asked."""

    @property
    def held(self) -> Held:
        """The bytes of sections that wait."""

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams whose sections wait, in the order in which they came."""


class Codec(NamedTuple):
    """Both sides of a scheme, for one direction of a connection."""

    encoder: SectionEncoder
    decoder: SectionDecoder


def field_bytes(fields: Iterable[Field]) -> int:
    """Return the size of a section without compression: of all names and values.

    >>> field_bytes([(b":method", b"GET")])
    10
    """
    return sum(len(name) + len(value) for name, value in fields)

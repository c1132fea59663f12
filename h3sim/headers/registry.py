"""The header compression schemes by name, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.headers.base import Codec, CodecSettings
from h3sim.headers.early_qpack import EarlyQpackDecoder, EarlyQpackEncoder
from h3sim.headers.hpack import HpackDecoder, HpackEncoder
from h3sim.headers.qcram import QcramDecoder, QcramEncoder
from h3sim.headers.qpack import QpackDecoder, QpackEncoder
from h3sim.values.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.headers.base import FieldSection, SectionDecoder, SectionEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecScheme:
    """A header compression scheme: its encoder and decoder factories, and its source."""

    name: str
    title: str
    source: str
    make_encoder: Callable[[CodecSettings], SectionEncoder]
    make_decoder: Callable[[CodecSettings], SectionDecoder]


def _without_table(settings: CodecSettings) -> CodecSettings:
    """Return settings without a dynamic table, whatever *settings* allow."""
    del settings
    return CodecSettings(table_bytes=0, blocked_streams=0)


_SCHEMES = {
    scheme.name: scheme
    for scheme in (
        CodecScheme(
            name="hpack",
            title="HPACK, decoded in encoding order",
            source="RFC 7541; draft-ietf-quic-http-03",
            make_encoder=HpackEncoder,
            make_decoder=HpackDecoder,
        ),
        CodecScheme(
            name="qpack",
            title="QPACK as deployed",
            source="RFC 9204; ls-qpack",
            make_encoder=QpackEncoder,
            make_decoder=QpackDecoder,
        ),
        CodecScheme(
            name="static",
            title="QPACK without a dynamic table",
            source="RFC 9204; as in quiche",
            make_encoder=lambda settings: QpackEncoder(_without_table(settings)),
            make_decoder=lambda settings: QpackDecoder(_without_table(settings)),
        ),
        CodecScheme(
            name="early-qpack",
            title="QPACK of 2017: explicit indices; a field waits for its entry",
            source="draft-bishop-quic-http-and-qpack",
            make_encoder=EarlyQpackEncoder,
            make_decoder=EarlyQpackDecoder,
        ),
        CodecScheme(
            name="early-qpack-safe",
            title="QPACK of 2017 with QCRAM's rule: no reference to unacknowledged entries",
            source="Frindell 2017, point 2",
            make_encoder=lambda settings: EarlyQpackEncoder(settings, avoids_vulnerable=True),
            make_decoder=EarlyQpackDecoder,
        ),
        CodecScheme(
            name="early-qpack-keep",
            title="QPACK of 2017 that never deletes a referenced entry",
            source="Frindell 2017, implementation considerations",
            make_encoder=lambda settings: EarlyQpackEncoder(settings, keeps_used=True),
            make_decoder=EarlyQpackDecoder,
        ),
        CodecScheme(
            name="qcram",
            title="QCRAM: HPACK that refers only to acknowledged entries",
            source="draft-krasic-quic-qcram-01",
            make_encoder=QcramEncoder,
            make_decoder=QcramDecoder,
        ),
        CodecScheme(
            name="qcram-packets",
            title="QCRAM that also refers to entries of the same packet",
            source="draft-krasic-quic-qcram-01",
            make_encoder=lambda settings: QcramEncoder(settings, coordinates_packets=True),
            make_decoder=QcramDecoder,
        ),
    )
}

CODEC_NAMES = tuple(_SCHEMES)
"""The names of all schemes."""


def codec_scheme(name: str) -> CodecScheme:
    """Return the scheme of that name.

    Raises:
        UnknownNameError: if there is no such scheme.
    """
    if name not in _SCHEMES:
        raise UnknownNameError(
            "codec", name, CODEC_NAMES, shown_by="h3sim header-compression --help"
        )
    return _SCHEMES[name]


def make_codec(name: str, settings: CodecSettings | None = None) -> Codec:
    """Return an encoder and a decoder of the scheme *name*, for one direction of a connection.

    Raises:
        UnknownNameError: if there is no such scheme.
        MissingExtraError: if a library that it needs is not installed.
    """
    scheme = codec_scheme(name)
    allowed = settings or CodecSettings()
    return Codec(scheme.make_encoder(allowed), scheme.make_decoder(allowed))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderCompression:
    """Header compression of a load, in both directions.

    Unless *blocks*, a section can be decoded on arrival, whatever it refers to. No real decoder can
    do that; it separates the cost of blocking from the cost of bytes. *lists* are the sections of
    request and response for each resource of the page; by default they are derived from the page
    (`synthetic_headers`).

    Raises:
        UnknownNameError: if there is no such codec.
    """

    codec: str
    settings: CodecSettings = CodecSettings()  # noqa: RUF009 - it is frozen
    blocks: bool = True
    lists: tuple[tuple[FieldSection, FieldSection], ...] | None = None

    def __post_init__(self) -> None:
        codec_scheme(self.codec)

    def check(self) -> None:
        """Check that the codec can be created.

        Raises:
            MissingExtraError: if a library that it needs is not installed.
        """
        make_codec(self.codec, self.settings)

    @property
    def name(self) -> str:
        """The codec's name, in rows and errors."""
        return self.codec

"""The schemes by name, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.errors import UnknownNameError
from h3sim.headers.base import Codec, CodecSettings
from h3sim.headers.early_qpack import EarlyQpackDecoder, EarlyQpackEncoder
from h3sim.headers.hpack import HpackDecoder, HpackEncoder
from h3sim.headers.qcram import QcramDecoder, QcramEncoder
from h3sim.headers.qpack import QpackDecoder, QpackEncoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.headers.base import FieldSection, SectionDecoder, SectionEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecScheme:
    """A header compression scheme: what makes its two sides, and where it is written down."""

    name: str
    title: str
    source: str
    make_encoder: Callable[[CodecSettings], SectionEncoder]
    make_decoder: Callable[[CodecSettings], SectionDecoder]


def _static(settings: CodecSettings) -> CodecSettings:
    del settings
    return CodecSettings(table_bytes=0, blocked_streams=0)


_SCHEMES = {
    scheme.name: scheme
    for scheme in (
        CodecScheme(
            name="hpack",
            title="HPACK, decoded in the order of encoding",
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
            source="RFC 9204; as quiche has it",
            make_encoder=lambda settings: QpackEncoder(_static(settings)),
            make_decoder=lambda settings: QpackDecoder(_static(settings)),
        ),
        CodecScheme(
            name="early-qpack",
            title="QPACK of 2017: explicit indices, and fields that wait",
            source="draft-bishop-quic-http-and-qpack",
            make_encoder=EarlyQpackEncoder,
            make_decoder=EarlyQpackDecoder,
        ),
        CodecScheme(
            name="early-qpack-safe",
            title="QPACK of 2017 with QCRAM's rule: no reference to what is not acknowledged",
            source="Frindell 2017, point 2",
            make_encoder=lambda settings: EarlyQpackEncoder(settings, avoids_vulnerable=True),
            make_decoder=EarlyQpackDecoder,
        ),
        CodecScheme(
            name="early-qpack-keep",
            title="QPACK of 2017 that never deletes an entry which was used",
            source="Frindell 2017, implementation considerations",
            make_encoder=lambda settings: EarlyQpackEncoder(settings, keeps_used=True),
            make_decoder=EarlyQpackDecoder,
        ),
        CodecScheme(
            name="qcram",
            title="QCRAM: HPACK that refers to acknowledged entries only",
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
        UnknownNameError: if there is none.
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

    Where nothing *blocks*, a section can be read once it has arrived, whatever it refers to. No
    decoder can do that: it is there to tell what blocking costs from what bytes cost. *lists* are
    the sections of request and response for each resource of the page; without them they follow
    from the page (`page_sections`).

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
        """Make the codec once.

        Raises:
            MissingExtraError: if a library that it needs is not installed.
        """
        make_codec(self.codec, self.settings)

    @property
    def name(self) -> str:
        """The codec, by which rows and errors call it."""
        return self.codec

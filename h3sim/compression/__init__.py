"""Header compression: HPACK in sequence, QPACK, early QPACK, QCRAM, and what lies between them.

All schemes have one face. An encoder makes of a field section the bytes of its stream, and for some
schemes bytes of an encoder stream; a decoder takes both in any order, and says what is decoded now.

>>> codec = make_codec("static")
>>> encoded = codec.encoder.encode(0, ((b":method", b"GET"), (b":path", b"/")))
>>> len(encoded.section), codec.decoder.on_section(0, encoded.section)[0].fields
(4, ((b':method', b'GET'), (b':path', b'/')))
"""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.compression.base import (
        Codec,
        CodecError,
        CodecSettings,
        Decoded,
        Encoded,
        Field,
        FieldSection,
        Held,
        SectionDecoder,
        SectionEncoder,
        field_bytes,
    )
    from h3sim.compression.delivery import DecodingEnd, EncodingEnd, StreamPart
    from h3sim.compression.registry import (
        CODEC_NAMES,
        CodecScheme,
        HeaderCompression,
        codec_scheme,
        make_codec,
    )

__all__ = [
    "CODEC_NAMES",
    "Codec",
    "CodecError",
    "CodecScheme",
    "CodecSettings",
    "Decoded",
    "DecodingEnd",
    "Encoded",
    "EncodingEnd",
    "Field",
    "FieldSection",
    "HeaderCompression",
    "Held",
    "SectionDecoder",
    "SectionEncoder",
    "StreamPart",
    "codec_scheme",
    "field_bytes",
    "make_codec",
]

__getattr__, __dir__ = attach(
    __name__,
    base=(
        "Codec CodecError CodecSettings Decoded Encoded Field FieldSection Held SectionDecoder"
        " SectionEncoder field_bytes"
    ),
    delivery="DecodingEnd EncodingEnd StreamPart",
    registry="CODEC_NAMES CodecScheme HeaderCompression codec_scheme make_codec",
)

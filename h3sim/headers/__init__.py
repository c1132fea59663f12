"""Header compression: HPACK decoded in sequence, QPACK, early QPACK and QCRAM.

All schemes share one interface. An encoder turns a field section into bytes of its stream, and in
some schemes bytes of an encoder stream; a decoder accepts both in any order, and returns the
sections that become decodable.

>>> codec = make_codec("static")
>>> encoded = codec.encoder.encode(0, ((b":method", b"GET"), (b":path", b"/")))
>>> len(encoded.section), codec.decoder.on_section(0, encoded.section)[0].fields
(4, ((b':method', b'GET'), (b':path', b'/')))
"""

from h3sim.headers.base import (
    Codec,
    CodecError,
    CodecSettings,
    Decoded,
    DecodingEnd,
    Encoded,
    EncodingEnd,
    Field,
    FieldSection,
    Held,
    SectionDecoder,
    SectionEncoder,
    StreamPart,
    field_bytes,
)
from h3sim.headers.registry import (
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

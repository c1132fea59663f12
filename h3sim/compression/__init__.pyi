"""The public names of `h3sim.compression`, each loaded when it is first used."""

from h3sim.compression.base import (
    Codec as Codec,
    CodecError as CodecError,
    CodecSettings as CodecSettings,
    Decoded as Decoded,
    Encoded as Encoded,
    Field as Field,
    FieldSection as FieldSection,
    Held as Held,
    SectionDecoder as SectionDecoder,
    SectionEncoder as SectionEncoder,
    field_bytes as field_bytes,
)
from h3sim.compression.delivery import (
    DecodingEnd as DecodingEnd,
    EncodingEnd as EncodingEnd,
    StreamPart as StreamPart,
)
from h3sim.compression.registry import (
    CODEC_NAMES as CODEC_NAMES,
    CodecScheme as CodecScheme,
    HeaderCompression as HeaderCompression,
    codec_scheme as codec_scheme,
    make_codec as make_codec,
)

__all__: list[str]

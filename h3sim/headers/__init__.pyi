"""The public names of `h3sim.headers`, each loaded when it is first used."""

from h3sim.headers.base import Codec as Codec
from h3sim.headers.base import CodecError as CodecError
from h3sim.headers.base import CodecSettings as CodecSettings
from h3sim.headers.base import Decoded as Decoded
from h3sim.headers.base import DecodingEnd as DecodingEnd
from h3sim.headers.base import Encoded as Encoded
from h3sim.headers.base import EncodingEnd as EncodingEnd
from h3sim.headers.base import Field as Field
from h3sim.headers.base import FieldSection as FieldSection
from h3sim.headers.base import Held as Held
from h3sim.headers.base import SectionDecoder as SectionDecoder
from h3sim.headers.base import SectionEncoder as SectionEncoder
from h3sim.headers.base import StreamPart as StreamPart
from h3sim.headers.base import field_bytes as field_bytes
from h3sim.headers.registry import CODEC_NAMES as CODEC_NAMES
from h3sim.headers.registry import CodecScheme as CodecScheme
from h3sim.headers.registry import HeaderCompression as HeaderCompression
from h3sim.headers.registry import codec_scheme as codec_scheme
from h3sim.headers.registry import make_codec as make_codec

__all__: list[str]

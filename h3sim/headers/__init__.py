"""Header compression: HPACK in sequence, QPACK, early QPACK, QCRAM, and what lies between them.

All schemes have one face. An encoder makes of a field section the bytes of its stream, and for some
schemes bytes of an encoder stream; a decoder takes both in any order, and says what is decoded now.

>>> codec = make_codec("static")
>>> encoded = codec.encoder.encode(0, ((b":method", b"GET"), (b":path", b"/")))
>>> len(encoded.section), codec.decoder.on_section(0, encoded.section)[0].fields
(4, ((b':method', b'GET'), (b':path', b'/')))
"""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

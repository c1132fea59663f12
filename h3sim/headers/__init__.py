"""Header compression: HPACK decoded in sequence, QPACK, early QPACK and QCRAM.

All schemes share one interface. An encoder turns a field section into bytes of its stream, and in
some schemes bytes of an encoder stream; a decoder accepts both in any order, and returns the
sections that become decodable.

>>> codec = make_codec("static")
>>> encoded = codec.encoder.encode(0, ((b":method", b"GET"), (b":path", b"/")))
>>> len(encoded.section), codec.decoder.on_section(0, encoded.section)[0].fields
(4, ((b':method', b'GET'), (b':path', b'/')))
"""

from h3sim.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

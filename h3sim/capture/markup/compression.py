"""How large a file is on the wire, and how much of it a browser has after so many bytes."""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_right
from typing import NamedTuple

from h3sim.capture.markup.file_types import is_compressible, mime_of_extension

__all__ = ["Served", "WireOffsets", "serve"]

_LEVEL = 6
"""The level that servers use when nothing is set (zlib's own default)."""
_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS
_LEAST_STEP = 8
_MOST_STEPS = 20_000


class WireOffsets:
    """Says how many bytes of a compressed body bring so many of its plain bytes.

    Where only the plain body is known, it is compressed again (zlib, level 6), and the places in
    that are stretched to the size on the wire; *packed* is the compressed body where it is at hand.

    >>> WireOffsets(b"x" * 1000, 1000).wire(10), WireOffsets(b"abc" * 1000, 50).wire(3000)
    (10, 50)
    """

    def __init__(self, plain: bytes, wire_bytes: int, packed: bytes | None = None) -> None:
        self._wire_bytes = wire_bytes
        self._plain_bytes = len(plain)
        self._plain: list[int] | None = None
        if wire_bytes < len(plain):
            packed = zlib.compress(plain, _LEVEL) if packed is None else packed
            unpacker = zlib.decompressobj(_ZLIB_OR_GZIP)
            # So that not more than 20,000 places are kept, however long the body is.
            self._step = max(_LEAST_STEP, len(packed) // _MOST_STEPS)
            self._packed_bytes = len(packed)
            self._plain, decoded = [0], 0
            for start in range(0, len(packed), self._step):
                decoded += len(unpacker.decompress(packed[start : start + self._step]))
                self._plain.append(decoded)

    def wire(self, plain_offset: int) -> int:
        """Return how many bytes of the body on the wire bring *plain_offset* bytes of it."""
        if plain_offset >= self._plain_bytes:
            return self._wire_bytes
        if self._plain is None:
            return min(plain_offset, self._wire_bytes)
        # The first step after which that many bytes are out.
        steps = bisect_right(self._plain, max(plain_offset - 1, 0))
        packed = min(steps * self._step, self._packed_bytes)
        return min(self._wire_bytes, round(packed * self._wire_bytes / self._packed_bytes))


class Served(NamedTuple):
    """A file as a server sends it; without *offsets* it is sent as it is, or nobody asks."""

    size_bytes: int
    offsets: WireOffsets | None = None

    def sent_for(self, decoded_offset: int) -> int:
        """Return how many bytes must arrive before that many are decoded."""
        if self.offsets is None:
            return min(decoded_offset, self.size_bytes)
        return self.offsets.wire(decoded_offset)


def serve(data: bytes, extension: str, *, with_offsets: bool = False) -> Served:
    """Return *data* as served: text is compressed with gzip where that makes it smaller.

    >>> serve(b"a" * 1000, "css").size_bytes < 100, serve(b"a" * 1000, "png").size_bytes
    (True, 1000)
    """
    if not is_compressible(mime_of_extension(extension)):
        return Served(len(data))
    packed = gzip.compress(data, _LEVEL, mtime=0)
    if len(packed) >= len(data):
        return Served(len(data))
    offsets = WireOffsets(data, len(packed), packed) if with_offsets else None
    return Served(len(packed), offsets)

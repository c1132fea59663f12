"""Content encoding: media types, compressed sizes, and the mapping of offsets."""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_right

_LEVEL = 6
"""Default compression level of servers and of zlib."""
_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS
_LEAST_STEP = 8
_MOST_STEPS = 20_000
_MIMES = {
    **{end: f"image/{end}" for end in ("avif", "gif", "jpeg", "png", "webp")},
    **{end: f"font/{end}" for end in ("otf", "ttf", "woff", "woff2")},
    **{end: f"text/{end}" for end in ("css", "html", "vtt")},
    **{end: f"application/{end}" for end in ("json", "wasm", "xml")},
    "eot": "application/vnd.ms-fontobject",
    "htm": "text/html",
    "ico": "image/x-icon",
    "jpg": "image/jpeg",
    **dict.fromkeys(("js", "mjs"), "text/javascript"),
    "map": "application/json",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "webm": "video/webm",
    "webmanifest": "application/manifest+json",
    "xhtml": "application/xhtml+xml",
}
"""Media types that must not depend on this machine's tables."""
_COMPRESSED = frozenset(
    (
        *("application/json", "application/manifest+json", "application/vnd.ms-fontobject"),
        *("application/wasm", "application/xhtml+xml", "application/xml"),
        *("font/otf", "font/ttf", "image/svg+xml", "image/x-icon"),
    )
)
"""Media types besides text that servers compress; other formats are already compressed."""


class WireOffsets:
    """Mapping of offsets in a decoded body to offsets in the compressed body.

    If only the decoded body is known, it is compressed again (zlib, level 6) and the offsets are
    scaled to the size on the wire; *packed* is the compressed body, if known.

    >>> WireOffsets(b"x" * 1000, 1000).wire(10), WireOffsets(b"abc" * 1000, 50).wire(3000)
    (10, 50)
    """

    def __init__(self, plain: bytes, wire_bytes: int, packed: bytes | None = None) -> None:
        self.wire_bytes = wire_bytes
        self._plain_bytes = len(plain)
        self._plain: list[int] | None = None
        if wire_bytes < len(plain):
            packed = zlib.compress(plain, _LEVEL) if packed is None else packed
            unpacker = zlib.decompressobj(_ZLIB_OR_GZIP)
            # At most 20,000 offsets are kept, for bodies of any length.
            self._step = max(_LEAST_STEP, len(packed) // _MOST_STEPS)
            self._packed_bytes = len(packed)
            self._plain, decoded = [0], 0
            for start in range(0, len(packed), self._step):
                decoded += len(unpacker.decompress(packed[start : start + self._step]))
                self._plain.append(decoded)

    def wire(self, plain_offset: int) -> int:
        """Return the number of bytes on the wire that decode to *plain_offset* bytes."""
        if plain_offset >= self._plain_bytes:
            return self.wire_bytes
        if self._plain is None:
            return min(plain_offset, self.wire_bytes)
        # The first step after which that many bytes are decoded.
        steps = bisect_right(self._plain, max(plain_offset - 1, 0))
        packed = min(steps * self._step, self._packed_bytes)
        return min(self.wire_bytes, round(packed * self.wire_bytes / self._packed_bytes))


def gzipped(data: bytes) -> bytes:
    """Compress *data* as servers do, without a time stamp, so that the result is reproducible."""
    return gzip.compress(data, _LEVEL, mtime=0)


def serve(data: bytes, extension: str) -> WireOffsets:
    """Return *data* as served: text is compressed with gzip if that makes it smaller.

    >>> serve(b"a" * 1000, "css").wire_bytes < 100, serve(b"a" * 1000, "png").wire_bytes
    (True, 1000)
    """
    packed = data
    if is_compressible(mime_of_extension(extension)):
        packed = min(data, gzipped(data), key=len)
    return WireOffsets(data, len(packed), packed)


def mime_of_extension(extension: str) -> str:
    """Return the media type for a file extension; "" if servers do not agree on one.

    >>> mime_of_extension("JS"), mime_of_extension("")
    ('text/javascript', '')
    """
    return _MIMES.get(extension.lower(), "")


def is_compressible(mime: str) -> bool:
    """Return whether servers compress files of that media type."""
    return mime.startswith("text/") or mime in _COMPRESSED

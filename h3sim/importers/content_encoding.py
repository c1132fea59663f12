"""Content encoding: media types, compressed sizes, and the mapping of offsets."""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_right

_COMPRESSION_LEVEL = 6
"""Default compression level of servers and of zlib."""
_ZLIB_OR_GZIP_BITS = 32 + zlib.MAX_WBITS
"""Window size that makes zlib recognize either header."""
_MIN_STEP_BYTES = 8
"""Least distance of the offsets that are kept of a compressed body."""
_MAX_STEPS = 20_000
"""Most offsets kept of a compressed body, so that the memory for one of any length is bounded."""
_MIME_BY_EXTENSION = {
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
_COMPRESSIBLE_TYPES = frozenset(
    (
        "application/json",
        "application/manifest+json",
        "application/vnd.ms-fontobject",
        "application/wasm",
        "application/xhtml+xml",
        "application/xml",
        "font/otf",
        "font/ttf",
        "image/svg+xml",
        "image/x-icon",
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
        self._decoded_after_step: list[int] | None = None
        """Decoded bytes after each step of compressed ones; None for a body sent as it is."""
        if wire_bytes < len(plain):
            packed = zlib.compress(plain, _COMPRESSION_LEVEL) if packed is None else packed
            unpacker = zlib.decompressobj(_ZLIB_OR_GZIP_BITS)
            self._step_bytes = max(_MIN_STEP_BYTES, len(packed) // _MAX_STEPS)
            self._packed_bytes = len(packed)
            self._decoded_after_step, decoded = [0], 0
            for start in range(0, len(packed), self._step_bytes):
                decoded += len(unpacker.decompress(packed[start : start + self._step_bytes]))
                self._decoded_after_step.append(decoded)

    def wire(self, plain_offset: int) -> int:
        """Return the number of bytes on the wire that decode to *plain_offset* bytes."""
        if plain_offset >= self._plain_bytes:
            return self.wire_bytes
        if self._decoded_after_step is None:
            return min(plain_offset, self.wire_bytes)
        # The first step after which that many bytes are decoded.
        steps = bisect_right(self._decoded_after_step, max(plain_offset - 1, 0))
        packed = min(steps * self._step_bytes, self._packed_bytes)
        return min(self.wire_bytes, round(packed * self.wire_bytes / self._packed_bytes))


def gzipped(data: bytes) -> bytes:
    """Compress *data* as servers do, without a time stamp, so that the result is reproducible."""
    return gzip.compress(data, _COMPRESSION_LEVEL, mtime=0)


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
    return _MIME_BY_EXTENSION.get(extension.lower(), "")


def is_compressible(mime: str) -> bool:
    """Return whether servers compress files of that media type."""
    return mime.startswith("text/") or mime in _COMPRESSIBLE_TYPES

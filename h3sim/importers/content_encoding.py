"""Content encoding: media types, sizes on the wire, and how much has been decoded when."""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_right

_LEVEL = 6
"""The level that servers use when nothing is set (zlib's own default)."""
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
"""Types that must not depend on what this machine has in its tables."""
_COMPRESSED = frozenset(
    (
        *("application/json", "application/manifest+json", "application/vnd.ms-fontobject"),
        *("application/wasm", "application/xhtml+xml", "application/xml"),
        *("font/otf", "font/ttf", "image/svg+xml", "image/x-icon"),
    )
)
"""Types besides text that servers compress; others are compressed in themselves."""


class WireOffsets:
    """Says how many bytes of a compressed body bring so many of its plain bytes.

    Where only the plain body is known, it is compressed again (zlib, level 6), and the places in
    that are stretched to the size on the wire; *packed* is the compressed body where it is at hand.

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
            return self.wire_bytes
        if self._plain is None:
            return min(plain_offset, self.wire_bytes)
        # The first step after which that many bytes are out.
        steps = bisect_right(self._plain, max(plain_offset - 1, 0))
        packed = min(steps * self._step, self._packed_bytes)
        return min(self.wire_bytes, round(packed * self.wire_bytes / self._packed_bytes))


def gzipped(data: bytes) -> bytes:
    """Return *data* as servers compress it; without the time of day: equal files, equal bytes."""
    return gzip.compress(data, _LEVEL, mtime=0)


def serve(data: bytes, extension: str) -> WireOffsets:
    """Return *data* as served: text is compressed with gzip where that makes it smaller.

    >>> serve(b"a" * 1000, "css").wire_bytes < 100, serve(b"a" * 1000, "png").wire_bytes
    (True, 1000)
    """
    packed = data
    if is_compressible(mime_of_extension(extension)):
        packed = min(data, gzipped(data), key=len)
    return WireOffsets(data, len(packed), packed)


def mime_of_extension(extension: str) -> str:
    """Return the media type of files that end so, "" where there is none that all servers use.

    >>> mime_of_extension("JS"), mime_of_extension("")
    ('text/javascript', '')
    """
    return _MIMES.get(extension.lower(), "")


def is_compressible(mime: str) -> bool:
    """Return whether servers compress files of that media type."""
    return mime.startswith("text/") or mime in _COMPRESSED

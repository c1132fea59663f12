"""How large a file is on the wire, and how much of it a browser has after so many bytes."""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_left
from typing import NamedTuple

__all__ = ["Served", "serve"]

_LEVEL = 6
"""The level that servers use when nothing is set (zlib's own default)."""
_TEXT = frozenset(
    (
        *("html", "htm", "xhtml", "css", "js", "mjs", "json", "svg", "xml", "txt", "map"),
        *("webmanifest", "ttf", "otf", "vtt"),
    )
)
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_LEAST_STEP = 16
_MOST_STEPS = 20_000


class Served(NamedTuple):
    """A file as a server sends it."""

    size_bytes: int
    decoded_bytes: int
    steps: tuple[tuple[int, int], ...]
    """(decoded, sent): so much is decoded when so much was sent; empty if it is sent as it is."""

    def sent_for(self, decoded_offset: int) -> int:
        """Return how many bytes must arrive before that many are decoded."""
        if not self.steps:
            return min(decoded_offset, self.size_bytes)
        place = bisect_left(self.steps, (decoded_offset, 0))
        return self.steps[place][1] if place < len(self.steps) else self.size_bytes


def serve(data: bytes, extension: str, *, with_steps: bool = False) -> Served:
    """Return *data* as served: text is compressed with gzip where that makes it smaller.

    >>> serve(b"a" * 1000, "css").size_bytes < 100, serve(b"a" * 1000, "png").size_bytes
    (True, 1000)
    """
    if extension not in _TEXT:
        return Served(len(data), len(data), ())
    packed = gzip.compress(data, _LEVEL, mtime=0)
    if len(packed) >= len(data):
        return Served(len(data), len(data), ())
    return Served(len(packed), len(data), tuple(_steps(packed)) if with_steps else ())


def _steps(packed: bytes) -> list[tuple[int, int]]:
    """Return how far decoding gets as the compressed bytes come in."""
    step = max(_LEAST_STEP, len(packed) // _MOST_STEPS)
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    decoded, steps = 0, []
    for at in range(0, len(packed), step):
        decoded += len(unpacker.decompress(packed[at : at + step]))
        steps.append((decoded, min(len(packed), at + step)))
    return steps

"""The integers, strings and tables of HPACK, which all schemes use (RFC 7541)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from h3sim.headers.base import CodecError
from h3sim.values.errors import MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

    from h3sim.headers.base import Field


STATIC_TABLE: tuple[Field, ...] = (
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    # Entries 17 to 61 have no value.
    *(
        (name, b"")
        for name in (
            b"accept-language accept-ranges accept access-control-allow-origin age allow "
            b"authorization cache-control content-disposition content-encoding "
            b"content-language content-length content-location content-range content-type "
            b"cookie date etag expect expires from host if-match if-modified-since "
            b"if-none-match if-range if-unmodified-since last-modified link location "
            b"max-forwards proxy-authenticate proxy-authorization range referer refresh "
            b"retry-after server set-cookie strict-transport-security transfer-encoding "
            b"user-agent vary via www-authenticate "
        ).split()
    ),
)
"""Appendix A; the first entry has index 1."""

# fmt: off
HUFFMAN_BITS = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28,
    30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6,
    6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6,
    6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
    20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23,
    23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22,
    23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19,
    22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21,
    26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
)
# fmt: on
"""Appendix B: the length of each byte's code in bits."""


ENTRY_OVERHEAD_BYTES = 32
"""The overhead of a dynamic table entry beside its name and value (RFC 7541 § 4.1)."""
LIBRARIES = ("hpack", "pylsqpack")
"""The extra with the HPACK and QPACK libraries: `headers`."""
_CACHED_STRINGS = 4096
"""The size of the cache of encoded strings: header lists repeat the same ones."""


class TruncatedError(CodecError):
    """The bytes end in the middle of an item."""


def import_extra(module: str) -> ModuleType:
    """Return a module of the extra `headers`.

    Raises:
        MissingExtraError: if it is not installed.
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(module.partition(".")[0], "headers") from error


def entry_bytes(name: bytes, value: bytes) -> int:
    """Return the size of an entry in a dynamic table."""
    return len(name) + len(value) + ENTRY_OVERHEAD_BYTES


def encode_integer(value: int, prefix_bits: int, first: int = 0) -> bytes:
    """Return *value* with a prefix of that many bits, after the bits of *first* (RFC 7541 § 5.1).

    >>> encode_integer(10, 5).hex(), encode_integer(1337, 5).hex()
    ('0a', '1f9a0a')
    """
    prefix_max = (1 << prefix_bits) - 1
    if value < prefix_max:
        return bytes((first | value,))
    out = bytearray((first | prefix_max,))
    value -= prefix_max
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@functools.lru_cache(maxsize=_CACHED_STRINGS)
def encode_string(value: bytes) -> bytes:
    """Return *value* as a string literal, Huffman coded if that is shorter (RFC 7541 § 5.2).

    The bit that indicates it precedes the length.

    >>> encode_string(b"www.example.com").hex()
    '8cf1e3c2e5f23a6ba0ab90f4ff'
    """
    huffman: bytes = _huffman_encoder().encode(value)
    if len(huffman) < len(value):
        return encode_integer(len(huffman), 7, 1 << 7) + huffman
    return encode_integer(len(value), 7) + value


class WireReader:
    """A reader of integers and strings from *data*.

    >>> reader = WireReader(bytes.fromhex("1f9a0a"))
    >>> reader.integer(5), reader.is_done
    (1337, True)
    """

    __slots__ = ("_data", "_n_read")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._n_read = 0

    @property
    def at(self) -> int:
        """The number of bytes read."""
        return self._n_read

    @property
    def is_done(self) -> bool:
        """True if all has been read."""
        return self._n_read >= len(self._data)

    def peek(self) -> int:
        """Return the next byte without reading it."""
        if self.is_done:
            raise TruncatedError("the section ends where more bytes are required")
        return self._data[self._n_read]

    def integer(self, prefix_bits: int) -> int:
        """Read an integer with a prefix of that many bits."""
        prefix_max = (1 << prefix_bits) - 1
        value = self.peek() & prefix_max
        self._n_read += 1
        if value < prefix_max:
            return value
        shift = 0
        while True:
            byte = self.peek()
            self._n_read += 1
            value += (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def string(self, prefix_bits: int = 7) -> bytes:
        """Read a string literal whose length has a prefix of that many bits."""
        is_huffman = bool(self.peek() & 1 << prefix_bits)
        n_bytes = self.integer(prefix_bits)
        data = self._data[self._n_read : self._n_read + n_bytes]
        if len(data) < n_bytes:
            raise TruncatedError("a string ends before its length")
        self._n_read += n_bytes
        return _decode_huffman(data) if is_huffman else data


@functools.cache
def _static_indexes() -> dict[Field | bytes, int]:
    """Return the first index of each field and name of the static table."""
    found: dict[Field | bytes, int] = {}
    for index, (name, value) in enumerate(STATIC_TABLE, start=1):
        # The first of a name: several entries share one, such as `:method`.
        found.setdefault((name, value), index)
        found.setdefault(name, index)
    return found


def static_index(key: Field | bytes) -> int | None:
    """Return the index of a field, or of the first with that name, in HPACK's static table.

    >>> static_index((b":path", b"/")), static_index(b"cookie"), static_index(b"x-none")
    (4, 32, None)
    """
    return _static_indexes().get(key)


@functools.cache
def _huffman_encoder() -> Any:
    codes = import_extra("hpack.huffman_constants")
    return import_extra("hpack.huffman").HuffmanEncoder(
        codes.REQUEST_CODES, codes.REQUEST_CODES_LENGTH
    )


@functools.lru_cache(maxsize=_CACHED_STRINGS)
def _decode_huffman(data: bytes) -> bytes:
    decoded: bytes = import_extra("hpack.huffman_table").decode_huffman(data)
    return decoded

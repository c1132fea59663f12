"""Inputs from inputs: bytes changed, dropped, doubled and spliced, the same for the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

__all__ = ["TOKENS", "mutated"]

TOKENS: tuple[bytes, ...] = (
    *(
        b"0",
        b"-1",
        b"1e999",
        b"1e308",
        b"-1e308",
        b"9" * 40,
        b"0.5",
        b"NaN",
        b"Infinity",
        b"1e-400",
    ),
    *(b"null", b"true", b"false", b'""', b"''", b"{}", b"[]", b"[[", b"]]", b"{", b"}", b",", b":"),
    *(
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\u0000",
        b"\\",
        b'"',
        b"\n",
    ),
    *(b"\r\n", b"\t", b"=", b"# ", b"\x1e", b"\x1f\x8b", b"[x]\n", b"[[x]]\n", b"a.b = 1\n"),
    *(
        b"data:,x",
        b"http://",
        b"https://[",
        b"//x",
        b"2026-03-04T05:06:00Z",
        b"86400001",
        b"1" * 19,
    ),
)
"""What parsers and checks are seldom ready for."""


def mutated(rng: random.Random, inputs: Sequence[bytes]) -> bytes:
    """Return one of *inputs*, changed in one to four ways."""
    data = bytearray(rng.choice(inputs))
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change(rng, data, inputs)
    return bytes(data)


def _change(rng: random.Random, data: bytearray, inputs: Sequence[bytes]) -> None:
    at = rng.randint(0, len(data))
    until = min(len(data), at + rng.choice((1, 1, 2, 8, 64)))
    match rng.randrange(8):
        case 0 if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            data[at:at] = rng.choice(TOKENS)
        case 2:
            data[at:until] = rng.choice(TOKENS)
        case 3:
            del data[at:until]
        case 4:
            data[at:at] = data[at:until] * rng.choice((1, 2, 50))
        case 5:
            other = rng.choice(inputs)
            start = rng.randint(0, len(other))
            data[at:until] = other[start : start + rng.choice((4, 20, 200))]
        case 6:
            _swap_words(rng, data)
        case _:
            del data[at : at + rng.choice((1, len(data)))]


def _swap_words(rng: random.Random, data: bytearray) -> None:
    """Put a value where another stood: so keys stay known, and are of the wrong type."""
    words = bytes(data).split(b" ")
    first, second = rng.randrange(len(words)), rng.randrange(len(words))
    words[first], words[second] = words[second], words[first]
    data[:] = b" ".join(words)

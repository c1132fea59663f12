"""What header compression costs: a thousand sections through each scheme, encoded and decoded."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tabulate import tabulate

from h3sim.headers import CODEC_NAMES, DecodingEnd, EncodingEnd, make_codec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.headers import FieldSection

_N_SECTIONS = 1000
_ALWAYS = (
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"),
    (b"accept-encoding", b"gzip, deflate, br, zstd"),
    (b"accept-language", b"en-US,en;q=0.9"),
    (b"sec-fetch-site", b"same-origin"),
)


def thousand_sections() -> list[FieldSection]:
    """Return the sections: six fields that come again, four that sometimes do."""
    source = random.Random(1)
    return [
        (
            *_ALWAYS,
            (b":authority", b"host-%d.example" % source.randrange(5)),
            (b":path", b"/assets/%x/file.js" % source.randrange(1 << 40)),
            (b"referer", b"https://host-0.example/page/%d" % source.randrange(20)),
            (b"cookie", b"session=%x" % source.randrange(1 << 8)),
        )
        for _ in range(_N_SECTIONS)
    ]


def pass_through(name: str, sections: Sequence[FieldSection]) -> None:
    """Encode, deliver and acknowledge one section after the other."""
    codec = make_codec(name)
    sender, receiver = EncodingEnd(codec.encoder), DecodingEnd(codec.decoder)
    for number, fields in enumerate(sections):
        for part in sender.encode(4 * number, fields):
            receiver.deliver(part)
        sender.encoder.on_acked(4 * number)
        feedback = receiver.take_feedback()
        if feedback is not None:
            sender.on_feedback(feedback)


def headers(least_seconds: Callable[..., list[float]], *, rounds: int = 7) -> str:
    """Return the table: CPU time of a thousand sections, and its ratio to static QPACK's."""
    sections = thousand_sections()
    calls = [lambda name=name: pass_through(name, sections) for name in CODEC_NAMES]
    seconds = dict(zip(CODEC_NAMES, least_seconds(calls, rounds=rounds), strict=True))
    rows = [(name, f"{s * 1e3:.0f}", f"{s / seconds['static']:.1f}") for name, s in seconds.items()]
    title = f"{_N_SECTIONS} field sections, encoded and decoded\n\n"
    table = tabulate(
        rows,
        ("scheme", "CPU ms", "x static"),
        colalign=("left", "right", "right"),
        disable_numparse=True,
    )
    return title + str(table)

"""How far QPACK compresses the header lists of the QPACK offline interop, beside what others did.

The lists stand beside the checkout, in ../shared/data/headers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from h3sim.headers import CodecSettings, DecodingEnd, EncodingEnd, field_bytes, make_codec
from h3sim.headers.qif import read_qif
from h3sim.headers.qpack import required_insert_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.headers import FieldSection

__all__ = ["DATA", "PUBLISHED", "Measured", "Setting", "lists", "measure"]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "headers"


class Setting(NamedTuple):
    """Table size, blocked streams, and whether all is acknowledged at once: as files are named."""

    table_bytes: int
    blocked_streams: int
    is_acked: bool

    def __str__(self) -> str:
        return f"{self.table_bytes}/{self.blocked_streams}/{int(self.is_acked)}"


class Measured(NamedTuple):
    """Percent of the uncompressed size, and how many sections needed the dynamic table."""

    percent: float
    n_referring: int


PUBLISHED = {
    "fb-req": {
        Setting(0, 0, False): 64.6,
        Setting(256, 100, True): 56.7,
        Setting(512, 100, True): 43.0,
        Setting(4096, 0, True): 24.1,
        Setting(4096, 100, False): 55.6,
        Setting(4096, 100, True): 23.2,
    },
    "fb-resp": {
        Setting(0, 0, False): 61.6,
        Setting(512, 100, True): 56.0,
        Setting(4096, 0, True): 17.3,
        Setting(4096, 100, False): 50.8,
        Setting(4096, 100, True): 15.2,
    },
}
"""What ls-qpack of 2019 made of these lists, in percent: its files in qpackers/qifs, measured."""


def lists(name: str) -> tuple[FieldSection, ...] | None:
    """Return the field sections of a set, or None where the data is not there."""
    path = DATA / f"{name}-hq.qif"
    return tuple(fields for fields, _ in read_qif(path)) if path.exists() else None


def measure(sections: Sequence[FieldSection], setting: Setting) -> Measured:
    """Return what QPACK makes of the sections; decodes them too where they are acknowledged."""
    allowed = CodecSettings(
        table_bytes=setting.table_bytes, blocked_streams=setting.blocked_streams
    )
    codec = make_codec("qpack", allowed)
    sender, receiver = EncodingEnd(codec.encoder), DecodingEnd(codec.decoder)
    n_bytes = n_referring = 0
    for number, fields in enumerate(sections):
        parts = sender.encode(4 * number, fields)
        n_bytes += sum(len(part.data) for part in parts)
        # Only whether it is 0: the count itself would need the inserts to be counted.
        n_referring += bool(
            setting.table_bytes
            and required_insert_count(
                parts[-1].data, max_table_bytes=setting.table_bytes, inserted=0
            )
        )
        for part in parts if setting.is_acked else ():
            receiver.deliver(part)
        feedback = receiver.take_feedback()
        if feedback is not None:
            sender.on_feedback(feedback)
    whole = sum(field_bytes(fields) for fields in sections)
    return Measured(100 * n_bytes / whole, n_referring)

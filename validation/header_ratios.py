"""How far QPACK compresses header lists: those of the QPACK offline interop, and the shipped ones.

The interop's lists were published by others and are not part of the project: the environment
variable H3SIM_QIF_DIR names the folder that holds them. What ls-qpack made of them is known.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from h3sim.headers import CodecSettings, DecodingEnd, EncodingEnd, field_bytes, make_codec
from h3sim.headers.qif import read_qif
from h3sim.headers.qpack import required_insert_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.headers import FieldSection

__all__ = [
    "MISSING",
    "PUBLISHED",
    "SETTINGS",
    "Measured",
    "Setting",
    "lists",
    "measure",
    "shipped_lists",
]

FOLDER = "H3SIM_QIF_DIR"
MISSING = (
    f"{FOLDER} names no folder with fb-req-hq.qif and fb-resp-hq.qif; they are in the public"
    " repository qpackers/qifs (docs/headers.md, Published lists)"
)


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


SETTINGS = tuple(PUBLISHED["fb-req"])
"""The settings in which requests were compressed."""


def lists(name: str) -> tuple[FieldSection, ...] | None:
    """Return the field sections of a published set, or None where H3SIM_QIF_DIR has none."""
    path = Path(os.environ.get(FOLDER, "")) / f"{name}-hq.qif"
    return tuple(fields for fields, _ in read_qif(path)) if path.is_file() else None


def shipped_lists(kind: str) -> tuple[FieldSection, ...]:
    """Return the shipped field sections of a kind, `req` or `resp`, page after page."""
    folder = Path(__file__).resolve().parents[1] / "corpora" / "headers"
    paths = sorted(folder.glob(f"*.{kind}.qif"), key=lambda path: path.name)
    return tuple(fields for path in paths for fields, _ in read_qif(path))


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
    complete = sum(field_bytes(fields) for fields in sections)
    return Measured(100 * n_bytes / complete, n_referring)

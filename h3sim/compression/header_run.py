"""What came of the field sections of one direction: when each could be read, and what they took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.compression.base import Held

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["HeaderRun", "SectionTimes"]

_NOTHING_HELD = Held(0, 0)


@dataclass(slots=True)
class SectionTimes:
    """When a section was encoded, had arrived whole, and was decoded."""

    encoded_at_ns: int
    arrived_at_ns: int = 0
    decoded_at_ns: int = 0

    @property
    def hol_ns(self) -> int:
        """How long it waited at the decoder for what others bring."""
        return self.decoded_at_ns - self.arrived_at_ns


@dataclass(slots=True)
class HeaderRun:
    """The sections in the order of encoding, and the bytes that they took with the encoder stream.

    Packets are all that were sent, lost ones too.
    """

    sections: list[SectionTimes] = field(default_factory=list)
    n_bytes: int = 0
    uncompressed_bytes: int = 0
    n_packets: int = 0
    n_lost: int = 0
    max_held: Held = _NOTHING_HELD

    @classmethod
    def over(cls, runs: Iterable[HeaderRun]) -> HeaderRun:
        """Return what came of several connections taken together; of what is held, the most."""
        whole = cls()
        for run in runs:
            whole.sections += run.sections
            whole.n_bytes += run.n_bytes
            whole.uncompressed_bytes += run.uncompressed_bytes
            whole.n_packets += run.n_packets
            whole.n_lost += run.n_lost
            whole.note_held(run.max_held)
        return whole

    def note_held(self, held: Held) -> None:
        """Note what a decoder holds now."""
        self.max_held = Held(*map(max, held, self.max_held))

"""A mechanism that may have made a log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from h3sim.schedulers import EpsScheduler, Mixed, Quantum, Retransmit
from h3sim.schemes import SchedulerKind
from h3sim.signals import Eps, Signal

if TYPE_CHECKING:
    from h3sim.schedulers import Scheduler


TREE_KINDS = (
    *(SchedulerKind.TREE, SchedulerKind.NGHTTP2_TREE),
    *(SchedulerKind.H2O_CALENDAR, SchedulerKind.ATS_HEAP),
)
"""Dependency trees, by the disciplines of servers."""


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A mechanism that may have made a log: a scheduler, and what it does with signals."""

    kind: SchedulerKind
    mixed: Mixed | None = None
    turn: Quantum | None = None
    is_sequential: bool = False
    """True if it ignores the incremental flag, and sends each urgency one by one."""
    is_list: bool = False
    """True if streams join round robin at the end of a list, not in the order of their IDs."""
    heeds_updates: bool = True
    requeues: bool = False
    """True if a stream goes behind the others when its bytes are acknowledged or lost (quicly)."""
    retransmit: Retransmit = Retransmit.FIRST

    @property
    def name(self) -> str:
        """The mechanism without its quantum, such as "eps, non-incremental-first"."""
        if self.is_sequential:
            return f"{self.kind.value}, one-by-one"
        return self.kind.value if self.mixed is None else f"{self.kind.value}, {self.mixed.value}"

    @property
    def quantum(self) -> str:
        """The quantum in words, "" for mechanisms that have none."""
        if self.turn is None:
            return ""
        if self.turn.size_bytes is not None:
            return f"{self.turn.size_bytes:,} bytes"
        return f"{self.turn.packets} packet{'s' * (self.turn.packets > 1)}"

    @property
    def heeds_signals(self) -> bool:
        """True if priority signals decide its order."""
        return self.kind not in (SchedulerKind.FIFO, SchedulerKind.ROUND_ROBIN)

    def signal(self, signal: Signal | None) -> Signal | None:
        """Return what it makes of a signal."""
        if self.is_list:
            return Eps()
        if self.is_sequential and isinstance(signal, Eps):
            return replace(signal, incremental=False)
        return signal

    def new(self, turn_bytes: int) -> Scheduler:
        """Return a new scheduler."""
        if self.is_list:
            return EpsScheduler(mixed=Mixed.ALL_SHARE, turn=self.turn or Quantum())
        return self.kind.make(turn_bytes=turn_bytes, mixed=self.mixed, turn=self.turn)

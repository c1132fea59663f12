"""The scheduler interface, quanta, and when lost bytes are retransmitted."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from h3sim.errors import InputError, ValidationIssue
from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.signals import Signal


@runtime_checkable
class Scheduler(Protocol):
    """Picks the stream whose bytes go next.

    A stream is opened once, may be activated (it has bytes it may send now) and deactivated (it
    has none, or is flow-blocked) any number of times, and is closed once. Ids below 0 are
    placeholders: they are opened and updated, never activated.
    """

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up *stream_id*, which is not yet active, with what the client wants for it."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal of an open stream by *signal*, from the next pick on."""

    def activate(self, stream_id: int) -> None:
        """Activate an open stream; without effect on one that is active."""

    def deactivate(self, stream_id: int) -> None:
        """Take an open stream out of the running; without effect on one that is out."""

    def close(self, stream_id: int) -> None:
        """Forget the stream."""

    def pick(self) -> int | None:
        """Return the active stream to send from, or None without one; changes nothing."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Account for *n_bytes* that were sent from an active stream."""


@runtime_checkable
class SupportsRequeue(Protocol):
    """A scheduler in which joining anew is more than to leave and join."""

    def requeue(self, stream_id: int) -> None:
        """Send an active stream behind those that wait."""


@runtime_checkable
class LossObserver(Protocol):
    """A scheduler that wants to know of losses."""

    def on_lost(self) -> None:
        """Take in that a packet with bytes of a stream was lost."""


class Retransmit(enum.Enum):
    """When bytes that were lost go again; RFC 9218 § 12 leaves it to the server."""

    FIRST = "first"
    """Before anything new, in the order in which they were lost."""
    PRIORITY = "priority"
    """Before anything new, the most important stream first."""
    TURN = "turn"
    """When it is the stream's turn, before its new bytes (quicly)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantum:
    """So many *packets*, or packets until they make at least *size_bytes*.

    A packet is what the scheduler is charged for at once. A turn also ends where the stream has
    nothing more to send.

    Raises:
        InputError: if both are given, or either is less than 1.

    >>> Quantum(), Quantum(size_bytes=16_000)
    (Quantum(packets=1, size_bytes=None), Quantum(packets=1, size_bytes=16000))
    """

    # Of packets that are wrong, two stand for them: so a turn of both is still told.
    packets: int = field(default=1, metadata=declare(Whole(low=1), key="turn_packets", stand_in=2))
    size_bytes: int | None = field(default=None, metadata=declare(Whole(low=1), key="turn_bytes"))

    def __post_init__(self) -> None:
        validate(self, InputError)

    def mistakes(self) -> Iterator[ValidationIssue]:
        """Yield what is wrong between its values."""
        if self.size_bytes is not None and self.packets > 1:
            message = "a turn is of packets or of bytes, not of both"
            yield ValidationIssue(key="turn_bytes", message=message)

"""The scheduler interface, quanta, and the order of retransmissions."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Integer
from h3sim.values.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.signals import Signal


@runtime_checkable
class Scheduler(Protocol):
    """A scheduler, which picks the stream whose bytes go next.

    A stream is opened once, may be activated (it has bytes it may send now) and deactivated (it
    has none, or is flow-blocked) any number of times, and is closed once. Negative IDs are
    placeholders: they are opened and updated, never activated.
    """

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open *stream_id*, which is not yet active, with the client's priority."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal of an open stream by *signal*, from the next pick on."""

    def activate(self, stream_id: int) -> None:
        """Activate an open stream; without effect on one that is active."""

    def deactivate(self, stream_id: int) -> None:
        """Deactivate an open stream; without effect on an inactive one."""

    def close(self, stream_id: int) -> None:
        """Forget the stream."""

    def pick(self) -> int | None:
        """Return the active stream to send from, or None; repeated calls return the same."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Account for *n_bytes* sent from an active stream."""


@runtime_checkable
class SupportsRequeue(Protocol):
    """A scheduler in which requeuing a stream differs from deactivating and activating it."""

    def requeue(self, stream_id: int) -> None:
        """Move an active stream behind the waiting ones."""


@runtime_checkable
class LossObserver(Protocol):
    """A scheduler that observes losses."""

    def on_lost(self) -> None:
        """Handle the loss of a packet with stream bytes."""


class Retransmit(enum.Enum):
    """The order of retransmissions, which RFC 9218 § 12 leaves to the server."""

    FIRST = "first"
    """Before anything new, in the order in which they were lost."""
    PRIORITY = "priority"
    """Before anything new, the most important stream first."""
    TURN = "turn"
    """With the stream's quantum, before its new bytes (quicly)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantum:
    """The size of a quantum: a number of *packets*, or packets of at least *size_bytes* in total.

    A packet is the unit of a single charge. A quantum also ends if the stream has nothing more to
    send.

    Raises:
        InputError: if both are set, or either is less than 1.

    >>> Quantum(), Quantum(size_bytes=16_000)
    (Quantum(packets=1, size_bytes=None), Quantum(packets=1, size_bytes=16000))
    """

    # An invalid number of packets is replaced by 2, so that setting both is still reported.
    packets: int = field(
        default=1,
        metadata=declare(Integer(low=1), "packets of a quantum", key="turn_packets", stand_in=2),
    )
    size_bytes: int | None = field(
        default=None,
        metadata=declare(Integer(low=1), "in place of these: its bytes at least", key="turn_bytes"),
    )

    def __post_init__(self) -> None:
        validate(self, InputError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        if self.size_bytes is not None and self.packets > 1:
            message = "give packets or bytes, not both"
            yield ValidationIssue(key="turn_bytes", message=message)

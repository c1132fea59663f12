"""The contract between a server and whatever decides which stream sends next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["HearsLosses", "Requeuing", "Scheduler"]


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
class Requeuing(Protocol):
    """A scheduler in which joining anew is more than to leave and join."""

    def requeue(self, stream_id: int) -> None:
        """Send an active stream behind those that wait."""


@runtime_checkable
class HearsLosses(Protocol):
    """A scheduler that wants to know of losses."""

    def on_lost(self) -> None:
        """Take in that a packet with bytes of a stream was lost."""

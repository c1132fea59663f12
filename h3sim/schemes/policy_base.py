"""The interface of a client's priority policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from h3sim.page import Resource, ResourceState
    from h3sim.signals import SignalChange


@mypyc_attr(allow_interpreted_subclasses=True)
class Policy:
    """Turns requests into signals."""

    def on_connected(self) -> list[SignalChange]:
        """Return the placeholders to open, in order."""
        raise NotImplementedError

    def on_requested(self, stream_id: int, resource: Resource) -> list[SignalChange]:
        """Return the changes due to the request; the last entry opens the stream itself."""
        raise NotImplementedError

    def on_changed(self, resource: Resource | None, change: ResourceState) -> list[SignalChange]:
        """Return the changes for open streams due to a *change* of a resource, or of all."""
        raise NotImplementedError

    def on_closed(self, stream_id: int) -> list[SignalChange]:
        """Return the changes once the stream has left the scheduler."""
        raise NotImplementedError

"""What a process beside a load may do to a link, and see of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.errors import NetworkError, Problem

if TYPE_CHECKING:
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.transport.changing_link import ChangingLink

__all__ = ["LinkControl"]

_MAX_IP_BYTES: Final = 65_535
"""The total length of an IP packet has 16 bits (RFC 791 § 3.1)."""


class LinkControl:
    """One direction of the path, `LoadEnvironment.down` or `LoadEnvironment.up`."""

    def __init__(self, environment: LoadEnvironment, link: ChangingLink) -> None:
        self._environment = environment
        self._link = link

    def set_rate(self, rate_bps: int) -> None:
        """Pass *rate_bps* from now on; packets that wait already leave when they were going to.

        Raises:
            NetworkError: if the rate is not above 0, or the link has none that could change.
        """
        self._link.change_rate(self._environment.now_ns, rate_bps)

    def set_loss(self, loss: float) -> None:
        """Lose this share of packets from now on, each by itself; those under way arrive.

        Raises:
            NetworkError: if *loss* is not a share from 0 up to 1.
        """
        self._link.change_loss(loss)

    def send(self, n_bytes: int) -> int | None:
        """Send a packet of somebody else's, of *n_bytes* with IP's header, through the queue.

        It takes room and time there, and a number of the losses, as any packet does. Return when it
        arrives, None if it never does.

        Raises:
            NetworkError: if there is no IP packet of so many bytes.
        """
        # Not by type: numpy's whole numbers are others.
        if not hasattr(n_bytes, "__index__") or not 1 <= n_bytes <= _MAX_IP_BYTES:
            message = f"must be a whole number of bytes, 1 to {_MAX_IP_BYTES:,}, is {n_bytes!r}"
            raise NetworkError([Problem(key="n_bytes", message=message)], "link")
        return self._link.send(self._environment.now_ns, int(n_bytes))

    @property
    def offered(self) -> int:
        """How many packets were sent over the link so far, whatever became of them."""
        return self._link.offered

    @property
    def queue_drops(self) -> int:
        """How many of them the queue had no room for."""
        return self._link.queue_drops

    @property
    def loss_drops(self) -> int:
        """How many of them were lost on the way."""
        return self._link.loss_drops

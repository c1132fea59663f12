"""What a path promises, as plain numbers: the links' settings, and how they change in a load."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from h3sim.transport import LinkProfile, Network

__all__ = ["Change", "FifoEventQueue", "lanes"]


class Change(NamedTuple):
    """From *at_ns* on a link has another rate (bit/s), or loses another share of its packets."""

    at_ns: int
    is_down: bool
    rate_bps: int | None
    loss: float | None


@dataclass(frozen=True, kw_only=True)
class FifoEventQueue:
    """One direction of a path.

    *steps* are (from when on, bit/s), the first from 0; *overhead_bytes* is what IP, UDP and the
    frame add to the size of a packet. None: no limit.
    """

    delay_ns: int
    steps: tuple[tuple[int, int], ...]
    burst_bytes: int
    queue_bytes: int | None
    overhead_bytes: int
    is_jittered: bool
    is_reordered: bool

    def rate_at(self, at_ns: int) -> int:
        """Return the rate for packets sent at *at_ns*; at an instant of change the higher one.

        A process goes on behind all else at one instant, but what waits for it may be sent after.
        """
        last = bisect_right(self.steps, at_ns, key=lambda step: step[0]) - 1
        rate_bps = self.steps[last][1]
        if self.steps[last][0] == at_ns and last:
            return max(rate_bps, self.steps[last - 1][1])
        return rate_bps


def lanes(
    network: Network, changes: tuple[Change, ...], ip_bytes: int
) -> dict[bool, FifoEventQueue]:
    """Return both lanes of a network of links, by whether they go down."""
    assert network.down is not None
    assert network.up is not None
    half_ns = network.rtt_ns // 2
    return {
        True: _lane(network.down, half_ns, changes, ip_bytes, is_down=True),
        False: _lane(network.up, network.rtt_ns - half_ns, changes, ip_bytes, is_down=False),
    }


def _lane(
    link: LinkProfile,
    delay_ns: int,
    changes: tuple[Change, ...],
    ip_bytes: int,
    *,
    is_down: bool,
) -> FifoEventQueue:
    assert link.rate_bps is not None
    changed = [(c.at_ns, c.rate_bps) for c in changes if c.is_down is is_down and c.rate_bps]
    return FifoEventQueue(
        delay_ns=delay_ns,
        steps=((0, link.rate_bps), *changed),
        burst_bytes=link.burst_bytes,
        queue_bytes=link.queue_bytes,
        overhead_bytes=ip_bytes + link.frame_overhead_bytes,
        is_jittered=link.jitter is not None or link.hold is not None,
        is_reordered=link.hold is not None or (link.jitter is not None and link.jitter.reorder),
    )

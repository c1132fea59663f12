"""What a recording says of a load as a whole: over what, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.documents.declared import says, settle
from h3sim.documents.values import MegabitsPerSecond, Milliseconds, TableOf, Text, Whole
from h3sim.errors import PageError, Problem
from h3sim.page.resource import MAX_TIME_NS
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["RECORDED_NETWORK", "RecordedLoad"]

RECORDED_NETWORK = "recorded"
"""What the network of a page's own recording is called."""

_TIME = Milliseconds(low=0, high=to_ms(MAX_TIME_NS), hint="a day")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLoad:
    """The network as estimated from a recording, and the times that the recording has.

    Times count from navigation start. A network is estimated whole or not at all: rate and RTT
    go together.

    Raises:
        PageError: listing every value that is out of range, and a rate without an RTT.
    """

    rtt_ns: int | None = field(
        default=None,
        metadata=says(Milliseconds(low=0, high=600_000), "the round-trip time, estimated"),
    )
    rtt_from: str = field(default="", metadata=says(Text(), "from what"))
    rate_bps: int | None = field(
        default=None,
        metadata=says(MegabitsPerSecond(low=1e-6, high=1e7), "the rate down, estimated"),
    )
    rate_from: str = field(default="", metadata=says(Text(), "from what"))
    protocol: str = field(
        default="", metadata=says(Text(), "the protocol of most requests, as the recorder calls it")
    )
    finished_ns: int | None = field(
        default=None, metadata=says(_TIME, "when the last of the page's resources was there")
    )
    load_event_ns: int | None = field(default=None, metadata=says(_TIME, "the load event"))
    largest_paint_ns: int | None = field(
        default=None, metadata=says(_TIME, "the largest contentful paint")
    )
    speed_index_ns: int | None = field(default=None, metadata=says(_TIME, "the SpeedIndex"))
    completed_ns: Mapping[str, int] = field(
        default_factory=dict,
        metadata=says(
            TableOf(_TIME), "when each resource was there, by its id", key="completed_ms"
        ),
    )
    n_bytes: int | None = field(
        default=None,
        metadata=says(
            Whole(low=0, high=2**53),
            "of all responses over its network, also those left out",
        ),
    )

    @property
    def lacks_network(self) -> bool:
        """Whether it was recorded over a network of which it does not tell enough to name it."""
        return self.rtt_ns is None and self.n_bytes is not None

    def __post_init__(self) -> None:
        settle(self, PageError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        if (self.rtt_ns is None) != (self.rate_bps is None):
            key = "rtt_ms" if self.rtt_ns is None else "rate_mbps"
            yield Problem(key=key, message="is missing: a network has a rate and a round-trip time")

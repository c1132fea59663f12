"""What a load is to be, as the engine was told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim import http, transport
from h3sim.engine.server_word import has_marks
from h3sim.errors import PageError, Problem
from h3sim.transport import Mode, Protocol

if TYPE_CHECKING:
    from h3sim.compression import HeaderCompression
    from h3sim.engine.environment import Process
    from h3sim.engine.transport import Progress
    from h3sim.http import BufferModel, ByteMarks
    from h3sim.page import Page
    from h3sim.page.hosts import RecordedHosts
    from h3sim.schedulers import Scheduler
    from h3sim.schemes import Scheme
    from h3sim.transport import Network, TransportProfile
    from h3sim.transport.cross_traffic import CrossFlow

__all__ = ["MAX_PACKETS", "Plan", "packets_of"]

MAX_PACKETS = 5_000_000
"""The largest load that is taken on; it takes about 2 GB and half a minute."""


class Plan(NamedTuple):
    """What `simulate` was given."""

    page: Page
    scheme: Scheme
    network: Network
    protocol: Protocol
    profile: TransportProfile | None
    """None where it is the usual one, or the rate constant: then no ends could have one."""
    buffer_bytes: int
    buffer_model: BufferModel
    mode: Mode
    seed: int
    records_wire: bool
    headers: HeaderCompression | None
    progress: Progress | None
    processes: tuple[Process, ...]
    hosts: RecordedHosts | None
    cross_traffic: tuple[CrossFlow, ...]

    def make_marks(self) -> ByteMarks | None:
        """Return what calls where a response has come so far; None where nobody asks."""
        return http.ByteMarks() if has_marks(self.page, self.scheme) else None

    def make_scheduler(self, turn_bytes: int, marks: ByteMarks | None) -> Scheduler:
        """Return what schedules the server's streams of one connection."""
        made = self.scheme.make_scheduler(turn_bytes=turn_bytes)
        return made if marks is None else marks.around(made)

    @property
    def profile_of_ends(self) -> TransportProfile:
        """The profile of a load over links."""
        return self.profile or transport.TransportProfile(name="default")

    @property
    def is_http2(self) -> bool:
        """Whether requests and responses over links are HTTP/2's."""
        return self.protocol is Protocol.TCP

    def packets(self, packet_bytes: int) -> int:
        """Return how many packets the load takes.

        Raises:
            PageError: if they are too many.
        """
        n_packets = packets_of(self.page, packet_bytes)
        if n_packets > MAX_PACKETS:
            message = f"takes {n_packets:,} packets; the most that is simulated is {MAX_PACKETS:,}"
            raise PageError([Problem(key="resources", message=message)], self.page.name)
        return n_packets


def packets_of(page: Page, packet_bytes: int) -> int:
    """Return how many packets *page* takes; a response without a byte takes one."""
    return sum(-(-n_bytes // packet_bytes) or 1 for n_bytes in page.stream_bytes)

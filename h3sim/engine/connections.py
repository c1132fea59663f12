"""The connections of a load: lookups, handshakes, packets, and competing cross traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from h3sim import metrics
from h3sim.page.hosts import UNNAMED
from h3sim.trace import Activity, Work
from h3sim.values.units import BITS_PER_BYTE, NS_PER_S, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.page import Page
    from h3sim.trace import Trace
    from h3sim.transport.network import CrossFlow


class PacketCount(NamedTuple):
    """Counts of data packets: of the server, and as *uplink* of the client.

    Of the *lost*, which never arrived, the queue of the bottleneck dropped *queue_drops*, and the
    others were lost on the way. Bytes are those of streams, with retransmissions. The client's
    counts are None where requests are not sent as packets, as at a constant rate, and for logs.
    """

    sent: int
    lost: int
    retransmitted: int
    queue_drops: int
    sent_bytes: int
    uplink_sent: int | None = None
    uplink_lost: int | None = None
    uplink_bytes: int | None = None


def packet_count(trace: Trace) -> PacketCount:
    """Return the counts of the data packets of *trace*."""
    counts = metrics.count_packets(trace), metrics.count_queue_drops(trace)
    return PacketCount(
        *counts[0], counts[1], sum(trace.packet_rows.columns.length_bytes), *(trace.uplink or ())
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Connection:
    """A connection of a load."""

    number: int
    hosts: tuple[str, ...]
    """Names of the hosts that share it; "(page)" if the page does not name its own."""
    rtt_ns: int
    opened_at_ns: int
    ready_at_ns: int
    """Time at which requests could leave; 0 if the load ended before."""
    trace: Trace
    """Its own trace, with the stream ids on this connection."""
    lookups: tuple[tuple[str, int, int], ...] = ()
    """DNS lookups of its hosts: name, start and end."""
    n_frames: int = 0
    """The number of priority frames on its control stream."""
    frame_bytes: int = 0
    """The bytes of these frames, without packet headers."""

    @property
    def rtt_ms(self) -> float:
        """The round-trip time to its server, in ms."""
        return to_ms(self.rtt_ns)

    @property
    def opened_ms(self) -> float:
        """Time when it was opened, in ms since navigation start."""
        return to_ms(self.opened_at_ns)

    @property
    def ready_ms(self) -> float:
        """Time when requests could leave, in ms since navigation start."""
        return to_ms(self.ready_at_ns)

    @property
    def n_requests(self) -> int:
        """The number of its requests."""
        return len(self.trace.requests)

    @property
    def stream_bytes(self) -> int:
        """The bytes of its responses, headers included."""
        return sum(request.length_bytes for request in self.trace.requests)

    @property
    def packets(self) -> PacketCount:
        """The number of its data packets."""
        return packet_count(self.trace)

    def __repr__(self) -> str:
        return f"<Connection {self.number} to {', '.join(self.hosts)}: {self.n_requests} requests>"


_ActivityKey: TypeAlias = "int | str"
"""The index of a browser activity; for inserted ones, "host NAME" or "connection NUMBER"."""


def with_setup(
    page: Page, activities: Sequence[Activity], connections: Iterable[Connection]
) -> list[Activity]:
    """Return *activities* with the lookups and handshakes that requests waited for.

    The first request to a host triggers its lookup, and the first on a connection opens it; a
    download begins once its request may leave. Requests at navigation start wait for the page's own
    connection. Steps that take no time are left out.
    """
    downloads = {
        done.resource: index for index, done in enumerate(activities) if done.work is Work.DOWNLOAD
    }
    inserter = _SetupInserter(activities)
    own_host = page.resources[page.root].host or UNNAMED
    for connection in connections:
        lookups = {name: times for name, *times in connection.lookups}
        resources = (request.resource for request in connection.trace.requests)
        # In the order of activities, as the first request to a host triggers its lookup.
        for index in sorted(downloads[resource] for resource in resources if resource in downloads):
            resource = activities[index].resource
            assert resource is not None  # noqa: S101 - a download has a resource
            host = page.resources[resource].host or own_host
            inserter.add(index, host, lookups.get(host), connection)
    return inserter.activities()


class _SetupInserter:
    """Inserts lookups and handshakes between activities and the downloads that wait for them."""

    def __init__(self, activities: Sequence[Activity]) -> None:
        self._activities: dict[_ActivityKey, Activity] = dict(enumerate(activities))
        self._predecessor: dict[_ActivityKey, _ActivityKey | None] = {
            index: done.after for index, done in enumerate(activities)
        }
        """The activity that each one waits for, by key: indices change when some are inserted."""
        self._sort_key: dict[_ActivityKey, tuple[int, float]] = {
            index: (done.began_at_ns, float(index)) for index, done in enumerate(activities)
        }

    def add(
        self, index: int, host: str, lookup: Sequence[int] | None, connection: Connection
    ) -> None:
        """Make the download at *index* depend on its host and its connection, if it waited."""
        is_at_start = self._predecessor[index] is None
        if lookup is not None:
            self._add_wait(index, f"host {host}", Work.LOOK_UP, lookup, is_at_start=is_at_start)
        times = (connection.opened_at_ns, connection.ready_at_ns)
        key = f"connection {connection.number}"
        self._add_wait(index, key, Work.CONNECT, times, is_at_start=is_at_start)

    def _add_wait(
        self, index: int, key: str, work: Work, times: Sequence[int], *, is_at_start: bool
    ) -> None:
        """Insert an activity before the download at *index*, if that had to wait for it.

        Requests at navigation start always wait.
        """
        began_at_ns, ended_at_ns = times
        download = self._activities[index]
        has_waited = is_at_start or ended_at_ns > download.began_at_ns
        if ended_at_ns == began_at_ns or not has_waited:
            return
        if key not in self._activities:
            setup = Activity(work, download.resource, began_at_ns, ended_at_ns, None)
            self._activities[key] = setup
            self._predecessor[key] = self._predecessor[index]
            # Among activities that begin at the same time, right before this download.
            self._sort_key[key] = (began_at_ns, index - 0.5)
        self._predecessor[index] = key
        later_ns = max(download.began_at_ns, ended_at_ns)
        self._activities[index] = download._replace(began_at_ns=later_ns)
        self._sort_key[index] = (later_ns, float(index))

    def activities(self) -> list[Activity]:
        """Return all activities in the order of their start, with their new indices."""
        keys = sorted(self._activities, key=lambda key: self._sort_key[key])
        index_of = {key: index for index, key in enumerate(keys)}
        activities = []
        for key in keys:
            predecessor = self._predecessor[key]
            after = None if predecessor is None else index_of[predecessor]
            activities.append(self._activities[key]._replace(after=after))
        return activities


class CarriedFlow(NamedTuple):
    """The throughput of a *flow* in *span_ns*, from its start to the end of the load."""

    flow: CrossFlow
    n_bytes: int
    span_ns: int

    @property
    def rate_mbps(self) -> float | None:
        """The mean rate in Mbit/s; None if the load ended before the flow began."""
        if not self.span_ns:
            return None
        return self.n_bytes * BITS_PER_BYTE * NS_PER_S / self.span_ns / 10**6

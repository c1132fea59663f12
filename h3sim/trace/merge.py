"""The traces of several connections merged into that of the load."""

from __future__ import annotations

from dataclasses import replace
from heapq import merge
from operator import itemgetter, lt
from typing import TYPE_CHECKING

from h3sim.constants import STREAM_ID_STEP
from h3sim.signals import H2Priority, StrictPriority
from h3sim.trace.model import Trace
from h3sim.trace.packets import PacketRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.signals import Signal
    from h3sim.trace.model import Activity, SignalSent
    from h3sim.trace.packets import PacketRow


def in_order_requested(trace: Trace, asked_for: Sequence[int]) -> Trace:
    """Return the trace of one connection with its requests in the order of *asked_for*.

    A connection numbers its streams as requests leave. If several hosts share it, a request
    that waits for a DNS lookup leaves after others that were made later.
    """
    position = {resource: index for index, resource in enumerate(asked_for)}
    positions = [position[request.resource] for request in trace.requests]
    if all(map(lt, positions, positions[1:])):
        return trace
    requests = sorted(trace.requests, key=lambda request: position[request.resource])
    return replace(trace, requests=tuple(requests))


def merged_trace(
    traces: Sequence[Trace], asked_for: Sequence[int], activities: tuple[Activity, ...]
) -> Trace:
    """Return the traces of a load's connections as one.

    Streams are renumbered in the order of *asked_for*, and packets in the order sent.
    `Trace.connection_of` has the connection of each request. The wire and recovery rows of a
    connection are only in its own trace.
    """
    position = {resource: index for index, resource in enumerate(asked_for)}
    ordered = sorted(
        (position[request.resource], number, request)
        for number, trace in enumerate(traces)
        for request in trace.requests
    )
    ids = {
        (number, request.stream_id): STREAM_ID_STEP * index
        for index, (_, number, request) in enumerate(ordered)
    }
    elements = [_Elements(number, len(traces), ids) for number in range(len(traces))]
    # `merge` breaks ties in favour of the connection that was opened first.
    signals = merge(
        *(map(own.renamed, trace.signals) for own, trace in zip(elements, traces, strict=True)),
        key=lambda signal: signal.at_ns,
    )
    return Trace(
        delivery=traces[0].delivery,
        requests=tuple(
            request._replace(stream_id=ids[number, request.stream_id])
            for _, number, request in ordered
        ),
        signals=tuple(signals),
        packet_rows=PacketRows.of(_rows(traces, ids)),
        activities=activities,
        connection_of=tuple(number for _, number, _ in ordered),
    )


def _rows(traces: Sequence[Trace], ids: dict[tuple[int, int], int]) -> Iterator[PacketRow]:
    """Yield the packets of all connections in the order sent, with IDs of the load."""

    def numbered(number: int, trace: Trace) -> Iterator[tuple[int, int, PacketRow]]:
        return ((row[0], number, row) for row in trace.packet_rows)

    rows = merge(*(numbered(*entry) for entry in enumerate(traces)), key=itemgetter(0))
    packets: dict[tuple[int, int], int] = {}
    for _, number, row in rows:
        sent, arrived, stream_id, offset, n_bytes, packet, delivered = row
        packet = packets.setdefault((number, packet), len(packets))
        yield (sent, arrived, ids[number, stream_id], offset, n_bytes, packet, delivered)


class _Elements:
    """The mapping of stream and placeholder IDs of one connection to those of the load."""

    def __init__(self, number: int, n_connections: int, ids: dict[tuple[int, int], int]) -> None:
        self._number = number
        self._n_connections = n_connections
        self._ids = ids

    def renamed(self, sent: SignalSent) -> SignalSent:
        """Return a signal with the IDs of the load."""
        return sent._replace(
            element_id=self._id_of(sent.element_id), signal=self._signal(sent.signal)
        )

    def _signal(self, signal: Signal) -> Signal:
        if isinstance(signal, H2Priority | StrictPriority) and signal.depends_on is not None:
            return replace(signal, depends_on=self._id_of(signal.depends_on))
        return signal

    def _id_of(self, element_id: int) -> int:
        """Return the ID in the load; placeholder IDs, below 0, stay unique as well."""
        if element_id >= 0:
            return self._ids[self._number, element_id]
        # Still below 0, and unique: connection numbers are below their count.
        return element_id * self._n_connections + self._number

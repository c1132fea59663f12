"""The results of finished connections, and of the load that they make up."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.engine.connections import Connection
from h3sim.engine.load_spec import LoadResult
from h3sim.trace import in_order_requested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.engine.connections import CarriedFlow
    from h3sim.engine.http_connection import HttpConnection
    from h3sim.engine.load_spec import LoadSpec
    from h3sim.headers.base import HeaderRun
    from h3sim.trace import Activity, Trace


class ConnectionResult(NamedTuple):
    """A finished connection, and the statistics of its headers."""

    connection: Connection
    header_runs: tuple[HeaderRun, HeaderRun] | None


def build_connection_result(
    spec: LoadSpec,
    connection: HttpConnection,
    hosts: tuple[str, ...],
    *,
    asked_for: Sequence[int],
    activities: tuple[Activity, ...],
    number: int = 0,
    rtt_ns: int | None = None,
    lookups: tuple[tuple[str, int, int], ...] = (),
) -> ConnectionResult:
    """Return a finished connection, with the browser's activities if it is the only one."""
    trace = connection.trace(spec.protocol.delivery, activities)
    header_runs = None
    if spec.header_compression is not None:
        from h3sim.engine.header_compression import with_header_sections

        trace, header_runs = with_header_sections(connection.transport, trace)
    trace = in_order_requested(trace, asked_for)
    connection_record = Connection(
        number=number,
        hosts=hosts,
        rtt_ns=spec.network.rtt_ns if rtt_ns is None else rtt_ns,
        opened_at_ns=connection.opened_at_ns,
        ready_at_ns=connection.ready_at_ns,
        trace=trace,
        n_frames=connection.n_frames,
        frame_bytes=connection.frame_bytes,
        lookups=lookups,
    )
    return ConnectionResult(connection_record, header_runs)


def build_load(
    spec: LoadSpec,
    results: list[ConnectionResult],
    trace: Trace,
    flows_carried: tuple[CarriedFlow, ...],
) -> LoadResult:
    """Return the result of all connections; *trace* is that of all of them."""
    header_runs = None
    if runs := [result.header_runs for result in results if result.header_runs is not None]:
        from h3sim.engine.header_compression import sum_header_runs

        header_runs = sum_header_runs(runs)
    return LoadResult(
        spec=spec,
        trace=trace,
        header_runs=header_runs,
        connections=tuple(result.connection for result in results),
        cross_traffic=flows_carried,
    )

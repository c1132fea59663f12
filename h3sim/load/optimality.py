"""The ratio of a load to the lower bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from h3sim import metrics
from h3sim.browser import BrowserMode
from h3sim.metrics.lower_bounds import (
    Path,
    TransmissionJob,
    TransmissionOpportunity,
    lower_bound_over_links_ns,
    mean_tick_bound,
    parts_of,
)
from h3sim.schema import format_value
from h3sim.values.errors import InputError, NothingToMeasureError
from h3sim.values.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from h3sim.load.milestones import WithMilestones
    from h3sim.page import Resource
    from h3sim.transport import ConstantRate


Given = Literal["requests", "page"]
"""The assumption of a bound: fixed request times, or only their triggers."""


def lower_bound_ms(
    load: WithMilestones, weighs: Callable[[Resource], bool], given: Given
) -> float | None:
    """Return a lower bound on the ByteIndex of the resources for which *weighs* is true.

    It is in ms from the first request on; None if these resources have no bytes.
    """
    if given not in ("requests", "page"):
        raise InputError.at("given", f"must be 'requests' or 'page', is {format_value(given)}")
    rate = load.spec.network.constant_rate
    origin_ns = load.trace.requests[0].requested_at_ns
    bound_ns: Fraction | float | None
    if given == "page":
        bound_ns = _bound_of_page_ns(load, weighs, rate, origin_ns)
    elif rate is None:
        bound_ns = _bound_over_links_ns(load, weighs)
    else:
        bound_ns = _bound_at_rate_ns(load, weighs, rate)
    return None if bound_ns is None else float((bound_ns - origin_ns) / NS_PER_MS)


def _bound_at_rate_ns(
    load: WithMilestones, weighs: Callable[[Resource], bool], rate: ConstantRate
) -> Fraction | None:
    """Return the bound on the ByteIndex for these requests at a constant rate."""
    responses = (
        metrics.Response(
            request.arrived_at_ns + resource.server_ns,
            resource.size_bytes if weighs(resource) else 0,
            # A response without bytes takes a packet too.
            max(1, -(-request.length_bytes // rate.packet_bytes)),
        )
        for request in load.trace.requests
        for resource in (load.spec.page.resources[request.resource],)
    )
    return metrics.lower_bound_ns(
        responses, interval_ns=rate.interval_ns, delay_ns=load.spec.network.one_way_ns
    )


def _bound_over_links_ns(load: WithMilestones, weighs: Callable[[Resource], bool]) -> float | None:
    """Return the bound for these requests and the packets that arrived."""
    jobs = [
        TransmissionJob(
            request.arrived_at_ns + resource.server_ns,
            request.length_bytes,
            resource.size_bytes if weighs(resource) else 0,
        )
        for request in load.trace.requests
        for resource in (load.spec.page.resources[request.resource],)
    ]
    opportunities = [
        TransmissionOpportunity(sent_at_ns, arrived_at_ns, n_bytes)
        for sent_at_ns, arrived_at_ns, _, _, n_bytes, _, delivered_at_ns in load.trace.packet_rows
        # Packets that repeat data are excluded: with any other order they would be retransmissions
        # as well.
        if arrived_at_ns is not None and delivered_at_ns is not None
    ]
    return lower_bound_over_links_ns(jobs, opportunities)


def _bound_of_page_ns(
    load: WithMilestones,
    weighs: Callable[[Resource], bool],
    rate: ConstantRate | None,
    origin_ns: int,
) -> float | None:
    """Return the bound for all loads with this dependency graph, whenever they request."""
    if rate is None:
        message = f"{load.spec.network.name} has no constant rate: use given='requests' over links"
        raise NothingToMeasureError(message)
    if load.spec.browser.mode is not BrowserMode.REPLAY:
        raise NothingToMeasureError("the browser computed the requests: use given='requests'")
    network = load.spec.network
    path = Path(
        packet_bytes=rate.packet_bytes,
        interval_ns=rate.interval_ns,
        down_ns=network.one_way_ns,
        up_ns=network.rtt_ns - network.one_way_ns,
        begins_at_ns=origin_ns,
    )
    tick = mean_tick_bound(parts_of(load.spec.page, path, weighs=weighs))
    return None if tick is None else float(tick * rate.interval_ns) + network.one_way_ns

"""A load as an `h3sim-load/2` document: the keys that logs do not share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim import metrics
from h3sim._version import __version__
from h3sim.engine.connections import PacketCount
from h3sim.load.configuration import FORMAT, LoadIdentity, LoadInputs, identity
from h3sim.load.figures import document_of
from h3sim.load.milestones import Multiplexing, RootRow, Visual
from h3sim.load.qlog_metrics import Measurement
from h3sim.schema.fields import write_table
from h3sim.schema.files import DIGEST, json_digest
from h3sim.schema.output import (
    COUNT,
    NUMBER,
    NUMBER_OR_NONE,
    TEXT,
    TEXT_OR_NONE,
    ObjectType,
    Property,
    row_of,
    rows_of,
)
from h3sim.schema.values import ListOf, OrNone
from h3sim.trace import Delivery
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.load.load import Load
    from h3sim.metrics import Timing
    from h3sim.qlog import MeasuredLog


_CONNECTION = ObjectType(
    Property("hosts", ListOf(TEXT, "names")),
    Property("rtt_ms", NUMBER),
    Property("opened_ms", NUMBER),
    Property("ready_ms", NUMBER),
    Property("requests", COUNT, of="n_requests"),
    Property("stream_bytes", COUNT),
    Property("packets", row_of(PacketCount)),
)
_CARRIED_FLOW = ObjectType(
    Property("flow", TEXT, of="flow.text"),
    Property("bytes", COUNT, of="n_bytes"),
    Property("rate_mbps", NUMBER_OR_NONE),
)
_COUNT_OR_NONE = OrNone(COUNT, none=None)
# The keys of a document are in the order of these tables; between them are the metrics of
# `figures.document_of`.
_ABOVE_THE_FOLD = ObjectType(
    Property(
        "above_the_fold",
        ObjectType(
            Property("resources", _COUNT_OR_NONE),
            Property("bytes", _COUNT_OR_NONE),
            Property("from", TEXT_OR_NONE),
        ),
        "number and bytes of these resources, and the source of the marks; nulls if unknown",
    )
)
UNKNOWN_FOLD = {"resources": None, "bytes": None, "from": None}
"""Value of the key "above_the_fold" if it is unknown which resources are."""
RESOURCES = ListOf(
    ObjectType(
        Property("id", TEXT),
        Property("stream_id", COUNT),
        Property("requested_ms", NUMBER),
        Property("first_byte_ms", NUMBER),
        Property("finished_ms", NUMBER),
        Property("bytes", COUNT),
        Property("connection", COUNT, is_optional=True),
    ),
    "rows",
)
_FRAMES_AND_RESOURCES = ObjectType(
    Property("visual", OrNone(row_of(Visual), none=None)),
    Property("image_index_ms", NUMBER_OR_NONE),
    Property("multiplexing", row_of(Multiplexing)),
    Property("priority_frames", ObjectType(Property("sent", COUNT), Property("bytes", COUNT))),
    Property("resources", RESOURCES, "one row per resource, in request order"),
)
_TABLES = ObjectType(
    Property("roots", rows_of(RootRow), "one row per root, if there are several", is_optional=True),
    Property(
        "cross_traffic",
        ListOf(_CARRIED_FLOW, "rows"),
        "throughput of the competing flows",
        is_optional=True,
    ),
    Property("connections", ListOf(_CONNECTION, "rows"), "if there are several", is_optional=True),
    Property("order", ListOf(COUNT, "ids"), "the stream of each packet sent", is_optional=True),
    Property(
        DIGEST,
        TEXT,
        "8 bytes of BLAKE2b over the rest; a file with another digest is rejected",
        is_optional=True,
    ),
)
WRITTEN = ObjectType(*_ABOVE_THE_FOLD.entries, *_FRAMES_AND_RESOURCES.entries, *_TABLES.entries)
"""The keys of a document in addition to its identity, inputs, and metrics shared with logs."""


def _inputs(load: Load) -> dict[str, Any]:
    """Return the values needed to repeat the load; the scheme is None if it is code."""
    return write_table(
        LoadInputs(
            page=load.page,
            scheme=load.scheme,
            network=load.network,
            transport_profile=load.profile,
        )
    )


def load_to_dict(load: Load, *, order: bool = False) -> dict[str, Any]:
    """Return *load* as a document; *order* adds the stream id of each packet in the order sent.

    Times are ms since navigation start. Values that are not modelled or not defined for the page
    are None.
    """
    is_computed = load.load_event_ms is not None
    tables = {
        "roots": load.roots if len(load.page.roots) > 1 else (),
        "cross_traffic": load.cross_traffic,
        "connections": load.connections if load.trace.connection_of else (),
        "order": load.trace.order if order else (),
    }
    frames = {
        "sent": sum(connection.n_frames for connection in load.connections),
        "bytes": sum(connection.frame_bytes for connection in load.connections),
    }
    document = {
        "format": FORMAT,
        **identity(load.spec),
        **_ABOVE_THE_FOLD.write({"above_the_fold": _above_the_fold(load)}),
        **document_of(load),
        **_FRAMES_AND_RESOURCES.write(load, priority_frames=frames, resources=_resources(load)),
        **(document_of(load, is_computed=True) if is_computed else {}),
        **_TABLES.write(tables),
        "inputs": _inputs(load),
    }
    return {**document, DIGEST: json_digest(document)}


def _resources(load: Load) -> Iterator[dict[str, Any]]:
    """Yield the rows of resources, with the connection number if there are several."""
    numbers = load.trace.connection_of or [None] * len(load.timings)
    for row, number in zip(load.timings, numbers, strict=True):
        yield {**row._asdict(), "connection": number}


def _above_the_fold(load: Load) -> dict[str, Any]:
    """Return the number and bytes of resources above the fold; None if unknown, which is not 0."""
    if not load.page.knows_above_the_fold:
        return UNKNOWN_FOLD
    marked = [resource for resource in load.page.resources if resource.above_the_fold]
    n_bytes = sum(resource.size_bytes for resource in marked)
    return {
        "resources": len(marked),
        "bytes": n_bytes,
        "from": load.page.above_the_fold_from.value,
    }


def measured_to_dict(log: MeasuredLog) -> dict[str, Any]:
    """Return a log as a document like that of a load; unavailable values are None.

    Times are ms since the log began. ByteIndex counts from the first request on.
    """
    document = {
        "format": FORMAT,
        **write_table(
            LoadIdentity(
                version=__version__,
                page=log.title,
                page_digest=None,
                scheme=None,
                network=None,
                transport="quic" if log.trace.delivery is Delivery.STREAM else "tcp",
                seed=None,
                configuration=None,
            )
        ),
        "above_the_fold": {**UNKNOWN_FOLD},
        **document_of(Measurement(log)),
        "resources": RESOURCES.write(
            _resource_entry(log, row) for row in metrics.timings(log.trace)
        ),
    }
    return {**document, DIGEST: json_digest(document)}


def _resource_entry(log: MeasuredLog, row: Timing) -> dict[str, Any]:
    """Return the times of a resource in milliseconds."""
    resource = log.resources[row.resource]
    return {
        "id": resource.id,
        "stream_id": row.stream_id,
        "requested_ms": to_ms(row.requested_at_ns),
        "first_byte_ms": to_ms(row.first_byte_at_ns),
        "finished_ms": to_ms(row.finished_at_ns),
        "bytes": resource.body_bytes,
    }

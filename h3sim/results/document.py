"""A load, or the log of one, as a document of format `h3sim-load/1`; and a load as a log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import metrics, transport
from h3sim._version import __version__
from h3sim.documents.declared import says, write_table
from h3sim.documents.nested import Embedded
from h3sim.documents.values import Choice, ListOf, OrNone, Scalar, TableOf, Text, Whole
from h3sim.documents.written import (
    COUNT,
    NUMBER,
    NUMBER_OR_NONE,
    TEXT,
    TEXT_OR_NONE,
    Key,
    Keys,
    row_of,
    rows_of,
)
from h3sim.page import page_from_dict, page_to_dict
from h3sim.page.model import FORMAT as PAGE
from h3sim.results.configuration import build, configuration, in_words, notes
from h3sim.results.connections import CONNECTION
from h3sim.results.cross_traffic import CARRIED_FLOW
from h3sim.results.figures import document_of
from h3sim.results.milestones import Visual
from h3sim.results.multiplexing import Multiplexing
from h3sim.results.requests import request_sizer
from h3sim.results.roots import RootRow
from h3sim.schemes import scheme_from_dict, scheme_to_dict
from h3sim.schemes.reader import FORMAT as SCHEME
from h3sim.transport import Protocol, network_from_dict, network_to_dict
from h3sim.transport.reader import FORMAT as NETWORK
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.page import Page
    from h3sim.results.connections import Connection
    from h3sim.results.load import Load
    from h3sim.schemes import Scheme
    from h3sim.trace import Trace
    from h3sim.transport import Network, TransportProfile

__all__ = [
    "FORMAT",
    "RESOURCES",
    "UNKNOWN_FOLD",
    "WRITTEN",
    "LoadIdentity",
    "LoadInputs",
    "hol_figures",
    "identity",
    "load_to_dict",
    "told",
    "write_load_qlog",
]

FORMAT = "h3sim-load/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadIdentity:
    """What was run; what the log of a connection cannot say is None."""

    version: str = field(metadata=says(Text(), "of h3sim"))
    build: str = field(
        default="", metadata=says(Text(), '`"pure"`, or `"compiled"` where its modules were')
    )
    page: str = field(metadata=says(Text(), "the page's name"))
    page_digest: str | None = field(
        metadata=says(OrNone(Text(), none=None), "SHA-256 of the page's resources")
    )
    scheme: str | None = field(metadata=says(OrNone(Text(), none=None), "the scheme's name"))
    network: str | None = field(metadata=says(OrNone(Text(), none=None), "the network's name"))
    transport: str = field(metadata=says(Choice(p.value for p in Protocol), "what carried HTTP"))
    seed: int | None = field(
        metadata=says(OrNone(Whole(low=0), none=None), "of all that is random")
    )
    configuration: Mapping[str, Any] | None = field(
        metadata=says(
            OrNone(TableOf(OrNone(Scalar(), none=None)), none=None),
            "every option of `run` as it was resolved, null for what the load has not (a constant"
            " rate has no queue)",
        )
    )
    notes: tuple[str, ...] = field(
        default=(),
        metadata=says(ListOf(Text(), "texts"), "what to know of the page before believing it"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadInputs:
    """What is needed to run the load again."""

    page: Page = field(metadata=says(Embedded(PAGE, page_from_dict, page_to_dict), "the page"))
    scheme: Scheme | None = field(
        metadata=says(
            OrNone(Embedded(SCHEME, scheme_from_dict, scheme_to_dict), none=None),
            "the scheme; null where it was code",
        )
    )
    network: Network = field(
        metadata=says(Embedded(NETWORK, network_from_dict, network_to_dict), "the network")
    )
    transport_profile: TransportProfile | None = field(
        metadata=says(
            OrNone(
                # By attribute: profiles are imported where one is met, which few loads do.
                Embedded(
                    "h3sim-profile/1",
                    lambda *given, **how: transport.profile_from_dict(*given, **how),
                    lambda profile: transport.profile_to_dict(profile),
                ),
                none=None,
            ),
            "the transport profile; null at a constant rate",
        )
    )


_COUNT_OR_NONE = OrNone(COUNT, none=None)
_FOLD = Keys(
    Key(
        "above_the_fold",
        Keys(
            Key("resources", _COUNT_OR_NONE),
            Key("bytes", _COUNT_OR_NONE),
            Key("from", TEXT_OR_NONE),
        ),
        "how much is there, and who says so; nulls where nobody does",
    )
)
UNKNOWN_FOLD = {"resources": None, "bytes": None, "from": None}
RESOURCES = ListOf(
    Keys(
        Key("id", TEXT),
        Key("stream_id", COUNT),
        Key("requested_ms", NUMBER),
        Key("first_byte_ms", NUMBER),
        Key("finished_ms", NUMBER),
        Key("bytes", COUNT),
        Key("connection", COUNT, is_optional=True),
    ),
    "rows",
)
_BESIDE = Keys(
    Key("visual", OrNone(row_of(Visual), none=None)),
    Key("image_index_ms", NUMBER_OR_NONE),
    Key("multiplexing", row_of(Multiplexing)),
    Key("priority_frames", Keys(Key("sent", COUNT), Key("bytes", COUNT))),
    Key("resources", RESOURCES, "one a resource, in the order of requests"),
)
_TABLES = Keys(
    Key("roots", rows_of(RootRow), "one a root, where there are several", is_optional=True),
    Key(
        "cross_traffic", ListOf(CARRIED_FLOW, "rows"), "what other flows carried", is_optional=True
    ),
    Key("connections", ListOf(CONNECTION, "rows"), "where there are several", is_optional=True),
    Key("order", ListOf(COUNT, "ids"), "the stream of each packet sent", is_optional=True),
)
WRITTEN = Keys(*_FOLD.entries, *_BESIDE.entries, *_TABLES.entries)
"""What a document has beside its identity, its inputs, and what is a figure of logs, too."""


def identity(load: Load) -> dict[str, Any]:
    """Return what was run: by name, by digest, and with every setting as resolved."""
    found = LoadIdentity(
        version=__version__,
        build=build(),
        page=load.page.name,
        page_digest=load.page.digest,
        scheme=load.scheme.name,
        network=load.network.name,
        transport=load.protocol.value,
        seed=load.seed,
        configuration=configuration(load),
        notes=tuple(notes(load)),
    )
    return write_table(found, is_whole=True)


def _inputs(load: Load) -> dict[str, Any]:
    """Return what is needed to run the load again; the scheme is None if it is code."""
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

    Times are ms since navigation start. What is not modelled or not defined for the page is None.
    """
    is_computed = load.first_paint_ms is not None
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
    return {
        "format": FORMAT,
        **identity(load),
        **_FOLD.write({"above_the_fold": _above_the_fold(load)}),
        **document_of(load),
        **_BESIDE.write(load, priority_frames=frames, resources=_resources(load)),
        **(document_of(load, is_computed=True) if is_computed else {}),
        **_TABLES.write(tables),
        "inputs": _inputs(load),
    }


def _resources(load: Load) -> Iterator[dict[str, Any]]:
    """Yield the rows of resources, of several connections with the number of theirs."""
    numbers = load.trace.connection_of or [None] * len(load.timings)
    for row, number in zip(load.timings, numbers, strict=True):
        yield {**row._asdict(), "connection": number}


def _above_the_fold(load: Load) -> dict[str, Any]:
    """Return how much is above the fold, None where nobody said: that is not nothing."""
    if not load.page.knows_above_the_fold:
        return UNKNOWN_FOLD
    marked = [resource for resource in load.page.resources if resource.above_the_fold]
    n_bytes = sum(resource.size_bytes for resource in marked)
    return {
        "resources": len(marked),
        "bytes": n_bytes,
        "from": load.page.above_the_fold_from.value,
    }


def hol_figures(*traces: Trace) -> dict[str, Any]:
    """Return the figures of head-of-line blocking by their names in the document.

    There is a trace for each connection: what is sent over one of them never waits for another.
    """
    exact = [metrics.hol_blocking(trace) for trace in traces]
    counted = [metrics.count_sander(trace) for trace in traces]
    stacks: Counter[int] = Counter()
    for trace in traces:
        stacks.update(metrics.stacks(trace))
    return {
        "stream_bytes": sum(each.stream_bytes for each in exact),
        "stream_delay_ms": to_ms(sum(each.stream_delay_ns for each in exact)),
        "connection_bytes": sum(each.connection_bytes for each in exact),
        "connection_delay_ms": to_ms(sum(each.connection_delay_ns for each in exact)),
        "sander_stream_bytes": sum(each.stream_bytes for each in counted),
        "sander_connection_bytes": sum(each.connection_bytes for each in counted),
        "stack_histogram": dict(sorted(stacks.items())),
    }


def told(load: Load) -> str:
    """Return the configuration in words, with h3sim's version and a part of the page's digest.

    Network, transport and seed, which headings name, are left out.
    """
    words = in_words(load)
    parts = [words[key] for key in words if key not in ("network", "transport", "seed")]
    return f"{', '.join(parts)}; h3sim {__version__}, page {load.page.short_digest}"


def write_load_qlog(load: Load, path: str | Path, *, dialect: str = "0.3") -> None:
    """Write *load* as a qlog: FILE.qlog has both ends' logs, FILE.sqlog the client's.

    A log is of one connection. Of several each has a file: FILE-1.qlog and so on.

    Raises:
        LogError: if a file cannot be written.
    """
    for connection in load.connections:
        _write_qlog(load, connection, qlog_path(load, path, connection), dialect)


def qlog_path(load: Load, path: str | Path, connection: Connection) -> Path:
    """Return the file for the log of a connection: *path* where there is only one."""
    file = Path(path)
    if len(load.connections) == 1:
        return file
    # All endings stay behind the number: `a.qlog.gz` is `a-1.qlog.gz`.
    name, *endings = file.name.split(".")
    return file.with_name(".".join((f"{name}-{connection.number + 1}", *endings)))


def _write_qlog(load: Load, connection: Connection, path: Path, dialect: str) -> None:
    # On use: importing h3sim should stay quick.
    from h3sim.qlog import LoggedResource, write_qlog

    requests = connection.trace.requests
    requested = {row.stream_id: load.page.resources[row.resource] for row in requests}
    is_http2 = load.protocol is Protocol.TCP and load.profile is not None
    request_bytes = request_sizer(load.page, is_http2=is_http2)
    resources = {
        stream_id: LoggedResource(
            id=resource.id,
            body_bytes=resource.size_bytes,
            request_bytes=request_bytes(resource),
        )
        for stream_id, resource in requested.items()
    }
    told = [*in_words(load).values(), f"h3sim {__version__}", f"page {load.page.digest}"]
    write_qlog(
        connection.trace,
        path,
        title=load.page.name,
        description=f"scheme {load.scheme.name}, {', '.join(told)}",
        dialect=dialect,
        resources=resources,
        signals_are_sent=load.scheme.signalling.is_sent,
    )

"""A load, or the log of one, as a document of format `h3sim-load/2`; and a load as a log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import metrics, transport
from h3sim._version import __version__, build
from h3sim.documents.declared import says, write_table
from h3sim.documents.nested import Embedded
from h3sim.documents.values import Choice, ListOf, OrNone, Scalar, TableOf, Text, Whole
from h3sim.page import page_from_dict, page_to_dict
from h3sim.page.model import FORMAT as PAGE
from h3sim.results.configuration import configuration, in_words, notes
from h3sim.results.requests import request_sizer
from h3sim.schemes import scheme_from_dict, scheme_to_dict
from h3sim.schemes.reader import FORMAT as SCHEME
from h3sim.transport import Protocol, network_from_dict, network_to_dict
from h3sim.transport.reader import FORMAT as NETWORK
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.page import Page
    from h3sim.results.connections import Connection
    from h3sim.results.load import Load
    from h3sim.schemes import Scheme
    from h3sim.trace import Trace
    from h3sim.transport import Network, TransportProfile

__all__ = [
    "FORMAT",
    "LoadIdentity",
    "LoadInputs",
    "hol_figures",
    "identity",
    "told",
    "write_load_qlog",
]

FORMAT = "h3sim-load/2"


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
        seed=load.spec.seed,
        configuration=configuration(load.spec),
        notes=tuple(notes(load)),
    )
    return write_table(found, is_whole=True)


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

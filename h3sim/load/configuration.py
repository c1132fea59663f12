"""The specification of a load, and its description: text, and header of the JSON document."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from h3sim import metrics, transport
from h3sim._version import __version__, build
from h3sim.browser import BROWSER_OPTIONS, PARSING_OPTIONS, BrowserMode, BrowserModel, PaintMode
from h3sim.http import SendBufferRefill
from h3sim.page import ConnectionMode, MarksFrom, page_from_dict, page_to_dict
from h3sim.page.hosts import host_groups, host_names
from h3sim.page.model import FORMAT as PAGE
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schema.fields import Embedded, declare, write_table
from h3sim.schema.values import Choice, Integer, ListOf, OrNone, Scalar, TableOf, Text
from h3sim.schemes import scheme_from_dict, scheme_to_dict
from h3sim.schemes.model import FORMAT as SCHEME
from h3sim.signals import Signalling
from h3sim.transport import HandshakeMode, Protocol, network_from_dict, network_to_dict
from h3sim.transport.network import FORMAT as NETWORK
from h3sim.values.units import NS_PER_MS, NS_PER_S, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.engine.load_spec import LoadSpec
    from h3sim.page import Page
    from h3sim.page.hosts import RecordedHosts
    from h3sim.schemes import Scheme
    from h3sim.trace import Trace
    from h3sim.transport import LinkProfile, Network, TransportProfile
    from h3sim.transport.link_profile import LinkJitter


_HANDSHAKE_WORDS = {
    HandshakeMode.NONE: "no handshake",
    HandshakeMode.ONE_RTT: "1-RTT handshake",
    HandshakeMode.ZERO_RTT: "0-RTT handshake",
}


def configuration(spec: LoadSpec) -> dict[str, Any]:
    """Return every setting of a load by the name of its option, as resolved.

    Settings that do not apply are None: a constant rate has no loss, queue, congestion controller
    or profile; links have no interval. Rate, loss, queue and reordering are those of the downlink;
    if the uplink differs, the network itself describes it.
    """
    profile, scheme, codec = spec.profile_of_ends, spec.scheme, spec.header_compression
    quic = None if profile is None or spec.protocol.is_over_tcp else profile.quic
    return {
        "network": spec.network.name,
        "transport": spec.protocol.value,
        "transport_profile": None if profile is None else profile.name,
        "cc": None if profile is None else profile.cc,
        "ecn": None if profile is None else profile.ecn,
        **_path_values(spec.network),
        "send_buffer_kb": spec.buffer_bytes / 1000,
        "send_buffer_refill": spec.send_buffer_refill.value if spec.buffer_bytes else None,
        "retransmission_order": (
            None if profile is None else _retransmission_order(scheme, profile)
        ),
        "packet_threshold": None if quic is None else quic.packet_threshold,
        "time_threshold": None if quic is None else quic.time_threshold,
        "max_placeholders": scheme.max_placeholders,
        "closed_stream_retention_ms": to_ms(scheme.resolved_retention_ns),
        "signalling": scheme.signalling.value,
        "handshake": spec.mode.value,
        "seed": spec.seed,
        **_browser_values(spec.browser),
        "header_compression": None if codec is None else codec.codec,
        "connections": (
            ConnectionMode.SINGLE if spec.hosts is None else ConnectionMode.PER_HOST
        ).value,
        "max_connections_per_host": (
            spec.max_connections_per_host if spec.protocol is Protocol.HTTP1 else None
        ),
        "cross_traffic": " + ".join(flow.text for flow in spec.cross_traffic) or None,
        "dns_ms": None if spec.hosts is None else to_ms(spec.hosts.dns_ns),
        "time_limit_s": None if spec.is_constant_rate else spec.limit_ns / NS_PER_S,
    }


def _retransmission_order(scheme: Scheme, profile: TransportProfile) -> str:
    return profile.retransmit if scheme.retransmission is None else scheme.retransmission.value


def _path_values(network: Network) -> dict[str, Any]:
    """Return rate, RTT, loss and queue of a network by the names of their options."""
    rate, down = network.constant_rate, network.down
    values: dict[str, Any] = dict.fromkeys(
        (
            "rate_mbps",
            "interval_ms",
            "packet_bytes",
            "rtt_ms",
            "loss",
            "mean_loss_burst",
            "queue_bdp",
            "queue_bytes",
            "queue_packets",
            "queue_discipline",
            "reorder",
        )
    )
    values["rtt_ms"] = to_ms(network.rtt_ns)
    if rate is not None:
        values["rate_mbps"] = to_mbps(rate.rate_bps)
        values["interval_ms"] = float(rate.interval_ns / NS_PER_MS)
        values["packet_bytes"] = rate.packet_bytes
        values["reorder"] = None if network.jitter is None else network.jitter.text
    elif down is not None:
        mean_bps = down.mean_rate_bps
        values["rate_mbps"] = None if mean_bps is None else float(mean_bps / 10**6)
        values |= {
            "loss": down.loss,
            "mean_loss_burst": down.loss_burst,
            "reorder": _link_reordering(down),
        }
        for name in ("queue_bdp", "queue_bytes", "queue_packets"):
            values[name] = getattr(down, name)
        if mean_bps is not None:
            values["queue_discipline"] = down.queue_discipline.value
    return values


def _link_reordering(link: LinkProfile) -> str | None:
    """Return the reordering of a link: in the form of the option, or the delays that cause it."""
    if link.hold is not None:
        return link.hold.text
    if link.jitter is not None and link.jitter.reorder:
        return _describe_link_jitter(link.jitter)
    return None


def _describe_link_jitter(jitter: LinkJitter) -> str:
    mean_ms, deviation_ms = to_ms(jitter.mean_ns), to_ms(jitter.deviation_ns)
    words = f"{jitter.distribution.value} {mean_ms:g} ms, deviation {deviation_ms:g} ms"
    factors = sorted(factor for _, factor in jitter.steps)
    return f"{words}, {factors[0]:g} to {factors[-1]:g} times that" if factors else words


def _browser_values(browser: BrowserModel) -> dict[str, Any]:
    """Return the settings of the browser; in a replay, None for those of computed loads."""
    values: dict[str, Any] = {"browser": browser.mode.value}
    for name in BROWSER_OPTIONS:
        applies = browser.mode is BrowserMode.PARSE or name not in PARSING_OPTIONS
        value = getattr(browser, name) if applies else None
        values[name] = value.value if isinstance(value, Enum) else value
    return values


def in_words(spec: LoadSpec) -> dict[str, str]:
    """Return the configuration as short texts by setting; equal loads have equal texts.

    All output for people (headers, captions, logs) uses these texts.
    """
    values = configuration(spec)
    send_buffer_kb, flows = values["send_buffer_kb"], values["cross_traffic"]
    is_filled_in_bursts = spec.send_buffer_refill is SendBufferRefill.WHEN_EMPTY
    codec = values["header_compression"]
    words = {
        "network": spec.network.name,
        "transport": spec.protocol.value.upper(),
        **dict(_describe_path(spec.network, values)),
        **_describe_profile(spec, values["retransmission_order"]),
        "buffer": f"{send_buffer_kb:g} kB buffer" if send_buffer_kb else "no buffer",
        "buffer model": "buffers filled in bursts" if is_filled_in_bursts else "",
        **_describe_scheme(spec.scheme),
        "handshake": _HANDSHAKE_WORDS[spec.mode],
        **_describe_browser(spec.browser),
        "headers": f"headers by {codec}" if codec else "",
        "hosts": _describe_hosts(spec.hosts),
        "cross traffic": f"beside {flows}" if flows else "",
        "seed": f"seed {spec.seed}",
    }
    return {setting: text for setting, text in words.items() if text}


def _describe_hosts(hosts: RecordedHosts | None) -> str:
    """Return the host setting, "" for the default, a single connection."""
    if hosts is None:
        return ""
    dns = f", DNS {to_ms(hosts.dns_ns):g} ms" if hosts.dns_ns else ""
    return f"hosts as recorded{dns}"


def _describe_scheme(scheme: Scheme) -> dict[str, str]:
    """Return the settings of the load that override the scheme; "" for those that do not."""
    limit, retention_ns = scheme.max_placeholders, scheme.retention_ns
    is_metadata = scheme.signalling is Signalling.METADATA
    return {
        "placeholders": "" if limit is None else f"at most {limit} placeholders",
        "retention": (
            "" if retention_ns is None else f"closed streams kept for {to_ms(retention_ns):g} ms"
        ),
        "metadata": "priorities by metadata" if is_metadata else "",
    }


def _describe_path(network: Network, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield rate, RTT, loss and queue of a network in words."""
    rate_mbps = values["rate_mbps"]
    yield "rate", "no bottleneck" if rate_mbps is None else f"{rate_mbps:g} Mbit/s"
    if values["packet_bytes"] is not None:
        yield "packets", f"packets of {values['packet_bytes']} bytes"
    yield "RTT", f"RTT {values['rtt_ms']:g} ms"
    if network.constant_rate is not None:
        yield "reordering", _describe_reordering(values["reorder"])
        return
    down, up = network.down, network.up
    if down is None or up is None:  # links have both
        return
    up_loss = "" if _loss_fields(down) == _loss_fields(up) else f" ({_describe_loss(up)} up)"
    yield "loss", f"{_describe_loss(down)}{up_loss}"
    yield "queue", _describe_queue(down)
    if values["reorder"]:
        yield "reordering", _describe_reordering(values["reorder"])
    elif down.jitter is not None:
        yield "jitter", f"jitter {_describe_link_jitter(down.jitter)}, in order"


def _describe_reordering(text: str | None) -> str:
    return f"reordering {text}" if text else "no reordering"


def _loss_fields(link: LinkProfile) -> tuple[object, ...]:
    return link.loss, link.loss_burst, link.loss_list


def _describe_loss(link: LinkProfile) -> str:
    if link.loss_list:
        return f"{len(link.loss_list)} listed losses"
    burst = f" in bursts of {link.loss_burst:g}" if link.loss_burst is not None else ""
    return f"{100 * link.loss:g} % loss{burst}" if link.loss else "no loss"


def _describe_queue(link: LinkProfile) -> str:
    """Return size and discipline of a queue in words."""
    names = {"codel": " with CoDel", "fq-codel": " with FQ-CoDel"}
    codel = names.get(link.queue_discipline.value, "")
    if link.ecn:
        codel += " that marks"
    if link.queue_bdp is not None:
        return f"queue of {link.queue_bdp:,g} BDP{codel}"
    if link.queue_bytes is not None:
        return f"queue of {link.queue_bytes:,} bytes{codel}"
    if link.queue_packets is not None:
        return f"queue of {link.queue_packets:,} packets{codel}"
    return f"queue without limit{codel}"


def _describe_profile(spec: LoadSpec, retransmit: str | None) -> dict[str, str]:
    """Return the transport profile in words, and its retransmission order."""
    profile = spec.profile_of_ends
    if profile is None:
        return {}
    return {
        "profile": f"{profile.name} with {profile.cc}",
        "retransmit": "" if retransmit == "first" else f"lost bytes by {retransmit}",
    }


def _describe_browser(browser: BrowserModel) -> dict[str, str]:
    """Return the settings of the browser, "" for defaults; a replay has only the first."""
    at_ms = browser.hidden_at_ms
    tab = {"tab": "" if at_ms is None else f"tab in the background at {at_ms:g} ms"}
    if browser.mode is BrowserMode.REPLAY:
        return tab
    limit, host_limit = browser.max_concurrent_requests, browser.max_concurrent_requests_per_host
    tight = browser.tight_mode
    return {
        **tab,
        "browser": f"browser {browser.mode.value}",
        "cpu": f"CPU times x {browser.cpu_slowdown:g}",
        "requests": "" if limit is None else f"{limit} requests at once",
        "requests of a host": "" if host_limit is None else f"{host_limit} of a host",
        "scanner": "" if browser.preload_scanner else "no preload scanner",
        "tight mode": "" if tight is None else f"tight mode {tight.value}",
        "paint": "images painted once complete" if browser.paint is PaintMode.COMPLETE else "",
        "styles": "stylesheets block the parser" if browser.stylesheets_block_parser else "",
    }


_NOTE_BY_MARKS_SOURCE = {
    MarksFrom.HEURISTIC: "what is above the fold was inferred from markup and order, not seen",
    MarksFrom.CRITICAL_PATH: "what is above the fold was taken from WProfX's critical path",
}


def _connections_note(page: Page) -> str:
    """Return a note on the connections that hosts would have, "" for a single host."""
    names = host_names(page.resources, page.root)
    n_connections = len(host_groups(names, page.hosts))
    return f": with connections = per-host they have {n_connections}" if len(names) > 1 else ""


def notes(spec: LoadSpec) -> list[str]:
    """Return the caveats that a reader must know before relying on the metrics.

    A recorded page names the number of its hosts, which share one connection by default, and the
    recording does not describe its network. Marks above the fold may be inferred, and all metrics
    above the fold depend on them.
    """
    page, network = spec.page, spec.network
    lines = []
    if page.recorded_load is not None and network.name.startswith(RECORDED_NETWORK):
        lines.append(f"over its recorded network, estimated: {network.source}")
    if page.above_the_fold_from in _NOTE_BY_MARKS_SOURCE and page.knows_above_the_fold:
        lines.append(_NOTE_BY_MARKS_SOURCE[page.above_the_fold_from])
    n_hosts = page.provenance.get("hosts", "")
    if not n_hosts:  # not a recording
        return lines
    if n_hosts != "1" and spec.hosts is None:
        note = _connections_note(page)
        lines.append(f"{n_hosts} hosts of the recording share one connection here{note}")
    if network.constant_rate is not None and not network.rtt_ns:
        rate = in_words(spec)["rate"]
        lines.append(
            f"a recording, loaded at a constant {rate} with RTT 0 ms ({network.name}), unlike"
            " the network of the recording: choose another network"
        )
    return lines


FORMAT = "h3sim-load/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadIdentity:
    """The identity of a run; None for values that a connection's log lacks."""

    version: str = field(metadata=declare(Text(), "of h3sim"))
    build: str = field(
        default="", metadata=declare(Text(), '`"pure"`, or `"compiled"` if modules were compiled')
    )
    page: str = field(metadata=declare(Text(), "the page's name"))
    page_digest: str | None = field(
        metadata=declare(OrNone(Text(), none=None), "SHA-256 of the page's resources")
    )
    scheme: str | None = field(metadata=declare(OrNone(Text(), none=None), "the scheme's name"))
    network: str | None = field(metadata=declare(OrNone(Text(), none=None), "the network's name"))
    transport: str = field(
        metadata=declare(Choice(p.value for p in Protocol), "the protocol that carried HTTP")
    )
    seed: int | None = field(metadata=declare(OrNone(Integer(low=0), none=None), "the random seed"))
    configuration: Mapping[str, Any] | None = field(
        metadata=declare(
            OrNone(TableOf(OrNone(Scalar(), none=None)), none=None),
            "every option of `run` as resolved, null where it does not apply (a constant rate has"
            " no queue)",
        )
    )
    notes: tuple[str, ...] = field(
        default=(),
        metadata=declare(ListOf(Text(), "texts"), "caveats of the page's data"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadInputs:
    """The values needed to repeat the load."""

    page: Page = field(metadata=declare(Embedded(PAGE, page_from_dict, page_to_dict), "the page"))
    scheme: Scheme | None = field(
        metadata=declare(
            OrNone(Embedded(SCHEME, scheme_from_dict, scheme_to_dict), none=None),
            "the scheme; null if it was given as code",
        )
    )
    network: Network = field(
        metadata=declare(Embedded(NETWORK, network_from_dict, network_to_dict), "the network")
    )
    transport_profile: TransportProfile | None = field(
        metadata=declare(
            OrNone(
                # The attributes are read in functions: they import the module of profiles, which
                # few loads need.
                Embedded(
                    "h3sim-profile/1",
                    lambda document, *, source: transport.profile_from_dict(
                        document, source=source
                    ),
                    lambda profile: transport.profile_to_dict(profile),
                ),
                none=None,
            ),
            "the transport profile; null at a constant rate",
        )
    )


def identity(spec: LoadSpec) -> dict[str, Any]:
    """Return the identity of a load: names, digests, and every setting as resolved."""
    load_identity = LoadIdentity(
        version=__version__,
        build=build(),
        page=spec.page.name,
        page_digest=spec.page.digest,
        scheme=spec.scheme.name,
        network=spec.network.name,
        transport=spec.protocol.value,
        seed=spec.seed,
        configuration=configuration(spec),
        notes=tuple(notes(spec)),
    )
    return write_table(load_identity, include_defaults=True)


def hol_figures(*traces: Trace) -> dict[str, Any]:
    """Return the head-of-line blocking metrics by their names in the document.

    Each connection has a trace of its own: data on one connection never waits for another.
    """
    exact = [metrics.hol_blocking(trace) for trace in traces]
    by_sander = [metrics.count_sander(trace) for trace in traces]
    stacks: Counter[int] = Counter()
    for trace in traces:
        stacks.update(metrics.stacks(trace))
    return {
        "stream_bytes": sum(each.stream_bytes for each in exact),
        "stream_delay_ms": to_ms(sum(each.stream_delay_ns for each in exact)),
        "connection_bytes": sum(each.connection_bytes for each in exact),
        "connection_delay_ms": to_ms(sum(each.connection_delay_ns for each in exact)),
        "sander_stream_bytes": sum(each.stream_bytes for each in by_sander),
        "sander_connection_bytes": sum(each.connection_bytes for each in by_sander),
        "stack_histogram": dict(sorted(stacks.items())),
    }


def describe(spec: LoadSpec) -> str:
    """Return the configuration as text, with h3sim's version and a prefix of the page's digest.

    Network, transport and seed are left out, since they are in headings.
    """
    words = in_words(spec)
    parts = [words[key] for key in words if key not in ("network", "transport", "seed")]
    return f"{', '.join(parts)}; h3sim {__version__}, page {spec.page.short_digest}"

"""What a load was run with, all of it, as resolved: for documents, and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.browser import OF_BROWSER, OF_PARSING, BrowserMode
from h3sim.http import SendBufferRefill
from h3sim.page import ConnectionMode, MarksFrom
from h3sim.page.hosts import host_groups, host_names
from h3sim.page.recorded_load import RECORDED_NETWORK
from h3sim.signals import Signalling
from h3sim.transport import Mode
from h3sim.units import NS_PER_MS, NS_PER_S, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.browser import BrowserModel
    from h3sim.page import Page
    from h3sim.page.hosts import RecordedHosts
    from h3sim.results.load import Load
    from h3sim.results.spec import LoadSpec
    from h3sim.schemes import Scheme
    from h3sim.transport import LinkProfile, Network, TransportProfile

__all__ = ["configuration", "in_words", "notes"]

_HANDSHAKES = {
    Mode.NONE: "no handshake",
    Mode.ONE_RTT: "1-RTT handshake",
    Mode.ZERO_RTT: "0-RTT handshake",
}


def configuration(spec: LoadSpec) -> dict[str, Any]:
    """Return every setting of a load by the name of its option, as resolved.

    What the load has not is None: at a constant rate there is no loss, queue, controller or
    profile; over links no interval. Rate, loss, queue and jitter are those down; where up differs,
    the network itself says so.
    """
    profile, scheme, codec = spec.profile_of_ends, spec.scheme, spec.header_compression
    return {
        "network": spec.network.name,
        "transport": spec.protocol.value,
        "transport_profile": None if profile is None else profile.name,
        "cc": None if profile is None else profile.cc,
        **_path(spec.network),
        "send_buffer_kb": spec.buffer_bytes / 1000,
        "send_buffer_refill": spec.send_buffer_refill.value if spec.buffer_bytes else None,
        "retransmission_order": None if profile is None else _retransmit(scheme, profile),
        "max_placeholders": scheme.max_placeholders,
        "closed_stream_retention_ms": to_ms(scheme.resolved_retention_ns),
        "signalling": scheme.signalling.value,
        "handshake": spec.mode.value,
        "seed": spec.seed,
        **_browser(spec.browser),
        "header_compression": None if codec is None else codec.codec,
        "connections": _connection_mode(spec).value,
        "cross_traffic": " + ".join(flow.text for flow in spec.cross_traffic) or None,
        "dns_ms": None if spec.hosts is None else to_ms(spec.hosts.dns_ns),
        "time_limit_s": None if spec.is_constant_rate else spec.limit_ns / NS_PER_S,
    }


def _connection_mode(spec: LoadSpec) -> ConnectionMode:
    return ConnectionMode.SINGLE if spec.hosts is None else ConnectionMode.PER_HOST


def _retransmit(scheme: Scheme, profile: TransportProfile) -> str:
    return profile.retransmit if scheme.retransmission is None else scheme.retransmission.value


def _path(network: Network) -> dict[str, Any]:
    rate, down = network.constant_rate, network.down
    values: dict[str, Any] = dict.fromkeys(
        (
            *("rate_mbps", "interval_ms", "packet_bytes", "rtt_ms", "loss"),
            *("mean_loss_burst", "queue_bdp", "queue_bytes", "queue_packets", "reorder"),
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
            "reorder": _link_jitter(down),
        }
        for name in ("queue_bdp", "queue_bytes", "queue_packets"):
            values[name] = getattr(down, name)
    return values


def _link_jitter(link: LinkProfile) -> str | None:
    if link.hold is not None:
        return link.hold.text
    if link.jitter is None:
        return None
    mean_ms, deviation_ms = to_ms(link.jitter.mean_ns), to_ms(link.jitter.deviation_ns)
    return f"{link.jitter.distribution.value} {mean_ms:g} ms, deviation {deviation_ms:g} ms"


def _browser(browser: BrowserModel) -> dict[str, Any]:
    """Return the browser's settings; what only one that computes its load has is None else."""
    values: dict[str, Any] = {"browser": browser.mode.value}
    for name in OF_BROWSER:
        acts = browser.mode is BrowserMode.PARSE or name not in OF_PARSING
        values[name] = getattr(browser, name) if acts else None
    return values


def in_words(load: Load) -> dict[str, str]:
    """Return the configuration in words, by what each part says; the same for equal loads.

    Every output for people takes its words from here: headers, captions, logs.
    """
    spec, values = load.spec, configuration(load.spec)
    send_buffer_kb, flows = values["send_buffer_kb"], values["cross_traffic"]
    in_bursts = spec.send_buffer_refill is SendBufferRefill.WHEN_EMPTY
    return {
        "network": spec.network.name,
        "transport": spec.protocol.value.upper(),
        **dict(_path_words(spec.network, values)),
        **_profile_words(spec, values["retransmission_order"]),
        "buffer": f"{send_buffer_kb:g} kB buffer" if send_buffer_kb else "no buffer",
        **({"buffer model": "buffers filled in bursts"} if in_bursts else {}),
        **_scheme_words(spec.scheme),
        "handshake": _HANDSHAKES[spec.mode],
        **_browser_words(spec.browser),
        **(
            {}
            if values["header_compression"] is None
            else {"headers": f"headers by {values['header_compression']}"}
        ),
        **_host_words(spec.hosts),
        **({"cross traffic": f"beside {flows}"} if flows else {}),
        "seed": f"seed {spec.seed}",
    }


def _host_words(hosts: RecordedHosts | None) -> dict[str, str]:
    """Return nothing where all hosts are one, as they are unless asked for."""
    if hosts is None:
        return {}
    dns = f", DNS {to_ms(hosts.dns_ns):g} ms" if hosts.dns_ns else ""
    return {"hosts": f"hosts as recorded{dns}"}


def _scheme_words(scheme: Scheme) -> dict[str, str]:
    """Return what the server was told to do otherwise than the scheme says."""
    words = {}
    if scheme.max_placeholders is not None:
        words["placeholders"] = f"at most {scheme.max_placeholders} placeholders"
    if scheme.retention_ns is not None:
        words["retention"] = f"closed streams kept for {to_ms(scheme.retention_ns):g} ms"
    if scheme.signalling is Signalling.METADATA:
        words["metadata"] = "priorities by metadata"
    return words


def _path_words(network: Network, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rate_mbps = values["rate_mbps"]
    yield "rate", "no bottleneck" if rate_mbps is None else f"{rate_mbps:g} Mbit/s"
    if values["packet_bytes"] is not None:
        yield "packets", f"packets of {values['packet_bytes']} bytes"
    yield "RTT", f"RTT {values['rtt_ms']:g} ms"
    if network.constant_rate is not None:
        yield "reordering", _reordering(values["reorder"])
        return
    down, up = network.down, network.up
    if down is None or up is None:  # links have both
        return
    yield (
        "loss",
        _loss_words(down) + ("" if _loss(down) == _loss(up) else f" ({_loss_words(up)} up)"),
    )
    yield "queue", _queue_words(down)
    if values["reorder"]:
        yield "reordering", _reordering(values["reorder"])


def _reordering(text: str | None) -> str:
    return f"reordering {text}" if text else "no reordering"


def _loss(link: LinkProfile) -> tuple[object, ...]:
    return link.loss, link.loss_burst, link.loss_list


def _loss_words(link: LinkProfile) -> str:
    if link.loss_list:
        return f"{len(link.loss_list)} listed losses"
    burst = f" in bursts of {link.loss_burst:g}" if link.loss_burst is not None else ""
    return f"{100 * link.loss:g} % loss{burst}" if link.loss else "no loss"


def _queue_words(link: LinkProfile) -> str:
    codel = " with CoDel" if link.codel is not None else ""
    for value, unit in (
        (link.queue_bdp, "BDP"),
        (link.queue_bytes, "bytes"),
        (link.queue_packets, "packets"),
    ):
        if value is not None:
            return (
                f"queue of {value:,g} {unit}{codel}"
                if unit == "BDP"
                else f"queue of {value:,} {unit}{codel}"
            )
    return f"queue without limit{codel}"


def _profile_words(spec: LoadSpec, retransmit: str | None) -> dict[str, str]:
    profile = spec.profile_of_ends
    if profile is None:
        return {}
    words = {"profile": f"{profile.name} with {profile.cc}"}
    if retransmit != "first":
        words["retransmit"] = f"lost bytes by {retransmit}"
    return words


def _browser_words(browser: BrowserModel) -> dict[str, str]:
    """Return nothing where the recording is replayed, as it is unless asked for."""
    at_ms = browser.hidden_at_ms
    hidden = {} if at_ms is None else {"tab": f"tab in the background at {at_ms:g} ms"}
    if browser.mode is BrowserMode.REPLAY:
        return hidden
    words = {
        **hidden,
        "browser": f"browser {browser.mode.value}",
        "cpu": f"CPU times x {browser.cpu_slowdown:g}",
    }
    if browser.max_concurrent_requests is not None:
        words["requests"] = f"{browser.max_concurrent_requests} requests at once"
    if browser.max_concurrent_requests_per_host is not None:
        words["requests of a host"] = f"{browser.max_concurrent_requests_per_host} of a host"
    if not browser.preload_scanner:
        words["scanner"] = "no preload scanner"
    if browser.tight_mode:
        words["tight mode"] = "tight mode"
    if browser.stylesheets_block_parser:
        words["styles"] = "stylesheets stop the parser"
    return words


def _about_network(load: Load) -> Iterator[str]:
    """Yield that the network is an estimate, where it is the one of the page's recording."""
    known = load.page.recorded_load
    if known is not None and load.network.name.startswith(RECORDED_NETWORK):
        yield f"over its recorded network, estimated: {load.network.source}"


_INFERRED = {
    MarksFrom.HEURISTIC: "what is above the fold was inferred from markup and order, not seen",
    MarksFrom.CRITICAL_PATH: "what is above the fold was taken from WProfX's critical path",
}


def _own(page: Page) -> str:
    """Return how the hosts of a page come to connections of their own, "" if it knows one host."""
    names = host_names(page.resources, page.root)
    n_connections = len(host_groups(names, page.hosts))
    return f": with connections = per-host they have {n_connections}" if len(names) > 1 else ""


def notes(load: Load) -> list[str]:
    """Return what a reader must know of the page before believing the figures.

    A page that was made of a recording says from how many hosts it came: here all of them share
    one connection; and nothing says over what it was recorded. What is above the fold may be
    inferred, and then every figure above the fold rests on that.
    """
    how = load.page.above_the_fold_from
    found = [*_about_network(load)]
    found += [_INFERRED[how]] if how in _INFERRED and load.page.knows_above_the_fold else []
    n_hosts = load.page.provenance.get("hosts", "")
    if not n_hosts:
        return found
    if n_hosts != "1" and load.spec.hosts is None:
        found.append(f"{n_hosts} hosts of the recording share one connection here{_own(load.page)}")
    if load.network.constant_rate is not None and not load.network.rtt_ns:
        rate = in_words(load)["rate"]
        found.append(
            f"a recording, loaded at a constant {rate} with RTT 0 ms ({load.network.name}), which"
            " is not what it was recorded over: choose another network"
        )
    return found

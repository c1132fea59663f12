"""What a load was run with, all of it, as resolved: for documents, and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.browser import OF_BROWSER, OF_PARSING, BrowserMode
from h3sim.http import BufferModel
from h3sim.page import HostMode, MarksFrom
from h3sim.page.hosts import host_groups, host_names
from h3sim.page.recorded_load import RECORDED_NETWORK
from h3sim.signals import Signalling
from h3sim.transport import Mode
from h3sim.units import NS_PER_MS, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.page import Page
    from h3sim.results.load import Load
    from h3sim.transport import LinkProfile, Network

__all__ = ["configuration", "in_words", "notes"]

_HANDSHAKES = {
    Mode.NONE: "no handshake",
    Mode.ONE_RTT: "1-RTT handshake",
    Mode.ZERO_RTT: "0-RTT handshake",
}


def configuration(load: Load) -> dict[str, Any]:
    """Return every setting of *load* by the name of its option, as resolved.

    What the load has not is None: at a constant rate there is no loss, queue, controller or
    profile; over links no interval. Rate, loss, queue and jitter are those down; where up differs,
    the network itself says so.
    """
    network, profile = load.network, load.profile
    is_link = network.constant_rate is None
    retransmission = load.scheme.retransmission
    known = None if profile is None else profile.retransmit
    return {
        "network": network.name,
        "transport": load.protocol.value,
        "transport_profile": None if profile is None else profile.name,
        "cc": None if profile is None else profile.cc,
        **_path(network),
        "buffer_kb": load.buffer_bytes / 1000,
        "buffer_model": load.buffer_model.value if load.buffer_bytes else None,
        "retransmit": retransmission.value if retransmission and is_link else known,
        "max_placeholders": load.scheme.max_placeholders,
        "retention_ms": to_ms(load.scheme.resolved_retention_ns),
        "metadata": load.scheme.signalling is Signalling.METADATA,
        "handshake": load.mode.value,
        "seed": load.seed,
        **_browser(load),
        "headers": None if load.headers is None else load.headers.codec,
        "hosts": (HostMode.ONE if load.hosts is None else HostMode.RECORDED).value,
        "cross_traffic": _cross_traffic(load),
        "dns_ms": None if load.hosts is None else to_ms(load.hosts.dns_ns),
    }


def _path(network: Network) -> dict[str, Any]:
    rate, down = network.constant_rate, network.down
    values: dict[str, Any] = dict.fromkeys(
        (
            *("rate_mbps", "interval_ms", "packet_bytes", "rtt_ms", "loss", "burst"),
            *("queue_bdp", "queue_bytes", "queue_packets", "jitter"),
        )
    )
    values["rtt_ms"] = to_ms(network.rtt_ns)
    if rate is not None:
        values["rate_mbps"] = to_mbps(rate.rate_bps)
        values["interval_ms"] = float(rate.interval_ns / NS_PER_MS)
        values["packet_bytes"] = rate.packet_bytes
        values["jitter"] = None if network.jitter is None else network.jitter.text
    elif down is not None:
        mean_bps = down.mean_rate_bps
        values["rate_mbps"] = None if mean_bps is None else float(mean_bps / 10**6)
        values |= {"loss": down.loss, "burst": down.loss_burst, "jitter": _link_jitter(down)}
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


def _browser(load: Load) -> dict[str, Any]:
    """Return the browser's settings; what only one that computes its load has is None else."""
    browser = load.browser
    values: dict[str, Any] = {"browser": browser.mode.value}
    for name in OF_BROWSER:
        acts = browser.mode is BrowserMode.PARSE or name not in OF_PARSING
        values[name] = getattr(browser, name) if acts else None
    return values


def in_words(load: Load) -> dict[str, str]:
    """Return the configuration in words, by what each part says; the same for equal loads.

    Every output for people takes its words from here: headers, captions, logs.
    """
    buffer_kb = load.buffer_bytes / 1000
    in_bursts = load.buffer_model is BufferModel.BURSTS
    return {
        "network": load.network.name,
        "transport": load.protocol.value.upper(),
        **dict(_path_words(load.network)),
        **_profile_words(load),
        "buffer": f"{buffer_kb:g} kB buffer" if buffer_kb else "no buffer",
        **({"buffer model": "buffers filled in bursts"} if in_bursts else {}),
        **_scheme_words(load),
        "handshake": _HANDSHAKES[load.mode],
        **_browser_words(load),
        **({} if load.headers is None else {"headers": f"headers by {load.headers.codec}"}),
        **_host_words(load),
        **({"cross traffic": f"beside {_cross_traffic(load)}"} if load.cross_traffic else {}),
        "seed": f"seed {load.seed}",
    }


def _cross_traffic(load: Load) -> str | None:
    """Return the flows of others as their option says them."""
    return " + ".join(carried.flow.text for carried in load.cross_traffic) or None


def _host_words(load: Load) -> dict[str, str]:
    """Return nothing where all hosts are one, as they are unless asked for."""
    if load.hosts is None:
        return {}
    dns = f", DNS {to_ms(load.hosts.dns_ns):g} ms" if load.hosts.dns_ns else ""
    return {"hosts": f"hosts as recorded{dns}"}


def _scheme_words(load: Load) -> dict[str, str]:
    """Return what the server was told to do otherwise than the scheme says."""
    scheme, words = load.scheme, {}
    if scheme.max_placeholders is not None:
        words["placeholders"] = f"at most {scheme.max_placeholders} placeholders"
    if scheme.retention_ns is not None:
        words["retention"] = f"closed streams kept for {to_ms(scheme.retention_ns):g} ms"
    if scheme.signalling is Signalling.METADATA:
        words["metadata"] = "priorities by metadata"
    return words


def _path_words(network: Network) -> Iterator[tuple[str, str]]:
    values = _path(network)
    rate_mbps = values["rate_mbps"]
    yield "rate", "no bottleneck" if rate_mbps is None else f"{rate_mbps:g} Mbit/s"
    if values["packet_bytes"] is not None:
        yield "packets", f"packets of {values['packet_bytes']} bytes"
    yield "RTT", f"RTT {values['rtt_ms']:g} ms"
    if network.constant_rate is not None:
        yield "jitter", f"jitter {values['jitter']}" if values["jitter"] else "no jitter"
        return
    down, up = network.down, network.up
    if down is None or up is None:  # links have both
        return
    yield (
        "loss",
        _loss_words(down) + ("" if _loss(down) == _loss(up) else f" ({_loss_words(up)} up)"),
    )
    yield "queue", _queue_words(down)
    if values["jitter"]:
        yield "jitter", f"jitter {values['jitter']}"


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


def _profile_words(load: Load) -> dict[str, str]:
    if load.profile is None:
        return {}
    words = {"profile": f"{load.profile.name} with {load.profile.cc}"}
    retransmit = configuration(load)["retransmit"]
    if retransmit != "first":
        words["retransmit"] = f"lost bytes by {retransmit}"
    return words


def _browser_words(load: Load) -> dict[str, str]:
    """Return nothing where the recording is replayed, as it is unless asked for."""
    browser = load.browser
    at_ms = browser.background_at_ms
    hidden = {} if at_ms is None else {"tab": f"tab in the background at {at_ms:g} ms"}
    if browser.mode is BrowserMode.REPLAY:
        return hidden
    words = {
        **hidden,
        "browser": f"browser {browser.mode.value}",
        "cpu": f"CPU times x {browser.cpu_factor:g}",
    }
    if browser.max_requests is not None:
        words["requests"] = f"{browser.max_requests} requests at once"
    if browser.max_requests_per_host is not None:
        words["requests of a host"] = f"{browser.max_requests_per_host} of a host"
    if not browser.preload_scanner:
        words["scanner"] = "no preload scanner"
    if browser.tight_mode:
        words["tight mode"] = "tight mode"
    if browser.styles_stop_parser:
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
    return f": with hosts = recorded they have {n_connections}" if len(names) > 1 else ""


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
    if n_hosts != "1" and load.hosts is None:
        found.append(f"{n_hosts} hosts of the recording share one connection here{_own(load.page)}")
    if load.network.constant_rate is not None and not load.network.rtt_ns:
        rate = in_words(load)["rate"]
        found.append(
            f"a recording, loaded at a constant {rate} with RTT 0 ms ({load.network.name}), which"
            " is not what it was recorded over: choose another network"
        )
    return found

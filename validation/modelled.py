"""What h3sim makes of a measured setting: page, scheme, link and transport profile."""

from __future__ import annotations

import functools
import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import h3sim
from h3sim.page import Page, page_from_dict
from h3sim.schemes import SchedulerKind, Scheme, scheme_from_dict
from h3sim.transport import LinkProfile, Network, TransportProfile
from h3sim.transport.tcp import TcpSettings
from h3sim.values.errors import StalledError
from h3sim.values.units import mbps, ms
from validation.measured import Run, Setting, read_workload

if TYPE_CHECKING:
    from h3sim.load import Load

__all__ = ["MECHANISMS", "PROFILES", "Figures", "load_of", "simulate"]

PROFILES = {
    "h2o-q-reno": "quicly",
    "aioq-reno": "aioquic",
    "h2-h2o": "linux-tcp-h2o",
    "h2-nghttpd": "linux-tcp-nghttpd",
}
"""The transport profile for each stack that was measured."""
MECHANISMS = {
    "event loop": ("aioq-reno", "h2o-q-reno"),
    "autotuned send buffer": ("h2-nghttpd",),
    "header sizes": ("h2-nghttpd", "h2-h2o"),
}
"""What can be left out of a simulation, to see what it does, and the stacks that have it."""
_HTTP2 = ("h2-h2o", "h2-nghttpd")
_TREES = {
    "h2o-q-reno": SchedulerKind.H2O_CALENDAR,
    "aioq-reno": SchedulerKind.TREE,
    "h2-h2o": SchedulerKind.H2O_CALENDAR,
    "h2-nghttpd": SchedulerKind.NGHTTP2_TREE,
}
"""Which tree each server schedules by; aioquic has none and got one for the measurement."""
_FRAME_OVERHEAD_BYTES = 14
_MAX_GUESSES = 4
_REQUEST_BYTES = 50
"""HTTP/3: five requests came in one packet of 321 to 331 bytes with its headers."""
_FIRST_SECTION_BYTES, _SECTION_BYTES = 33, 22
"""HTTP/2: five requests came in 166 bytes, frames' headers included. HPACK makes 33 bytes of the
first one's four fields, and 22 of those of the others, whose authority is known by then."""
_RESPONSE_SECTION_BYTES = {"h2-nghttpd": (106, 13, 13), "h2-h2o": (104, 28, 15)}
"""HTTP/2: what HPACK makes of the first response, of one with a length that no other had before,
and of the rest (`make validate-writes`). Five responses of nghttpd have 158 bytes beside bodies and
frames' headers."""
_KINDS = ("document", "stylesheet", "script", "font", "image", "fetch", "media", "other")
"""Rules tell resources apart by their kind, so each priority that a workload has gets one."""


class Figures(NamedTuple):
    """What is compared of a download."""

    total_ms: float
    mean_ms: float
    hol_bytes: float


def simulate(
    setting: Setting, seed: int, run: Run | None = None, *, without: str | None = None
) -> Figures | None:
    """Return the figures of one simulated download, None if it stalled.

    With *run* the packets are lost that it lost, in place of random ones. *without* names one of
    `MECHANISMS` that is left out.
    """
    load = load_of(setting, seed, run, without=without)
    if load is None:
        return None
    hol = load.hol
    return Figures(
        load.page_load_ms,
        statistics.fmean(timing.finished_ms for timing in load.timings),
        hol.sander_stream_bytes if setting.is_http3 else hol.connection_bytes,
    )


def load_of(
    setting: Setting,
    seed: int,
    run: Run | None = None,
    *,
    record_packets: bool = False,
    without: str | None = None,
) -> Load | None:
    """Return one simulated download, None if it stalled."""
    scheme = _scheme(setting.workload, setting.scheme, setting.label)
    network = _network(setting, run)
    profile = _profile(setting.label, without)
    label = None if setting.is_http3 or without == "header sizes" else setting.label
    triggers = _first_guess(setting.workload)
    for _ in range(_MAX_GUESSES):
        try:
            load = h3sim.simulate(
                _page(setting.workload, setting.scheme, triggers, label),
                scheme=scheme,
                network=network,
                transport_profile=profile,
                handshake="none",
                seed=seed,
                record_packets=record_packets,
            )
        except StalledError:
            # A burst that outlasts an hour of doubled timeouts is left out, as Sander 2022 does.
            return None
        finished = [timing.finished_ms for timing in load.timings]
        last = _last_to_come(setting.workload, finished)
        if last == triggers:
            break
        triggers = last
    return load


@functools.cache
def _profile(label: str, without: str | None) -> TransportProfile:
    """Return the profile of a stack, with or without a mechanism."""
    profile = h3sim.load_profile(PROFILES[label])
    if without == "event loop":
        server, client = (
            replace(end, timer_granularity_ns=0, packet_processing_ns=0)
            for end in (profile.quic, profile.quic_client)
        )
        return replace(profile, quic=server, quic_client=client)
    if without == "autotuned send buffer":
        plain = TcpSettings()
        tcp = replace(
            profile.tcp,
            send_buffer=plain.send_buffer,
            notsent_lowat_bytes=plain.notsent_lowat_bytes,
            write_bytes=plain.write_bytes,
        )
        return replace(profile, tcp=tcp)
    return profile


def _network(setting: Setting, run: Run | None) -> Network:
    """Return the link of a setting: queue and bottleneck both ways, loss only down."""
    rate, rtt_ms = setting.rate_mbps, setting.rtt_ms
    limit = setting.queue_bytes or math.ceil(rate / 8 * 1024**2 * rtt_ms / 1000)
    up = LinkProfile(
        rate_bps=mbps(rate), queue_bytes=limit, frame_overhead_bytes=_FRAME_OVERHEAD_BYTES
    )
    if run is None:
        down = replace(up, loss=setting.loss, loss_burst=setting.loss_burst)
    else:
        down = replace(up, loss_list=run.lost, loss_list_from_bytes=run.lost_from_bytes)
    return Network(name="measured", rtt_ns=ms(rtt_ms), down=down, up=up)


def _first_guess(workload: str) -> tuple[int, ...]:
    """Return for each resource which other one it is requested after, itself for none."""
    return tuple(
        max(entry["deps"], default=position)
        for position, entry in enumerate(read_workload(workload))
    )


def _last_to_come(workload: str, finished: list[float]) -> tuple[int, ...]:
    """Return for each resource which of those that it waits for came last.

    The client asked for a resource when all of several others were there; in h3sim's pages one
    starts a request. Which of them is the last follows from the scheme, so it is found by trying.
    """
    return tuple(
        max(entry["deps"], key=lambda other: (finished[other], other), default=position)
        for position, entry in enumerate(read_workload(workload))
    )


@functools.cache
def _page(workload: str, scheme: str, triggers: tuple[int, ...], label: str | None = None) -> Page:
    """Return the page of a workload: W1 asks for all at once, W3 for the rest after the first.

    With the *label* of a server of HTTP/2 requests and responses have its field sections.
    """
    entries = read_workload(workload)
    sizes = [entry["size"] for entry in entries]
    kinds = _kinds(workload, scheme)
    resources: list[dict[str, Any]] = []
    for position, entry in enumerate(entries):
        kind = kinds[_priority(entry, scheme)]
        resource = {
            "id": entry["name"],
            "kind": kind,
            "bytes": entry["size"],
            **_header_sizes(label, sizes, position),
        }
        if position:
            resource["discovered"] = {"at": "time"}
            if triggers[position] != position:
                parent = entries[triggers[position]]["name"]
                resource["discovered"] = {"by": parent, "at": "complete"}
        resources.append(resource)
    return page_from_dict({"format": "h3sim-page/1", "name": workload, "resources": resources})


def _header_sizes(label: str | None, sizes: list[int], position: int) -> dict[str, int]:
    """Return what request and response take beside bodies, as it was measured."""
    if label is None:
        return {"request_bytes": _REQUEST_BYTES}
    first, new, known = _RESPONSE_SECTION_BYTES[label]
    if not position:
        return {"request_bytes": _FIRST_SECTION_BYTES, "header_bytes": first}
    header_bytes = known if sizes[position] in sizes[:position] else new
    return {"request_bytes": _SECTION_BYTES, "header_bytes": header_bytes}


def _priority(entry: dict[str, Any], scheme: str) -> Any:
    """Return what a scheme tells resources apart by."""
    if scheme == "wrr":
        return entry["w"]
    return (entry["u"], entry["i"]) if scheme == "eps" else None


def _kinds(workload: str, scheme: str) -> dict[Any, str]:
    """Return a kind of resource for each priority of a workload, most urgent first."""
    found = sorted({_priority(entry, scheme) for entry in read_workload(workload)})
    return dict(zip(found, _KINDS, strict=False))


@functools.cache
def _scheme(workload: str, name: str, label: str) -> Scheme:
    """Return the scheme as the server of that label had it for that workload.

    HTTP/2 has no urgencies: there `eps` is a chain by urgency, then by request.
    """
    if name == "fifo":
        return h3sim.load_scheme(name)
    kinds, tree = _kinds(workload, name), _TREES[label]
    if name == "rr":
        return _table(name, {kind: {} for kind in kinds.values()}, tree)
    if name == "wrr":
        return _table(name, {kind: {"weight": weight} for weight, kind in kinds.items()}, tree)
    if label in _HTTP2:
        chain = {"arrangement": "strict-chain"}
        return _table(name, dict.fromkeys(kinds.values(), chain), tree)
    classes = {kind: {"urgency": u, "incremental": bool(i)} for (u, i), kind in kinds.items()}
    return _table(name, classes, SchedulerKind.EPS)


def _table(name: str, classes: dict[str, dict[str, Any]], mechanism: SchedulerKind) -> Scheme:
    """Return a scheme with a class for each kind."""
    return scheme_from_dict(
        {
            "format": "h3sim-scheme/1",
            "name": f"{name}-measured",
            "title": name,
            "mechanism": mechanism.value,
            "signalling": "server",
            "source": "the measurement",
            "classes": classes,
            "rules": [{"kind": kind, "class": kind} for kind in classes],
        }
    )

"""Loads over links, recorded: what every packet, timer and signal of small pages came to.

A row each for what `loads.json` leaves out: stacks, controllers, losses, queues, jitter, hosts,
header compression, signals on the wire, buffers, cross traffic, and browsers that compute.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import h3sim
from h3sim.page import Host, Page, synthetic
from tests.checking.drawing import digest_of

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).with_name("links.json")
_LOSSY: Final[dict[str, Any]] = {"network": "sander-2mbps-100ms-2pct-burst5", "loss": 0.05}
_TCP: Final[dict[str, Any]] = {"transport": "tcp", "transport_profile": "default"}
"""TCP as the RFCs recommend, which no server has: Linux is the default."""
_SETTINGS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    # Stacks and controllers over losses both ways.
    ("rr", {**_LOSSY, "seed": 1}),
    ("rr", {**_LOSSY, "seed": 2, "transport": "tcp"}),
    ("fifo", {**_LOSSY, "cc": "bbr1", "retransmission_order": "turn"}),
    ("fifo", {**_LOSSY, "cc": "bbr1", "transport": "tcp"}),
    ("fifo", {**_LOSSY, "cc": "bbr"}),
    ("fifo", {**_LOSSY, "cc": "bbr", "transport": "tcp"}),
    ("p+", {**_LOSSY, "cc": "cubic-quicly", "retransmission_order": "priority"}),
    (
        "spdyrr",
        {**_LOSSY, "cc": "cubic-linux", "transport": "tcp", "retransmission_order": "first"},
    ),
    ("zeroweight", {**_LOSSY, "cc": "reno-aioquic", "send_buffer_kb": 14}),
    *(
        ("chrome-eps", {"network": "lte", "loss": 0.03, "transport_profile": name})
        for name in (
            "aioquic",
            "linux-tcp",
            "linux-tcp-h2o",
            "linux-tcp-nghttpd",
            "quicly",
            "quicly-chrome",
        )
    ),
    # Links: queues that overflow, one that is managed, packets that overtake others.
    ("wrr", {"network": "sander-50mbps-100ms", "queue_bytes": 20_000}),
    ("wrr", {"network": "cable", "queue_bdp": 0.5, **_TCP}),
    ("dfifo", {"network": "wifi-lossy", "seed": 3}),
    ("dfifo", {"network": "wifi-lossy", "seed": 4, **_TCP}),
    ("rr", {"network": "leo-satellite", "seed": 5}),
    ("rr", {"network": "slow-3g", "cross_traffic": "cubic+bbr1@500+on-off:0.1"}),
    ("rr", {"network": "dsl", "queue_discipline": "codel", "ecn": True}),
    ("rr", {"network": "dsl", "queue_discipline": "codel", "ecn": True, **_TCP}),
    ("rr", {"network": "slow-3g", "queue_discipline": "fq-codel", "cross_traffic": "cubic+bbr"}),
    (
        "rr",
        {
            "network": "dsl",
            "queue_discipline": "fq-codel",
            "ecn": True,
            "transport": "http1",
            "transport_profile": "default",
        },
    ),
    ("firefox", {"network": "geo-satellite", "handshake": "0-rtt"}),
    ("firefox", {"reorder": "4:1-3", "rtt_ms": 30, "rate_mbps": 2, **_TCP, "seed": 2}),
    # HTTP: signals on the wire, buffers, headers, hosts.
    ("chrome-h2", {"network": "fast-3g", **_TCP, "send_buffer_kb": 20}),
    ("firefox-h2", {"network": "dsl", **_TCP, "header_compression": "hpack"}),
    (
        "nghttp2",
        {
            "network": "dsl",
            **_TCP,
            "header_compression": "hpack",
            "closed_stream_retention_ms": 50,
        },
    ),
    ("h2o-h2", {"rtt_ms": 60, "send_buffer_kb": 9, "send_buffer_refill": "when-empty"}),
    ("firefox-draft-20", {"network": "dsl", "loss": 0.03}),
    ("firefox-draft-22", {"network": "dsl", "loss": 0.03, "max_placeholders": 2}),
    ("chrome-eps", {"network": "dsl", "loss": 0.03, "header_compression": "qpack"}),
    ("nghttp3", {"network": "dsl", "loss": 0.02, "header_compression": "qcram", "seed": 6}),
    ("mvfst", {"network": "4g", "signalling": "metadata"}),
    ("cloudflare", {"network": "4g", "connections": "per-host", "dns_ms": 30}),
    ("quic-go", {"network": "4g", "connections": "per-host", **_TCP, "loss": 0.02}),
    # Paths of several lengths over one link with a managed queue, or one that gives opportunities.
    (
        "cloudflare",
        {"network": "dsl", "connections": "per-host", "queue_discipline": "fq-codel", "seed": 8},
    ),
    (
        "lsquic",
        {"network": "slow-3g", "connections": "per-host", "queue_discipline": "codel", "ecn": True},
    ),
    (
        "quic-go",
        {
            "network": "dsl",
            "queue_discipline": "fq-codel",
            "queue_bytes": 9_000,
            "cross_traffic": "cubic",
            **_TCP,
        },
    ),
    ("chrome-eps", {"network": "lte", "connections": "per-host", "header_compression": "qpack"}),
    ("chrome-eps", {"network": "dsl", "loss": 0.03, "transport": "qmux"}),
    (
        "quiche",
        {"network": "lte", "transport": "qmux", "header_compression": "qpack", "seed": 9},
    ),
    ("adaptive-rr", {**_LOSSY, "seed": 7}),
    ("ats", {"rtt_ms": 40, "browser": "parse", "max_concurrent_requests": 4}),
    # Browsers that compute what they ask for.
    ("chrome-eps", {"network": "4g", "browser": "parse", "tight_mode": "chrome-95"}),
    ("chrome-h2", {"network": "4g", "browser": "parse", **_TCP, "cpu_slowdown": 3}),
    ("firefox-eps", {"network": "dsl", "browser": "parse", "preload_scanner": False}),
    ("lsquic", {"network": "dsl", "browser": "parse", "stylesheets_block_parser": True}),
    ("h2o", {"network": "4g", "browser": "parse", "max_concurrent_requests_per_host": 2}),
    ("quiche", {"network": "slow-3g", "browser": "parse", "hidden_at_ms": 900}),
)


def compute() -> dict[str, Any]:
    """Return, by scheme, options and page, what each load comes to."""
    pages = {"small": _page(11, 24, 150_000), "larger": _page(12, 40, 500_000)}
    return {
        f"{scheme}, {', '.join(f'{key} {value}' for key, value in options.items())}, {size}": (
            _summary(h3sim.simulate(page, scheme=scheme, record_packets=True, **options))
        )
        for scheme, options in _SETTINGS
        for size, page in pages.items()
    }


def _page(seed: int, n_resources: int, total_bytes: int) -> Page:
    """Return a page of three hosts, two of which share a connection, and a server that thinks."""
    page = synthetic(
        seed=seed, n_resources=n_resources, total_bytes=total_bytes, hero_bytes=total_bytes // 5
    )
    resources = tuple(
        replace(
            resource,
            host=("www", "static", "other")[index % 3],
            server_ns=(index % 4) * 1_500_000,
            header_bytes=100 + index,
        )
        for index, resource in enumerate(page.resources)
    )
    shared: dict[str, Any] = {"certificate": "c", "server": "192.0.2.1"}
    hosts = (
        Host(name="www", **shared),
        Host(name="static", **shared),
        Host(name="other", rtt_ns=90_000_000, dns_ns=20_000_000),
    )
    return Page(name="recorded", resources=resources, hosts=hosts)


def _summary(load: h3sim.Load) -> dict[str, Any]:
    return {
        "packets": list(load.packets[:3]),
        "byte_index_ms": load.byte_index(),
        "blocked_bytes": [load.hol.stream_bytes, load.hol.connection_bytes],
        "priority_frames": [
            [connection.n_frames, connection.frame_bytes] for connection in load.connections
        ],
        "headers": _headers(load),
        "seen_ms": [load.first_paint_ms, load.speed_index_ms, load.load_event_ms],
        "digest": digest_of(load)[:16],
    }


def _headers(load: h3sim.Load) -> list[Any]:
    """Return, for each direction, what header compression came to; nothing without it."""
    return [
        [
            run.n_bytes,
            run.uncompressed_bytes,
            *run.max_held,
            sum(section.hol_ns for section in run.sections),
        ]
        for run in load.header_runs or ()
    ]


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is recorded: a line for each load."""
    lines = [f" {json.dumps(name)}: {json.dumps(load)}" for name, load in document.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"

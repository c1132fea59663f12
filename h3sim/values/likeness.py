"""Names that an unknown name may mean: other words of the field, and similar spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_OTHER_WORDS = {
    "rate_mbps": ("bandwidth", "throughput", "speed", "rate", "bitrate", "capacity", "bw", "down"),
    "rtt_ms": ("latency", "delay", "ping", "rtt", "round_trip_time", "propagation_delay"),
    "loss": ("packet_loss", "loss_rate", "plr", "drop", "drop_rate", "loss_pct", "drops"),
    "mean_loss_burst": ("burst_length", "gilbert"),
    "reorder": ("reordering", "out_of_order", "jitter"),
    "queue_bdp": ("queue", "queue_size", "bottleneck_buffer", "buffer_bdp"),
    "queue_discipline": ("aqm", "qdisc"),
    "send_buffer_kb": ("buffer", "socket_buffer", "send_buffer"),
    "send_buffers_kb": ("buffer", "socket_buffer", "send_buffer"),
    "packet_bytes": ("mtu", "mss", "packet_size", "datagram_size"),
    "cc": ("congestion_control", "congestion", "controller", "congestion_controller"),
    "transport": ("protocol", "http", "http_version", "quic", "tcp"),
    "transport_profile": ("stack", "server", "profile"),
    "network": ("link", "access", "connection", "path"),
    "scheme": ("prioritization", "priority", "priorities", "strategy", "algorithm", "scheduling"),
    "schemes": ("prioritization", "priority", "priorities", "strategy", "algorithm", "scheme"),
    "scheduler": ("policy",),
    "seeds": ("runs", "repetitions", "repeat", "trials", "iterations", "replications", "samples"),
    "seed": ("random_seed", "rng"),
    "workers": ("jobs", "parallel", "cores", "threads", "processes"),
    "cpu_slowdown": ("cpu", "cpu_throttling", "throttling"),
    "time_limit_s": ("timeout", "max_time"),
    "handshake": ("zero_rtt", "early_data", "resumption"),
    "output": ("out", "file", "save"),
    "plot": ("figure", "picture", "png", "svg"),
    "metric": ("metrics", "measure", "value"),
    "page_load_ms": ("plt", "page_load_time", "load_time"),
    "load_event_ms": ("onload", "load_event", "loadeventend"),
    "fcp_ms": ("first_contentful_paint",),
    "largest_paint_ms": ("lcp", "largest_contentful_paint"),
    "speed_index_ms": ("si", "speedindex"),
    "dom_content_loaded_ms": ("dcl",),
    "byte_index_all_ms": ("bi", "byteindex", "byte_index"),
    "hol_stream_bytes": ("hol", "hol_bytes", "hol_blocking", "head_of_line_blocking"),
    "packets_retransmitted": ("retransmissions", "retransmits"),
    "packets_lost": ("losses", "lost", "lost_packets"),
    "packets_queue_drops": ("drops", "queue_drops"),
}
"""Other words of the field for options, arguments and metrics."""
_UNITS = ("_mbps", "_mbit", "_kbps", "_bps", "_ms", "_s", "_percent", "_pct", "_bytes", "_kb")
_MAX_CHARACTERS = 200
"""Longest name that is compared: the time grows with the product of the lengths."""


def names_like(word: object, known: Iterable[str]) -> list[str]:
    """Return those of the *known* names that an unknown *word* means, whatever its unit.

    Without any, those of similar spelling.

    >>> names_like("bandwidth", ["rtt_ms", "rate_mbps"]), names_like("delay_ms", ["rtt_ms"])
    (['rate_mbps'], ['rtt_ms'])
    >>> names_like("buket", ["bucket", "fifo", "rr"])
    ['bucket']
    """
    names = list(dict.fromkeys(known))
    if not isinstance(word, str) or len(word) > _MAX_CHARACTERS:
        return []
    plain = word.strip("-").replace("-", "_").lower()
    words = {plain, *(plain.removesuffix(unit) for unit in _UNITS)}
    meant = [
        name for name in names if words & {*_OTHER_WORDS.get(name.strip("-").replace("-", "_"), ())}
    ]
    if meant:
        return meant
    import difflib  # lazy: keeps imports fast

    return difflib.get_close_matches(word, names, n=2)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a hint for the end of a message about an unknown *word*: names like it, if any.

    >>> did_you_mean("rtt", ["rate_mbps", "rtt_ms"]), did_you_mean("nothing", ["rtt_ms"])
    ('; did you mean rtt_ms?', '')
    """
    names = names_like(word, known)
    return f"; did you mean {' or '.join(names)}?" if names else ""

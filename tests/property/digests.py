"""Digests of loads, for processes that must agree on them."""

from __future__ import annotations

from typing import Any

import h3sim

SCHEMES = ("rr", "firefox", "p+", "bucket-html", "zeroweight")


def all_digests() -> list[Any]:
    """Return the digests of both shipped pages under several schemes, with jitter and a seed."""
    return [
        h3sim.simulate(
            page, scheme=scheme, reorder="4:1-3", seed=7, transport=transport, rtt_ms=30
        ).trace.digest()
        for page in ("davies-meenan", "http2rulez")
        for scheme in SCHEMES
        for transport in ("quic", "tcp")
    ]

"""Random pages and loads, and how many of them each law is tried on."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import h3sim
from h3sim.conformance import pages
from tests.effort import some
from tests.property.runs import Case

PACKET_BYTES = 1400
SCHEMES = {scheme.name: scheme for scheme in h3sim.list_schemes()}
_ALIKE = {
    *("sander-rr", "sander-wrr", "sander-chrome", "sander-firefox", "sander-firefox-eps"),
    *("chrome-h2", "firefox-h2", "safari-h2", "edge-h2", "firefox-eps", "safari-eps", "spdy"),
    *("recorded", "recorded-chrome", "recorded-chrome-h2", "recorded-firefox"),
    *("recorded-firefox-eps", "chrome-eps-2022", "chrome-50-h2", "firefox-eps-2021"),
    *("quiche", "lsquic", "mvfst", "quic-go", "cloudflare", "firefox-figure"),
    *("fifo-draft-20", "fifo-draft-22", "firefox-draft-20", "firefox-draft-22"),
}
"""Schemes that differ from others in their rules or in how signals travel, and not in how they are
scheduled."""
DIFFERENT = some([name for name in SCHEMES if name not in _ALIKE], list(SCHEMES))
"""Those that schedule differently; in a thorough run, all."""


full_packets = st.integers(1, 20).map(lambda n: n * PACKET_BYTES)
schemes = st.sampled_from(list(SCHEMES))
jitters = st.sampled_from(["none", "none", "4:1-3", "4:2", "1:0-5", "3:7"])
send_buffers_kb = st.sampled_from([0, 0, 0.5, 3, 14, 1000])


@st.composite
def links(draw: Any, *, jitters: Any = jitters) -> dict[str, Any]:
    """What is said about a network, as keyword arguments of `h3sim.simulate`."""
    return {
        "rtt_ms": draw(st.sampled_from([0, 0, 5, 20, 75.3, 0.000001])),
        "reorder": draw(jitters),
        "rate_mbps": draw(st.sampled_from([None, None, 0.7, 9.0])),
        "packet_bytes": draw(st.sampled_from([None, None, 1000])),
        "handshake": draw(st.booleans()),
        "seed": draw(st.integers(0, 3)),
    }


any_page = pages()


@st.composite
def cases(
    draw: Any,
    *,
    pages: Any = any_page,
    schemes: Any = schemes,
    jitters: Any = jitters,
    send_buffers_kb: Any = send_buffers_kb,
) -> Any:
    """Everything that a load follows from."""
    return Case(
        page=draw(pages),
        scheme=draw(schemes),
        transport=draw(st.sampled_from(["quic", "tcp"])),
        send_buffer_kb=draw(send_buffers_kb),
        link=draw(links(jitters=jitters)),
    )

"""Random pages and loads, and how many of them each law is tried on."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import h3sim
from h3sim.page import FLAGS, At, Kind, page_from_dict
from tests.property.runs import Case

PACKET_BYTES = 1400
SCHEMES = {scheme.name: scheme for scheme in h3sim.list_schemes()}


def law(max_examples):
    """Return the settings of a law: the same examples in every run, so that none comes by luck.

    The profile "thorough" looks at as many as it says, and at others in every run.
    """
    calm = [HealthCheck.too_slow, HealthCheck.data_too_large]
    if settings.get_current_profile_name() == "thorough":
        return settings(suppress_health_check=calm)
    return settings(
        derandomize=True, deadline=None, max_examples=max_examples, suppress_health_check=calm
    )


sizes = st.one_of(
    st.integers(8000, 30_000),
    st.integers(0, 30_000),
    st.integers(1, 21).map(lambda n: n * PACKET_BYTES),
    st.just(0),
)
whole_packets = st.integers(1, 20).map(lambda n: n * PACKET_BYTES)
# Multiples of 2.5 ms fall on send ticks often enough for ties; beyond 500 ms streams have left.
delays_ms = st.one_of(
    st.just(0),
    st.just(0),
    st.integers(0, 24).map(lambda n: n * 2.5),
    st.integers(0, 80).map(lambda n: n * 10),
)
schemes = st.sampled_from(list(SCHEMES))
_flag_sets = st.integers(0, 2 ** len(FLAGS) - 1)


@st.composite
def discoveries(draw, entries, at):
    """A trigger that hangs on one of *entries*, the resources before it."""
    event = draw(st.sampled_from(at))
    discovered = {"at": event.value, "delay_ms": draw(delays_ms)}
    if event is not At.TIME:
        parent = draw(st.sampled_from(entries))
        discovered["by"] = parent["id"]
        if event is At.OFFSET:
            discovered["offset_bytes"] = draw(st.integers(0, parent["bytes"]))
    return discovered


@st.composite
def resource_entries(draw, place, sizes, *, bare):
    """A resource as a page file has it, without a trigger; a bare one has only a body."""
    flags = draw(_flag_sets)
    entry = {
        "id": f"r{place}",
        "kind": draw(st.sampled_from(Kind)).value,
        "bytes": draw(sizes),
        **{flag: True for i, flag in enumerate(FLAGS) if flags >> i & 1},
    }
    if not bare and draw(st.booleans()):
        entry["header_bytes"] = draw(st.integers(0, 3000))
        entry["server_ms"] = draw(delays_ms)
        entry["parse_ms"] = draw(delays_ms)
        entry["execute_ms"] = draw(delays_ms)
    return entry


@st.composite
def pages(draw, *, max_resources=9, min_resources=1, at=tuple(At), sizes=sizes, bare=False):
    """A page: every resource but the root hangs on one of those drawn before it."""
    entries = []
    n_resources = draw(st.sampled_from(range(max_resources, min_resources - 1, -1)))
    for place in range(n_resources):
        entry = draw(resource_entries(place, sizes, bare=bare))
        if place:
            entry["discovered"] = draw(discoveries(entries, at))
        entries.append(entry)
    document = {
        "format": "h3sim-page/1",
        "name": "random",
        "resources": draw(st.permutations(entries)),
    }
    return page_from_dict(document)


jitters = st.sampled_from(["none", "none", "4:1-3", "4:2", "1:0-5", "3:7"])
buffers_kb = st.sampled_from([0, 0, 0.5, 3, 14, 1000])


@st.composite
def links(draw, *, jitters=jitters):
    """What is said about a network, as keyword arguments of `h3sim.simulate`."""
    return {
        "rtt_ms": draw(st.sampled_from([0, 0, 5, 20, 75.3, 0.000001])),
        "jitter": draw(jitters),
        "rate_mbps": draw(st.sampled_from([None, None, 0.7, 9.0])),
        "packet_bytes": draw(st.sampled_from([None, None, 1000])),
        "handshake": draw(st.booleans()),
        "seed": draw(st.integers(0, 3)),
    }


any_page = pages()


@st.composite
def cases(draw, *, pages=any_page, schemes=schemes, jitters=jitters, buffers_kb=buffers_kb):
    """Everything that a load follows from."""
    return Case(
        page=draw(pages),
        scheme=draw(schemes),
        transport=draw(st.sampled_from(["quic", "tcp"])),
        buffer_kb=draw(buffers_kb),
        link=draw(links(jitters=jitters)),
    )

"""Laws of loads whose headers are compressed: they end, and nothing is read before its time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim import engine
from h3sim.conformance import pages
from h3sim.headers import CODEC_NAMES, HeaderCompression
from h3sim.load.run import run_spec
from h3sim.transport import LinkProfile, Network, Protocol
from h3sim.values.units import mbps, ms
from tests.effort import law

LOSSES = (0.0, 0.05, 0.3)
SCHEMES = ("fifo", "rr", "chrome-eps")


@st.composite
def paths(draw: Any) -> Any:
    """Links that lose much, or not at all."""
    loss = draw(st.sampled_from(LOSSES))
    link = LinkProfile(rate_bps=mbps(5), queue_bytes=30_000, loss=loss)
    return Network(name="drawn", rtt_ns=ms(draw(st.sampled_from((10, 100)))), down=link, up=link)


def loaded(
    page: Any,
    network: Any,
    codec: Any,
    seed: int = 0,
    *,
    scheme: str = "rr",
    protocol: Any = Protocol.QUIC,
    blocks: bool = True,
) -> Any:
    return run_spec(
        engine.LoadSpec(
            page,
            scheme=h3sim.load_scheme(scheme),
            network=network,
            protocol=protocol,
            seed=seed,
            header_compression=HeaderCompression(codec=codec, blocks=blocks),
        )
    )


def check_streams_carry_sections_and_bodies(load: Any) -> None:
    """Each stream carries more than its body, and all of it is delivered."""
    delivered = dict.fromkeys((request.stream_id for request in load.trace.requests), 0)
    for _, _, stream_id, offset, n_bytes, _, delivered_at_ns in load.trace.packet_rows:
        if delivered_at_ns is not None:
            delivered[stream_id] = max(delivered[stream_id], offset + n_bytes)
    for request in load.trace.requests:
        body_bytes = load.page.resources[request.resource].size_bytes
        assert body_bytes < request.length_bytes == delivered[request.stream_id]


def check_blocks_are_read_in_the_order_sent(load: Any) -> None:
    """With HPACK nothing of a response is delivered before all that began earlier can be read."""
    first_delivered: dict[Any, Any] = {}
    for row in load.trace.packet_rows:
        stream_id, at_ns = row[2], row[6]
        if at_ns is not None:
            first_delivered[stream_id] = min(at_ns, first_delivered.get(stream_id, at_ns))
    began = list(dict.fromkeys(row[2] for row in load.trace.packet_rows))
    times = [first_delivered[stream_id] for stream_id in began]
    assert times == sorted(times)


@pytest.mark.parametrize("protocol", list(Protocol))
@pytest.mark.parametrize("codec", CODEC_NAMES)
@law(12, usual=6)
@given(page=pages(), network=paths(), scheme=st.sampled_from(SCHEMES), seed=st.integers(0, 9))
def test_every_load_ends_with_all_that_was_sent(
    page: Any, network: Any, scheme: Any, seed: int, codec: Any, protocol: Any
) -> None:
    load = loaded(page, network, codec, seed, scheme=scheme, protocol=protocol)
    check_streams_carry_sections_and_bodies(load)


@law(40)
@given(page=pages(), network=paths(), scheme=st.sampled_from(SCHEMES), seed=st.integers(0, 9))
def test_hpack_blocks_are_read_in_the_order_sent(
    page: Any, network: Any, scheme: Any, seed: int
) -> None:
    check_blocks_are_read_in_the_order_sent(loaded(page, network, "hpack", seed, scheme=scheme))


def test_the_order_is_lost_where_nothing_blocks() -> None:
    network = Network(
        name="lossy",
        rtt_ns=ms(100),
        down=LinkProfile(rate_bps=mbps(5), queue_bytes=30_000, loss=0.3),
        up=LinkProfile(rate_bps=mbps(5), queue_bytes=30_000),
    )
    page = h3sim.load_page("creative")
    check_blocks_are_read_in_the_order_sent(loaded(page, network, "hpack"))
    with pytest.raises(AssertionError):
        check_blocks_are_read_in_the_order_sent(loaded(page, network, "hpack", blocks=False))


@law(20)
@given(page=pages(), network=paths(), seed=st.integers(0, 9))
def test_what_refers_to_nothing_never_blocks(page: Any, network: Any, seed: int) -> None:
    blocking, free = (loaded(page, network, "static", seed, blocks=b) for b in (True, False))
    assert blocking.trace == free.trace


@law(15)
@given(page=pages(), network=paths(), seed=st.integers(0, 9))
def test_hpack_never_blocks_where_all_comes_in_one_order(
    page: Any, network: Any, seed: int
) -> None:
    blocking, free = (
        loaded(page, network, "hpack", seed, protocol=Protocol.TCP, blocks=blocks)
        for blocks in (True, False)
    )
    assert blocking.trace == free.trace

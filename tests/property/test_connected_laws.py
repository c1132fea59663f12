"""Laws of loads over links: whatever is lost, every byte comes once and in order, and it ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.ranges import Ranges
from h3sim.transport import LinkProfile, Network
from h3sim.transport.congestion import controller_names
from h3sim.units import mbps, ms
from tests.property.strategies import law, pages

TRANSPORTS = ("quic", "tcp")


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Draw links that lose up to 30 % both ways, with jitter that may reorder, and small queues."""
    loss = draw(st.sampled_from((0.0, 0.02, 0.1, 0.3)))
    link = LinkProfile(
        rate_bps=mbps(draw(st.sampled_from((0.5, 2, 20)))),
        queue_bytes=draw(st.sampled_from((5_000, 30_000, 1_000_000))),
        loss=loss,
        loss_burst=draw(st.sampled_from((None, 5.0))) if loss else None,
    )
    rtt_ms = draw(st.sampled_from((0, 10, 100)))
    return Network(name="drawn", rtt_ns=ms(rtt_ms), down=link, up=replace(link))


@st.composite
def settings(draw: st.DrawFn) -> h3sim.Setting:
    return h3sim.Setting(
        network=draw(networks()),
        transport=draw(st.sampled_from(TRANSPORTS)),
        cc=draw(st.sampled_from([name for name in controller_names() if name != "constant"])),
        retransmit=draw(st.sampled_from(("first", "priority", "turn"))),
        buffer_kb=draw(st.sampled_from((0.0, 20.0))),
        handshake=draw(st.sampled_from(("none", "1-rtt", "0-rtt"))),
        seed=draw(st.integers(0, 5)),
    )


def loaded(page: h3sim.Page, setting: h3sim.Setting, scheme: str = "rr") -> h3sim.Load:
    from h3sim.study import run_setting

    return run_setting(page, h3sim.load_scheme(scheme), setting, records_wire=True)


@law(60)
@given(page=pages(), setting=settings(), scheme=st.sampled_from(("fifo", "rr", "p+", "bucket")))
def test_every_byte_comes_whatever_is_lost(
    page: h3sim.Page, setting: h3sim.Setting, scheme: str
) -> None:
    load = loaded(page, setting, scheme)
    assert len(load.timings) == len(page.resources)
    got: dict[int, Ranges] = {}
    for _, arrived_at_ns, stream_id, offset, n_bytes, _ in load.trace.packet_rows:
        if arrived_at_ns is not None:
            got.setdefault(stream_id, Ranges()).add(offset, offset + n_bytes)
    for request in load.trace.requests:
        assert got[request.stream_id].contiguous == request.length_bytes
        assert got[request.stream_id].end == request.length_bytes


@law(60)
@given(page=pages(), setting=settings())
def test_equal_runs_are_equal(page: h3sim.Page, setting: h3sim.Setting) -> None:
    assert loaded(page, setting).trace.digest() == loaded(page, setting).trace.digest()


@law(60)
@given(page=pages(), setting=settings())
def test_time_does_not_run_backwards(page: h3sim.Page, setting: h3sim.Setting) -> None:
    load = loaded(page, setting)
    assert all(a.sent_at_ns <= b.sent_at_ns for a, b in pairwise(load.trace.wire))
    for row in load.trace.wire:
        assert row.arrived_at_ns is None or row.arrived_at_ns >= row.sent_at_ns
    for timing in load.timings:
        assert timing.requested_ms <= timing.first_byte_ms <= timing.finished_ms


@law(60)
@given(page=pages(), setting=settings())
def test_one_order_never_hands_over_earlier(page: h3sim.Page, setting: h3sim.Setting) -> None:
    # For the same packets: within streams, and in the order in which bytes were first sent.
    load = loaded(page, setting)
    hol = load.hol
    assert hol.connection_bytes >= hol.stream_bytes
    assert hol.connection_delay_ms >= hol.stream_delay_ms


@pytest.mark.parametrize("cc", ["newreno", "cubic", "cubic-quicly", "reno-quicly"])
def test_the_window_is_exceeded_by_probes_only(cc: str) -> None:
    load = h3sim.simulate(
        "davies-meenan", scheme="rr", network="sander-2mbps-100ms-5pct", cc=cc, records_wire=True
    )
    rows = load.trace.recovery
    # A window that was just cut may be exceeded by what is under way already.
    for before, after in pairwise(rows):
        grew = after.bytes_in_flight > before.bytes_in_flight
        if grew and not after.lost:
            assert after.bytes_in_flight <= after.congestion_window + 2 * 1280


def test_a_sender_that_overshoots_does_so_by_less_than_a_packet() -> None:
    load = h3sim.simulate(
        "davies-meenan",
        scheme="rr",
        network="sander-2mbps-100ms-5pct",
        transport_profile="quicly",
        records_wire=True,
    )
    excess = [
        after.bytes_in_flight - max(before.bytes_in_flight, after.congestion_window)
        for before, after in pairwise(load.trace.recovery)
        if after.bytes_in_flight > before.bytes_in_flight and not after.lost
    ]
    # A packet for what is left of the window, and one when the loss timer ran out.
    assert 0 < max(excess) <= 2 * 1280


def test_losses_do_not_move_with_the_scheme() -> None:
    def lost(scheme: str) -> list[int]:
        load = h3sim.simulate(
            "davies-meenan",
            scheme=scheme,
            network="sander-2mbps-100ms-2pct",
            cc="constant",
            queue_bytes=10_000_000,
            records_wire=True,
        )
        down = [row for row in load.trace.wire if row.is_down]
        return [place for place, row in enumerate(down[:300]) if row.arrived_at_ns is None]

    assert lost("fifo") == lost("rr") == lost("bucket")
    assert lost("fifo")

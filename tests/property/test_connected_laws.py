"""Laws of loads over links: whatever is lost, every byte comes once and in order, and it ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import h3sim
from h3sim import engine
from h3sim.conformance import pages
from h3sim.load.run import resolve, run_spec
from h3sim.transport import Jitter, LinkProfile, Network, TransportProfile
from h3sim.transport.congestion import controller_names
from h3sim.transport.link_profile import LinkJitter
from h3sim.transport.quic import QuicSettings
from h3sim.values.errors import ConnectionTimeoutError
from h3sim.values.ranges import Ranges
from h3sim.values.units import mbps, ms
from tests.effort import law
from tests.helpers import page_of
from tests.property import laws

if TYPE_CHECKING:
    from collections.abc import Generator

SCHEMES = ("fifo", "rr", "p+", "bucket", "safari-h2", "firefox-draft-20", "chrome-eps")
"""Mechanisms that differ; the last three are told of priorities over the wire, each in its way."""
PROFILES = {
    "quic": (None, "aioquic", "quicly", "quicly-chrome"),
    "tcp": (None, "linux-tcp", "linux-tcp-h2o"),
}
ENDS = [(transport, profile) for transport, profiles in PROFILES.items() for profile in profiles]
JITTER = LinkJitter(mean_ns=ms(10), deviation_ns=ms(10))
DISTURBED: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"jitter": JITTER},
    {"jitter": replace(JITTER, reorder=True)},
    {"hold": Jitter(every=1, min_overtaken=0, max_overtaken=20)},
    {"hold": Jitter(every=4, min_overtaken=1, max_overtaken=3)},
)
"""Nothing, delays that keep the order of packets, and three that do not."""


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Draw links that lose up to 30 % both ways, with jitter that may reorder, and small queues."""
    loss = draw(st.sampled_from((0.0, 0.02, 0.1, 0.3)))
    link = LinkProfile(
        rate_bps=mbps(draw(st.sampled_from((0.5, 2, 20)))),
        queue_bytes=draw(st.sampled_from((5_000, 30_000, 1_000_000))),
        loss=loss,
        loss_burst=draw(st.sampled_from((None, 5.0))) if loss else None,
        **draw(st.sampled_from(DISTURBED)),
    )
    rtt_ms = draw(st.sampled_from((0, 10, 100)))
    return Network(name="drawn", rtt_ns=ms(rtt_ms), down=link, up=replace(link))


@st.composite
def settings(draw: st.DrawFn) -> h3sim.LoadConfig:
    transport = draw(st.sampled_from(tuple(PROFILES)))
    profile = draw(st.sampled_from(PROFILES[transport]))
    controllers = [name for name in controller_names() if name != "constant"]
    return h3sim.LoadConfig(
        network=draw(networks()),
        transport=transport,
        transport_profile=profile,
        cc=draw(st.sampled_from(controllers)) if profile is None else None,
        retransmission_order=draw(st.sampled_from(("first", "priority", "turn"))),
        send_buffer_kb=draw(st.sampled_from((0.0, 20.0))),
        handshake=draw(st.sampled_from(("none", "1-rtt", "0-rtt"))),
        seed=draw(st.integers(0, 5)),
    )


def loaded(page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str = "rr") -> h3sim.Load:
    return unless_given_up(resolve(page, h3sim.load_scheme(scheme), setting), record_packets=True)


def unless_given_up(spec: engine.LoadSpec, **how: Any) -> h3sim.Load:
    """Return the load; draw another example if losses make an end give its connection up."""
    try:
        return run_spec(spec, **how)
    except ConnectionTimeoutError:
        reject()


def check_every_byte_came(load: h3sim.Load) -> None:
    """Each response has a packet, and its packets that arrived cover it, and nothing else."""
    assert len(load.timings) == len(load.page.resources)
    got: dict[int, Ranges] = {}
    for _, arrived_at_ns, stream_id, offset, n_bytes, *_ in load.trace.packet_rows:
        if arrived_at_ns is not None:
            got.setdefault(stream_id, Ranges()).add(offset, offset + n_bytes)
    assert set(got) == {request.stream_id for request in load.trace.requests}
    for request in load.trace.requests:
        assert got[request.stream_id].contiguous == request.length_bytes
        assert got[request.stream_id].end == request.length_bytes


def check_time_runs_forward(load: h3sim.Load) -> None:
    """What is sent later stands later; nothing arrives, begins or ends before what it follows."""
    assert all(a.sent_at_ns <= b.sent_at_ns for a, b in pairwise(load.trace.wire))
    for row in load.trace.wire:
        assert row.arrived_at_ns is None or row.arrived_at_ns >= row.sent_at_ns
    for timing in load.timings:
        assert timing.requested_ms <= timing.first_byte_ms <= timing.finished_ms


def check_no_order_beats_what_arrived(load: h3sim.Load) -> None:
    """ByteIndex is no less than the best use of what arrived, whatever else it could have been."""
    for which in ("all", "atf"):
        index = load.byte_index_or_none(which)
        if index is not None:
            assert index >= load.lower_bound(which) * (1 - 1e-9)


@law(80, usual=40)
@given(page=pages(), setting=settings(), scheme=st.sampled_from(SCHEMES))
def test_every_byte_comes_in_time_and_no_order_beats_what_arrived(
    page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str
) -> None:
    """Each load that is drawn is held to all of it, and to being the same when it is done again."""
    load = loaded(page, setting, scheme)
    check_every_byte_came(load)
    check_time_runs_forward(load)
    check_no_order_beats_what_arrived(load)
    # For the same packets: within streams, and in the order in which bytes were first sent.
    assert load.hol.connection_bytes >= load.hol.stream_bytes
    assert load.hol.connection_delay_ms >= load.hol.stream_delay_ms
    assert loaded(page, setting, scheme).trace.digest() == load.trace.digest()


EMPTY = page_of(
    {"id": "/", "kind": "document", "bytes": 100},
    {"id": "a", "kind": "image", "bytes": 0, "discovered": {"by": "/", "at": "request"}},
    {"id": "b", "kind": "image", "bytes": 0, "discovered": {"by": "/", "at": "complete"}},
)


@pytest.mark.parametrize(("transport", "profile"), ENDS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_empty_response_comes_as_others_do(
    transport: str, profile: str | None, scheme: str
) -> None:
    setting = h3sim.LoadConfig(network="fibre", transport=transport, transport_profile=profile)
    load = loaded(EMPTY, setting, scheme)
    check_every_byte_came(load)
    root, others, last = load.trace.requests
    sent = {row[2]: row[0] for row in reversed(load.trace.packet_rows)}  # the first time
    assert sent[others.stream_id] == sent[root.stream_id]
    assert sent[last.stream_id] == last.arrived_at_ns


def test_handshake_bytes_that_come_late_complete_no_response() -> None:
    load = h3sim.simulate(
        "creative",
        scheme="safari-h2",
        network="fibre",
        reorder="1:0-20",
        seed=2,
        record_packets=True,
    )
    check_every_byte_came(load)


@pytest.mark.parametrize(("transport", "profile"), ENDS)
@law(12, usual=6)
@given(page=pages(), setting=settings(), scheme=st.sampled_from(SCHEMES))
def test_what_is_reported_is_what_the_browser_had(
    page: h3sim.Page, setting: h3sim.LoadConfig, transport: str, profile: str | None, scheme: str
) -> None:
    setting = replace(setting, transport=transport, transport_profile=profile)
    load = loaded(page, setting, scheme)
    laws.check_requests_follow_their_triggers(load)
    laws.check_every_byte_is_delivered_once(load)


def only_watches(env: Any) -> Generator[Any, Any, Any]:
    """Go on every few milliseconds, and change nothing."""
    while True:
        assert env.down.offered >= env.down.queue_drops + env.down.loss_drops
        yield env.timeout(ms(5))


@law(40, usual=20)
@given(page=pages(), setting=settings())
def test_a_process_that_changes_nothing_changes_nothing(page: Any, setting: Any) -> None:
    from h3sim.load import resolve, run_spec

    scheme = h3sim.load_scheme("rr")
    others = run_spec(resolve(page, scheme, setting), record_packets=True, processes=[only_watches])
    assert others.trace == loaded(page, setting).trace


@pytest.mark.parametrize("cc", ["newreno", "cubic", "cubic-quicly", "reno-quicly"])
def test_the_window_is_exceeded_by_probes_only(cc: str) -> None:
    load = h3sim.simulate(
        "davies-meenan", scheme="rr", network="sander-2mbps-100ms-5pct", cc=cc, record_packets=True
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
        record_packets=True,
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
            record_packets=True,
        )
        down = [row for row in load.trace.wire if row.is_down]
        return [position for position, row in enumerate(down[:300]) if row.arrived_at_ns is None]

    assert lost("fifo") == lost("rr") == lost("bucket")
    assert lost("fifo")


@pytest.mark.parametrize("window_bytes", [3000, 20_000])
def test_no_more_is_under_way_than_the_client_takes(window_bytes: int) -> None:
    """RFC 9000 § 4.1: what was sent of all streams stays within what had arrived and the window."""
    profile = TransportProfile(
        name="narrow", quic_client=QuicSettings(connection_window_bytes=window_bytes)
    )
    load = run_spec(
        engine.LoadSpec(
            h3sim.load_page("davies-meenan"),
            scheme=h3sim.load_scheme("rr"),
            network=h3sim.load_network("sander-2mbps-100ms-2pct"),
            profile=profile,
        )
    )
    check_every_byte_came(load)
    rows = load.trace.packet_rows
    sent: Counter[Any] = Counter()
    arrived: Counter[Any] = Counter()
    arrivals = sorted((row[1], row[2], row[3] + row[4]) for row in rows if row[1] is not None)
    position, most = 0, 0
    for sent_at_ns, _, stream_id, offset, n_bytes, *_ in rows:
        while position < len(arrivals) and arrivals[position][0] <= sent_at_ns:
            _, of, end = arrivals[position]
            arrived[of] = max(arrived[of], end)
            position += 1
        sent[stream_id] = max(sent[stream_id], offset + n_bytes)
        most = max(most, sent.total() - arrived.total())
    assert window_bytes / 2 < most <= window_bytes

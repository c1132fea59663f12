"""The laws of loads over links find out parts that are broken."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import h3sim
from h3sim.engine import endpoints
from h3sim.http import StreamSender
from h3sim.load import optimality
from h3sim.metrics.lower_bounds import lower_bound_over_links_ns
from h3sim.transport.link import Link
from h3sim.transport.quic import QuicEndpoint
from h3sim.transport.tcp.records import SendStream
from h3sim.values.errors import StalledError
from h3sim.values.versions import build
from tests.helpers import page_of
from tests.property.test_connected_laws import (
    EMPTY,
    check_every_byte_came,
    check_no_order_beats_what_arrived,
    check_time_runs_forward,
    loaded,
)

pytestmark = pytest.mark.skipif(
    build() == "compiled",
    reason="no part of the compiled build can be broken from outside",
)
FAST = h3sim.LoadConfig(network="fibre")
LOSING = h3sim.LoadConfig(network="sander-2mbps-100ms-5pct")
TCP_IN_CLEAR = h3sim.LoadConfig(network="fibre", transport_profile="linux-tcp-h2o", transport="tcp")


def test_a_law_finds_handshake_bytes_that_are_taken_for_a_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_packet = QuicEndpoint.on_packet

    def with_handshake(self: Any, packet: Any, now_ns: int) -> Any:
        was_over = self._handshake.is_over
        frames = on_packet(self, packet, now_ns)
        return [*frames, *((-1, *frame) for frame in packet.crypto)] if was_over else frames

    setting = h3sim.LoadConfig(network="fibre", reorder="1:0-20", seed=9)
    page = h3sim.load_page("creative")
    check_every_byte_came(loaded(page, setting, "safari-h2"))
    monkeypatch.setattr(QuicEndpoint, "on_packet", with_handshake)
    with pytest.raises((AssertionError, KeyError)):
        check_every_byte_came(loaded(page, setting, "safari-h2"))


def test_a_law_finds_an_empty_response_that_has_no_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = SendStream.cut

    def without_the_last(self: Any, n_bytes: int) -> Any:
        frames, records = cut(self, n_bytes)
        return [frame for frame in frames if frame[2]], records

    check_every_byte_came(loaded(EMPTY, TCP_IN_CLEAR))
    monkeypatch.setattr(SendStream, "cut", without_the_last)
    with pytest.raises((AssertionError, KeyError)):
        check_every_byte_came(loaded(EMPTY, TCP_IN_CLEAR))


def test_a_law_finds_lost_bytes_that_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    page = h3sim.load_page("davies-meenan")
    check_every_byte_came(loaded(page, LOSING))
    monkeypatch.setattr(StreamSender, "on_lost", lambda self, stream_id, offset, n_bytes: None)
    with pytest.raises((AssertionError, StalledError)):
        check_every_byte_came(loaded(page, LOSING))


def test_a_law_finds_losses_that_no_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    page = h3sim.load_page("davies-meenan")
    assert loaded(page, LOSING).trace.digest() == loaded(page, LOSING).trace.digest()
    stream, numbers = endpoints.rng.substream, itertools.count()  # type: ignore[attr-defined]
    monkeypatch.setattr(
        endpoints.rng,  # type: ignore[attr-defined]
        "substream",
        lambda seed, name: stream(next(numbers), name),
    )
    assert loaded(page, LOSING).trace.digest() != loaded(page, LOSING).trace.digest()


def test_a_law_finds_packets_that_arrive_before_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(Link):
        def send(self, now_ns: int, size_bytes: int) -> int | None:
            arrives_at_ns = super().send(now_ns, size_bytes)
            return None if arrives_at_ns is None else max(0, now_ns - 1)

    # The first packet shows it, and where time goes back every other one takes long.
    page = page_of({"id": "/", "kind": "document", "bytes": 20_000})
    check_time_runs_forward(loaded(page, LOSING))
    monkeypatch.setattr(endpoints, "make_link", Hasty)
    with pytest.raises(AssertionError):
        check_time_runs_forward(loaded(page, LOSING))


def test_a_law_finds_a_bound_whose_opportunities_come_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = loaded(h3sim.load_page("davies-meenan"), FAST, "fifo")
    check_no_order_beats_what_arrived(load)

    def late(expected: Any, opportunities: Any) -> Any:
        later = [one._replace(arrived_at_ns=one.arrived_at_ns + 10**8) for one in opportunities]
        return lower_bound_over_links_ns(expected, later)

    monkeypatch.setattr(optimality, "lower_bound_over_links_ns", late)
    with pytest.raises(AssertionError):
        check_no_order_beats_what_arrived(load)

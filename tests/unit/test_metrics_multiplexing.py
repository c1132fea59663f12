"""Measures of multiplexing and of what is seen, by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import pytest

import h3sim
from h3sim.load.milestones import multiplexing_of
from h3sim.metrics.multiplexing import (
    Sent,
    inversion_bytes,
    rank_of,
    reprioritization_delays_ns,
    slope,
)
from h3sim.metrics.progress import timings
from h3sim.metrics.visual import Element, seen_at_ns
from h3sim.signals import BucketPriority, Eps, H2Priority, Rank, Signal, StrictPriority
from h3sim.trace import Delivery, PacketRows, Request, SignalSent, Trace
from tests.helpers import AT_ONCE, page_of, replay, with_updates

TWO = [(0, "document", 8), (0, "image", 8)]


class TestInterleaving:
    def test_one_after_the_other(self) -> None:
        # Two runs of 8 of 16: 1 - 2 * 64 / 256.
        assert replay(TWO, "fifo").multiplexing.interleaving == 0.5
        assert replay(TWO, "fifo").multiplexing.mean_run_packets == 8

    def test_round_robin(self) -> None:
        measures = replay(TWO, "rr").multiplexing
        assert measures.interleaving == 1 - 16 / 256
        assert measures.mean_run_packets == 1

    def test_streams_in_flight(self) -> None:
        assert replay(TWO, "fifo", rtt_ms=20).multiplexing.streams_in_flight == pytest.approx(
            (1 * 15 + 2) / 16  # only when the second begins, the first is still in the window
        )
        rr = replay(TWO, "rr", rtt_ms=20).multiplexing
        assert rr.streams_in_flight == pytest.approx((1 + 2 * 15) / 16)


class TestFairness:
    def test_who_shares_is_fair_and_who_waits_gets_nothing(self) -> None:
        assert replay(TWO, "rr", rtt_ms=20).multiplexing.jain_index == 1
        # While both wait, one of two gets all.
        assert replay(TWO, "fifo", rtt_ms=20).multiplexing.jain_index == 0.5

    def test_one_stream_is_neither(self) -> None:
        assert replay([(0, "document", 8)], "rr").multiplexing.jain_index is None


class TestPriorities:
    def test_a_late_request_that_matters_waits_for_the_buffer(self) -> None:
        steps = [(0, "image", 20), (35, "stylesheet", 2)]
        without = replay(steps, "chrome-eps").multiplexing
        assert without.inversion_bytes == 0
        # Ten packets were in the buffer when the stylesheet became ready.
        filled = replay(steps, "chrome-eps", send_buffer_kb=14).multiplexing
        assert filled.inversion_bytes == 10 * 1400

    def test_a_tree_has_no_ranks(self) -> None:
        assert replay(TWO, "chrome-h2").multiplexing.inversion_bytes is None
        assert inversion_bytes([Sent(0, 0, 9)], {0: (0, 1)}, [(0, 0, H2Priority())]) is None

    def test_a_raise_takes_effect_with_the_next_packet(self) -> None:
        found = {"by": "/", "at": "request"}
        seen = {"when": {"at": "time", "delay_ms": 45}, "visible": True}
        image = {"kind": "image", "bytes": 14_000, "discovered": found}
        page = page_of(
            {"id": "/", "kind": "document", "bytes": 1400},
            {"id": "a", **image},
            {"id": "b", **image, "priority_changes": [seen]},
        )
        quick = h3sim.simulate(page, scheme=with_updates("lsquic")).multiplexing
        assert quick.reprioritization_delay_ms == 5
        slow = h3sim.simulate(page, scheme=with_updates("lsquic"), send_buffer_kb=14).multiplexing
        # All of a was in the buffer before b was asked for: b's first packet leaves at 120.
        assert slow.reprioritization_delay_ms == 75
        assert replay(TWO, "rr").multiplexing.reprioritization_delay_ms is None

    def test_the_time_to_first_byte_rises_where_one_waits_for_the_other(self) -> None:
        steps = [(0, "image", 4)] * 4
        # First bytes at 0, 40, 80, 120 ms, and at 0, 10, 20, 30.
        assert replay(steps, "fifo").multiplexing.ttfb_slope_ms == 40
        assert replay(steps, "rr").multiplexing.ttfb_slope_ms == 10
        assert slope([7]) is None
        assert slope([0, 1, 0, 1]) == Fraction(1, 5)


class TestLosses:
    def test_a_load_reports_its_bursts(self) -> None:
        load = h3sim.simulate("davies-meenan", scheme="rr", network="sander-2mbps-100ms-5pct")
        bursts = load.multiplexing.loss_bursts
        assert sum(length * n for length, n in bursts.items()) == load.packets.lost
        assert load.figures["packets_mean_burst"] == load.packets.lost / sum(bursts.values())

    def test_without_loss_there_is_none(self) -> None:
        load = replay(TWO, "rr")
        assert load.multiplexing.loss_bursts == {}
        assert load.figures["packets_mean_burst"] is None


class TestWhatIsSeen:
    ELEMENTS = (Element(0.5, False, 100), Element(0.3, False, 300), Element(None, False, 900))

    def test_progress_rises_with_the_shares(self) -> None:
        # The rest, 20 %, is text: there at the first paint, at 50.
        seen = [seen_at_ns(50, self.ELEMENTS, Fraction(n, 100)) for n in (20, 70, 71, 100)]
        assert seen == [50, 100, 300, 300]

    def test_without_shares_nothing_is_known(self) -> None:
        assert seen_at_ns(50, [Element(None, True, 100)], Fraction(1, 2)) is None

    def test_a_load_reports_when_a_share_was_visible(self) -> None:
        found = {"by": "/", "at": "offset", "offset_bytes": 10}
        page = page_of(
            {"id": "/", "kind": "document", "bytes": 1400},
            {"id": "a", "kind": "image", "bytes": 1400, "viewport": 0.9, "discovered": found},
            {"id": "b", "kind": "image", "bytes": 1400, "viewport": 0.06, "discovered": found},
        )
        load = h3sim.simulate(page, scheme="fifo", **AT_ONCE)
        # The document is there at 10, the images at 20 and 30; text is 4 %.
        assert load.first_paint_ms == 10
        assert tuple(load.visual or ()) == (10, 20, 30, 30, 30)
        assert (load.figures["visual_vc85_ms"], load.figures["visual_vc95_ms"]) == (20, 30)
        replayed = h3sim.simulate(page, scheme="fifo")
        assert replayed.visual is None
        assert replayed.figures["visual_vc85_ms"] is None

    def test_the_image_index_weighs_images_alone(self) -> None:
        # The document is there at 80, the image at 160 ms.
        load = replay(TWO, "fifo")
        assert load.image_index_ms == load.figures["image_index_ms"] == 160
        assert replay([(0, "document", 1)], "fifo").image_index_ms is None


class TestInversions:
    SPANS: ClassVar = {0: (0, 3), 4: (1, 3)}

    def test_ranks_are_those_of_strict_orders(self) -> None:
        signals: list[Signal] = [
            *(Eps(urgency=2), BucketPriority(bucket=9, level=1), Rank(value=7)),
            *(StrictPriority(strict=5), StrictPriority(strict=5, depends_on=-1), H2Priority()),
        ]
        assert [*map(rank_of, signals)] == [(2,), (-9,), (7,), (-5,), None, None]

    def test_what_is_reported_at_the_instant_of_a_packet_counts_for_it(self) -> None:
        reported = [(0, 0, Eps(urgency=3)), (1, 4, Eps(urgency=1))]
        sent = [Sent(0, 0, 9), Sent(1, 0, 9), Sent(2, 0, 9), Sent(3, 0, 9)]
        # At 0 stream 4 is not known yet; at 3 it has nothing left.
        assert inversion_bytes(sent, self.SPANS, reported) == 18

    def test_what_is_reported_behind_a_packet_does_not_count_for_it(self) -> None:
        reported = [(0, 0, Eps(urgency=3)), (2, 4, Eps(urgency=1))]
        sent = [Sent(1, 0, 9), Sent(2, 0, 9)]
        # Both streams have something left at 1, but that 4 goes first is known from 2 on only.
        assert inversion_bytes(sent, self.SPANS, reported) == 9

    def test_a_raise_waits_for_no_packet_of_its_own_instant(self) -> None:
        reported = [(0, 4, Eps(urgency=3)), (5, 4, Eps(urgency=1)), (6, 4, Eps(urgency=0))]
        assert reprioritization_delays_ns([Sent(5, 4, 9), Sent(7, 4, 9)], reported) == [0, 1]

    def test_of_one_stream_nothing_is_inverted_and_without_ranks_nothing_is_known(self) -> None:
        sent = [Sent(1, 0, 9)]
        assert inversion_bytes(sent, self.SPANS, [(0, 0, Eps())]) == 0
        assert inversion_bytes(sent, self.SPANS, [(0, -1, StrictPriority())]) is None
        assert inversion_bytes(sent, self.SPANS, [(0, 0, H2Priority())]) is None
        assert inversion_bytes(sent, self.SPANS, []) is None

    def test_a_response_that_waits_to_hear_of_a_loss_has_nothing_to_send(self) -> None:
        """Stream 0 has left at 2; that its first packet was lost is known at 5, and 4 goes on."""
        rows = [
            (1, None, 0, 0, 10, 0, None),
            (2, 4, 0, 10, 10, 1, 7),
            *((at_ns, at_ns + 2, 4, 10 * at_ns - 30, 10, at_ns - 1, at_ns + 2) for at_ns in (3, 4)),
            (5, 7, 0, 0, 10, 4, 7),
            (6, 8, 4, 20, 10, 5, 8),
        ]
        trace = Trace(
            delivery=Delivery.STREAM,
            requests=(Request(0, 0, 0, 0, 20), Request(4, 1, 0, 0, 30)),
            signals=(SignalSent(0, 0, Eps(urgency=1)), SignalSent(0, 4, Eps(urgency=3))),
            packet_rows=PacketRows.of(rows),
        )
        page = page_of(
            {"id": "/", "kind": "document", "bytes": 20},
            {"id": "a", "kind": "image", "bytes": 30, "discovered": {"by": "/", "at": "request"}},
        )
        found = multiplexing_of(page, trace, timings(trace), rtt_ns=3)
        assert found.inversion_bytes == 0
        # No window of 3 ns lies within the times of both; were 0 ready until 5, the first would.
        assert found.jain_index is None


def test_all_of_it_is_in_the_json() -> None:
    document: dict[str, Any] = replay(TWO, "rr").to_dict()
    assert document["multiplexing"]["interleaving"] == 1 - 16 / 256
    assert document["multiplexing"]["loss_bursts"] == {}
    assert document["visual"] is None
    assert document["image_index_ms"] == 160

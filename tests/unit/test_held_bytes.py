"""Bytes that have arrived and are held back are shown apart from those that are not there yet.

One packet leaves every 10 ms; of three streams of a packet each, that of the second is held for
15 ms and arrives at 35 ms, after the third's at 30 ms.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.export.tables import metrics_of
from h3sim.metrics import count_blocked, hol_blocking
from h3sim.reporting.labels import Palette
from h3sim.reporting.lane_layout import Span, client_arrivals
from h3sim.reporting.timeline import Timeline
from h3sim.reporting.waterfall import rows_of
from tests.helpers import replay

if TYPE_CHECKING:
    from h3sim.load import Load

STEPS = [(0, "image", 1)] * 3
FIRST, SECOND, THIRD = 0, 4, 8


def load_over(transport: str) -> Load:
    return replay(STEPS, "rr", reorder="2:1", transport=transport)


def test_over_tcp_the_third_packet_has_arrived_and_waits_for_the_second() -> None:
    arrivals = client_arrivals(load_over("tcp"))
    assert arrivals[FIRST] == (10, ())
    assert arrivals[SECOND] == (35, ())
    assert arrivals[THIRD] == (30, (Span(30, 35),))


def test_over_quic_no_packet_waits_for_one_of_another_stream() -> None:
    arrivals = client_arrivals(load_over("quic"))
    assert {stream_id: each.held for stream_id, each in arrivals.items()} == {
        FIRST: (),
        SECOND: (),
        THIRD: (),
    }
    assert arrivals[THIRD].first_ms == 30


def test_a_row_of_the_waterfall_has_arrival_holding_and_delivery() -> None:
    load = load_over("tcp")
    third = rows_of(load, Palette(load.page))[2]
    assert third.requested_ms == 0
    assert third.first_arrival_ms == 30
    assert third.held == (Span(30, 35),)
    assert third.first_byte_ms == third.finished_ms == 35


def test_a_folded_row_has_the_holding_of_each_of_its_resources() -> None:
    load = load_over("tcp")
    (row,) = rows_of(load, Palette(load.page, is_by_kind=True), "kind")
    assert (row.first_arrival_ms, row.first_byte_ms) == (10, 10)
    assert row.held == (Span(30, 35),)


def test_the_first_byte_of_a_timing_is_the_first_that_was_delivered() -> None:
    times = {
        transport: load_over(transport).timings[2].first_byte_ms for transport in ("tcp", "quic")
    }
    assert times == {"tcp": 35, "quic": 30}


@pytest.mark.usefixtures("unpainted")
def test_the_words_of_a_waterfall_say_for_how_long_bytes_were_held_back() -> None:
    tcp, quic = (load_over(transport).plot.alt_text("waterfall") for transport in ("tcp", "quic"))
    assert "held back after they had arrived, longest of r2, for 5 ms" in tcp
    assert "No byte was held back" in quic


@pytest.mark.usefixtures("unpainted")
def test_only_a_waterfall_with_held_bytes_explains_their_mark() -> None:
    labels = {}
    for transport in ("tcp", "quic"):
        ax = load_over(transport).plot.waterfall()
        labels[transport] = ax.get_xlabel().replace("\n", " ")
        held = [each for each in ax.collections if str(each.get_gid()).startswith("held-")]
        assert len(held) == (transport == "tcp")
    assert "red: arrived, held back" in labels["tcp"]
    assert "red:" not in labels["quic"]
    for label in labels.values():
        assert "nothing has arrived" in label


def test_the_timeline_of_a_report_has_the_three_states_of_a_resource() -> None:
    html = Timeline(title="x", names=["tcp"], loads=[load_over("tcp")]).to_html("t")
    found = re.search(r"<script[^>]*>(.*?)</script>", html, re.S)
    assert found is not None
    third = json.loads(found[1])[0]["resources"][2]
    assert third["requested"] == 0
    assert third["arrived"] == 30
    assert third["held"] == [[30, 35]]
    assert third["first"] == third["finished"] == 35


def test_blocked_packets_are_counted_by_order_of_delivery() -> None:
    for transport in ("tcp", "quic"):
        trace = load_over(transport).trace
        assert count_blocked(trace) == (0, 1)
        assert hol_blocking(trace).connection_delay_ns == 5_000_000
    in_order = replay(STEPS, "rr").trace
    assert count_blocked(in_order) == (0, 0)


def test_a_run_shows_the_mean_wait_of_what_is_blocked_and_not_the_sum() -> None:
    # 30 packets; every 4th is held for 2.5 intervals, so two packets wait for it: 15 and 5 ms.
    load = replay([(0, "image", 30)], "rr", reorder="4:2", transport="tcp")
    shown = dict(metrics_of(load))
    assert load.hol.connection_delay_ms == 7 * 20
    assert shown["HOL blocking across streams"].endswith(" bytes, held back for 10.0 ms on average")
    assert not [name for name, _ in metrics_of(replay([(0, "image", 3)], "rr")) if "HOL" in name]


def test_a_legend_that_counts_only_a_part_of_what_is_above_the_fold_says_so() -> None:
    page = h3sim.load_page("http2rulez")
    labels = [entry.label for entry in Palette(page).legend()]
    visible = [each for each in page.resources if each.above_the_fold]
    blocking = [each for each in visible if each.render_blocking]
    assert (len(visible), len(blocking)) == (11, 5)
    assert labels[0].startswith("above the fold, not render-blocking: 6,")
    bare = page
    for resource in blocking:
        bare = bare.with_(resource.id, above_the_fold=False)
    assert Palette(bare).legend()[0].label.startswith("above the fold: 6,")

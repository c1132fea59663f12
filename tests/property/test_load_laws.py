"""Laws of any load: any page, any scheme, any transport, delay, jitter and send buffer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from h3sim.conformance import pages
from h3sim.page import TriggerEvent
from tests.effort import law
from tests.property import laws
from tests.property.strategies import DIFFERENT, cases


@pytest.mark.parametrize("scheme", DIFFERENT)
@law(40, usual=12)
@given(cases())
def test_a_load_ends_with_all_bytes_sent_in_time_and_no_scheme_beats_the_bounds(
    scheme: Any, case: Any
) -> None:
    """Drawing a page costs more than a law of its load does, so each is held to all of them."""
    load = laws.check_the_load_ends(case.but(scheme=scheme).run)
    laws.check_bytes_are_conserved(load)
    laws.check_requests_follow_their_triggers(load)
    laws.check_no_tick_is_wasted(load)
    laws.check_no_scheme_beats_the_bound(load)
    laws.check_no_scheme_beats_the_bound_of_the_page(load)


@law(100, usual=50)
@given(cases())
def test_what_is_counted_of_a_load_agrees_with_its_packets(case: Any) -> None:
    load = case.run()
    laws.check_streams_are_numbered_as_requested(load)
    laws.check_one_order_is_never_earlier(load)
    laws.check_blocking_of_a_connection_contains_that_of_streams(load)
    laws.check_stacks_hold_all_packets(load)
    laws.check_sander_counts_nothing(load)
    for sample_ms in (1, 100, 333.3):
        laws.check_sampling_never_hides_progress(load, sample_ms)


@law(30)
@given(cases(pages=pages(max_resources=1)))
def test_tcp_hands_over_a_single_stream_as_quic_does(case: Any) -> None:
    laws.check_one_order_is_never_earlier(case.run())
    assert (
        case.but(transport="tcp", handshake=False).run().timings
        == case.but(transport="quic", handshake=False).run().timings
    )


@law(60)
@given(cases(pages=pages(at=(TriggerEvent.TIME,))))
def test_tcp_finishes_no_resource_before_quic_where_requests_wait_for_nothing(case: Any) -> None:
    quic = case.but(transport="quic", handshake=False).run()
    tcp = case.but(transport="tcp", handshake=False).run()
    assert [row[:6] for row in quic.trace.packet_rows] == [row[:6] for row in tcp.trace.packet_rows]
    for early, late in zip(quic.timings, tcp.timings, strict=True):
        assert early.finished_ms <= late.finished_ms


@law(60)
@given(cases())
def test_equal_runs_are_equal(case: Any) -> None:
    assert case.run().trace.digest() == case.run().trace.digest()

"""Laws of any load: any page, any scheme, any transport, delay, jitter and send buffer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from h3sim.conformance import pages
from h3sim.page import At
from tests.effort import law
from tests.property import laws
from tests.property.strategies import DIFFERENT, cases

each_scheme = pytest.mark.parametrize("scheme", DIFFERENT)


@each_scheme
@law(30)
@given(cases())
def test_every_load_ends_with_every_resource_finished(scheme: Any, case: Any) -> None:
    laws.check_the_load_ends(case.but(scheme=scheme).run)


@each_scheme
@law(30)
@given(cases())
def test_every_byte_is_sent_once_in_packets_of_one_stream(scheme: Any, case: Any) -> None:
    laws.check_bytes_are_conserved(case.but(scheme=scheme).run())


@each_scheme
@law(30)
@given(cases())
def test_requests_follow_their_triggers_at_once(scheme: Any, case: Any) -> None:
    laws.check_requests_follow_their_triggers(case.but(scheme=scheme).run())


@law(100)
@given(cases())
def test_stream_ids_count_the_requests(case: Any) -> None:
    laws.check_streams_are_numbered_as_requested(case.run())


@each_scheme
@law(30)
@given(cases())
def test_no_tick_is_wasted_while_a_response_waits(scheme: Any, case: Any) -> None:
    laws.check_no_tick_is_wasted(case.but(scheme=scheme).run())


@law(60)
@given(cases())
def test_tcp_never_hands_over_before_quic(case: Any) -> None:
    laws.check_one_order_is_never_earlier(case.run())


@law(30)
@given(cases(pages=pages(max_resources=1)))
def test_tcp_hands_over_a_single_stream_as_quic_does(case: Any) -> None:
    laws.check_one_order_is_never_earlier(case.run())
    assert (
        case.but(transport="tcp", handshake=False).run().timings
        == case.but(transport="quic", handshake=False).run().timings
    )


@law(60)
@given(cases(pages=pages(at=(At.TIME,))))
def test_tcp_finishes_no_resource_before_quic_where_requests_wait_for_nothing(case: Any) -> None:
    quic = case.but(transport="quic", handshake=False).run()
    tcp = case.but(transport="tcp", handshake=False).run()
    assert [row[:6] for row in quic.trace.packet_rows] == [row[:6] for row in tcp.trace.packet_rows]
    for early, late in zip(quic.timings, tcp.timings, strict=True):
        assert early.finished_ms <= late.finished_ms


@law(60)
@given(cases())
def test_what_waits_in_its_stream_waits_in_one_order_too(case: Any) -> None:
    laws.check_blocking_of_a_connection_contains_that_of_streams(case.run())


@law(60)
@given(cases())
def test_every_packet_is_in_one_stack(case: Any) -> None:
    laws.check_stacks_hold_all_packets(case.run())


@law(60)
@given(cases())
def test_sander_counts_no_blocking_without_loss(case: Any) -> None:
    laws.check_sander_counts_nothing(case.run())


@each_scheme
@law(30)
@given(cases())
def test_no_scheme_has_a_byte_index_below_the_bound(scheme: Any, case: Any) -> None:
    laws.check_no_scheme_beats_the_bound(case.but(scheme=scheme).run())


@each_scheme
@law(30)
@given(cases())
def test_no_scheme_has_a_byte_index_below_what_the_page_allows(scheme: Any, case: Any) -> None:
    laws.check_no_scheme_beats_the_bound_of_the_page(case.but(scheme=scheme).run())


@law(60)
@given(cases())
def test_sampling_adds_less_than_one_interval(case: Any) -> None:
    load = case.run()
    for sample_ms in (1, 100, 333.3):
        laws.check_sampling_never_hides_progress(load, sample_ms)


@law(60)
@given(cases())
def test_equal_runs_are_equal(case: Any) -> None:
    assert case.run().trace.digest() == case.run().trace.digest()

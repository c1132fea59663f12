"""How connections begin: 100 ms there and back, one request of 100 bytes, one response."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.quic.handshake import HandshakeMode
from h3sim.transport.tcp import TcpSettings, TlsVersion
from h3sim.transport.tcp.packer import Handshake
from h3sim.values.units import ms
from tests.tcp_pair import CLIENT, MSS, SERVER, Pair, drops

TLS_1_2 = TcpSettings(tls=TlsVersion.TLS_1_2)
RESPONSE_BYTES = 1000


def connect(
    mode: Any = HandshakeMode.ONE_RTT,
    settings: Any = None,
    *,
    request: bool = True,
    **path: Any,
) -> Any:
    pair = Pair(mode=mode, settings=settings, answer={0: RESPONSE_BYTES}, **path)
    if request:
        pair.put(CLIENT, 0, 100)
    return pair.run()


def first_ms(pair: Any, role: Any) -> Any:
    """When the first of the application's bytes left an end, and arrived."""
    first = next(sent for sent in pair.data(role) if sent.segment.frames)
    return first.at_ms, first.arrives_ms


def syns(pair: Any) -> list[Any]:
    return [(sent.role, sent.at_ms) for sent in pair.sent if sent.segment.is_syn]


@pytest.mark.parametrize(
    ("mode", "settings", "round_trips"),
    [
        (HandshakeMode.NONE, None, 0),
        (HandshakeMode.ZERO_RTT, None, 1),
        (HandshakeMode.ONE_RTT, None, 2),
        (HandshakeMode.ONE_RTT, TLS_1_2, 3),
        (HandshakeMode.ZERO_RTT, TLS_1_2, 3),
    ],
)
@pytest.mark.parametrize("rtt_ms", [10, 100, 600])
def test_the_request_leaves_after_the_handshake_and_is_answered_a_round_trip_later(
    mode: Any, settings: Any, round_trips: Any, rtt_ms: float
) -> None:
    pair = connect(mode, settings, rtt_ms=rtt_ms)
    assert first_ms(pair, CLIENT)[0] == round_trips * rtt_ms
    assert first_ms(pair, SERVER)[1] == (round_trips + 1) * rtt_ms
    assert pair.again(CLIENT) == pair.again(SERVER) == []
    assert pair.bytes_of(CLIENT, 0) == RESPONSE_BYTES


def test_a_full_handshake_goes_syn_hello_flight_finished() -> None:
    pair = connect()
    wire = [
        (sent.role.value, sent.at_ms, sent.segment.is_syn, sent.segment.length)
        for sent in pair.sent
        if sent.at_ms < 250
    ]
    finished_and_request = 80 + 22 + 9 + 100
    assert wire == [
        ("client", 0, True, 0),
        ("server", 50, True, 0),
        ("client", 100, False, 517),
        ("server", 150, False, MSS),
        ("server", 150, False, MSS),
        ("server", 150, False, 3000 - 2 * MSS),
        ("client", 200, False, 0),
        ("client", 200, False, finished_and_request),
    ]


def test_nothing_of_a_handshake_reaches_the_application() -> None:
    pair = connect()
    assert pair.delivered[SERVER] == [(250, 0, 0, 100)]
    assert pair.delivered[CLIENT] == [(300, 0, 0, RESPONSE_BYTES)]


def test_a_lost_syn_goes_again_after_a_second_and_then_after_two() -> None:
    lost = {0: 3}

    def drop(role: Any, index: Any, segment: Any) -> Any:
        lost[0] -= segment.is_syn and role is CLIENT
        return segment.is_syn and role is CLIENT and lost[0] >= 0

    pair = connect(drop=drop)
    assert [at_ms for role, at_ms in syns(pair) if role is CLIENT] == [0, 1000, 3000, 7000]
    assert first_ms(pair, CLIENT)[0] == 7200


def test_a_lost_answer_to_a_syn_costs_a_second() -> None:
    pair = connect(drop=lambda role, index, segment: role is SERVER and segment.sent_at_ns < ms(60))
    assert first_ms(pair, CLIENT)[0] == 1200
    # The client asks again at 1000 ms; the server's own timer runs out when that arrives.
    assert syns(pair)[:4] == [(CLIENT, 0), (SERVER, 50), (CLIENT, 1000), (SERVER, 1050)]


def test_a_syn_that_comes_again_is_answered_at_once() -> None:
    patient = TcpSettings(initial_rto_ns=ms(9000))
    pair = connect(
        settings=patient,
        client_settings=TcpSettings(),
        drop=lambda role, index, segment: role is SERVER and segment.sent_at_ns < ms(60),
    )
    assert syns(pair) == [(CLIENT, 0), (SERVER, 50), (CLIENT, 1000), (SERVER, 1050)]


def test_an_answer_to_a_syn_that_comes_again_is_acknowledged_at_once() -> None:
    patient = TcpSettings(min_rto_ns=ms(9000))
    pair = connect(client_settings=patient, drop=drops(0, role=CLIENT))
    assert syns(pair) == [(CLIENT, 0), (SERVER, 50), (SERVER, 1050)]
    assert pair.acks(CLIENT)[0].at_ms == 1100


def test_a_lost_hello_goes_again_when_its_timer_runs_out() -> None:
    pair = connect(drop=drops(0, role=CLIENT))
    # Meanwhile the server has asked for it with a second SYN-ACK, which is only acknowledged.
    assert first_ms(pair, CLIENT)[0] == 1200
    assert pair.bytes_of(CLIENT, 0) == RESPONSE_BYTES


def test_a_lost_part_of_the_servers_flight_holds_the_request_back() -> None:
    pair = connect(drop=drops(1, role=SERVER))
    # What it has of it is acknowledged at 250 ms; a second later the rest goes again.
    assert first_ms(pair, CLIENT)[0] == 1300
    quick = connect(settings=TcpSettings.linux(), drop=drops(1, role=SERVER))
    assert 300 < first_ms(quick, CLIENT)[0] < 600


def test_early_data_that_is_lost_goes_again() -> None:
    pair = connect(HandshakeMode.ZERO_RTT, drop=drops(0, role=CLIENT))
    assert pair.bytes_of(SERVER, 0) == 100
    assert pair.bytes_of(CLIENT, 0) == RESPONSE_BYTES


def test_the_handshake_measures_the_round_trip() -> None:
    pair = Pair(mode=HandshakeMode.ONE_RTT, rtt_ms=80)
    pair.run(until_ms=125)
    for role in (CLIENT, SERVER):
        assert pair.ends[role].recovery.rtt.has_sample
        assert pair.ends[role].recovery.rtt.smoothed_rtt_ns == ms(80)


def test_a_syn_that_went_twice_is_measured_by_its_timestamp() -> None:
    lost = {0: 1}

    def drop(role: Any, index: Any, segment: Any) -> bool:
        lost[0] -= 1
        return lost[0] >= 0

    pair = Pair(mode=HandshakeMode.ONE_RTT, drop=drop).run(until_ms=1110)
    assert pair.ends[CLIENT].recovery.rtt.smoothed_rtt_ns == ms(100)


def test_an_established_connection_knows_its_round_trip() -> None:
    pair = Pair(rtt_ms=70)
    assert pair.ends[SERVER].recovery.rtt.smoothed_rtt_ns == ms(70)
    assert not [sent for sent in pair.run().sent if sent.segment.is_syn]


def test_an_end_is_ready_once_its_keys_are_made() -> None:
    pair = Pair(mode=HandshakeMode.ONE_RTT)
    ready = []
    for until_ms in (10, 99, 149, 150, 199, 200):
        pair.run(until_ms=until_ms)
        ready.append((pair.ends[CLIENT].is_ready, pair.ends[SERVER].is_ready))
    assert ready == [(False, False)] * 3 + [(False, True)] * 2 + [(True, True)]


def test_a_server_sends_nothing_before_a_request() -> None:
    pair = Pair(mode=HandshakeMode.ONE_RTT)
    pair.put(SERVER, 0, 10)
    assert pair.ends[SERVER].packets_to_send(0) == []
    assert pair.ends[SERVER].timer_at_ns() is None


def test_in_cleartext_requests_follow_the_opening() -> None:
    pair = connect(settings=TcpSettings(tls="none"))  # type: ignore[arg-type]
    assert first_ms(pair, CLIENT) == (100, 150)
    assert first_ms(pair, SERVER) == (150, 200)


def test_a_syn_goes_again_when_its_time_has_come_and_not_before() -> None:
    """RFC 6298 § 2.1: a second, then twice that."""
    handshake = Handshake(TcpSettings(), CLIENT, HandshakeMode.ONE_RTT)
    for now_ns, wait_ns in ((0, ms(1000)), (ms(1000), ms(2000))):
        handshake.on_syn_sent(now_ns)
        handshake.on_timer(now_ns + wait_ns - 1)
        assert not handshake.is_syn_due
        handshake.on_timer(now_ns + wait_ns)
        assert handshake.is_syn_due

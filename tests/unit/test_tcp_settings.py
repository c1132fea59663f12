"""What a TCP stack can be set up with."""

import pytest

from h3sim.errors import NetworkError
from h3sim.transport.tcp import LossDetection, TcpSettings, TlsVersion


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mss_bytes", 87),
        ("receive_window_bytes", 1447),
        ("ack_every", 0),
        ("initial_rto_ns", 0),
        ("max_rto_ns", 0),
        ("pacing_gain", 0.0),
        ("pacing_burst_segments", 0),
        ("notsent_lowat_bytes", 0),
        ("send_buffer_bytes", 0),
        ("data_frame_bytes", 0),
        ("record_bytes", 16_385),
        ("record_bytes", 87),
        ("recovery", "fack"),
        ("tls", "1.1"),
        ("client_hello_bytes", 0),
        ("server_flight_bytes", 0),
        ("client_finished_bytes", 0),
        ("tls12_server_finished_bytes", 0),
    ],
)
def test_a_value_with_which_no_connection_works_is_named(key, value):
    with pytest.raises(NetworkError) as caught:
        TcpSettings(**{key: value})
    assert [problem.key for problem in caught.value.problems] == [key]
    assert repr(value) in str(caught.value)


def test_all_mistakes_are_listed():
    with pytest.raises(NetworkError) as caught:
        TcpSettings(mss_bytes=0, record_bytes=0, recovery="none")
    assert len(caught.value.problems) == 3


def test_plain_text_names_the_choices():
    settings = TcpSettings(recovery="rack", tls="1.2")
    assert settings.recovery is LossDetection.RACK
    assert settings.tls is TlsVersion.TLS_1_2


@pytest.mark.parametrize(("mss", "window"), [(1448, 14_480), (536, 5360), (8000, 16_000)])
def test_the_initial_window_is_ten_segments_as_long_as_they_are_small(mss, window):
    assert TcpSettings(mss_bytes=mss).initial_window_bytes == window

"""What a TCP stack can be set up with."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.profile import ProfileError, profile_from_dict
from h3sim.transport.tcp import LossDetection, TcpSettings, TlsVersion
from h3sim.values.errors import NetworkError
from tests.helpers import unworded
from tests.tcp_pair import CLIENT, SERVER, Pair


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
def test_a_value_with_which_no_connection_works_is_named(key: Any, value: Any) -> None:
    with pytest.raises(NetworkError) as caught:
        TcpSettings(**{key: value})
    assert [problem.key for problem in caught.value.problems] == [key.replace("_ns", "_ms")]
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_rto_ns": 20_000}, "max_rto_ms: must be 1,000 to 3,600,000, is 0.02"),
        (
            {"min_rto_ns": 3 * 10**9, "max_rto_ns": 2 * 10**9},
            "max_rto_ms: must be at least min_rto_ms (3000), is 2000",
        ),
        (
            {"write_bytes": 62},
            "write_bytes: must be 0, or at least 63 (a record with 32 bytes of body), is 62",
        ),
        (
            {"write_bytes": 1},
            "write_bytes: must be 0, or at least 63 (a record with 32 bytes of body), is 1",
        ),
        (
            {"write_bytes": 40, "tls": "none"},
            "write_bytes: must be 0, or at least 41 (a record with 32 bytes of body), is 40",
        ),
        ({"mss_bytes": 1400.5}, "mss_bytes: must be a whole number, is 1400.5"),
        ({"pacing_gain": 1e-6}, "pacing_gain: must be 0.01 to 100, is 1e-06"),
    ],
)
def test_a_value_that_cannot_work_is_refused_in_the_unit_of_a_profile(
    values: Any, message: Any
) -> None:
    with pytest.raises(NetworkError) as caught:
        TcpSettings(**values)
    assert unworded([caught.value]) == unworded([message])


@pytest.mark.parametrize("write", [{"write_bytes": 63}, {"write_bytes": 41, "tls": "none"}])
def test_the_smallest_write_brings_a_page_to_its_end(write: Any) -> None:
    pair = Pair(settings=TcpSettings(**write))
    pair.put(SERVER, 0, 500)
    assert pair.run().bytes_of(CLIENT, 0) == 500


def test_all_errors_are_listed() -> None:
    with pytest.raises(NetworkError) as caught:
        TcpSettings(mss_bytes=0, record_bytes=0, recovery="none")  # type: ignore[arg-type]
    assert len(caught.value.problems) == 3


def test_plain_text_names_the_choices() -> None:
    settings = TcpSettings(recovery="rack", tls="1.2")  # type: ignore[arg-type]
    assert settings.recovery is LossDetection.RACK
    assert settings.tls is TlsVersion.TLS_1_2


@pytest.mark.parametrize(("mss", "window"), [(1448, 14_480), (536, 5360), (8000, 16_000)])
def test_the_initial_window_is_ten_segments_as_long_as_they_are_small(
    mss: Any, window: Any
) -> None:
    assert TcpSettings(mss_bytes=mss).initial_window_bytes == window


@pytest.mark.parametrize(("server", "client"), [("none", "1.3"), ("1.3", "1.2")])
def test_a_server_and_its_client_have_the_same_version_of_tls(server: str, client: str) -> None:
    tables = {"name": "x", "tcp": {"tls": server}, "tcp_client": {"tls": client}}
    with pytest.raises(ProfileError) as refused:
        profile_from_dict({"format": "h3sim-profile/1", **tables})
    assert [problem.key for problem in refused.value.problems] == ["tcp_client.tls"]


def test_a_client_without_a_version_of_tls_has_that_of_its_server() -> None:
    tables = {"name": "x", "tcp": {"tls": "none"}, "tcp_client": {"min_rto_ms": 300}}
    profile = profile_from_dict({"format": "h3sim-profile/1", **tables})
    assert profile.tcp_client.tls is TlsVersion.NONE

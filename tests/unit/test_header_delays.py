"""Frindell's model of a path, worked by hand; and what comes of several runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from h3sim.headers import CodecSettings
from h3sim.headers.base import HeaderLists, TimedSection
from h3sim.study import header_models, sweep
from h3sim.study.header_models import simulate_headers
from h3sim.study.header_study import header_rows, nearest_rank
from h3sim.transport import IndependentPackets, Jitter, LinkProfile, Network
from h3sim.values.errors import NetworkError
from h3sim.values.units import ms

TRACE = ((b"x-trace", b"7"),)
PATH = Network(name="path", rtt_ns=ms(100), independent_packets=IndependentPackets())


def lossy(loss: float) -> Network:
    return replace(PATH, independent_packets=IndependentPackets(loss=loss))


class Fates:
    """Random numbers that are said beforehand: which packets are lost, for 1.5 round trips each."""

    def __init__(self, losses: Any) -> None:
        self._losses = iter(losses)

    def random(self) -> Any:
        return 0.0 if next(self._losses, False) else 1.0

    def uniform(self, low: Any, high: Any) -> Any:
        return (low + high) / 2 - 0.05


def lost(monkeypatch: pytest.MonkeyPatch, *losses: Any) -> None:
    """Let the packets be lost for which it says so, and no acknowledgement."""
    monkeypatch.setattr(
        header_models.rng,  # type: ignore[attr-defined]
        "substream",
        lambda _, purpose: Fates(losses if purpose == "headers.packets" else ()),
    )


def run(sections: Any, scheme: Any, **more: Any) -> Any:
    timed = [TimedSection(ms(at_ms), fields) for at_ms, fields in sections]
    return simulate_headers(timed, scheme, lossy(0.5), **more)


def test_a_section_takes_half_a_round_trip() -> None:
    done = simulate_headers([TimedSection(ms(3), TRACE)], "hpack", PATH).sections[0]
    times = (done.encoded_at_ns, done.arrived_at_ns, done.decoded_at_ns)
    assert times == (ms(3), ms(53), ms(53))


def test_the_example_of_the_mail_two_requests_wait_100_ms_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The first takes 50 + 150 ms; those of 50 and 52 ms are there at 100 and 102 ms.
    lost(monkeypatch, True, False, False)
    done = run([(0, TRACE), (50, TRACE), (52, TRACE)], "hpack")
    assert [section.hol_ns for section in done.sections] == [0, ms(100), ms(98)]
    assert (done.n_packets, done.n_lost) == (4, 1)
    assert done.max_held.compressed == 4


def test_a_packet_that_is_lost_twice_comes_twice_as_late(monkeypatch: pytest.MonkeyPatch) -> None:
    lost(monkeypatch, True, True, False)
    assert run([(0, TRACE)], "static").sections[0].arrived_at_ns == ms(50 + 150 + 150)


def test_requests_within_a_millisecond_share_a_packet_and_its_fate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost(monkeypatch, True, False, False)
    done = run([(0, TRACE), (1, TRACE), (2.5, TRACE)], "hpack")
    assert [section.arrived_at_ns for section in done.sections] == [ms(200), ms(200), ms(52.5)]
    assert [section.hol_ns for section in done.sections] == [0, 0, ms(147.5)]
    assert done.n_packets == 3


def test_a_section_of_two_packets_is_there_with_the_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost(monkeypatch, False, True, False)
    done = run([(0, ((b"x", bytes(range(256)) * 8),))], "static")
    assert done.sections[0].arrived_at_ns == ms(200)
    assert done.n_packets == 3


def test_a_gap_of_more_than_a_second_is_one_second() -> None:
    sections = [TimedSection(ms(at_ms), TRACE) for at_ms in (0, 5000, 5100)]
    done = simulate_headers(sections, "static", PATH)
    assert [section.encoded_at_ns for section in done.sections] == [0, ms(1000), ms(1100)]


def test_an_acknowledgement_comes_back_by_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    # QCRAM may refer to the entry once it is acknowledged: after 100 ms, not after 99.
    sizes = {}
    for at_ms in (99, 101):
        lost(monkeypatch)
        sizes[at_ms] = run([(0, TRACE), (at_ms, TRACE)], "qcram").n_bytes
    assert sizes[101] < sizes[99]


def test_qpack_waits_for_the_encoder_stream_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # The fourth packet brings the inserts that later sections refer to.
    sections = [(20 * n, ((b"x-trace", b"7"), (b"n", b"%d" % n))) for n in range(8)]
    lost(monkeypatch, False, True, False)
    waiting = run(sections, "qpack", settings=CodecSettings(blocked_streams=100))
    lost(monkeypatch, False, True, False)
    safe = run(sections, "qpack", settings=CodecSettings(blocked_streams=0))
    assert any(section.hol_ns for section in waiting.sections)
    assert not any(section.hol_ns for section in safe.sections)


def test_all_schemes_meet_the_same_accidents() -> None:
    sections = [TimedSection(ms(10 * n), TRACE) for n in range(60)]
    model = lossy(0.1)
    runs = [simulate_headers(sections, name, model, seed=3) for name in ("hpack", "qcram")]
    assert [s.arrived_at_ns for s in runs[0].sections] == [
        s.arrived_at_ns for s in runs[1].sections
    ]
    again = simulate_headers(sections, "hpack", model, seed=3)
    assert again.sections == runs[0].sections


def test_rows_are_in_the_order_requested_and_sum_over_runs() -> None:
    sections = [TimedSection(ms(10 * n), TRACE) for n in range(40)]
    results = sweep(
        HeaderLists.of(sections),
        schemes="rr",
        header_compression=["hpack", "static"],
        rtt_ms=[10, 100],
        loss=[0.0, 0.1],
        seeds=3,
        resources=True,
        executor="serial",
    )
    rows = header_rows(results, results.resources())
    assert [(row.scheme, row.rtt_ms, row.loss) for row in rows] == [
        *(("hpack", 10, 0.0), ("hpack", 10, 0.1), ("hpack", 100, 0.0), ("hpack", 100, 0.1)),
        *(("static", 10, 0.0), ("static", 10, 0.1), ("static", 100, 0.0), ("static", 100, 0.1)),
    ]
    worst = rows[3]
    assert worst.runs == 3
    assert worst.hol_total_ms == pytest.approx(40 * worst.hol_mean_ms)
    assert worst.blocked > 0
    assert rows[7].runs_without_hol == 3
    assert rows[7].saved_percent == pytest.approx(100 * (1 - rows[7].ratio))


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 2), (0.75, 3), (0.76, 4), (1.0, 4)])
def test_a_rank_is_the_least_value_that_as_many_do_not_exceed(share: Any, value: Any) -> None:
    assert nearest_rank([1, 2, 3, 4], share) == value


def test_a_path_that_cannot_be_is_refused() -> None:
    with pytest.raises(NetworkError, match="loss: must"):
        IndependentPackets(loss=1.0)
    with pytest.raises(NetworkError) as caught:
        replace(PATH, down=LinkProfile(rate_bps=10**6), jitter=Jitter.parse("4:1"))
    assert [problem.key for problem in caught.value.problems] == ["jitter", "down"]

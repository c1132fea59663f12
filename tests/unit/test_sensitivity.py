"""Which knob matters: Sobol' indices of loads whose answer is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.study import Store
from h3sim.study.sobol import indices_of
from h3sim.values.errors import InputError, NothingToMeasureError
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

PAGE = page_of({"id": "/", "kind": "document", "bytes": 140_000})
TWO = {"rtt_ms": h3sim.study.Range(low=0, high=10), "rate_mbps": h3sim.study.Range(low=1, high=9)}


def of(value: Any, **options: Any) -> Any:
    return h3sim.study.sensitivity(PAGE, value=value, samples=32, executor="serial", **options)


def test_what_does_not_matter_explains_nothing() -> None:
    # One resource: with or without a send buffer it is the same packets.
    rows = of(
        "page_load_ms",
        rtt_ms=h3sim.study.Range(low=0, high=300),
        send_buffer_kb=h3sim.study.Range(low=0, high=100),
    )
    (rtt, buffer) = rows
    assert rtt.option == "rtt_ms"
    assert rtt.total == pytest.approx(1, abs=0.1)  # an estimate of 32 samples
    assert buffer.total == pytest.approx(0, abs=1e-9)
    assert rtt.total_low <= rtt.total <= rtt.total_high


def test_shares_of_a_sum_are_those_of_its_variances() -> None:
    # Of one resource: handshake and request take 2 RTTs, evenly from 0 to 400 ms, sd 115 ms; the
    # bytes take 100 ticks of 5 to 6 ms, sd 29 ms. So the RTT has 16 / 17 of the variance.
    rtt, interval = of(
        "page_load_ms",
        rtt_ms=h3sim.study.Range(low=0, high=200),
        interval_ms=h3sim.study.Range(low=5, high=6),
    )
    assert rtt.first == pytest.approx(16 / 17, abs=0.12)
    assert interval.total == pytest.approx(1 / 17, abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "options: at least two must vary, each as a Range or a list"),
        (
            {"rtt": h3sim.study.Range(low=0, high=1), "loss": h3sim.study.Range(low=0, high=0.1)},
            "rtt: ",
        ),
    ],
)
def test_errors_are_reported(options: Any, message: Any) -> None:
    with pytest.raises(InputError, match=message):
        h3sim.study.sensitivity(PAGE, **options)
    with pytest.raises(InputError, match="samples: must be a power of two"):
        h3sim.study.sensitivity(PAGE, samples=10, rtt_ms=h3sim.study.Range(low=0, high=1))


def test_figures_that_do_not_vary_or_are_not_there_are_reported() -> None:
    with pytest.raises(NothingToMeasureError, match="not all loads have byte_index_atf_ms"):
        of("byte_index_atf_ms", **TWO)


def test_metrics_of_whole_numbers_have_indices() -> None:
    # As many packets as fit the bytes, whatever the round-trip time.
    rtt, packet = of(
        "packets_sent",
        rtt_ms=h3sim.study.Range(low=0, high=100),
        packet_bytes=h3sim.study.Range(low=500, high=1500, integer=True),
    )
    assert rtt.total == pytest.approx(0, abs=1e-9)
    assert packet.total == pytest.approx(1, abs=0.25)
    assert packet.total_low <= packet.total <= packet.total_high


def test_listed_values_are_factors_and_each_distinct_load_runs_once(tmp_path: Path) -> None:
    # As above: 2 RTTs are 0 or 400 ms, 100 ticks are 500 or 600 ms, each half of the time.
    store = tmp_path / "study.db"
    rtt, interval = of("page_load_ms", rtt_ms=[0, 200], interval_ms=[5, 6], store=store)
    assert [rtt.option, interval.option] == ["rtt_ms", "interval_ms"]
    assert rtt.first == pytest.approx(16 / 17, abs=0.12)
    assert interval.total == pytest.approx(1 / 17, abs=0.02)
    with Store(store, may_write=False) as opened:
        assert sum(done for _, done, _, _ in opened.counts()) == 4


def test_pages_and_schemes_are_factors() -> None:
    # 50 or 100 ticks of 5 ms: 250 or 500 ms, a variance of 125^2; that of 2 RTTs is 400^2 / 12.
    small = page_of({"id": "/", "kind": "document", "bytes": 70_000}, name="small")
    rows = h3sim.study.sensitivity(
        [PAGE, small],
        scheme=["rr", "fifo"],
        value="page_load_ms",
        rtt_ms=h3sim.study.Range(low=0, high=200),
        interval_ms=5,
        samples=64,
        executor="serial",
    )
    page, rtt, scheme = rows
    assert [row.option for row in rows] == ["page", "rtt_ms", "scheme"]
    share = 125**2 / (125**2 + 400**2 / 12)
    assert page.total == pytest.approx(share, abs=0.1)
    assert rtt.total == pytest.approx(1 - share, abs=0.1)
    # With one resource there is nothing to schedule.
    assert (scheme.total, scheme.total_low, scheme.total_high) == (0, 0, 0)


def test_a_factor_that_the_samples_do_not_vary_has_no_indices() -> None:
    # Sobol' points of few samples share the first digits of some coordinates, so that both values
    # of the page and of the network always meet themselves: 0 and [0, 0] would be wrong.
    small = page_of({"id": "/", "kind": "document", "bytes": 70_000}, name="small")
    varied: dict[str, Any] = {
        "scheme": ["rr", "fifo"],
        "network": ["4g", "dsl"],
        "loss": h3sim.study.Range(low=0, high=0.02),
        "seeds": 2,
        "executor": "serial",
    }
    with pytest.raises(NothingToMeasureError, match="8 samples vary no page and no network"):
        h3sim.study.sensitivity([PAGE, small], value="packets_sent", samples=8, **varied)


def test_chance_has_a_share_of_its_own() -> None:
    lossy: dict[str, Any] = {"network": "4g", "rtt_ms": h3sim.study.Range(low=50, high=60)}
    rtt, seed = of("page_load_ms", loss=0.05, seeds=20, **lossy)
    assert [rtt.option, seed.option] == ["rtt_ms", "seed"]
    # Losses outweigh 10 ms.
    assert seed.total > 0.8
    without = of("page_load_ms", seeds=[3, 8, 9], **lossy)
    assert [row.total for row in without if row.option == "seed"] == [0]


def test_a_constant_metric_has_no_indices() -> None:
    with pytest.raises(NothingToMeasureError, match="packets_lost is the same in all loads"):
        of("packets_lost", **TWO)


def test_indices_are_those_of_the_closed_form() -> None:
    """Ishigami's function with a = 7 and b = 0.1."""

    def ishigami(points: Any) -> list[float]:
        return [math.sin(x) + 7 * math.sin(y) ** 2 + 0.1 * z**4 * math.sin(x) for x, y, z in points]

    limits = h3sim.study.Range(low=-math.pi, high=math.pi)
    rows = indices_of(ishigami, dict.fromkeys("xyz", limits), samples=2048, seed=1)
    # Closed forms of the indices (Ishigami and Homma 1990; Saltelli et al. 2008, § 5.4).
    assert [row.first for row in rows] == pytest.approx([0.314, 0.442, 0], abs=0.03)
    assert [row.total for row in rows] == pytest.approx([0.558, 0.442, 0.244], abs=0.03)
    for row, first, total in zip(rows, (0.314, 0.442, 0), (0.558, 0.442, 0.244), strict=True):
        assert row.first_low <= first <= row.first_high
        assert row.total_low <= total <= row.total_high


def test_equal_calls_have_equal_intervals() -> None:
    assert of("page_load_ms", **TWO) == of("page_load_ms", **TWO)

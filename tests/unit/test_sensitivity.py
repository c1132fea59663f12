"""Which knob matters: Sobol' indices of loads whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.errors import InputError, NothingToMeasureError
from tests.helpers import page_of

PAGE = page_of({"id": "/", "kind": "document", "bytes": 140_000})
TWO = {"rtt_ms": h3sim.Range(low=0, high=10), "rate_mbps": h3sim.Range(low=1, high=9)}


def of(value: Any, **options: Any) -> Any:
    return h3sim.sensitivity(PAGE, value=value, samples=32, executor="serial", **options)


def test_what_does_not_matter_explains_nothing() -> None:
    # One resource: with or without a send buffer it is the same packets.
    rows = of(
        "page_load_ms",
        rtt_ms=h3sim.Range(low=0, high=300),
        send_buffer_kb=h3sim.Range(low=0, high=100),
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
        rtt_ms=h3sim.Range(low=0, high=200),
        interval_ms=h3sim.Range(low=5, high=6),
    )
    assert rtt.first == pytest.approx(16 / 17, abs=0.12)
    assert interval.total == pytest.approx(1 / 17, abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "options: at least two must be a Range"),
        (
            {"rtt": h3sim.Range(low=0, high=1), "loss": h3sim.Range(low=0, high=0.1)},
            "rtt: there is no such option",
        ),
    ],
)
def test_errors_are_reported(options: Any, message: Any) -> None:
    with pytest.raises(InputError, match=message):
        h3sim.sensitivity(PAGE, **options)
    with pytest.raises(InputError, match="samples: must be a power of two"):
        h3sim.sensitivity(PAGE, samples=10, rtt_ms=h3sim.Range(low=0, high=1))


def test_figures_that_do_not_vary_or_are_not_there_are_reported() -> None:
    with pytest.raises(NothingToMeasureError, match="not all loads have byte_index_atf_ms"):
        of("byte_index_atf_ms", **TWO)


def test_equal_calls_have_equal_intervals() -> None:
    assert of("page_load_ms", **TWO) == of("page_load_ms", **TWO)

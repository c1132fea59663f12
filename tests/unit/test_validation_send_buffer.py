"""What `make validate-send-buffer` makes of loads: means of a reading, and how they move."""

from __future__ import annotations

import pytest

import h3sim
from validation.send_buffer import NO_BUFFER, PAPER, Buffer, Reading, _held, means_of, moves_alike

BURSTS = Buffer(1000, "bursts")


def indexes(**values: float) -> dict[tuple[str, Buffer], float]:
    """Return ByteIndexes of a page on which all schemes but rr are alike."""
    return {
        ("rr", NO_BUFFER): values["rr"],
        ("rr", BURSTS): values["rr_in_bursts"],
        **{(scheme, NO_BUFFER): values["others"] for scheme in PAPER},
        **{(scheme, BURSTS): values["others_in_bursts"] for scheme in PAPER},
    }


@pytest.mark.parametrize(("is_shared", "mean"), [(False, (4 + 2) / 2), (True, (2 + 1) / 2)])
def test_a_mean_is_that_of_ratios_to_rr_with_the_buffer_or_without(
    is_shared: bool, mean: float
) -> None:
    pages = [
        indexes(rr=400, rr_in_bursts=200, others=200, others_in_bursts=100),
        indexes(rr=400, rr_in_bursts=200, others=200, others_in_bursts=200),
    ]
    assert means_of(pages, Reading(BURSTS, is_shared))["fifo"] == mean


def test_means_move_alike_where_both_fall_or_both_rise() -> None:
    # The paper's rise for firefox and s+ only.
    assert moves_alike([2.0] * len(PAPER), [1.0] * len(PAPER)) == len(PAPER) - 2
    assert moves_alike([1.0] * len(PAPER), [2.0] * len(PAPER)) == 2
    assert moves_alike([1.0] * len(PAPER), [1.0] * len(PAPER)) == 0


def test_held_requests_are_made_later_but_for_the_first() -> None:
    page = h3sim.load_page("davies-meenan")
    load, held = (h3sim.simulate(each, scheme="fifo") for each in (page, _held(page, 7200)))
    assert held.timings[0].requested_ms == load.timings[0].requested_ms
    assert held.timings[1].requested_ms == load.timings[1].requested_ms + 7200

"""Tables of optimality ratios, by scheme, network and class; their figures and documents."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.values.errors import InputError, NothingToMeasureError
from tests.helpers import page_of
from tests.schemas import schema_problems

if TYPE_CHECKING:
    from pathlib import Path

# The table


def test_schemes_of_a_page_are_held_against_one_bound() -> None:
    table = h3sim.optimality("davies-meenan", schemes=["rr", "atf-first"])
    assert table.given == "page"
    rr, first = table.rows
    assert (rr.bound_all_ms, rr.bound_atf_ms) == (first.bound_all_ms, first.bound_atf_ms)
    load = h3sim.simulate("davies-meenan", scheme="rr")
    assert rr.optimality_ratio_atf == load.optimality_ratio("atf", given="page")
    means = {(row.scheme, row.which): row.mean for row in table.schemes}
    assert means["rr", "atf"] == rr.optimality_ratio_atf


def test_over_links_each_load_has_a_bound_of_its_own() -> None:
    table = h3sim.optimality("davies-meenan", schemes=["rr", "fifo"], network="fibre")
    assert table.given == "requests"
    assert len({row.bound_all_ms for row in table.rows}) == 2


def test_a_page_with_nothing_above_the_fold_has_no_figure_there() -> None:
    page = page_of({"id": "/", "kind": "document", "bytes": 100})
    table = h3sim.optimality(page, schemes="rr")
    assert table.rows[0].optimality_ratio_atf is None
    assert [(row.which, row.n_pages) for row in table.schemes] == [("all", 1), ("atf", 0)]


def test_errors_in_a_table_of_optimality_ratios_are_reported() -> None:
    with pytest.raises(InputError, match="given: must be 'page' or 'requests', is 'all'"):
        h3sim.optimality("davies-meenan", given="all")  # type: ignore[arg-type]
    with pytest.raises(NothingToMeasureError, match="no constant rate"):
        h3sim.optimality("davies-meenan", given="page", network="fibre")


# Tables by network and class of pages, and figures


@pytest.fixture(scope="module")
def over_two_networks() -> h3sim.advice.Optimality:
    pages = [f"jquery-mobile-{name}" for name in ("demos", "listviews", "swipe", "toolbars")]
    return h3sim.optimality(
        [*pages, "davies-meenan"], schemes=["rr", "atf-first"], networks=["marx-2019", "cable"]
    )


def test_each_network_has_a_bound_as_strong_as_it_can_be(
    over_two_networks: h3sim.advice.Optimality,
) -> None:
    given = {row.network: row.given for row in over_two_networks.rows}
    assert given == {"marx-2019": "page", "cable": "requests"}
    assert over_two_networks.given is None
    assert over_two_networks.configurations["cable"]["rtt_ms"] == 28
    assert "rtt_ms" not in over_two_networks.configuration
    assert over_two_networks.configuration["transport"] == "quic"


def test_a_class_of_pages_has_the_mean_of_its_own(
    over_two_networks: h3sim.advice.Optimality,
) -> None:
    rows = over_two_networks.by_class("origin")
    of_rr = [row for row in rows if (row.network, row.scheme, row.which) == ("cable", "rr", "atf")]
    assert [(row.page_class, row.n_pages) for row in of_rr] == [
        ("recorded", 4),
        ("written down", 1),
    ]
    found = [
        row.optimality_ratio_atf or 0
        for row in over_two_networks.rows
        if (row.network, row.scheme) == ("cable", "rr")
    ]
    assert of_rr[1].mean == found[-1]
    assert of_rr[0].mean == pytest.approx(sum(found[:4]) / 4)
    assert 1 <= of_rr[0].low < of_rr[0].mean < of_rr[0].high
    assert (of_rr[1].low, of_rr[1].high) == (None, None)


def test_what_pages_are_not_distinguished_by_is_refused(
    over_two_networks: h3sim.advice.Optimality,
) -> None:
    with pytest.raises(InputError, match="by: must be one of size, resources, origin, is 'colour'"):
        over_two_networks.by_class("colour")
    with pytest.raises(InputError, match="network: must be one of marx-2019, cable, is dsl"):
        over_two_networks.plot.classes(network="dsl")


def test_a_figure_of_optimality_ratios_has_a_lane_for_each_network_and_class(
    over_two_networks: h3sim.advice.Optimality,
) -> None:
    by_page: Any = over_two_networks.plot.schemes()
    assert [label.get_text() for label in by_page.get_legend().get_texts()] == [
        "marx-2019",
        "cable",
    ]
    # For each of two networks and schemes: the pages, and their mean.
    marks = [line for line in by_page.lines if line.get_marker() in ("o", "s")]
    assert [len(line.get_xdata()) for line in marks] == [5, 1] * 4
    by_class = over_two_networks.plot.classes("size")
    assert [label.get_text() for label in by_class.get_yticklabels()] == ["rr", "atf-first"]
    reported = [label.get_text() for label in by_class.get_legend().get_texts()]
    assert reported == ["small (4)", "medium (1)"]


def test_documents_are_as_their_schema_states(over_two_networks: h3sim.advice.Optimality) -> None:
    document = over_two_networks.to_dict()
    assert schema_problems(document) == []
    del document["rows"][0]["scheme"]
    assert schema_problems(document) == ["'scheme' is a required property"]


def test_equal_ratios_are_drawn_as_equal_bytes(
    over_two_networks: h3sim.advice.Optimality, tmp_path: Path
) -> None:
    first, again = tmp_path / "a.png", tmp_path / "b.png"
    over_two_networks.plot.save(first, by="resources")
    over_two_networks.plot.save(again, by="resources")
    assert first.read_bytes() == again.read_bytes()


def test_a_saved_figure_for_a_paper_has_no_title_and_cuts_no_label(
    over_two_networks: h3sim.advice.Optimality, tmp_path: Path
) -> None:
    path = tmp_path / "column.svg"
    over_two_networks.plot.save(path, style="paper", width="column")
    svg = path.read_text("utf-8")
    # Text is drawn as outlines, with a comment that has each line.
    lines = re.findall(r"<!-- (.*) -->", svg)
    assert "faint" not in svg
    assert max(len(each) for each in lines if "lower bound" in each or "ratio" in each) < 50


def test_factors_are_labelled_from_the_bound_on() -> None:
    # Both schemes are far above the bound: the axis still has ticks from 1 to there.
    ax = h3sim.optimality("davies-meenan", schemes=["rr", "fifo"]).plot.schemes()
    low, high = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert ticks[0] == 1
    assert len(ticks) > 3


def test_a_table_has_the_byte_indexes_of_its_loads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimality", "davies-meenan", "--scheme", "fifo", "--bound", "requests"]) == 0
    reported = capsys.readouterr().out
    exact_ms = h3sim.simulate("davies-meenan", scheme="fifo").byte_index()
    assert "davies-meenan, ByteIndexes, given the requests:" in reported
    assert f"{exact_ms:,.1f}" in reported


def test_the_labelled_factors_of_a_ratio_axis_do_not_overlap() -> None:
    pages = ["davies-meenan", "creative", "http2rulez"]
    ax = h3sim.optimality(pages, schemes="marx-2019").plot.classes()
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))

"""Lower bounds on paints: worked out by hand, held to every order of small pages, and as a law.

Over network marx-2019 a packet of 1400 bytes leaves every 10 ms, the first at 10 ms, and is there
at once.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.conformance import pages
from h3sim.load import paint_bounds
from h3sim.load.paint_bounds import (
    Increment,
    Transmission,
    least_delay_ns,
    preemptive_makespan_ns,
)
from tests.effort import IS_THOROUGH, law
from tests.helpers import AT_ONCE, page_of
from validation.paint_bounds import all_orders, closeness, of_small_pages, small_page

PACKET = 1400


def document(packets: int, **more: Any) -> dict[str, Any]:
    return {"id": "/", "kind": "document", "bytes": packets * PACKET, **more}


def named(id_: str, kind: str, packets: int, at_bytes: int = 0, **more: Any) -> dict[str, Any]:
    found = {"by": "/", "at": "offset", "offset_bytes": at_bytes}
    return {"id": id_, "kind": kind, "bytes": packets * PACKET, "discovered": found, **more}


def bounds_of(*resources: dict[str, Any], **setting: Any) -> Any:
    load = h3sim.simulate(page_of(*resources), scheme="fifo", **{**AT_ONCE, **setting})
    assert load.paint_bounds is not None
    return load.paint_bounds


def about(value_ms: float) -> Any:
    """Return a value that a bound may be below by what rounding takes."""
    return pytest.approx(value_ms, abs=0.001)


# By hand


def test_the_first_paint_waits_for_the_head_and_for_nothing_else() -> None:
    # The head is in the first packet (10 ms), which asks for the stylesheet: 3 packets, parsed in
    # 4 ms. The image and the rest of the document can come later.
    bounds = bounds_of(
        document(5),
        named("a.css", "stylesheet", 3, in_head=True, execute_ms=4),
        named("b.png", "image", 7, viewport=0.5),
    )
    assert bounds.first_paint_ms == about(10 + 30 + 4)


def test_a_script_runs_behind_the_stylesheets_before_it() -> None:
    # 10 ms for the document, 20 for the stylesheet, 20 to parse it, 5 to run the script.
    bounds = bounds_of(
        document(1),
        named("a.css", "stylesheet", 2, in_head=True, execute_ms=20),
        named("b.js", "script", 1, 100, in_head=True, execute_ms=5),
    )
    assert bounds.first_paint_ms == about(10 + 20 + 20 + 5)


def test_a_round_trip_stands_between_what_asks_and_what_is_asked_for() -> None:
    # Without handshake: 15 up, tick 20, 15 down; the stylesheet is asked for at 35, leaves at 50.
    bounds = bounds_of(
        document(1),
        named("a.css", "stylesheet", 1, in_head=True),
        rtt_ms=30,
        handshake="none",
    )
    assert bounds.first_paint_ms == about(50 + 15)


def test_the_largest_paint_waits_for_the_largest_image_and_the_first_paint() -> None:
    bounds = bounds_of(
        document(1),
        named("a.css", "stylesheet", 2, in_head=True),
        named("small.png", "image", 9, viewport=0.1),
        named("large.png", "image", 4, viewport=0.6),
        paint_ms=16,
    )
    assert bounds.first_paint_ms == about(30 + 16)
    assert bounds.largest_paint_ms == about(70 + 16)


def test_a_hidden_text_waits_for_its_font_but_no_longer_than_three_seconds() -> None:
    # The font is asked for with the first paint, at 20: 400 packets come at 4020, shown at 3020.
    font = {
        "id": "f",
        "kind": "font",
        "bytes": 400 * PACKET,
        "hero": True,
        "above_the_fold": True,
        "discovered": {"by": "a.css", "at": "complete"},
    }
    sheet = named("a.css", "stylesheet", 1, in_head=True)
    assert bounds_of(document(1), sheet, font).largest_paint_ms == about(3020)
    font["bytes"] = 40 * PACKET
    assert bounds_of(document(1), sheet, font).largest_paint_ms == about(420)


def test_the_speed_index_sends_the_densest_image_first() -> None:
    # Painted at 10; then b (0.4 in 1 packet) at 20 and a (0.2 in 2) at 40; text is 0.4.
    page = (
        document(1),
        named("a.png", "image", 2, viewport=0.2),
        named("b.png", "image", 1, viewport=0.4),
    )
    bounds = bounds_of(*page, paint="complete")
    assert bounds.speed_index_ms == about(0.4 * 10 + 0.4 * 20 + 0.2 * 40)
    assert bounds.speed_index_ratio > 1  # fifo sends a first
    assert 10 < bounds_of(*page).speed_index_ms < bounds.speed_index_ms  # rows appear before


def test_the_text_of_a_font_counts_from_the_first_paint_where_images_are_painted_as_they_load() -> (
    None
):
    font = named("f.woff2", "font", 1, viewport=0.5)
    image = named("a.avif", "image", 1, viewport=0.5)
    # Painted at 10; the image, which is shown whole, at 20; the text counts from 10 on.
    assert bounds_of(document(1), image, font).speed_index_ms == about(0.5 * 10 + 0.5 * 20)


def test_there_are_no_bounds_of_what_the_load_does_not_have() -> None:
    page = page_of(document(1))
    assert h3sim.simulate(page).paint_bounds is None
    bounds = h3sim.simulate(page, **AT_ONCE).paint_bounds
    assert bounds is not None
    assert bounds.first_paint_ratio == about(1)
    assert (bounds.speed_index_ms, bounds.speed_index_ratio) == (None, None)


def test_the_longest_tail_goes_first() -> None:
    # From 4 on the second is sent: 4 to 6, and its tail lasts until 26; the first ends at 12.
    assert preemptive_makespan_ns([Transmission(0, 10, 0), Transmission(4, 2, 20)]) == 26
    assert preemptive_makespan_ns([Transmission(0, 10, 15), Transmission(4, 2, 20)]) == 27


def test_what_is_free_delays_nothing() -> None:
    # Of 30 the first 10 are free; equal densities, so in any order: 20 late with a mean of 10 and
    # shares of 2/3; halves: parts of 2/3 each, 0.5 * 4/9 * (10 + 20) / 2.
    two = [Increment(0, 10, 0.5), Increment(0, 20, 0.5)]
    dense, sparse = 0.5 / 10, 0.5 / 20
    mean = sparse * 20 * 10
    assert dense > sparse
    assert least_delay_ns(two, begins_ns=0, free_until_ns=10) == pytest.approx(
        mean + 0.5 * (4 / 9) * 30 / 2
    )


# Every order


def test_no_order_of_a_small_page_is_below_its_bounds_and_most_paints_reach_them() -> None:
    n_pages = 160 if IS_THOROUGH else 8
    found = of_small_pages(n_pages, n_orders=400)
    assert len(found) > n_pages / 2
    for paint in ("first_paint", "largest_paint"):
        ratios = [row.ratios[paint] for row in found]
        assert sum(ratio < 1.0005 for ratio in ratios) > 0.6 * len(ratios), paint
    indexes = [row.ratios["speed_index"] for row in found]
    assert sum(indexes) / len(indexes) < 1.06


def test_every_order_is_tried_once() -> None:
    # Three responses of 1, 1 and 2 packets, all there with the document: 4! / 2 orders.
    page = page_of(
        document(1),
        *(named(f"{n}.png", "image", size) for n, size in enumerate((1, 1, 2))),
    )
    orders = [tuple(load.trace.order) for load in all_orders(page, **AT_ONCE)]
    assert len(orders) == len(set(orders)) == 12


# Laws


paths = st.sampled_from(["marx-2019", "cable", "fast-3g", "wifi-lossy", "sander-10mbps-100ms"])
schemes = st.sampled_from(["fifo", "rr", "chrome-eps", "firefox-h2", "bucket-html", "atf-first"])


def check_no_load_is_below_its_bounds(page: Any, **setting: Any) -> None:
    closeness(page, [h3sim.simulate(page, browser="parse", **setting)])


def check_small_pages(**setting: Any) -> None:
    for seed in range(40):
        check_no_load_is_below_its_bounds(small_page(seed), scheme="fifo", **setting)


@law(150, usual=60)
@given(
    pages(),
    schemes,
    paths,
    st.fixed_dictionaries(
        {
            "transport": st.sampled_from(["quic", "tcp"]),
            "cpu_slowdown": st.sampled_from([0.5, 1, 4]),
            "tight_mode": st.sampled_from(["off", "chrome-118"]),
            "commit_ms": st.sampled_from([0, 28]),
            "paint_ms": st.sampled_from([0, 15]),
            "paint": st.sampled_from(["progressive", "complete"]),
            "preload_scanner": st.booleans(),
            "handshake": st.sampled_from(["none", "1-rtt"]),
            "seed": st.integers(0, 3),
        }
    ),
)
def test_no_load_is_below_its_bounds(page: Any, scheme: str, network: str, setting: Any) -> None:
    check_no_load_is_below_its_bounds(page, scheme=scheme, network=network, **setting)


@law(40)
@given(pages(), schemes, schemes, paths)
def test_bounds_are_those_of_the_page_and_not_of_the_load(
    page: Any, scheme: str, other: str, network: str
) -> None:
    loads = [
        h3sim.simulate(page, scheme=name, network=network, browser="parse", tight_mode="off")
        for name in (scheme, other)
    ]
    found = [None if each.paint_bounds is None else each.paint_bounds[:3] for each in loads]
    if loads[0].connections[0].ready_at_ns == loads[1].connections[0].ready_at_ns:
        assert found[0] == found[1]


def test_a_bound_without_the_credit_of_a_packet_breaks_the_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel = paint_bounds._Channel
    monkeypatch.setattr(channel, "alone_ns", channel.length_ns)
    with pytest.raises(AssertionError):
        check_small_pages(rtt_ms=20)


def test_a_bound_that_lets_later_requests_wait_for_all_breaks_the_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant takes a reference to be found at the end of its document."""
    mutant = paint_bounds._Bounds
    whole = mutant._bytes
    monkeypatch.setattr(mutant, "_bytes", lambda self, index, n_bytes=None: whole(self, index))
    with pytest.raises(AssertionError):
        check_small_pages()


def test_a_lateness_without_free_capacity_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    real = paint_bounds.least_delay_ns
    monkeypatch.setattr(
        paint_bounds,
        "least_delay_ns",
        lambda increments, *, begins_ns, free_until_ns: real(
            increments, begins_ns=free_until_ns, free_until_ns=free_until_ns
        ),
    )
    with pytest.raises(AssertionError):
        of_small_pages(40, n_orders=600)

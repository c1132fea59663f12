"""How the answers on the incremental flag and on rules for paint go from loads to figures."""

from __future__ import annotations

import math

import pytest

import h3sim
from h3sim.page import ImageFormat, Kind, synthetic
from validation.estimates import LEAST_DIFFERING, estimate
from validation.paint_rules import (
    H3SIM_1,
    Figures,
    clients,
    load_of,
    logs_of_site,
    on_server,
)
from validation.sharing import (
    FORMATS,
    Gallery,
    Observation,
    SharingRule,
    by_cluster,
    changes_of,
    derived,
    gallery,
    indices,
    with_format,
)

HERO = Gallery("hero", 4, 30, "fast-3g")


def test_there_is_no_interval_where_few_sites_change() -> None:
    few = [0.1] * (LEAST_DIFFERING - 1) + [0.0] * 30
    found = estimate(few)
    assert (found.low, found.high, found.is_sure) == (None, None, False)
    assert f"({LEAST_DIFFERING - 1} differ)" in str(found)
    # What changes by less than one per cent does not count as changed.
    assert estimate([*few, 0.009]).low is None
    one_more = estimate([*few, 0.1])
    assert one_more.low is not None
    assert one_more.low < one_more.mean
    assert "none differs" in str(estimate([0.0] * 20))


def test_a_format_changes_what_is_painted_and_no_packet() -> None:
    load = h3sim.simulate(
        gallery(HERO, 0), scheme="rr", network=HERO.network, browser="parse", seed=1
    )
    found = {name: with_format(load, name) for name in FORMATS}
    for name, each in found.items():
        images = [one for one in each.page.resources if one.kind is Kind.IMAGE]
        assert {one.painted_format for one in images} == {ImageFormat(name)}
        assert each.trace is load.trace
        # Complete images are there at the same time.
        assert indices(each)[2:] == indices(load)[2:]
    in_chrome = {name: indices(each)[0] or 0 for name, each in found.items()}
    assert in_chrome["progressive-jpeg"] < in_chrome["jpeg"] < in_chrome["avif"]


def test_a_gallery_is_drawn_by_its_seed_and_covers_the_same_share() -> None:
    for layout in ("all seen", "hero", "half seen"):
        kind = HERO._replace(layout=layout, n_images=5)
        pages = [gallery(kind, seed) for seed in (0, 0, 1)]
        assert pages[0] == pages[1] != pages[2]
        shares = [each.viewport or 0 for each in pages[0].resources]
        assert sum(shares) == pytest.approx(0.9, abs=0.001)


def observed(cluster: str, image_s: float, **first: float) -> Observation:
    """Return an observation whose SpeedIndex changes as given, in formats that are named."""
    changes: dict[str, tuple[float | None, ...]] = {
        name: (first.get(name.replace("-", "_"), 0.3), 0.0, 0.0, None) for name in FORMATS
    }
    return Observation(HERO, cluster, image_s, changes)


def test_the_rule_lets_share_what_gains_and_takes_long() -> None:
    short = [observed(str(n), 0.5, progressive_jpeg=0.2) for n in range(4)]
    long = [observed(str(n), 3.0, progressive_jpeg=-0.4) for n in range(4)]
    rule = derived([*short, *long])
    assert rule.formats == {"progressive-jpeg"}
    assert 0.5 < rule.least_s <= 3.0
    assert changes_of(rule, [*short, *long], "progressive-jpeg", 0) == [-0.2] * 4
    assert changes_of(rule, long, "avif", 0) == [0.0] * 4


def test_where_nothing_gains_nothing_shares() -> None:
    rule = derived([observed("a", 1.0), observed("b", 9.0)])
    assert rule == SharingRule(frozenset(), 0.0)


def test_a_cluster_counts_once_and_unknown_indices_not_at_all() -> None:
    some = [observed("a", 1, avif=0.1), observed("a", 1, avif=0.3), observed("b", 1, avif=0.5)]
    assert by_cluster(some, "avif", 0) == pytest.approx([0.2, 0.5])
    assert by_cluster(some, "avif", 3) == []


def test_the_search_begins_with_h3sim_1() -> None:
    page = synthetic(seed=7)
    ours = load_of(page, H3SIM_1.scheme(), "cable")
    theirs = load_of(page, "h3sim-1", "cable", tight_mode="chrome-118")
    assert ours.largest_paint_ms == theirs.largest_paint_ms
    assert ours.byte_index("all") == theirs.byte_index("all")


def test_rules_say_the_same_of_a_page_only_if_no_class_of_it_differs() -> None:
    page = synthetic(seed=7)
    urgencies = {**H3SIM_1.urgencies, "script-preload": 0}
    assert not any(each.preload for each in page.resources)
    assert H3SIM_1._replace(urgencies=urgencies).used(page) == H3SIM_1.used(page)
    shared = H3SIM_1._replace(incremental=frozenset({"image"}))
    assert shared.used(page) != H3SIM_1.used(page)
    assert H3SIM_1._replace(hold_back="off").used(page) != H3SIM_1.used(page)


def test_a_client_meets_the_server_of_another_scheme() -> None:
    client, server = clients()["h3sim-paint"], h3sim.load_scheme("quiche")
    both = on_server(client, "quiche")
    assert (both.rules, both.classes) == (client.rules, client.classes)
    assert (both.mixed, both.retransmission) == (server.mixed, server.retransmission)
    assert on_server(client, None) == client


def figures(paint_ms: float, ratio: float) -> Figures:
    return Figures({"largest_paint_ms": paint_ms}, {"largest_paint_ms": ratio}, 10)


def test_pages_and_networks_of_a_site_count_once() -> None:
    found = {
        ("cable", "x"): {"a": [figures(10, 1), figures(1000, 4)], "b": [figures(7, 2)]},
        ("4g", "x"): {"a": [figures(10, 2)]},
    }
    logs = logs_of_site(found, "x", "largest_paint_ms", ("cable", "4g"))
    assert logs == {"a": pytest.approx(math.log(10) * 1.5), "b": pytest.approx(math.log(7))}
    ratios = logs_of_site(found, "x", "largest_paint_ms", ("cable", "4g"), "ratios")
    assert ratios["a"] == pytest.approx(math.log(2))


def test_the_frozen_rules_are_those_of_the_file() -> None:
    """The documentation states these; a change of the file is a change of the result."""
    scheme = clients()["h3sim-paint"]
    classes = {each.name: each for each in scheme.classes}
    assert not any(each.incremental for each in scheme.classes)
    assert classes["visible"].urgency < classes["script-late"].urgency
    assert classes["script-head"].urgency == classes["sheet-head"].urgency

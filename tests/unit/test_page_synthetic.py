"""Made-up pages: what was asked for holds, and the distributions are those that are stated."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.page import Kind, TriggerEvent, synthetic
from h3sim.page.categories import class_of, size_class
from h3sim.page.synthetic import SIZES
from h3sim.values.errors import PageError
from tests.effort import law


@law(60)
@given(
    seed=st.integers(0, 1000),
    n_resources=st.integers(3, 60),
    max_depth=st.integers(1, 5),
    script_share=st.sampled_from([0, 0.25, 1]),
    hero_bytes=st.sampled_from([None, 0, 50_000]),
    html_bytes=st.sampled_from([None, 0, 20_000]),
)
def test_what_was_asked_for_holds(
    seed: int, n_resources: int, max_depth: Any, script_share: Any, hero_bytes: int, html_bytes: int
) -> None:
    page = synthetic(
        seed=seed,
        n_resources=n_resources,
        total_bytes=300_000,
        max_depth=max_depth,
        script_share=script_share,
        hero_bytes=hero_bytes,
        html_bytes=html_bytes,
    )
    assert len(page.resources) == n_resources
    assert page.total_bytes == 300_000
    assert depth(page) <= max_depth
    if html_bytes is not None:
        assert page.resources[0].size_bytes == html_bytes
    heroes = [resource.size_bytes for resource in page.resources if resource.hero]
    if hero_bytes:
        assert heroes == [hero_bytes]
    if hero_bytes == 0:
        assert heroes == []
    assert h3sim.Page.from_json(page.to_json()) == page


def depth(page: h3sim.Page) -> int:
    levels: dict[str, int] = {}
    for resource in page.resources:
        by = None if resource.discovered is None else resource.discovered.by
        levels[resource.id] = 0 if by is None else levels[by] + 1
    return max(levels.values())


def test_equal_seeds_give_equal_pages_and_others_do_not() -> None:
    assert synthetic(seed=3) == synthetic(seed=3)
    assert synthetic(seed=3) != synthetic(seed=4)


def test_sizes_follow_the_stated_distributions() -> None:
    """Median and deviation of the logarithm within 15 %, over 20,000 scripts and images."""
    page = synthetic(seed=1, n_resources=20_000)
    for kind in (Kind.SCRIPT, Kind.IMAGE):
        logs = [math.log(max(1, r.size_bytes)) for r in page.resources if r.kind is kind]
        median, deviation = SIZES[kind]
        assert math.exp(statistics.median(logs)) == pytest.approx(median, rel=0.15)
        assert statistics.stdev(logs) == pytest.approx(deviation, rel=0.15)


def test_fonts_hang_on_stylesheets_scripts_or_the_document() -> None:
    for seed in range(20):
        page = synthetic(seed=seed)
        for resource in page.resources[1:]:
            assert resource.discovered is not None
            parent = page.resources[page.index[resource.discovered.by]]
            at = {
                Kind.DOCUMENT: TriggerEvent.OFFSET,
                Kind.SCRIPT: TriggerEvent.EXECUTED,
                Kind.STYLESHEET: TriggerEvent.COMPLETE,
            }
            assert resource.discovered.at is at[parent.kind]


def test_documents_name_their_head_first_and_what_is_seen_has_a_share_of_the_viewport() -> None:
    for seed in range(20):
        page = synthetic(seed=seed)
        root, *others = page.resources
        named = [
            r for r in others if r.discovered is not None and r.discovered.at is TriggerEvent.OFFSET
        ]
        positions = {
            r.id: r.discovered.offset_bytes or 0 for r in named if r.discovered is not None
        }
        assert all(0 <= position < root.size_bytes for position in positions.values())
        heads = [positions[r.id] for r in named if r.in_head]
        bodies = [positions[r.id] for r in named if not r.in_head]
        assert max(heads, default=-1) <= min(bodies, default=root.size_bytes)
        assert all(r.in_head for r in named if r.kind is Kind.STYLESHEET)
        assert not any(r.in_head for r in others if r.id not in positions)
        images = [positions[r.id] for r in named if r.kind is Kind.IMAGE]
        for resource in others:
            is_seen_image = resource.kind is Kind.IMAGE and resource.above_the_fold
            assert (resource.viewport is not None) == is_seen_image
            assert not (resource.is_async and resource.is_defer)
            assert not (resource.is_async or resource.is_defer) or resource.kind is Kind.SCRIPT
            blocks = resource.in_head and not resource.is_async and not resource.is_defer
            assert resource.render_blocking is resource.critical is blocks
            position = positions.get(resource.id)
            assert resource.after_first_image is (
                position is not None and bool(images) and position > min(images)
            )


def test_pages_of_each_size_and_count_are_of_one_class() -> None:
    # Marx 2019 § 5: small is below 500 kB, large above 1 MB.
    sizes = {0: "small", 499_999: "small", 500_000: "medium", 10**6: "medium", 10**6 + 1: "large"}
    assert {n_bytes: size_class(n_bytes) for n_bytes in sizes} == sizes
    counts = {10: "up to 20 resources", 20: "up to 20 resources", 21: "21 to 31", 31: "21 to 31"}
    counts |= {32: "32 and more", 40: "32 and more"}
    found = {n: class_of(synthetic(seed=1, n_resources=n), "resources") for n in counts}
    assert found == counts


@pytest.mark.parametrize("browser", ["replay", "parse"])
def test_made_up_pages_load(browser: Any) -> None:
    for seed in range(3):
        load = h3sim.simulate(synthetic(seed=seed, n_resources=20), browser=browser)
        assert len(load.timings) == 20


def test_every_value_out_of_range_is_reported() -> None:
    with pytest.raises(PageError) as caught:
        synthetic(n_resources=0, total_bytes=-1, max_depth=9, script_share=2, html_bytes=-1)
    assert [problem.key for problem in caught.value.problems] == [
        "n_resources",
        "total_bytes",
        "max_depth",
        "script_share",
        "html_bytes",
    ]


def test_a_sum_that_the_given_sizes_exceed_is_refused() -> None:
    with pytest.raises(PageError, match="total_bytes: is less than the sum"):
        synthetic(n_resources=5, total_bytes=1000, html_bytes=800, hero_bytes=800)
    with pytest.raises(PageError, match="total_bytes: cannot be reached"):
        synthetic(n_resources=1, total_bytes=1000, html_bytes=800)


def test_a_page_of_a_document_alone_has_no_hero_though_its_size_is_given() -> None:
    (root,) = synthetic(n_resources=1, hero_bytes=50_000).resources
    assert (root.kind, root.hero, root.discovered) == (Kind.DOCUMENT, False, None)
    assert root.size_bytes == synthetic(n_resources=1).resources[0].size_bytes

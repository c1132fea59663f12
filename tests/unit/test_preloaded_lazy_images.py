"""A lazy image that a link requests: the link decides when it is requested, not its element."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.advice.edits import edits_of
from h3sim.page import Page, with_early_hints, with_inlined, with_push
from h3sim.study.runner import LoadTask
from tests.helpers import AT_ONCE, page_of

PACKET = 1400
LAZY: dict[str, Any] = {"lazy": True, "viewport": 0.4, "above_the_fold": True, "hero": True}
PRELOAD: dict[str, Any] = {"preload": True, "reference_offset_bytes": 700}


def page_with(at_bytes: int = 700, **image: Any) -> Page:
    """Return a page with a stylesheet of three packets in its head, and one image."""
    found = {"by": "/", "at": "offset"}
    return page_of(
        {"id": "/", "kind": "document", "bytes": PACKET, "server_ms": 200},
        {
            "id": "s.css",
            "kind": "stylesheet",
            "bytes": 3 * PACKET,
            "in_head": True,
            "discovered": {**found, "offset_bytes": 100},
        },
        {
            "id": "hero.jpg",
            "kind": "image",
            "bytes": PACKET,
            "discovered": {**found, "offset_bytes": at_bytes},
            **image,
        },
    )


def loaded(page: Page, **options: Any) -> dict[str, float]:
    load = h3sim.simulate(page, scheme="fifo", **{**AT_ONCE, **options})
    return {row.id: row.requested_ms for row in load.timings} | {"paint": load.first_paint_ms or 0}


def test_a_preload_link_requests_a_lazy_image_when_the_scanner_finds_the_link() -> None:
    """The document is there at 200; without the link the image waits for the first paint."""
    waiting = loaded(page_with(**LAZY))
    assert waiting["hero.jpg"] == waiting["paint"] == 230
    assert loaded(page_with(60, **LAZY, **PRELOAD))["hero.jpg"] == 200


def test_an_early_hint_and_a_push_request_a_lazy_image_before_the_document() -> None:
    page = page_with(**LAZY)
    assert loaded(with_early_hints(page, "hero.jpg"))["hero.jpg"] == 10
    assert loaded(with_push(page, "hero.jpg"))["hero.jpg"] == 0


def test_the_load_event_waits_for_a_preloaded_lazy_image() -> None:
    """Only the element's own request does not delay it (HTML standard, "Lazy loading")."""
    options = {**AT_ONCE, "scheme": "fifo"}
    lazy = h3sim.simulate(page_with(**LAZY), **options)
    preloaded = h3sim.simulate(page_with(60, **LAZY, **PRELOAD), **options)
    finished = {row.id: row.finished_ms for row in preloaded.timings}
    assert lazy.load_event_ms is not None
    assert preloaded.load_event_ms is not None
    assert lazy.load_event_ms == lazy.first_paint_ms
    assert preloaded.load_event_ms >= finished["hero.jpg"]


def test_six_variants_of_a_page_paint_in_the_order_measured_in_chromium() -> None:
    """LCP: fetchpriority 124.5, with preload 126.5, and lazy 129.0; plain 139.9; lazy with
    fetchpriority 150.4; lazy 159.4. What is alike in the model may tie.
    """
    variants: list[dict[str, Any]] = [
        {"fetchpriority": "high"},
        {"fetchpriority": "high", **PRELOAD},
        {"fetchpriority": "high", **PRELOAD, "lazy": True},
        {},
        {"fetchpriority": "high", "lazy": True},
        {"lazy": True},
    ]
    times_ms = []
    for variant in variants:
        image = {"viewport": 0.4, "hero": True, "above_the_fold": True, **variant}
        page = page_of(
            {"id": "/", "kind": "document", "bytes": 14_000, "server_ms": 50},
            _found("main.css", "stylesheet", 30_000, 900, in_head=True, render_blocking=True),
            *(_found(f"icon{n}.png", "image", 9_000, 2_500 + n, viewport=0.01) for n in range(5)),
            _found("main.jpg", "image", 120_000, 500 if "preload" in variant else 4_000)
            | image
            | ({"reference_offset_bytes": 4_000} if "preload" in variant else {}),
            *(_found(f"below{n}.jpg", "image", 30_000, 6_000 + n) for n in range(10)),
        )
        load = h3sim.simulate(
            page, scheme="chrome-h2", network="4g", browser="parse", transport="tcp"
        )
        times_ms.append(load.largest_paint_ms or 0.0)
    assert times_ms == sorted(times_ms)
    assert 0 < times_ms[2] < times_ms[3] < times_ms[4]


def _found(id_: str, kind: str, n_bytes: int, offset_bytes: int, **more: Any) -> dict[str, Any]:
    found = {"by": "/", "at": "offset", "offset_bytes": offset_bytes}
    return {"id": id_, "kind": kind, "bytes": n_bytes, "discovered": found, **more}


@pytest.mark.parametrize("is_preloaded", [False, True])
def test_lazy_is_advised_against_only_where_it_delays_the_request(is_preloaded: bool) -> None:
    page = page_with(**LAZY, **(PRELOAD if is_preloaded else {}))
    scheme, config = h3sim.load_scheme("chrome-eps"), h3sim.LoadConfig(network="cable")
    task = LoadTask(h3sim.load.resolve(page, scheme, config))
    kinds = {edit.kind for edit in edits_of(task)}
    assert ("not lazy" in kinds) is not is_preloaded


def test_a_background_of_an_inlined_stylesheet_still_waits_for_the_layout() -> None:
    """The scanner reads no CSS, so inlining brings no background before what layout needs."""
    sheet = {"by": "/", "at": "offset", "offset_bytes": 60}
    hero = {"by": "inline.css", "at": "complete"}
    page = page_of(
        {"id": "/", "kind": "document", "bytes": PACKET, "server_ms": 200},
        *(
            {
                "id": id_,
                "kind": "stylesheet",
                "bytes": n * PACKET,
                "in_head": True,
                "discovered": at,
            }
            for id_, n, at in (
                ("inline.css", 1, sheet),
                ("s.css", 3, {**sheet, "offset_bytes": 99}),
            )
        ),
        {"id": "hero.jpg", "kind": "image", "bytes": PACKET, "discovered": hero},
    )
    inlined = with_inlined(page, "inline.css")
    assert inlined.resources[inlined.index["hero.jpg"]].in_style
    times_ms = loaded(inlined)
    assert times_ms["s.css"] < times_ms["hero.jpg"] == times_ms["paint"]

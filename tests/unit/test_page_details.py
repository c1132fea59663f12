"""What pages and their reading do at the edges: classes, the first layout, a head."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import h3sim
from h3sim.browser.document import DocumentParser
from h3sim.page import Kind, synthetic, with_cached, with_first_layout
from h3sim.page.categories import class_of
from h3sim.page.model import NOT_COUNTED
from h3sim.values.errors import InputError
from tests.helpers import AT_ONCE, page_of

ROOT: dict[str, Any] = {"id": "/", "kind": "document", "bytes": 100}


def image(id_: str, **entry: Any) -> dict[str, Any]:
    found = {"by": "/", "at": "complete"}
    return {"id": id_, "kind": "image", "bytes": 10, "discovered": found, **entry}


@pytest.mark.parametrize(
    ("n_resources", "name"),
    [(20, "up to 20 resources"), (21, "21 to 31"), (31, "21 to 31"), (32, "32 and more")],
)
def test_pages_are_distinguished_by_how_many_resources_they_have(
    n_resources: int, name: str
) -> None:
    page = page_of(ROOT, *(image(f"{n}.png") for n in range(n_resources - 1)))
    assert class_of(page, "resources") == name


@pytest.mark.parametrize("alike", [SimpleNamespace(root=0), SimpleNamespace(resources=())])
def test_what_has_only_some_of_a_page_is_no_page(alike: Any) -> None:
    for function in (with_first_layout, lambda page: with_cached(page, names="*")):
        with pytest.raises(InputError, match="page: must be a page"):
            function(alike)


def test_each_of_several_names_has_to_be_one() -> None:
    page = page_of(ROOT, image("a.png"))
    assert with_cached(page, names=["a.png"]) != page
    with pytest.raises(InputError, match="names"):
        with_cached(page, names=["a.png", 1])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("script", "by"),
    [
        ({"in_head": True}, "a.js"),
        ({"in_head": True, "async": True}, "/"),
        ({"in_head": True, "defer": True}, "/"),
        ({"in_head": True, "preload": True}, "/"),
        ({}, "/"),
    ],
)
def test_only_a_script_of_the_head_that_is_not_late_holds_back_the_first_layout(
    script: dict[str, Any], by: str
) -> None:
    found = {"by": "/", "at": "offset", "offset_bytes": 50}
    entry = {"id": "a.js", "kind": "script", "bytes": 10, "discovered": found, **script}
    page = with_first_layout(page_of(ROOT, entry, image("a.png", above_the_fold=True)))
    [change] = page.resources[2].priority_changes
    assert change.when.by == by


@pytest.mark.parametrize("seed", range(5))
def test_what_the_head_of_a_made_up_page_names_stands_in_the_document_before_all_else(
    seed: int,
) -> None:
    page = synthetic(seed=seed, n_resources=40)
    named = [each for each in page.resources if each.discovered and each.discovered.by == "r0"]
    head = [each for each in page.resources if each.in_head]
    assert head
    assert all(each in named for each in head)
    offsets = [
        [
            each.discovered.offset_bytes or 0
            for each in named
            if each.discovered and each.in_head is is_in_head
        ]
        for is_in_head in (True, False)
    ]
    assert max(offsets[0]) < min(offsets[1])
    styles = [each for each in named if each.kind is Kind.STYLESHEET]
    assert all(each.in_head for each in styles)


@pytest.mark.parametrize("seed", range(5))
def test_of_the_images_of_a_made_up_page_those_that_are_seen_have_a_share_of_the_screen(
    seed: int,
) -> None:
    page = synthetic(seed=seed, n_resources=40)
    images = [each for each in page.resources if each.kind is Kind.IMAGE]
    assert {each.above_the_fold for each in images} == {True, False}
    assert all((each.viewport is not None) is each.above_the_fold for each in images)


def test_a_document_without_bytes_has_not_ended_before_it_has_come() -> None:
    parser = DocumentParser(page_of({**ROOT, "bytes": 0}), cost_ns=1000)
    assert not parser.reaches_end()
    parser.receive(0, 5, 0, is_complete=True)
    assert parser.reaches_end()


def test_a_stylesheet_asks_for_imports_as_they_come_and_for_images_once_layout_wants_them() -> None:
    def by_style(id_: str, kind: str, at_bytes: int) -> dict[str, Any]:
        found = {"by": "a.css", "at": "offset", "offset_bytes": at_bytes}
        return {"id": id_, "kind": kind, "bytes": 1400, "discovered": found}

    by_document = {"by": "/", "at": "offset", "offset_bytes": 100}
    style = {"id": "a.css", "kind": "stylesheet", "bytes": 3 * 1400, "discovered": by_document}
    page = page_of(
        {**ROOT, "bytes": 2 * 1400},
        style,
        by_style("i.png", "image", 100),
        by_style("b.css", "stylesheet", 1500),
    )
    load = h3sim.simulate(page, scheme="fifo", **AT_ONCE)
    # The document comes at 10 and 20 ms, the style at 30, 40 and 50. Its import is in the packet
    # of 40; the image waits for the styles, of which the import comes last, at 60.
    asked = {row.id: row.requested_ms for row in load.timings}
    assert asked == {"/": 0, "a.css": 10, "b.css": 40, "i.png": 60}


def test_images_that_chrome_takes_for_visible_are_those_that_a_document_shows() -> None:
    """Each document counts its own, as they stand in it, whatever comes first in the file."""

    def at(offset: int, by: str = "/") -> dict[str, Any]:
        return {"by": by, "at": "offset", "offset_bytes": offset}

    def image(id_: str, discovered: dict[str, Any], **flags: Any) -> dict[str, Any]:
        return {"id": id_, "kind": "image", "bytes": 9, "discovered": discovered, **flags}

    page = page_of(
        {**ROOT, "bytes": 1400},
        {"id": "f", "kind": "document", "bytes": 900, "discovered": at(5)},
        {"id": "s", "kind": "script", "bytes": 9, "discovered": at(6)},
        image("second", at(90)),
        image("first", at(80)),
        image("icon", at(10), small=True),
        image("below", at(20), lazy=True),
        image("early", at(30), preload=True),
        image("styled", at(40), in_style=True),
        image("scripted", {"by": "s", "at": "executed"}),
        image("framed", at(50, "f")),
        image("low", at(95), fetchpriority="low"),
    )
    positions = {
        id_: position for id_, position in page.images_before.items() if position < NOT_COUNTED
    }
    assert positions == {"first": 0, "second": 1, "low": 2, "framed": 0}

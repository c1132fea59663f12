"""What-if edits of a page, and a page as text."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.page import (
    FetchPriority,
    Kind,
    Layout,
    Page,
    TriggerEvent,
    with_first_layout,
    with_push,
)
from h3sim.page.model import parts_of
from h3sim.values.errors import InputError, PageError, UnknownNameError
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 2800}
SHEET = {
    "id": "s.css",
    "kind": "stylesheet",
    "bytes": 1400,
    "discovered": {"by": "/", "at": "offset", "offset_bytes": 100},
}
FONT = {
    "id": "f.woff2",
    "kind": "font",
    "bytes": 1400,
    "discovered": {"by": "s.css", "at": "complete", "delay_ms": 5},
}


@pytest.fixture
def page() -> Page:
    return page_of(ROOT, SHEET, FONT)


def test_a_preload_lets_a_font_come_with_the_document(page: Any) -> None:
    load = h3sim.simulate(page.with_("f.woff2", preload=True), scheme="fifo")
    requested = {row.id: row.requested_ms for row in load.timings}
    assert requested == {"/": 0, "s.css": 10, "f.woff2": 10}
    before = h3sim.simulate(page, scheme="fifo")
    assert before.timings[2].requested_ms == 35


def test_an_edit_leaves_the_page_as_it_was(page: Any) -> None:
    edited = page.with_("s.css", fetchpriority="high", async_=True, kind="other")
    assert page == page_of(ROOT, SHEET, FONT)
    assert edited.resources[1].fetchpriority is FetchPriority.HIGH
    assert edited.resources[1].kind is Kind.OTHER
    assert edited.resources[1].discovered == page.resources[1].discovered
    assert (edited.resources[0], edited.resources[2]) == (page.resources[0], page.resources[2])


def test_what_hangs_on_a_resource_goes_with_it(page: Any) -> None:
    assert [r.id for r in page.without("s.css").resources] == ["/"]
    assert [r.id for r in page.without("f.woff2").resources] == ["/", "s.css"]


def test_the_root_stays(page: Any) -> None:
    with pytest.raises(PageError, match="at least one resource"):
        page.without("/")


def test_an_unknown_resource_is_reported_with_those_spelt_alike(page: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"s\.css\? \(`page\.index` shows all\)"):
        page.with_("s.cs", async_=True)
    with pytest.raises(UnknownNameError):
        page.without("nothing")


def test_an_edit_speaks_the_language_of_page_files(page: Any) -> None:
    late = {"by": "/", "at": "request", "delay_ms": 2.5}
    edited = page.with_("s.css", bytes=70, defer=True, viewport=0.5, discovered=late)
    changed = {"bytes": 70, "defer": True, "viewport": 0.5, "discovered": late}
    assert edited.resources == page_of(ROOT, SHEET | changed, FONT).resources
    assert edited.with_("s.css", viewport=None).resources[1].viewport is None


def test_a_key_that_there_is_not_is_refused(page: Any) -> None:
    with pytest.raises(PageError, match=r"^s\.css: asink: unknown key; did you mean async\?"):
        page.with_("s.css", asink=True)
    with pytest.raises(PageError, match=r"xyzzy: unknown key \(docs/formats\.md"):
        page.with_("s.css", xyzzy=True)


def test_every_wrong_value_is_reported_with_its_key(page: Any) -> None:
    with pytest.raises(PageError) as caught:
        page.with_("s.css", bytes=-1, kind="picture", defer="yes", discovered={"at": "soon"})
    keys = [line.split(": ")[1] for line in caught.value.lines()]
    assert keys == ["kind", "bytes", "defer", "discovered.at"]


def test_a_parent_that_there_is_not_is_refused(page: Any) -> None:
    with pytest.raises(PageError, match="nowhere"):
        page.with_("s.css", discovered={"by": "nowhere", "at": "complete"})


def test_an_edited_page_has_a_name_of_its_own(page: Any) -> None:
    late, early = page.with_("f.woff2", defer=True), page.with_("f.woff2", preload=True)
    names = {page.name, late.name, early.name, page.without("f.woff2").name}
    assert len(names) == 4
    assert late.name == page.with_("f.woff2", defer=True).name
    # A page that was edited twice does not collect digests.
    assert late.with_("s.css", bytes=5).name.count("~") == 1
    assert page.with_("f.woff2", defer=True, name="late fonts").name == "late fonts"
    assert page.without("f.woff2", name="no fonts").name == "no fonts"
    assert page.with_("f.woff2", kind="font") == page


def test_a_digest_goes_by_what_is_loaded_and_not_by_the_name(page: Any) -> None:
    renamed = page.with_("f.woff2", kind="font", name="other")
    assert renamed.digest == page.digest
    assert page.with_("f.woff2", bytes=1).digest != page.digest


def test_an_edited_page_is_compared_with_what_it_was(page: Any) -> None:
    rows = h3sim.compare([page, page.with_("f.woff2", preload=True)], schemes="fifo").rows
    assert len({row.page for row in rows}) == 2


def test_a_page_as_text_reads_back_as_itself(page: Any, tmp_path: Path) -> None:
    text = page.with_("s.css", lazy=True).to_json()
    assert Page.from_json(text) == page.with_("s.css", lazy=True)
    file = tmp_path / "page.json"
    file.write_text(text, encoding="utf-8")
    assert Page.from_file(file).resources[1].is_lazy
    assert Page.from_dict({"format": "h3sim-page/1", "name": "p", "resources": [ROOT]}).root == 0
    with pytest.raises(PageError, match="is not JSON"):
        Page.from_json("{")


def test_a_notebook_shows_a_page_as_a_table(page: Any) -> None:
    shown = page._repr_html_()
    assert "<table>" in shown
    assert "f.woff2" in shown
    assert repr(page) == "<Page page: 3 resources, 6 kB>"
    assert page.resources[2].discovered.at is TriggerEvent.COMPLETE


@pytest.mark.parametrize(
    ("more", "is_waited_for"),
    [
        ({"kind": "stylesheet", "in_head": True}, True),
        ({"kind": "stylesheet"}, False),
        ({"kind": "script", "in_head": True}, True),
        ({"kind": "script"}, False),
        ({"kind": "script", "in_head": True, "async": True}, False),
        ({"kind": "script", "in_head": True, "defer": True}, False),
        ({"kind": "script", "in_head": True, "preload": True}, False),
        ({"kind": "script", "in_head": True, "async": True, "render_blocking": True}, True),
        ({"kind": "font", "in_head": True}, False),
    ],
)
def test_the_first_layout_waits_for_what_blocks_rendering(
    more: dict[str, Any], is_waited_for: bool
) -> None:
    """HTML §§ 4.2.7, 4.12.1."""
    found = {"by": "/", "at": "complete"}
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 10},
        {"id": "a", "bytes": 10, "discovered": found, **more},
        {"id": "b", "kind": "image", "bytes": 9, "above_the_fold": True, "discovered": found},
    )
    [change] = with_first_layout(page).resources[2].priority_changes
    assert change.when.by == ("a" if is_waited_for else "/")


def test_what_shall_be_changed_is_named_by_texts(page: Any) -> None:
    wrong: list[Any] = [[1], ["a.css", 1], 1]
    for names in wrong:
        with pytest.raises(InputError, match="ids, kinds or patterns of ids"):
            with_push(page, names)


def test_a_page_file_is_written_as_people_read_it() -> None:
    page = page_of(ROOT, {**SHEET, "id": "größe.css"})
    text = page.to_json()
    assert "größe.css" in text
    assert Page.from_json(text) == page


BOX = {"x": 0, "y": 0, "width": 100, "height": 50}
LAID_OUT: dict[str, Any] = {
    "format": "h3sim-page/1",
    "name": "laid out",
    "layout": {
        "width": 200,
        "height": 100,
        # Half of its box is beyond the right edge.
        "rectangles": {"a.png": [BOX, {**BOX, "x": 150}], "b.png": [BOX]},
    },
    "resources": [
        {"id": "/", "kind": "document", "bytes": 9},
        {"id": "a.png", "kind": "image", "bytes": 9, "discovered": {"by": "/", "at": "complete"}},
        {"id": "b.png", "kind": "image", "bytes": 9,
         "discovered": {"by": "a.png", "at": "complete"}},
    ],
}  # fmt: skip


def test_rectangles_state_the_shares_of_the_viewport() -> None:
    page = Page.from_dict(LAID_OUT)
    assert [each.viewport for each in page.resources] == [None, 0.375, 0.25]
    assert page.to_dict() == LAID_OUT
    assert Page.from_json(page.to_json()) == page
    # Equal loads have equal digests, however the share is stated.
    shares = [replace(each, viewport=each.viewport) for each in page.resources]
    assert replace(page, layout=None, resources=tuple(shares)).digest == page.digest


def test_a_share_that_contradicts_its_rectangles_and_unknown_ids_are_errors() -> None:
    document = copy.deepcopy(LAID_OUT)
    document["resources"][1]["viewport"] = 0.5
    document["resources"][2]["viewport"] = 0.25
    document["layout"]["rectangles"]["c.png"] = []
    with pytest.raises(PageError) as caught:
        Page.from_dict(document)
    assert [(each.key, each.message) for each in caught.value.problems] == [
        ("resources[1].viewport", "must be left out or 0.375, as its rectangles say, is 0.5"),
        ("layout.rectangles", "no resource has the id 'c.png'"),
    ]


def test_wrong_rectangles_are_listed_with_their_keys() -> None:
    document = LAID_OUT | {
        "layout": {"width": 0, "rectangles": {"a.png": [{**BOX, "width": -1}, {"x": 1e9}]}}
    }
    with pytest.raises(PageError) as caught:
        Page.from_dict(document)
    keys = [each.key for each in caught.value.problems]
    wrong = "layout.rectangles.a.png"
    missing = [f"{wrong}[1].{side}" for side in ("y", "width", "height")]
    assert sorted(keys) == sorted(
        ["layout.width", "layout.height", f"{wrong}[0].width", f"{wrong}[1].x", *missing]
    )


def test_edits_keep_the_rectangles_of_what_remains() -> None:
    page = Page.from_dict(LAID_OUT)
    assert page.layout is not None
    assert page.without("b.png").layout == Layout(
        width=200, height=100, rectangles={"a.png": page.layout.rectangles["a.png"]}
    )
    assert page.with_("a.png", bytes=10).layout == page.layout
    # A share that is set takes the place of its rectangles.
    edited = page.with_("a.png", viewport=0.5)
    assert edited.layout is not None
    assert [*edited.layout.rectangles] == ["b.png"]
    assert [each.viewport for each in edited.resources] == [None, 0.5, 0.25]
    assert page.with_("a.png", viewport=None).resources[1].viewport is None


def test_each_root_has_its_own_rectangles() -> None:
    page = Page.from_dict(LAID_OUT).with_("b.png", root=True)
    first, second = parts_of(page)
    assert first.page.layout is not None
    assert [*first.page.layout.rectangles] == ["a.png"]
    assert second.page.layout is not None
    assert [*second.page.layout.rectangles] == ["b.png"]

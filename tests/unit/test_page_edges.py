"""Pages at the edges of their rules: equal bounds, limits, and values that are left out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import h3sim
from h3sim.metrics.visual import Element
from h3sim.page import Layout, RecordedPriority, Rectangle, synthetic, transforms
from h3sim.page.model import _MAX_GLOB_CHARS, ids_that_match
from h3sim.page.recording import RecordedGroup, RecordedLoad, clipped
from h3sim.page.resource import Group, ImageFormat, _read_jpeg_format
from h3sim.page.validation import edited_resource
from h3sim.schemes.model import _eps_parameters
from h3sim.schemes.rules import Placeholder
from h3sim.transport import IndependentPackets, LinkProfile
from h3sim.values.errors import InputError, NetworkError, PageError, SchemeError
from tests.helpers import page_of

ROOT = {"id": "/", "kind": "document", "bytes": 1000}


def named(id_: str, offset_bytes: int = 100, **entry: Any) -> dict[str, Any]:
    found = {"by": "/", "at": "offset", "offset_bytes": offset_bytes}
    kind = {"css": "stylesheet", "js": "script"}.get(id_.rpartition(".")[2], "image")
    return {"id": id_, "kind": kind, "bytes": 10, "discovered": found, **entry}


def below(id_: str, by: str, at: str = "complete", **entry: Any) -> dict[str, Any]:
    return {"id": id_, "kind": "image", "bytes": 10, "discovered": {"by": by, "at": at}, **entry}


@pytest.mark.parametrize("seed", range(8))
def test_only_what_the_document_names_comes_after_its_first_image(seed: int) -> None:
    page = synthetic(seed=seed)
    root = page.resources[page.root].id
    late = [each for each in page.resources if each.after_first_image]
    assert all(each.discovered is not None and each.discovered.by == root for each in late)


def test_a_layout_without_a_viewport_is_refused() -> None:
    with pytest.raises(PageError, match="width"):
        Layout(width=0, height=100, rectangles={})


def test_overlapping_rectangles_cover_no_more_than_the_viewport() -> None:
    whole = Rectangle(x=0, y=0, width=100, height=100)
    assert Layout(width=100, height=100, rectangles={"a": (whole, whole)}).share("a") == 1


@pytest.mark.parametrize(
    "box", [(0, 0, 0, 10), (0, 0, 10, 0), (100, 0, 10, 10), (0, 100, 10, 10), (-5, 10, 5, 10)]
)
def test_what_has_no_area_in_the_viewport_is_cut_off(box: tuple[int, int, int, int]) -> None:
    assert clipped((100, 100), *box) is None


def test_a_preload_is_at_the_beginning_of_the_document() -> None:
    preloaded = page_of(ROOT, named("a.css")).with_("a.css", preload=True).resources[1]
    assert preloaded.discovered is not None
    assert preloaded.discovered.offset_bytes == 0


def test_500_patterns_are_read() -> None:
    page = page_of(ROOT, named("a.css"))
    patterns = [(f"names[{n}]", "*.css") for n in range(500)]
    assert list(ids_that_match(page, patterns)) == ["a.css"]
    with pytest.raises(InputError, match="more than 500 patterns"):
        ids_that_match(page, [*patterns, ("names[500]", "*.css")])


def test_a_page_is_made_of_resources_only() -> None:
    page = page_of(ROOT, named("a.css"))
    with pytest.raises(PageError):
        page.with_resources([page.resources[0], "a.css"])  # type: ignore[list-item]


def test_inlining_leaves_what_has_no_offset_as_it_is() -> None:
    page = page_of(ROOT, named("a.css"), below("b.png", "/"))
    kept = transforms.with_inlined(page, "a.css").resources[1]
    assert (kept.id, kept.discovered) == ("b.png", page.resources[2].discovered)


def test_early_hints_keep_the_offset_of_an_element_in_the_document_only() -> None:
    font = named("f.woff", kind="font")
    font["discovered"] = {"by": "a.css", "at": "offset", "offset_bytes": 5}
    known = below("c.js", "b.js", kind="script", reference_offset_bytes=40)
    page = page_of(ROOT, named("a.css"), font, named("b.js"), known)
    hinted = transforms.with_early_hints(page, ["a.css", "f.woff", "c.js"])
    offsets = {each.id: each.reference_offset_bytes for each in hinted.resources}
    assert offsets["a.css"] == 100
    assert offsets["f.woff"] is None
    assert offsets["c.js"] == 40


def test_an_element_is_not_beyond_the_end_of_its_document() -> None:
    def page(offset_bytes: int) -> Any:
        return page_of(ROOT, named("a.css", preload=True, reference_offset_bytes=offset_bytes))

    assert page(1000).resources[1].reference_offset_bytes == 1000
    with pytest.raises(PageError, match="1001 is beyond the end"):
        page(1001)


def test_a_short_digest_has_eight_characters() -> None:
    assert len(page_of(ROOT).short_digest) == 8


@pytest.mark.parametrize(
    ("markers", "name"),
    [
        ((0xC0,), "jpeg"),
        ((0xC9,), "jpeg"),
        ((0xC2,), "progressive-jpeg"),
        ((0xE0, 0xC4, 0xC2), "progressive-jpeg"),
        ((0xC8, 0xCC, 0xC0), "jpeg"),
        ((0xC8, 0xCA), "progressive-jpeg"),
    ],
)
def test_the_first_frame_of_a_jpeg_shows_its_kind(markers: tuple[int, ...], name: str) -> None:
    segments = b"".join(bytes((0xFF, marker, 0, 4, 1, 2)) for marker in markers)
    found = _read_jpeg_format(b"\xff\xd8" + segments)
    assert found is not None
    assert found.value == name


def test_steps_that_show_nothing_new_are_left_out() -> None:
    element = Element(0.5, False, 90, ((50, Fraction(1, 2)), (60, Fraction(1, 2))))
    assert [at_ns for at_ns, _ in element.steps(0)] == [50, 90]


def test_a_recorded_incremental_flag_alone_has_the_default_urgency() -> None:
    kind = h3sim.page.Kind.IMAGE
    assert _eps_parameters(RecordedPriority(incremental=True), kind) == (3, True)
    usual, other = (RecordedPriority(group=Group.LEADERS, weight=w) for w in (None, 7))
    assert _eps_parameters(other, kind) == _eps_parameters(usual, kind)


def test_values_outside_their_range_are_refused() -> None:
    with pytest.raises(SchemeError, match="weight"):
        Placeholder(name="p", weight=257)
    assert Placeholder(name="p", strict=0).strict == 0
    with pytest.raises(NetworkError, match="loss"):
        IndependentPackets(loss=1.0)
    with pytest.raises(NetworkError, match="loss"):
        LinkProfile(loss=1.0, loss_burst=2)
    with pytest.raises(InputError):
        edited_resource(page_of(ROOT).resources[0], {"bytes": -1})


def test_a_rectangle_and_a_recorded_group_are_checked() -> None:
    with pytest.raises(PageError, match="width"):
        Rectangle(x=0, y=0, width=-1, height=1)
    with pytest.raises(PageError, match="weight"):
        RecordedGroup(name="leaders", weight=0)


def test_the_longest_pattern_is_read_and_a_longer_one_leaves_the_others() -> None:
    page = page_of(ROOT, named("a.css"))
    longest = "*" * (_MAX_GLOB_CHARS - 5) + "a.css"
    assert list(ids_that_match(page, [("names[0]", longest)])) == ["a.css"]
    with pytest.raises(InputError) as caught:
        ids_that_match(page, [("names[0]", "*" + longest), ("names[1]", "nothing")])
    assert [problem.key for problem in caught.value.problems] == ["names[0]", "names[1]"]


def test_a_resource_is_awaited_by_the_load_event_if_it_was_complete_by_then() -> None:
    page = page_of(ROOT, named("a.css"), named("b.css"), named("c.css"))
    completed = {"/": 5, "a.css": 7, "b.css": 8}
    recorded = RecordedLoad(load_event_ns=7, completed_ns=completed)
    assert replace(page, recorded_load=recorded).awaited_by_load_event == ("/", "a.css")


@pytest.mark.parametrize(
    ("head", "format_"),
    [
        (b"RIFF\x10\0\0\0WEBP", ImageFormat.WEBP),
        (b"RIFF\x10\0\0\0WAVE", None),
        (b"XIFF\x10\0\0\0WEBP", None),
        (b"\xff\xd8\xff\xcf\0\x04", ImageFormat.JPEG),
        (b"\xff\xd8\xff\xcc\0\x02\xff\xc2\0\x04", ImageFormat.PROGRESSIVE_JPEG),
        (b"\xff\xd8\x00\xc2\0\x04\0\0", None),
        (b"\xff\xd8\xff\xd0\0\x02\xff\xc0\0\x04", ImageFormat.JPEG),
    ],
)
def test_the_first_bytes_of_an_image_show_its_format(
    head: bytes, format_: ImageFormat | None
) -> None:
    assert ImageFormat.of_bytes(head) is format_


def test_inlining_moves_what_comes_behind_and_nothing_else() -> None:
    page = page_of(ROOT, named("a.css", 100), named("b.png", 300), below("c.png", "/", "request"))
    kept = transforms.with_inlined(page, "a.css").resources
    offsets = [None if r.discovered is None else r.discovered.offset_bytes for r in kept[1:]]
    assert offsets == [310, None]


def test_what_a_network_was_is_kept_only_if_its_round_trip_is_known() -> None:
    other = page_of({"id": "/two", "kind": "document", "bytes": 1000}, name="two")
    for rtt_ns, expected in ((None, None), (7_000_000, 7_000_000)):
        recorded = RecordedLoad(rtt_ns=rtt_ns, rate_bps=None if rtt_ns is None else 5_000_000)
        page = replace(page_of(ROOT), recorded_load=recorded)
        both = transforms.merge_pages(page, other).recorded_load
        assert (None if both is None else both.rtt_ns) == expected


def test_an_element_whose_chain_is_broken_is_not_measured_against_a_root() -> None:
    """One mistake gives one message: the broken chain, not what follows from it."""
    lost = below("a.js", "nowhere", kind="script", reference_offset_bytes=5_000)
    with pytest.raises(PageError) as caught:
        page_of(ROOT, lost)
    assert "beyond the end" not in str(caught.value)
    round_ = below("a.js", "b.js", kind="script", reference_offset_bytes=5_000)
    with pytest.raises(PageError) as caught:
        page_of(ROOT, round_, below("b.js", "a.js", kind="script"))
    assert "beyond the end" not in str(caught.value)


def test_resources_of_several_documents_belong_to_their_own() -> None:
    """Timers may name each other in a cycle; then the first document stands in."""
    second = {"id": "/two", "kind": "document", "bytes": 500, "root": True}
    page = page_of(
        ROOT,
        {**second, "discovered": {"at": "time", "delay_ms": 5}},
        below("a.png", "/two"),
        below("b.png", "a.png"),
        {**below("c.png", "d.png", "time"), "discovered": {"by": "d.png", "at": "time"}},
        {**below("d.png", "c.png", "time"), "discovered": {"by": "c.png", "at": "time"}},
        below("e.png", "d.png"),
    )
    assert page.root_of == (0, 1, 1, 1, 0, 0, 0)

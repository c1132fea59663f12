"""Rules of pages, one by one: what is a page, what blocks its first layout, what variants keep."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.page import FetchPriority, Kind, Page, synthetic, transforms, with_first_layout
from h3sim.page.categories import origin_of
from h3sim.page.hosts import Host, host_names
from h3sim.page.recording import RecordedGroup, tree_problems
from h3sim.page.transforms import merge_pages
from h3sim.values.errors import InputError, PageError
from h3sim.values.units import ms
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = {"id": "/", "kind": "document", "bytes": 2800}
ONE = page_of(ROOT)


def named(id_: str, kind: str, **more: Any) -> dict[str, Any]:
    found = {"by": "/", "at": "offset", "offset_bytes": 100}
    return {"id": id_, "kind": kind, "bytes": 1400, "discovered": found, **more}


@pytest.mark.parametrize(
    "make",
    [
        with_first_layout,
        transforms.with_staged_hints,
        transforms.with_inlined_styles,
        lambda page: transforms.selected(page, "image"),
        lambda page: merge_pages(page, ONE),
        lambda page: merge_pages(ONE, page),
    ],
)
@pytest.mark.parametrize("has", [{}, {"resources": ()}, {"root": 0}])
def test_what_is_no_page_is_refused(make: Callable[[Any], object], has: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"(page|other): must be a page"):
        make(SimpleNamespace(**has))


@pytest.mark.parametrize("names", [5, None, [3, "/"], ["/", 3], [None]])
def test_names_are_text_or_texts(names: Any) -> None:
    with pytest.raises(InputError, match="names: must be ids, kinds or patterns of ids"):
        transforms.selected(ONE, names)


# The first layout


@pytest.mark.parametrize(
    ("blocks", "marks"),
    [
        (True, {"kind": "stylesheet", "in_head": True}),
        (False, {"kind": "stylesheet"}),
        (True, {"kind": "stylesheet", "render_blocking": True}),
        (True, {"kind": "script", "in_head": True}),
        (False, {"kind": "script"}),
        (False, {"kind": "script", "in_head": True, "async": True}),
        (False, {"kind": "script", "in_head": True, "defer": True}),
        (False, {"kind": "script", "in_head": True, "preload": True}),
        (True, {"kind": "script", "async": True, "render_blocking": True}),
        (False, {"kind": "image", "in_head": True}),
    ],
)
def test_the_first_layout_waits_for_what_blocks_rendering(
    blocks: bool, marks: dict[str, Any]
) -> None:
    """HTML § 4.2.7, § 4.12.1: stylesheets of the head, and scripts there that stop the parser."""
    page = page_of(
        ROOT,
        {**named("x", "other"), **marks},
        named("seen", "image", above_the_fold=True),
        named("below", "image"),
        named("style", "font", above_the_fold=True),
    )
    shown = {
        r.id: [c.when.by for c in r.priority_changes] for r in with_first_layout(page).resources
    }
    assert shown == {"/": [], "x": [], "seen": ["x" if blocks else "/"], "below": [], "style": []}


def test_a_root_that_is_seen_is_shown_by_nothing() -> None:
    page = page_of({**ROOT, "kind": "image", "above_the_fold": True})
    assert with_first_layout(page).resources == page.resources


# Variants


def test_a_push_takes_no_request_and_goes_with_the_document() -> None:
    page = transforms.with_push(page_of(ROOT, named("a", "image"), named("b", "image")), "a")
    pushed, other = page.resources[1:]
    assert (pushed.request_bytes, pushed.discovered.at.value, pushed.discovered.by) == (
        *(1, "request", "/"),
    )
    assert other == page_of(ROOT, named("a", "image"), named("b", "image")).resources[2]


def test_hints_stand_behind_their_root_under_a_name_that_is_free() -> None:
    page = page_of(named("a", "image"), ROOT, named("(103)", "image"))
    hinted = transforms.with_early_hints(page, "a")
    twice = transforms.with_early_hints(hinted, "a")
    assert [r.id for r in twice.resources] == ["a", "/", "(103) 3", "(103) 2", "(103)"]
    hints = hinted.resources[2]
    assert (hints.kind, hints.size_bytes, hints.request_bytes) == (Kind.OTHER, 0, 1)
    assert hints.fetchpriority is FetchPriority.HIGH
    assert hints.header_bytes == 28 + len("a")


@pytest.mark.parametrize(
    ("kind", "marks", "stage"),
    [
        ("stylesheet", {}, 0),
        ("stylesheet", {"async": True}, 0),
        ("script", {}, 0),
        ("script", {"async": True}, 1),
        ("script", {"defer": True}, 1),
        ("font", {}, 1),
        ("document", {}, 1),
        ("fetch", {}, 1),
        ("image", {}, 2),
        ("media", {}, 2),
        ("other", {}, 2),
    ],
)
def test_what_must_be_processed_first_is_hinted_at_first(
    kind: str, marks: dict[str, Any], stage: int
) -> None:
    """Vroom, § 4: what stops the parser, then all else that is processed, then the rest."""
    fixed = [named("0", "stylesheet"), named("1", "font"), named("2", "image")]
    page = transforms.with_staged_hints(page_of(ROOT, *fixed, named("x", kind, **marks)))
    x = page.resources[-1]
    assert x.discovered is not None
    assert (x.discovered.by, x.preload) == (("/", "0", "1")[stage], True)


def test_half_of_the_styles_of_the_head_goes_into_the_document() -> None:
    page = page_of(
        ROOT,
        named("head", "stylesheet", in_head=True, bytes=1001),
        named("body", "stylesheet"),
        named("late", "image"),
        named("run", "script"),
    )
    inlined = transforms.with_inlined_styles(page, share=0.5)
    root, body, late, run = inlined.resources
    assert (root.id, root.size_bytes, body.size_bytes) == ("/", 2800 + 500, 1400)
    assert [each.discovered.offset_bytes for each in (body, late)] == [600, 600]
    assert (run.discovered.at.value, run.is_defer, body.is_defer) == ("complete", True, False)
    complete = transforms.with_inlined_styles(page, share=1)
    assert complete.resources[0].size_bytes == 2800 + 1001


def test_what_a_cached_copy_would_have_requested_by_the_clock_still_comes_by_it() -> None:
    by_clock = {"by": "a", "at": "time", "delay_ms": 7}
    page = page_of(
        ROOT,
        named("a", "script", execute_ms=5, parse_ms=2),
        named("b", "image", discovered=by_clock),
    )
    (_, b) = transforms.with_cached(page, "a").resources
    assert (b.discovered.by, b.discovered.delay_ns) == (None, 7_000_000)


# What is known of pages and hosts


@pytest.mark.parametrize(
    ("certificate", "server", "shared"),
    [("", "", None), ("c", "", None), ("", "s", None), ("c", "s", ("c", "s"))],
)
def test_hosts_share_a_connection_where_both_are_known(
    certificate: str, server: str, shared: tuple[str, str] | None
) -> None:
    """RFC 9113 § 9.1.1: the certificate must be valid for both, and the address be one."""
    assert Host(name="h", certificate=certificate, server=server).shared == shared


@pytest.mark.parametrize(
    ("root", "others", "names"),
    [
        ("", ["", ""], ("(page)",)),
        ("www", ["", "cdn", "www"], ("www", "cdn")),
        ("", ["cdn", ""], ("(page)", "cdn")),
    ],
)
def test_a_resource_without_a_host_has_that_of_the_root(
    root: str, others: list[str], names: tuple[str, ...]
) -> None:
    images = [named(str(n), "image", host=host) for n, host in enumerate(others)]
    assert host_names(page_of({**ROOT, "host": root}, *images).resources, 0) == names


@pytest.mark.parametrize("key", ["rtt_ns", "dns_ns"])
def test_a_host_is_ten_minutes_away_at_most(key: str) -> None:
    most_ns = ms(600_000)
    far: dict[str, Any] = {key: most_ns}
    assert getattr(Host(name="h", **far), key) == most_ns
    farther: dict[str, Any] = {key: most_ns + ms(1)}
    with pytest.raises(PageError, match=r"600,?000"):
        Host(name="h", **farther)


@pytest.mark.parametrize(
    ("marks", "knows"),
    [({}, False), ({"above_the_fold": True}, True), ({"viewport": 0.0}, True)],
)
def test_a_page_knows_its_fold_if_it_has_a_mark_or_a_viewport_share(
    marks: dict[str, Any], knows: bool
) -> None:
    assert page_of(ROOT, named("a", "image", **marks)).knows_above_the_fold is knows


@pytest.mark.parametrize(
    ("marks", "why"),
    [
        ({"above_the_fold": True}, ""),
        ({}, "unknown: the page has no labels"),
        ({"viewport": 0.0}, "no resource of the page is labelled"),
        ({"above_the_fold": True, "bytes": 0}, "the labelled resources have no bytes"),
    ],
)
def test_a_page_states_why_nothing_of_it_is_visible(marks: dict[str, Any], why: str) -> None:
    assert page_of(ROOT, named("a", "image", **marks)).nothing_visible_reason == why


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["g", "h"], []),
        (["g", "g"], ["recorded_groups[1].name"]),
        (["/"], ["recorded_groups[0].name"]),
    ],
)
def test_a_group_of_a_recording_has_a_name_of_its_own(names: list[str], keys: list[str]) -> None:
    groups = [RecordedGroup(name=name) for name in names]
    assert [problem.key for problem in tree_problems(ONE.resources, groups)] == keys


@pytest.mark.parametrize(
    ("provenance", "origin"),
    [
        ({}, "written down"),
        ({"source": "Marx 2019"}, "written down"),
        ({"source": "npm package x 1.0"}, "recorded"),
        ({"source": "debian package x"}, "recorded"),
        ({"source": "a HAR", "tool": "h3sim record"}, "recorded"),
        ({"source": "made up by hand"}, "made up"),
    ],
)
def test_provenance_states_where_a_page_is_from(provenance: dict[str, str], origin: str) -> None:
    assert origin_of(replace(ONE, provenance=provenance)) == origin


def test_a_preload_of_what_is_navigated_to_or_found_elsewhere_moves_nothing() -> None:
    page = page_of(ROOT, named("a", "image"))
    assert page.with_("/", preload=True).resources[0].discovered is None
    assert page.with_("a", preload=False).resources[1] == page.resources[1]
    late = {"by": "/", "at": "complete"}
    assert page.with_("a", preload=True, discovered=late).resources[1].discovered.at.value == (
        "complete"
    )


# Made-up pages


def shares(pages: list[Page], is_so: Callable[[Any], bool], among: Callable[[Any], bool]) -> float:
    every = [resource for page in pages for resource in page.resources[1:] if among(resource)]
    return sum(map(is_so, every)) / len(every)


def test_made_up_scripts_and_images_have_the_stated_shares() -> None:
    """A quarter async, a tenth deferred, two fifths in the head; 1.1 ms for a kB."""
    pages = [synthetic(seed=seed, n_resources=200) for seed in range(12)]

    def is_named_script(resource: Any) -> bool:
        return resource.kind is Kind.SCRIPT and resource.discovered.offset_bytes is not None

    assert shares(pages, lambda r: r.is_async, is_named_script) == pytest.approx(0.25, abs=0.06)
    assert shares(pages, lambda r: r.is_defer, is_named_script) == pytest.approx(0.10, abs=0.04)
    assert shares(pages, lambda r: r.in_head, is_named_script) == pytest.approx(0.4, abs=0.07)
    scripts = [r for page in pages for r in page.resources if r.kind is Kind.SCRIPT]
    assert all(r.execute_ns == pytest.approx(1100 * r.size_bytes, abs=1) for r in scripts)
    assert all(r.execute_ns == 0 for page in pages for r in page.resources if r not in scripts)

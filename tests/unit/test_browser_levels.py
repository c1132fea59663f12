"""Levels of requests in Chrome and Safari, what each browser holds back, and what is not seen."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.browser import BrowserModel, ScheduledPriorityChange, TightMode, make_browser
from h3sim.browser.above_the_fold import (
    infer_above_the_fold,
    mark_critical_path,
    needed_for_first_paint,
)
from h3sim.browser.document import DocumentParser
from h3sim.browser.model import BrowserMode, PaintMode
from h3sim.browser.requests import HeldBack, LoadProgress, PerHost, Requests, ranks_of, rules_of
from h3sim.browser.unseen import is_never_seen
from h3sim.page import Kind, Level, Page, Resource
from tests.helpers import page_of

LEVELS = list(Level)
KINDS = {"css": "stylesheet", "js": "script", "woff": "font", "json": "fetch", "mp4": "media"}
KINDS |= {"html": "document", "bin": "other"}


ASYNC: dict[str, Any] = {"async": True}
"""The key is a word of Python's."""


def named(id_: str, at_bytes: int = 50, by: str = "/", **more: Any) -> dict[str, Any]:
    """Return what *by* names at an offset; the kind follows from the name."""
    kind = KINDS.get(id_.rpartition(".")[2], "image")
    found = {"by": by, "at": "offset", "offset_bytes": at_bytes}
    return {"id": id_, "kind": kind, "bytes": 500, "discovered": found, **more}


def page(*resources: dict[str, Any], **root: Any) -> Page:
    return page_of({"id": "/", "kind": "document", "bytes": 1000, **root}, *resources)


def level(resource: dict[str, Any], mode: TightMode = TightMode.CHROME_95) -> str:
    """Return the level of a resource that the document names."""
    return LEVELS[ranks_of(page(resource), mode)[1]].value


@pytest.mark.parametrize(
    ("id_", "chrome", "high", "low", "safari", "safari_high", "safari_low"),
    [
        ("a.html", "VeryHigh", "VeryHigh", "VeryHigh", "VeryHigh", "VeryHigh", "High"),
        ("a.css", "VeryHigh", "VeryHigh", "High", "High", "VeryHigh", "Medium"),
        ("a.woff", "VeryHigh", "VeryHigh", "High", "Medium", "High", "Low"),
        ("a.js", "High", "High", "Low", "High", "VeryHigh", "Medium"),
        ("a.json", "High", "High", "Low", "Medium", "High", "Low"),
        ("a.png", "Low", "High", "Low", "Low", "Medium", "VeryLow"),
        ("a.mp4", "Low", "Low", "Low", "Medium", "High", "Low"),
        ("a.bin", "Low", "Low", "Low", "VeryLow", "Low", "VeryLow"),
    ],
)
def test_levels_by_kind_and_hint(
    id_: str,
    chrome: str,
    high: str,
    low: str,
    safari: str,
    safari_high: str,
    safari_low: str,
) -> None:
    for mode, expected in (
        (TightMode.CHROME_95, (chrome, high, low)),
        (TightMode.SAFARI, (safari, safari_high, safari_low)),
    ):
        hints: tuple[dict[str, Any], ...] = (
            {},
            {"fetchpriority": "high"},
            {"fetchpriority": "low"},
        )
        assert tuple(level(named(id_, **hint), mode) for hint in hints) == expected


@pytest.mark.parametrize(
    ("id_", "marks", "expected"),
    [
        ("a.css", {"other_media": True}, "VeryLow"),
        ("a.css", {"other_media": True, "fetchpriority": "high"}, "VeryLow"),
        ("a.css", {"after_first_image": True}, "Medium"),
        ("a.css", {"after_first_image": True, "render_blocking": True}, "VeryHigh"),
        ("a.js", {"async": True}, "Low"),
        ("a.js", {"defer": True}, "Low"),
        ("a.js", {"async": True, "fetchpriority": "high"}, "High"),
        ("a.js", {"after_first_image": True}, "Medium"),
        ("a.js", {"after_first_image": True, "render_blocking": True}, "High"),
        ("a.js", {"module": True, "defer": True}, "High"),
        ("a.js", {"preload": True}, "High"),
        ("a.woff", {"preload": True}, "High"),
        ("a.png", {"async": True, "preload": True, "after_first_image": True}, "Low"),
        ("a.json", {"defer": True, "after_first_image": True}, "High"),
    ],
)
def test_marks_that_change_the_level_in_chrome(
    id_: str, marks: dict[str, Any], expected: str
) -> None:
    assert level(named(id_, **marks)) == expected


def test_the_first_five_images_are_medium_since_2023() -> None:
    images = page(*(named(f"{n}.png", n) for n in range(7)))
    for mode, n_medium in (
        (TightMode.CHROME_118, 5),
        (TightMode.CHROME_95, 0),
        (TightMode.SAFARI, 0),
    ):
        medium = [LEVELS[rank] is Level.MEDIUM for rank in ranks_of(images, mode)[1:]]
        assert medium == [n < n_medium for n in range(7)]


def progress(*in_flight: int, head: bool = False, loaded: bool = False) -> LoadProgress:
    found = LoadProgress()
    found.in_flight = dict.fromkeys(in_flight)
    found.has_passed_head, found.is_loaded = head, loaded
    return found


class TestHoldingBack:
    PAGE = page(
        named("1.png"),
        named("2.css"),
        named("3.js"),
        named("4.json"),
        named("5.png", lazy=True),
        named("6.html"),
        named("7.png", by="6.html"),
        named("8.js", **ASYNC),
        named("9.png", host="cdn"),
        named("10.js", host="cdn"),
        named("11.png", host="www"),
        named("12.bin", host="cdn"),
        host="www",
    )

    def held(self, mode: TightMode, state: LoadProgress) -> list[int]:
        """Return the resources that would wait."""
        rule = HeldBack(self.PAGE, mode)
        return [n for n in range(len(self.PAGE.resources)) if rule.holds(n, state)]

    def test_chrome_holds_what_is_unimportant_while_two_requests_are_open(self) -> None:
        mode = TightMode.CHROME_95
        assert self.held(mode, progress(2)) == []
        assert self.held(mode, progress(2, 3)) == [1, 8, 9, 11, 12]
        # Neither documents, fetches and lazy images count, nor what is in a frame.
        assert self.held(mode, progress(0, 2, 4, 5, 6, 7)) == []
        assert self.held(mode, progress(2, 3, head=True)) == []
        assert self.held(mode, progress(2, 3, loaded=True)) == [1, 8, 9, 11, 12]

    def test_chrome_of_today_lets_two_of_medium_importance_go(self) -> None:
        mode = TightMode.CHROME_118
        # The images of the page are among the first five; its script and the rest wait.
        assert self.held(mode, progress(2, 3)) == [8, 12]
        assert self.held(mode, progress(2, 3, 1)) == [8, 12]
        assert self.held(mode, progress(2, 3, 1, 9)) == [1, 8, 9, 11, 12]
        assert self.held(mode, progress(1, 9)) == [1, 8, 9, 11, 12]

    def test_safari_holds_until_the_load_event_and_by_host(self) -> None:
        mode = TightMode.SAFARI
        assert self.held(mode, progress(2, 3)) == [1, 11]
        assert self.held(mode, progress(2, 3, head=True)) == [1, 11]
        assert self.held(mode, progress(9, 10)) == [9, 12]
        assert self.held(mode, progress(2, 10)) == []
        assert self.held(mode, progress(2, 3, loaded=True)) == []

    def test_what_hints_request_early_is_never_held(self) -> None:
        hints = {"id": "(103)", "kind": "other", "bytes": 0}
        early = {"by": "(103)", "at": "complete"}
        found = {"by": "/", "at": "request"}
        of_hints = page(
            {**hints, "discovered": found},
            named("1.png", preload=True, discovered=early),
            named("2.png", discovered=early),
            named("3.png", preload=True),
            named("4.css"),
            named("5.js"),
            {**named("6.png", preload=True), "discovered": {"at": "time"}},
        )
        rule = HeldBack(of_hints, TightMode.CHROME_95)
        open_ = progress(5, 6)
        assert [n for n in range(8) if rule.holds(n, open_)] == [1, 3, 4, 7]

    def test_a_host_has_so_many_requests(self) -> None:
        rule = PerHost(self.PAGE, 2)
        open_ = progress(1, 2, 9)
        held = [n for n in range(len(self.PAGE.resources)) if rule.holds(n, open_)]
        assert held == [n for n in range(13) if n not in (9, 10, 12)]

    def test_rules_are_those_of_the_model(self) -> None:
        off, one, both = (
            [type(rule) for rule in rules_of(self.PAGE, model, mode)]
            for model, mode in (
                (BrowserModel(), TightMode.OFF),
                (BrowserModel(), TightMode.SAFARI),
                (BrowserModel(max_concurrent_requests_per_host=1), TightMode.CHROME_95),
            )
        )
        assert (off, one, both) == ([], [HeldBack], [HeldBack, PerHost])


class TestRequests:
    def test_delayed_ones_leave_in_the_order_of_their_times(self) -> None:
        requests = Requests(None, awaited=[2, 3])
        for resource, delay_ns in ((0, 30), (1, 10), (2, 30), (3, 20)):
            requests.ask(resource, 5, delay_ns, after=None)
        requests.ask(1, 6, 0, after=None)
        assert (requests.next_at_ns, requests.n_open) == (15, 2)
        requests.ripen(14)
        assert requests.due(14) == []
        requests.ripen(25)
        assert [each.resource for each in requests.due(25)] == [1, 3]
        assert (requests.next_at_ns, requests.n_open) == (35, 3)
        requests.ripen(35)
        assert [tuple(each) for each in requests.due(35)] == [(35, 0), (35, 2)]
        assert requests.next_at_ns is None
        for resource in range(4):
            requests.on_finished(resource)
        assert requests.n_open == 0

    def test_what_is_held_stays_in_front_and_goes_by_rank(self) -> None:
        class Holding:
            held: tuple[int, ...] = (0, 1, 2)

            def holds(self, resource: int, progress: LoadProgress) -> bool:
                del progress
                return resource in self.held

        rule = Holding()
        requests = Requests(2, [rule], ranks=[3, 1, 2, 9, 0])
        for resource in (0, 1, 2, 3, 4):
            requests.ask(resource, 0, 0, after=resource + 10)
        assert [each.resource for each in requests.due(0)] == [4, 3]
        assert requests.after == {n: n + 10 for n in range(5)}
        requests.on_finished(3)
        rule.held = (2,)
        assert [each.resource for each in requests.due(1)] == [1]
        requests.on_finished(4)
        requests.on_finished(1)
        assert [each.resource for each in requests.due(2)] == [0]
        rule.held = ()
        assert [each.resource for each in requests.due(3)] == [2]


class TestUnseen:
    @pytest.mark.parametrize(
        "id_",
        [
            *("favicon.ico", "a/b.ICO", "apple-touch-icon-precomposed.png", "favicon.ico (2)"),
            *(
                "x/__utm.gif",
                "pixel",
                "pixel.png",
                "1x1-a.gif",
                "cookie-sync",
                "idmatch",
                "rum.gif",
            ),
            *("cdn-cgi/challenge-platform/h/b", "js/recaptcha/api.js", "distil_r", "a_Incapsula_b"),
        ],
    )
    def test_icons_beacons_and_challenges(self, id_: str) -> None:
        assert is_never_seen(Resource(id=id_, kind=Kind.SCRIPT, size_bytes=2000))

    @pytest.mark.parametrize(
        "id_", ["pixels/a.png", "pixel.jpg", "icon.png", "collection", "a.ico.js"]
    )
    def test_other_names(self, id_: str) -> None:
        assert not is_never_seen(Resource(id=id_, kind=Kind.IMAGE, size_bytes=2000))

    def test_images_below_100_bytes(self) -> None:
        for kind, n_bytes, expected in (
            (Kind.IMAGE, 99, True),
            (Kind.IMAGE, 100, False),
            (Kind.SCRIPT, 99, False),
        ):
            resource = Resource(id="a", kind=kind, size_bytes=n_bytes)
            assert is_never_seen(resource) is expected

    @pytest.mark.parametrize(
        ("host", "expected"),
        [
            ("doubleclick.net", True),
            ("AD.DoubleClick.net:443", True),
            ("notdoubleclick.net", False),
            ("doubleclick.net.example", False),
            ("", False),
        ],
    )
    def test_hosts_of_trackers(self, host: str, expected: bool) -> None:
        resource = Resource(id="a", kind=Kind.SCRIPT, size_bytes=900, host=host)
        assert is_never_seen(resource) is expected


def seen(of: Page) -> list[str]:
    return [r.id for r in infer_above_the_fold(of).resources if r.above_the_fold]


class TestAboveTheFold:
    def test_the_first_paint_needs_the_head(self) -> None:
        of = page(
            named("a.css", 100, in_head=True),
            named("import.css", 5, by="a.css"),
            named("deep.css", 5, by="import.css"),
            named("a.js", 200, in_head=True),
            named("defer.js", 150, in_head=True, defer=True),
            named("async.js", 160, in_head=True, **ASYNC),
            # Passed with the head: one byte behind its last reference.
            named("next.css", 201),
            named("body.css", 202),
            named("body.js", 300),
        )
        ids = [of.resources[n].id for n in needed_for_first_paint(of)]
        assert ids == ["/", "a.css", "import.css", "deep.css", "a.js", "next.css"]

    def test_a_tracker_of_the_head_is_not_seen_and_a_document_is_whatever_its_name(self) -> None:
        of = page_of(
            {"id": "pixel", "kind": "document", "bytes": 1000},
            named("a.js", 10, "pixel", in_head=True, host="doubleclick.net"),
            named("b.js", 20, "pixel", render_blocking=True),
            named("c.js", 900, "pixel", render_blocking=True, host="doubleclick.net"),
        )
        assert seen(of) == ["pixel", "b.js"]

    def test_fonts_of_what_is_needed(self) -> None:
        of = page(
            named("a.css", 10, in_head=True),
            named("b.css", 900),
            named("a.woff", 1, by="a.css"),
            named("b.woff", 1, by="b.css"),
            named("c.woff", 800, preload=True),
            named("d.png", 1, by="b.css"),
        )
        assert seen(of) == ["/", "a.css", "a.woff", "c.woff"]

    def test_five_images_of_the_document_and_of_styles_that_are_likely_to_be_seen(self) -> None:
        of = page(
            named("a.css", 10, in_head=True),
            named("style.png", 1, by="a.css"),
            named("late.png", 700),
            named("1.png", 100),
            named("lazy.png", 110, lazy=True),
            named("low.png", 120, fetchpriority="low"),
            named("pixel", 130),
            named("2.png", 200),
            named("3.png", 300),
            named("of-script.png", 5, by="b.js"),
            named("b.js", 310),
            named("hint.png", 800, fetchpriority="high"),
            named("hero.png", 900, hero=True),
        )
        assert seen(of) == [
            *("/", "a.css", "late.png", "1.png", "2.png", "3.png", "hint.png", "hero.png")
        ]
        few = page(named("a.css", 10, in_head=True), named("b.png", 1, by="a.css"), named("c.png"))
        assert seen(few) == ["/", "a.css", "b.png", "c.png"]

    def test_images_that_were_measured_or_raised(self) -> None:
        high = {"browser": "chrome", "level": "High"}
        low = {**high, "level": "Low"}
        raised = (
            named("plain.png", 5),
            named("raised.png", 900, recorded=[low, {**high, "when": {"at": "time"}}]),
            named("low.png", 10, recorded=[low]),
            named("hinted.png", 20, recorded=[high], fetchpriority="high"),
            named("hero.png", 30, hero=True),
        )
        assert seen(page(*raised)) == ["/", "raised.png", "hero.png"]
        measured = (*raised, named("measured.png", 950, viewport=0.1), named("0.png", viewport=0))
        assert seen(page(*measured)) == ["/", "hero.png", "measured.png"]

    def test_ancestors_are_seen_too(self) -> None:
        of = page(
            named("a.js", 900),
            named("b.js", 5, by="a.js"),
            named("c.png", 5, by="b.js", critical=True),
            named("d.png", 910),
        )
        marked = mark_critical_path(of)
        assert [r.id for r in marked.resources if r.above_the_fold] == [
            *("/", "a.js", "b.js", "c.png")
        ]


class TestModel:
    def test_its_defaults_are_those_of_chrome_on_a_desktop(self) -> None:
        model = BrowserModel()
        assert (model.mode, model.paint) == (BrowserMode.REPLAY, PaintMode.PROGRESSIVE)
        assert (model.cpu_slowdown, model.preload_scanner) == (1, True)
        assert (model.commit_ms, model.paint_ms, model.image_update_ms) == (28, 15, 1000)
        assert not model.stylesheets_block_parser
        limits = (model.max_concurrent_requests, model.max_concurrent_requests_per_host)
        assert limits == (model.tight_mode, model.hidden_at_ms) == (None, None)

    def test_the_model_s_mode_goes_before_the_scheme_s_and_that_before_today_s_chrome(self) -> None:
        """Two requests are open; only some modes hold the first image."""
        of = page(*(named(f"{n}.js") for n in range(2)), named("a.png"), named("b.bin"))

        def first(own: TightMode | None, of_scheme: TightMode | None) -> list[int]:
            model = BrowserModel(mode=BrowserMode.PARSE, tight_mode=own, commit_ms=0)
            browser = make_browser(of, model, tight_mode=of_scheme)
            browser.on_navigation(0)
            browser.on_requested(0, 0)
            due = browser.on_delivered(0, 60, 10)
            return sorted(item.resource for item in due if item.resource is not None)

        assert first(None, None) == [1, 2, 3]
        assert first(TightMode.CHROME_95, None) == [1, 2]
        assert first(TightMode.OFF, TightMode.CHROME_95) == [1, 2, 3, 4]
        assert first(None, TightMode.CHROME_95) == [1, 2]


def test_the_end_of_a_document_counts_without_new_bytes() -> None:
    parser = DocumentParser(page(named("a.png", 400), bytes=1000), cost_ns=1000)
    parser.receive(1000, 5, 0, is_complete=False)
    assert (parser.after, parser.ready_at_ns) == (0, 5)
    pieces = []
    while (piece := parser.next_piece()) is not None or parser.next_reference() is not None:
        if piece is not None:
            pieces.append(piece)
            parser.position = piece[0]
    # One byte behind the head, which names nothing; up to the image; to the end.
    assert pieces == [(1, 1), (400, 399), (1000, 600)]
    assert not parser.reaches_end()
    parser.receive(1000, 9, 3, is_complete=True)
    assert (parser.after, parser.ready_at_ns) == (3, 9)
    assert parser.reaches_end()
    assert parser.has_passed_head


@pytest.mark.parametrize("name", ["replay", "parse"])
def test_each_resource_is_waited_for_until_it_is_there(name: Any) -> None:
    of = page(named("a.png"), named("b.png"))
    browser = make_browser(of, BrowserModel(mode=BrowserMode(name), commit_ms=0))
    browser.on_navigation(0)
    browser.on_requested(0, 0)
    assert browser.waiting == ["/", "a.png", "b.png"]
    browser.on_delivered(0, 1000, 5)
    assert browser.waiting == ["a.png", "b.png"]
    assert not browser.is_done
    assert h3sim.simulate(of, browser=name).page_load_ms > 0


def test_the_parser_is_told_of_every_byte_of_the_document() -> None:
    of = page(named("a.png"), header_bytes=20)
    browser = make_browser(of, BrowserModel(mode=BrowserMode.PARSE))
    browser.on_navigation(0)
    browser.on_requested(0, 0)
    for n_bytes, following in ((0, 1), (60, 61), (1018, 1019), (1019, 1020)):
        if n_bytes:
            browser.on_delivered(0, n_bytes, 5)
        assert browser.next_offset(0) == following


def test_marks_of_what_timers_of_a_circle_bring_are_found() -> None:
    timers = [
        {**named(f"{a}.png", critical=True), "discovered": {"by": f"{b}.png", "at": "time"}}
        for a, b in ("cd", "dc")
    ]
    marked = mark_critical_path(page(*timers))
    assert [r.above_the_fold for r in marked.resources] == [False, True, True]


@pytest.mark.parametrize("mode", [TightMode.CHROME_118, TightMode.SAFARI])
def test_a_root_of_any_kind_holds_nothing_back_itself(mode: TightMode) -> None:
    rule = HeldBack(page(named("a.png"), kind="image"), mode)
    assert not rule.holds(0, progress())


def test_recorded_changes_are_made_unless_nobody_plays_them() -> None:
    later = {"browser": "chrome", "level": "High", "when": {"at": "time", "delay_ms": 3}}
    of = page(named("a.png", recorded=[later]))
    for options, n_changes in (({}, 1), ({"plays_recorded": False}, 0)):
        browser = make_browser(of, BrowserModel(), **options)  # type: ignore[arg-type]
        due = browser.on_navigation(0)
        assert sum(isinstance(item, ScheduledPriorityChange) for item in due) == n_changes


def test_an_image_that_is_loading_is_painted_once_a_second() -> None:
    assert BrowserModel().image_update_ms == 1000  # Chrome's

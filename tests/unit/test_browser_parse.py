"""The browser that computes its load, held to loads that were worked out by hand.

Over network marx-2019 a packet of 1400 bytes leaves every 10 ms, the first at 10 ms, and is there
at once. With fifo the responses come one after the other, in the order in which they were asked
for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim.browser.document import DocumentParser
from h3sim.browser.rendering import MainThread, MainThreadRecord, Task
from h3sim.page import RecordedLoad, transforms
from h3sim.trace import Work
from h3sim.values.units import ms
from tests.helpers import AT_ONCE, page_of

PACKET = 1400


def document(packets: int, **more: Any) -> dict[str, Any]:
    return {"id": "/", "kind": "document", "bytes": packets * PACKET, **more}


def named(id_: str, at_bytes: int, packets: int = 1, **more: Any) -> dict[str, Any]:
    """Return what the document names at an offset; the kind follows from the name."""
    kinds = {"css": "stylesheet", "js": "script", "html": "document", "json": "fetch"}
    found = {"by": "/", "at": "offset", "offset_bytes": at_bytes}
    kind = kinds.get(id_.rpartition(".")[2], "image")
    return {"id": id_, "kind": kind, "bytes": packets * PACKET, "discovered": found, **more}


def later(id_: str, kind: str, by: str, at: str, **more: Any) -> dict[str, Any]:
    delay = more.pop("delay_ms", 0)
    found = {"by": by, "at": at, "delay_ms": delay}
    return {"id": id_, "kind": kind, "bytes": PACKET, "discovered": found, **more}


def parsed(*resources: dict[str, Any], **setting: Any) -> h3sim.Load:
    """Load them with a browser that holds nothing back and paints at once, unless told."""
    setting = {"scheme": "fifo", **AT_ONCE, **setting}
    return h3sim.simulate(page_of(*resources), **setting)


def log(load: h3sim.Load) -> list[tuple[str, str, float, float]]:
    """Return what was done but downloads: (work, id, from ms, to ms)."""
    rows = []
    for done in load.trace.activities:
        id_ = "" if done.resource is None else load.page.resources[done.resource].id
        if done.work.value != "download":
            rows.append((done.work.value, id_, done.began_at_ns / 1e6, done.ended_at_ns / 1e6))
    return rows


def requested(load: h3sim.Load) -> dict[str, float]:
    return {row.id: row.requested_ms for row in load.timings}


def test_a_document_is_parsed_as_its_bytes_come() -> None:
    """8 ms for 4 packets are 2 ms a packet; what is seen first is its first byte."""
    load = parsed(document(4, parse_ms=5.6))
    assert log(load) == [
        ("parse", "/", 10, 10.001),
        ("first paint", "", 10.001, 10.001),
        ("parse", "/", 10.001, 11.4),
        ("parse", "/", 20, 21.4),
        ("parse", "/", 30, 31.4),
        ("parse", "/", 40, 41.4),
        ("DOMContentLoaded", "", 41.4, 41.4),
        ("load", "", 41.4, 41.4),
    ]


def test_a_script_stops_the_parser_until_it_has_run() -> None:
    """The script's packet comes at 30, behind the document's two; it runs until 37."""
    load = parsed(document(2, parse_ms=2.8), named("a.js", 700, execute_ms=7))
    assert log(load)[-4:] == [
        ("execute", "a.js", 30, 37),
        ("parse", "/", 37, 39.1),
        ("DOMContentLoaded", "", 39.1, 39.1),
        ("load", "", 39.1, 39.1),
    ]


def test_a_script_waits_for_the_stylesheet_in_front_of_it() -> None:
    """The stylesheet is asked for first, comes at 30 and 40 and is parsed until 45."""
    sheet = named("s.css", 100, packets=2, parse_ms=5)
    load = parsed(document(2), sheet, named("a.js", 200, execute_ms=7))
    assert ("style", "s.css", 40, 45) in log(load)
    assert ("execute", "a.js", 50, 57) in log(load)
    slow = parsed(document(2), named("s.css", 100, parse_ms=50), named("a.js", 200, execute_ms=7))
    assert ("style", "s.css", 30, 80) in log(slow)
    assert ("execute", "a.js", 80, 87) in log(slow)


def test_a_script_does_not_wait_for_a_stylesheet_behind_it() -> None:
    """It has run before the parser comes to the stylesheet."""
    load = parsed(document(2), named("a.js", 100, execute_ms=7), named("s.css", 200, parse_ms=50))
    assert ("execute", "a.js", 30, 37) in log(load)


def test_an_async_script_runs_as_soon_as_it_is_there() -> None:
    """Packets go in turns: the scripts are there at 30 and 40, the stylesheet at 60.

    The parser stands at slow.js, which waits for the stylesheet; fast.js waits for nothing.
    """
    load = parsed(
        document(1),
        named("s.css", 100, packets=3, in_head=True, parse_ms=5),
        named("fast.js", 200, execute_ms=4, **{"async": True}),
        named("slow.js", 300, execute_ms=4),
        scheme="rr",
    )
    assert [row for row in log(load) if row[0] in ("execute", "style")] == [
        ("execute", "fast.js", 30, 34),
        ("style", "s.css", 60, 65),
        ("execute", "slow.js", 65, 69),
    ]


def test_an_async_script_that_is_there_runs_before_the_parser_goes_on() -> None:
    """The parser takes 21 ms for a packet: it is there at 10, and at the image at 31."""
    load = parsed(
        document(2, parse_ms=42),
        named("a.js", 100, execute_ms=4, **{"async": True}),
        named("i.png", 1400),
    )
    assert log(load)[3:6] == [
        ("parse", "/", 11.5, 31),
        ("execute", "a.js", 31, 35),
        ("parse", "/", 35, 56),
    ]


def test_deferred_scripts_run_in_order_once_the_document_is_parsed() -> None:
    """The second is there at 40, the first at 60 only: it has three packets."""
    load = parsed(
        document(2),
        named("late.js", 300, packets=3, execute_ms=5, defer=True),
        named("early.js", 400, execute_ms=5, defer=True),
        scheme="rr",
    )
    executed = [row for row in log(load) if row[0] == "execute"]
    assert [row[1] for row in executed] == ["late.js", "early.js"]
    assert executed[0][2] == load.timings[1].finished_ms
    assert load.dom_content_loaded_ms == executed[1][3] == executed[0][3] + 5


def test_a_deferred_script_waits_for_stylesheets() -> None:
    load = parsed(
        document(2), named("s.css", 100, parse_ms=30), named("d.js", 300, execute_ms=5, defer=True)
    )
    assert ("execute", "d.js", 60, 65) in log(load)


@pytest.mark.parametrize(
    ("mark", "stops"), [({}, True), ({"async": True}, False), ({"preload": True}, False)]
)
def test_the_parser_stands_at_scripts_that_are_neither_async_nor_preloads(
    mark: dict[str, bool], stops: bool
) -> None:
    """The script comes at 30, behind the document, and runs for 50; the parser ends at 20."""
    load = parsed(document(2), named("a.js", 100, execute_ms=50, **mark))
    [ready] = [began for work, _, began, _ in log(load) if work == "DOMContentLoaded"]
    assert ready == (80 if stops else 20)


def test_the_preload_scanner_looks_beyond_a_script_at_which_the_parser_stands() -> None:
    """The image is named in the second packet, at 20; the script has run at 37."""
    resources = (document(2), named("a.js", 100, execute_ms=7), named("i.png", 2000))
    assert requested(parsed(*resources))["i.png"] == 20
    assert requested(parsed(*resources, preload_scanner=False))["i.png"] == 37


def test_a_font_is_requested_once_there_is_a_layout_with_its_stylesheet() -> None:
    """The stylesheet is ready at 32, but the head only parsed when its script has run, at 47."""
    font = later("f.woff2", "font", "s.css", "complete", delay_ms=500)
    sheet = named("s.css", 100, in_head=True, parse_ms=2)
    script = named("a.js", 200, in_head=True, execute_ms=7)
    load = parsed(document(2), sheet, script, font)
    assert ("style", "s.css", 30, 32) in log(load)
    assert load.first_paint_ms == requested(load)["f.woff2"] == 47


def test_a_stylesheet_is_ready_when_what_it_imports_is() -> None:
    """The import is asked for at 32 and comes at 40."""
    load = parsed(
        document(2),
        named("s.css", 100, in_head=True, parse_ms=2),
        later("i.css", "stylesheet", "s.css", "complete", parse_ms=3),
    )
    assert requested(load)["i.css"] == 32
    assert load.first_paint_ms == 43


def test_what_layout_needs_follows_on_the_import_that_was_parsed_last() -> None:
    """Of two imports the second is the longer one; the font is asked for when it is parsed."""
    painted = {**named("first.css", 50, in_head=True), "render_blocking": True}
    load = parsed(
        document(2),
        painted,
        named("s.css", 100),
        later("i.css", "stylesheet", "s.css", "complete"),
        later("j.css", "stylesheet", "s.css", "complete", parse_ms=3, delay_ms=30),
        later("f.woff2", "font", "s.css", "complete"),
    )
    asked_for = next(
        done
        for done in load.trace.activities
        if done.resource is not None and load.page.resources[done.resource].id == "f.woff2"
    )
    assert asked_for.after is not None
    began = load.trace.activities[asked_for.after]
    assert load.page.resources[began.resource or 0].id == "j.css"
    assert load.first_paint_ms is not None
    assert began.ended_at_ns == requested(load)["f.woff2"] * 1e6 > load.first_paint_ms * 1e6


def test_only_marked_resources_block_rendering_where_the_page_has_marks() -> None:
    """A stylesheet for printing stands in the head, too."""
    printed = named("print.css", 100, packets=5, in_head=True)
    seen = named("s.css", 200, in_head=True)
    load = parsed(document(2), printed, {**seen, "render_blocking": True}, scheme="rr")
    assert load.first_paint_ms == load.timings[2].finished_ms
    assert load.timings[1].finished_ms > load.timings[2].finished_ms
    without = parsed(document(2), printed, seen, scheme="rr")
    assert without.first_paint_ms == without.timings[1].finished_ms


def test_a_script_in_the_head_keeps_the_page_white_and_one_in_the_body_does_not() -> None:
    head = parsed(document(2), named("a.js", 100, in_head=True, execute_ms=7))
    body = parsed(document(2), named("a.js", 100, execute_ms=7))
    assert (head.first_paint_ms, body.first_paint_ms) == (37, 10)


def test_what_a_script_asks_for_comes_after_it_has_run() -> None:
    """And a script that a script has put into the page runs when it is there, in no order."""
    load = parsed(
        document(1),
        named("a.js", 100, execute_ms=5),
        later("b.js", "script", "a.js", "executed", execute_ms=2),
        later("c.js", "script", "a.js", "executed", delay_ms=6, execute_ms=2),
    )
    assert requested(load) == {"/": 0, "a.js": 10, "b.js": 25, "c.js": 31}
    assert ("execute", "b.js", 30, 32) in log(load)


def test_the_load_event_does_not_wait_for_a_timer() -> None:
    load = parsed(
        document(1),
        named("a.js", 100, execute_ms=5),
        later("beacon", "fetch", "a.js", "executed", delay_ms=6),
    )
    assert load.load_event_ms == 25
    assert load.page_load_ms == 40


@pytest.mark.parametrize(("completed_ms", "load_event_ms"), [(40, 40), (41, 25)])
def test_the_load_event_waits_for_delayed_requests_that_the_recorded_one_waited_for(
    completed_ms: float, load_event_ms: float
) -> None:
    page = page_of(
        document(1),
        named("a.js", 100, execute_ms=5),
        later("late.png", "image", "a.js", "executed", delay_ms=6),
    )
    known = RecordedLoad(load_event_ns=ms(40), completed_ns={"late.png": ms(completed_ms)})
    load = h3sim.simulate(replace(page, recorded_load=known), scheme="fifo", **AT_ONCE)
    assert requested(load)["late.png"] == 31
    assert load.load_event_ms == load_event_ms


@pytest.mark.parametrize(
    ("changes", "first_paint_ms"),
    [
        ({"kind": "stylesheet", "render_blocking": True}, 30),
        ({"kind": "script", "in_head": True, "execute_ms": 4}, 34),
        ({"kind": "script", "in_head": True, "async": True}, 10),
        ({"kind": "script", "in_head": True, "defer": True}, 10),
        ({"kind": "script"}, 10),
        ({"kind": "stylesheet", "render_blocking": True, "preload": True}, 10),
    ],
)
def test_what_blocks_in_the_head_blocks_at_an_unknown_position_too(
    changes: dict[str, Any], first_paint_ms: float
) -> None:
    """A recording without bodies knows of the document's references only when they were made."""
    resource = {**later("a", changes["kind"], "/", "complete", delay_ms=12), **changes}
    load = parsed(document(1), resource)
    assert requested(load)["a"] == 22
    assert load.first_paint_ms == first_paint_ms
    # The parser has not ended before it has passed the head.
    loaded_ms = next(began for work, _, began, _ in log(load) if work == "DOMContentLoaded")
    assert loaded_ms == first_paint_ms


def test_times_of_computation_are_multiplied_by_the_factor() -> None:
    load = parsed(document(1, parse_ms=3), named("a.js", 100, execute_ms=5), cpu_slowdown=4)
    assert ("execute", "a.js", 20, 40) in log(load)


def test_no_more_requests_are_open_than_there_may_be() -> None:
    """The second image is asked for when the first is there, with the one place besides."""
    images = [named(f"{name}.png", 100) for name in "abc"]
    load = parsed(document(1), *images, max_concurrent_requests=1)
    assert requested(load) == {"/": 0, "a.png": 10, "b.png": 20, "c.png": 30}


def test_no_more_requests_are_open_to_a_host_than_there_may_be() -> None:
    """Two hosts have a place each; the page's own is free again when the document is there."""
    others = [named(f"{name}.png", 100, host="img.example") for name in "bc"]
    resources = (document(1), named("a.png", 100), named("d.png", 100), *others)
    load = parsed(*resources, max_concurrent_requests_per_host=1)
    assert requested(load) == {"/": 0, "a.png": 10, "b.png": 10, "d.png": 20, "c.png": 30}
    assert requested(parsed(*resources, max_concurrent_requests_per_host=2))["c.png"] == 10


def test_the_parser_stands_at_a_stylesheet_where_that_is_requested() -> None:
    """Without the scanner the image behind it is met once the style is there, and parsed."""
    resources = (
        document(2, parse_ms=8),
        named("s.css", 100, parse_ms=7),
        named("a.png", 1000),
    )
    goes_on = parsed(*resources, preload_scanner=False)
    stands = parsed(*resources, preload_scanner=False, stylesheets_block_parser=True)
    # A packet of the document is there at 10. To its 1000th byte parsing takes 8 * 1000 / 2800 ms,
    # from the 100th on 8 * 900 / 2800. The style is there at 30, behind the rest of the document.
    assert requested(goes_on)["a.png"] == pytest.approx(10 + 8 * 1000 / 2800, abs=1e-4)
    assert ("style", "s.css", 30, 37) in log(stands)
    assert requested(stands)["a.png"] == pytest.approx(37 + 8 * 900 / 2800, abs=1e-4)
    assert requested(parsed(*resources, stylesheets_block_parser=True))["a.png"] == 10


def head_with(*body: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """A document whose head ends at 37, when its script has run; the stylesheet is there at 20."""
    head = (named("s.css", 50, in_head=True), named("a.js", 60, in_head=True, execute_ms=7))
    return (document(1), *head, *body)


def test_chrome_of_2021_holds_images_while_two_requests_are_open() -> None:
    """At 30 only the important image is open, so one goes with it; at 37 the script has run."""
    images = (
        named("a.png", 100),
        named("b.png", 200),
        named("c.png", 300, fetchpriority="high"),
    )
    asked = requested(parsed(*head_with(*images), tight_mode="chrome-95"))
    assert asked == {"/": 0, "s.css": 10, "a.js": 10, "c.png": 10, "a.png": 30, "b.png": 37}
    assert requested(parsed(*head_with(*images)))["b.png"] == 10


def test_chrome_of_today_lets_two_of_the_first_five_images_go_next_to_whatever_is_open() -> None:
    """One that is declared small waits, though it comes first; so does what a stylesheet shows."""
    images = (
        named("icon.png", 100, small=True),
        named("a.png", 200),
        named("b.png", 300),
        named("c.png", 400),
    )
    asked = requested(parsed(*head_with(*images), tight_mode="chrome-118"))
    early = {id_ for id_, at_ms in asked.items() if at_ms == 10}
    assert early == {"s.css", "a.js", "a.png", "b.png"}
    assert asked["c.png"] == asked["icon.png"] == 37


def test_what_was_held_goes_by_its_priority() -> None:
    """The head ends at 37, and all three leave then: the Medium one first, though asked last."""
    images = [named(f"{n}.png", 100 + n) for n in range(2)]
    held = [named("icon.png", 300, small=True), named("d.png", 400, lazy=False)]
    load = parsed(*head_with(*images, *held), tight_mode="chrome-118")
    order = [row.id for row in load.timings if row.requested_ms == 37]
    assert order == ["d.png", "icon.png"]


def test_a_frame_and_a_fetch_hold_nothing_and_are_not_held() -> None:
    """Chrome's loader has no say in navigations, and leaves out what may run for long."""
    others = (named("f.html", 30), named("d.json", 40))
    load = parsed(document(1), *others, named("a.png", 100), tight_mode="chrome-95")
    assert requested(load)["a.png"] == requested(load)["d.json"] == 10


def test_safari_holds_images_to_the_load_event_while_two_requests_are_open() -> None:
    """At 20 the first script is there, so one image goes with the second; at 30 the next one."""
    scripts = [named("a.js", 50), named("b.js", 60)]
    images = [named(f"{name}.png", 100) for name in "ab"]
    asked = requested(parsed(document(1), *scripts, *images, tight_mode="safari"))
    assert asked == {"/": 0, "a.js": 10, "b.js": 10, "a.png": 20, "b.png": 30}


def test_safari_counts_the_requests_to_each_host() -> None:
    scripts = [named("a.js", 50), named("b.js", 60)]
    image = named("a.png", 100, host="images.example")
    load = parsed(document(1), *scripts, image, tight_mode="safari")
    assert requested(load)["a.png"] == 10


def test_the_scheme_names_the_tight_mode_of_its_browser() -> None:
    """What is asked for goes before it, and today's Chrome stands where nobody says anything."""
    resources = head_with(*(named(f"{n}.png", 100 + n) for n in range(3)))

    def early(**setting: Any) -> int:
        asked = requested(parsed(*resources, **setting))
        return sum(asked[f"{n}.png"] == 10 for n in range(3))

    assert early(tight_mode=None, scheme="chrome-eps-2022") == 0
    assert early(tight_mode=None, scheme="firefox-eps") == 3
    assert early(tight_mode=None, scheme="fifo") == 2
    assert early(tight_mode="chrome-95", scheme="firefox-eps") == 0


def test_a_tight_mode_is_named() -> None:
    with pytest.raises(h3sim.values.errors.InputError, match="chrome-118"):
        parsed(document(1), tight_mode=True)


def test_the_parser_begins_when_the_navigation_is_committed() -> None:
    """The first packet is there at 10, the second at 20: the parser has both at 17 or 20."""
    load = parsed(document(2), named("a.png", 700), named("b.png", 2100), commit_ms=7)
    asked = requested(load)
    assert (asked["a.png"], asked["b.png"]) == (17, 20)


def test_a_frame_s_document_is_committed_as_well() -> None:
    frame = named("f.html", 30)
    inner = named("f.css", 9)
    inner["discovered"] = {**inner["discovered"], "by": "f.html"}
    load = parsed(document(1), frame, inner, commit_ms=7)
    times = {row.id: row for row in load.timings}
    assert times["f.css"].requested_ms == times["f.html"].finished_ms + 7


def test_the_first_paint_is_a_frame_later_and_layout_with_it() -> None:
    """The stylesheet is there at 20; it names a font, which the layout needs."""
    font = later("w.woff2", "font", "s.css", "complete")
    load = parsed(document(1), named("s.css", 50, in_head=True), font, paint_ms=16)
    assert load.first_paint_ms == requested(load)["w.woff2"] == 36
    slow = parsed(document(1), named("s.css", 50, in_head=True), paint_ms=16, cpu_slowdown=4)
    assert slow.first_paint_ms == 84


def test_a_lazy_image_is_requested_when_it_is_in_sight_or_once_all_is_loaded() -> None:
    load = parsed(
        document(1),
        named("s.css", 50, in_head=True, parse_ms=4),
        named("seen.png", 100, lazy=True, above_the_fold=True),
        named("unseen.png", 200, lazy=True),
    )
    assert load.first_paint_ms == requested(load)["seen.png"] == 24
    # The one in sight holds no load event back.
    assert load.load_event_ms == requested(load)["unseen.png"] == 24


def test_in_tight_mode_a_deferred_script_waits_as_an_image_does() -> None:
    """Chrome asks for async and deferred scripts with priority Low, for modules with High.

    At 10 the stylesheet and the script that blocks are asked for; at 20 the former is there.
    """
    for flag in ("defer", "async"):
        later_script = named("d.js", 70, in_head=True, **{flag: True})
        asked = requested(parsed(*head_with(later_script), tight_mode="chrome-118"))
        assert asked == {"/": 0, "s.css": 10, "a.js": 10, "d.js": 20}, flag
    module = named("d.js", 70, in_head=True, defer=True, module=True)
    assert requested(parsed(*head_with(module), tight_mode="chrome-118"))["d.js"] == 10


def test_the_preload_scanner_leaves_lazy_images_to_the_parser() -> None:
    """Whether it is in sight is known once the parser has put it into the document (HTML standard,
    "Lazy loading attributes"); the scanner would ask at 10. The script is there at 30.
    """
    resources = (document(2), named("a.js", 300, execute_ms=7))
    lazy = parsed(*resources, named("i.png", 700, lazy=True, above_the_fold=True))
    assert lazy.first_paint_ms == 10
    assert requested(lazy)["i.png"] == 37
    assert requested(parsed(*resources, named("i.png", 700)))["i.png"] == 10


def test_of_activities_that_end_at_one_instant_the_last_that_is_named_lets_go_on() -> None:
    """Causes are named from the far to the near: parser, stylesheets, the script's own download."""
    record = MainThreadRecord()
    first, second, third = (record.begin(Work.DOWNLOAD, n, 0, after=None) for n in range(3))
    for activity, ended_at_ns in ((first, 9), (second, 9), (third, 5)):
        record.end(activity, ended_at_ns)
    assert record.latest([first, second, third]) == second
    assert record.latest([second, None, first]) == first


def test_what_is_seen_largest_is_the_hero_or_has_the_largest_share() -> None:
    """The images come at 20 and 30."""
    small = named("small.png", 100, viewport=0.1)
    large = named("large.png", 200, viewport=0.4)
    load = parsed(document(1), small, large)
    assert (load.first_paint_ms, load.largest_paint_ms) == (10, 30)
    # 0.5 at 10 ms, 0.1 at 20, 0.4 at 30.
    assert load.speed_index_ms == pytest.approx(0.5 * 10 + 0.1 * 20 + 0.4 * 30)
    hero = parsed(document(1), {**small, "hero": True}, large)
    assert hero.largest_paint_ms == 20


def test_the_largest_paint_is_unknown_without_viewport_shares() -> None:
    """Unknown is None; where the page says that no image is seen, the text is the largest."""
    image = named("a.png", 100)
    assert parsed(document(1), image).largest_paint_ms is None
    message = parsed(document(1, above_the_fold=True), image)
    assert message.largest_paint_ms == message.first_paint_ms == 10
    # One is above the fold, but nobody said how large: that it is the largest is not known either.
    marked = named("a.png", 100, above_the_fold=True)
    assert parsed(document(1, above_the_fold=True), marked).largest_paint_ms is None


def test_the_critical_path_states_what_each_step_waited_for() -> None:
    """5 ms of latency each way; a script waits for a stylesheet, and asks for data."""
    load = parsed(
        document(1),
        named("s.css", 100, packets=2, parse_ms=20),
        named("a.js", 200, execute_ms=5),
        later("data", "fetch", "a.js", "executed"),
        rtt_ms=10,
        handshake=False,
    )
    path = load.critical_path()
    assert [(row.work, row.id) for row in path] == [
        ("download", "/"),
        ("download", "s.css"),
        ("style", "s.css"),
        ("execute", "a.js"),
        ("download", "data"),
        ("load", None),
    ]
    columns = ("network_ms", "bandwidth_ms", "computation_ms", "blocking_ms")
    spent = sum(sum(path.column(name)) for name in columns)
    assert spent == pytest.approx(load.load_event_ms)
    assert [getattr(path[1], name) for name in columns] == [10, 10, 0, 0]
    assert [getattr(path[2], name) for name in columns] == [0, 0, 20, 0]


def test_the_critical_path_reports_waiting_for_a_turn() -> None:
    """The parser has come to the end at 20, but the main thread is taken until 50."""
    load = parsed(document(2), named("a.js", 100, execute_ms=20, **{"async": True}))
    assert load.dom_content_loaded_ms == 20
    assert load.load_event_ms == 50
    busy = parsed(document(1, parse_ms=25), named("a.js", 100, execute_ms=20, **{"async": True}))
    assert busy.critical_path("DOMContentLoaded")[-1].blocking_ms == 20


def test_a_load_that_is_replayed_has_no_paints() -> None:
    load = h3sim.simulate(page_of(document(1)), scheme="fifo")
    assert load.first_paint_ms is None
    assert load.speed_index_ms is None
    assert len(load.critical_path()) == 0


def test_an_unknown_milestone_is_refused() -> None:
    with pytest.raises(ValueError, match="to must be one of first paint, DOMContentLoaded, load"):
        parsed(document(1)).critical_path("onload")


def test_a_parser_goes_from_reference_to_reference_and_ends_with_the_document() -> None:
    # 100 bytes take 1000: the head names a style at 40, so there is something to see from 41 on.
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 100},
        {
            "id": "a.css",
            "kind": "stylesheet",
            "bytes": 10,
            "in_head": True,
            "discovered": {"by": "/", "at": "offset", "offset_bytes": 40},
        },
    )
    parser = DocumentParser(page, cost_ns=1000)
    assert (parser.next_piece(), parser.reaches_end(), parser.has_passed_head) == (
        *(None, False, False),
    )
    parser.receive(10, 5, 0, is_complete=False)
    assert (parser.next_piece(), parser.ready_at_ns) == ((10, 100), 5)
    parser.position = 10
    parser.receive(100, 7, 0, is_complete=True)
    pieces = []
    while (piece := parser.next_piece()) is not None:
        pieces.append(piece)
        parser.position = piece[0]
        assert parser.reaches_end() is (piece[0] == 100)
        assert parser.has_passed_head is (piece[0] > 40)
        assert parser.next_reference() == ((1, True) if piece[0] == 40 else None)
    assert pieces == [(40, 300), (41, 10), (100, 590)]


def test_a_thread_has_tasks_while_one_runs_or_waits() -> None:
    done: list[int] = []
    thread = MainThread(MainThreadRecord())
    assert (thread.has_tasks, thread.is_idle, thread.start_next(0)) == (False, True, False)
    assert thread.busy_until_ns == 0
    task = Task(Work.EXECUTE, 1, 10, None, 0, lambda index, now_ns: done.append(now_ns))
    thread.add(task)
    assert (thread.has_tasks, thread.is_idle) == (True, True)
    assert thread.start_next(0)
    assert (thread.has_tasks, thread.is_idle, thread.busy_until_ns) == (True, False, 10)
    assert not thread.start_next(5)
    assert not thread.finish(9)
    assert thread.finish(10)
    assert (thread.has_tasks, thread.is_idle, done) == (False, True, [10])
    assert not thread.finish(11)


@pytest.mark.parametrize(
    ("display", "seen_ms"), [("block", 56), ("auto", 56), ("swap", 36), ("optional", 36)]
)
def test_text_that_is_the_main_element_waits_for_its_font_as_font_display_requires(
    display: str, seen_ms: float
) -> None:
    """The stylesheet is there at 20 and painted at 36; the font, asked for then, is there at 40."""
    font = later("w.woff2", "font", "s.css", "complete", hero=True, font_display=display)
    load = parsed(document(1), named("s.css", 50, in_head=True), font, paint_ms=16)
    assert load.first_paint_ms == 36
    assert load.largest_paint_ms == seen_ms


def test_text_without_a_font_is_there_with_the_first_paint() -> None:
    root = document(1, hero=True, above_the_fold=True)
    image = named("a.png", 100, viewport=0.4, above_the_fold=True)
    load = parsed(root, image, paint_ms=16)
    assert load.largest_paint_ms == load.first_paint_ms == 26
    shown = parsed(document(1), image, paint_ms=16)
    assert shown.largest_paint_ms == 36


def test_a_font_that_does_not_come_hides_its_text_for_three_seconds() -> None:
    font = later("w.woff2", "font", "s.css", "complete", hero=True, server_ms=5000)
    load = parsed(document(1), named("s.css", 50, in_head=True), font)
    assert load.largest_paint_ms == 3020


def test_what_stands_at_the_start_of_a_document_is_found_once_that_is_committed() -> None:
    """The first packet is there at 10 ms, and the browser has handed it over 28 ms later."""
    for scanner in (True, False):
        load = parsed(
            document(2), named("a.css", 0), named("b.css", 1), commit_ms=28, preload_scanner=scanner
        )
        assert requested(load) == {"/": 0, "a.css": 38, "b.css": 38}


def test_early_hints_move_the_request_and_leave_the_parser_blocked() -> None:
    """The script is there at 20, while the server thinks; it runs where the document names it.

    The 103 response comes at 10, the document's packets at 100 and 110, after 100 ms of thought.
    """
    page = page_of(
        document(2, server_ms=100), named("a.js", 700, execute_ms=7), named("b.png", 1400)
    )
    hinted = transforms.with_early_hints(page, "a.js")
    load = h3sim.simulate(hinted, scheme="fifo", **AT_ONCE)
    assert requested(load)["a.js"] == 10
    assert ("execute", "a.js", 100, 107) in log(load)
    # As it is, it is requested when the document names it, and comes behind the document.
    plain = h3sim.simulate(page, scheme="fifo", **AT_ONCE)
    assert requested(plain)["a.js"] == 100
    assert ("execute", "a.js", 120, 127) in log(plain)


def test_a_hinted_stylesheet_blocks_the_first_paint_from_its_link_on() -> None:
    """Its five packets come until 60, behind the 103 response; the document at 40 and 50.

    They go in turns, so that the document is there first; it is painted once the sheet is ready.
    """
    sheet = named("s.css", 100, packets=5, in_head=True, parse_ms=3)
    page = transforms.with_early_hints(page_of(document(2, server_ms=20), sheet), "s.css")
    load = h3sim.simulate(page, scheme="rr", **AT_ONCE)
    finished = {row.id: row.finished_ms for row in load.timings}
    assert finished["/"] < finished["s.css"]
    assert load.first_paint_ms == finished["s.css"] + 3
    # Without its link it would be a preload, which blocks nothing.
    unused = page.with_("s.css", reference_offset_bytes=None)
    assert h3sim.simulate(unused, scheme="rr", **AT_ONCE).first_paint_ms < finished["s.css"]


def test_what_is_hinted_neither_runs_nor_leads_to_more_before_the_document_names_it() -> None:
    page = page_of(
        document(2, server_ms=100),
        named("a.js", 1400, **{"async": True}, execute_ms=7),
        later("data.json", "fetch", "a.js", "executed"),
    )
    load = h3sim.simulate(transforms.with_early_hints(page, "a.js"), scheme="fifo", **AT_ONCE)
    assert {row.id: row.finished_ms for row in load.timings}["a.js"] == 20
    assert ("execute", "a.js", 100, 107) in log(load)
    assert requested(load)["data.json"] == 107


@pytest.mark.parametrize("preload_scanner", [True, False])
def test_a_preloaded_script_runs_where_its_element_is(preload_scanner: bool) -> None:
    """The preload at offset 0 requests it; its element is in the document's third packet."""
    script = {**named("a.js", 0, execute_ms=7), "preload": True, "reference_offset_bytes": 2900}
    load = parsed(document(3), script, scheme="rr", preload_scanner=preload_scanner)
    finished = {row.id: row.finished_ms for row in load.timings}
    assert finished["a.js"] < finished["/"]
    assert ("execute", "a.js", finished["/"], finished["/"] + 7) in log(load)


def test_early_hints_are_not_held_back_by_the_loader_of_the_page() -> None:
    """Chrome's tight mode lets two requests be open; the browser itself sends for the others."""
    pictures = [named(f"{n}.png", 10 * n, packets=3) for n in range(1, 5)]
    page = page_of(document(2, server_ms=200), named("s.css", 5, in_head=True), *pictures)
    hinted = transforms.with_early_hints(page, "image")
    load = h3sim.simulate(hinted, scheme="fifo", **{**AT_ONCE, "tight_mode": "chrome-118"})
    assert [requested(load)[f"{n}.png"] for n in range(1, 5)] == [10, 10, 10, 10]

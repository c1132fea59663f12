"""Paints wait for what they waited for when they were recorded: by hand.

Packets of 1,400 bytes arrive every 10 ms, the first one at 10; there are no handshakes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim.importers.formats.devtools import RecordedExchange
from h3sim.importers.paints import PaintEvent, paint_event, paints_of
from h3sim.importers.recorded_request import RecordedPaint
from h3sim.importers.trace_tasks import task_of, work_of
from h3sim.page import Kind, Page
from h3sim.values.errors import PageError
from tests.helpers import AT_ONCE, page_document

HOW: dict[str, Any] = {**AT_ONCE, "handshake": False, "rtt_ms": 0, "scheme": "fifo"}
ROOT = {"id": "/", "kind": "document", "bytes": 1400, "hero": True}
APP = {
    "id": "a.js",
    "kind": "script",
    "bytes": 14_000,
    "defer": True,
    "discovered": {"by": "/", "at": "offset", "offset_bytes": 100},
}


def page_of(*resources: dict[str, Any], **causes: dict[str, Any]) -> Page:
    return Page.from_dict({**page_document(*resources), **causes})


def load_of(page: Page, **more: Any) -> Any:
    return h3sim.simulate(page, **{**HOW, **more})


class TestFirstPaint:
    def test_it_waits_for_the_script_that_makes_the_content(self) -> None:
        """The script has arrived at 110; the layout takes 20, and the frame is shown 5 later."""
        cause = {"after": ["a.js"], "work_ms": 20, "delay_ms": 5}
        assert load_of(page_of(ROOT, APP)).first_paint_ms == 10
        load = load_of(page_of(ROOT, APP, first_paint=cause))
        assert (load.first_paint_ms, load.fcp_ms, load.largest_paint_ms) == (135, 135, 135)

    def test_without_scripts_only_its_own_work_delays_it(self) -> None:
        cause = {"work_ms": 20, "delay_ms": 5}
        assert load_of(page_of(ROOT, APP, first_paint=cause)).first_paint_ms == 35

    def test_its_work_keeps_the_main_thread_from_scripts(self) -> None:
        """The script that has arrived at 110 runs once the layout from 10 to 160 is over."""
        page = page_of(ROOT, {**APP, "execute_ms": 3}, first_paint={"work_ms": 150})
        load = load_of(page)
        assert (load.first_paint_ms, load.load_event_ms) == (160, 163)

    def test_the_frame_is_shown_while_a_script_runs(self) -> None:
        page = page_of(ROOT, {**APP, "execute_ms": 90}, first_paint={"delay_ms": 150})
        load = load_of(page)
        assert (load.first_paint_ms, load.load_event_ms) == (160, 200)

    def test_a_slow_processor_stretches_the_work_and_not_the_delay(self) -> None:
        page = page_of(ROOT, first_paint={"work_ms": 20, "delay_ms": 5})
        assert load_of(page, cpu_slowdown=3).first_paint_ms == 10 + 60 + 5

    def test_fonts_are_requested_with_the_layout_and_not_with_the_frame(self) -> None:
        sheet = {**APP, "id": "a.css", "kind": "stylesheet", "bytes": 1400, "defer": False}
        sheet["in_head"] = True
        font = {"id": "a.woff2", "kind": "font", "bytes": 1400}
        font["discovered"] = {"by": "a.css", "at": "complete"}
        page = page_of(ROOT, sheet, font, first_paint={"work_ms": 7, "delay_ms": 500})
        requested_ms = {row.id: row.requested_ms for row in load_of(page).timings}
        assert requested_ms["a.woff2"] == 27

    def test_what_waits_for_the_layout_itself_is_not_waited_for(self) -> None:
        frame = {**APP, "kind": "document", "lazy": True, "defer": False, "recorded": []}
        page = page_of(ROOT, frame, first_paint={"after": ["a.js"]})
        assert load_of(page).first_paint_ms == 10

    @pytest.mark.parametrize("after", [[], ["a.js"]])
    def test_a_slower_link_never_paints_earlier(self, after: list[str]) -> None:
        page = page_of(ROOT, APP, first_paint={"after": after, "work_ms": 20, "delay_ms": 5})
        paints_ms = [
            h3sim.simulate(page, network=name, browser="parse").first_paint_ms or 0
            for name in ("cable", "4g", "fast-3g", "slow-3g")
        ]
        assert paints_ms == sorted(paints_ms)

    @pytest.mark.parametrize("delay_ms", [0, 5, 200])
    def test_its_bound_is_no_later_than_the_paint(self, delay_ms: float) -> None:
        image = {
            **APP,
            "id": "b.png",
            "kind": "image",
            "lazy": True,
            "viewport": 0.5,
            "defer": False,
        }
        cause = {"after": ["a.js"], "work_ms": 20, "delay_ms": delay_ms}
        page = page_of(ROOT, APP, {**image, "above_the_fold": True}, first_paint=cause)
        bounds = load_of(page).paint_bounds
        assert bounds.first_paint_ratio >= 1
        assert bounds.largest_paint_ratio >= 1
        assert bounds.speed_index_ratio >= 1


class TestLargestPaint:
    def test_text_that_a_timer_reveals_comes_so_long_after_the_first_paint(self) -> None:
        load = load_of(page_of(ROOT, APP, largest_paint={"delay_ms": 1000}))
        assert (load.first_paint_ms, load.largest_paint_ms) == (10, 1010)

    def test_it_waits_for_a_script(self) -> None:
        load = load_of(page_of(ROOT, APP, largest_paint={"after": ["a.js"], "delay_ms": 30}))
        assert load.largest_paint_ms == 110 + 30

    def test_an_image_that_a_slider_shows_waits_for_its_own_bytes(self) -> None:
        """The document is at 10, the image at 110."""
        image = {**APP, "id": "b.png", "kind": "image", "hero": True, "defer": False}
        page = page_of({**ROOT, "hero": False}, image, largest_paint={"delay_ms": 30})
        assert load_of(page).largest_paint_ms == 140


CAUSE = {"after": ["a.js"], "work_ms": 20, "delay_ms": 5}


class TestPages:
    def test_a_page_file_keeps_the_causes(self) -> None:
        page = page_of(ROOT, APP, first_paint=CAUSE, largest_paint={"delay_ms": 7})
        assert page.to_dict()["first_paint"] == CAUSE
        assert Page.from_dict(page.to_dict()) == page

    def test_a_page_with_causes_is_another_page(self) -> None:
        pages = [page_of(ROOT, APP), page_of(ROOT, APP, first_paint=CAUSE)]
        pages.append(replace(pages[0], largest_paint=pages[1].first_paint))
        assert len({page.digest for page in pages}) == 3

    def test_without_a_script_nothing_waits_for_it(self) -> None:
        page = page_of(ROOT, APP, first_paint=CAUSE).without("a.js")
        assert load_of(page).first_paint_ms == 10 + 20 + 5

    def test_an_unknown_id_is_an_error_with_its_key(self) -> None:
        with pytest.raises(PageError) as caught:
            page_of(ROOT, first_paint={"after": ["b.js"]})
        assert [each.key for each in caught.value.problems] == ["first_paint.after[0]"]


US = 1000


def event(name: str, at_ms: float, wall_ms: float = 0, node: int = 0, **data: Any) -> PaintEvent:
    args = {"data": {"frame": "F", "dom_node_id": node, **data}}
    made = {"name": name, "ts": at_ms * US, "dur": wall_ms * US, "pid": 1, "tid": 1, "args": args}
    found = paint_event(made)
    assert found is not None
    return found


def frame(at_ms: float, *nodes: int) -> list[PaintEvent]:
    """Return a frame whose style and layout take 9 ms, and whose paint takes 1 ms."""
    drawn = [
        event("PaintTimingVisualizer::LayoutObjectPainted", at_ms + 9.5, node=node)
        for node in nodes
    ]
    parts = (("UpdateLayoutTree", 0, 9), ("PrePaint", 9, 0), ("Paint", 9, 1))
    return [*(event(name, at_ms + since, ms) for name, since, ms in parts), *drawn]


def task(name: str, url: str, at_ms: float, wall_ms: float) -> Any:
    made = {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": at_ms * US, "dur": wall_ms * US}
    return task_of({**made, "args": {"data": {"url": url}}})


def exchange(url: str, kind: Kind, end_ms: float) -> RecordedExchange:
    return RecordedExchange(key="", hop_id=url, url=url, kind=kind, end_ms=end_ms)


DOCUMENT = exchange("/", Kind.DOCUMENT, 5)
SCRIPT = exchange("a.js", Kind.SCRIPT, 50)
DATA = exchange("d.json", Kind.FETCH, 100)
VIEWPORT = event("PaintTimingVisualizer::Viewport", 1)


def paints(events: list[PaintEvent], *tasks: Any, **more: Any) -> dict[str, RecordedPaint]:
    requests = [DOCUMENT, SCRIPT, DATA]
    return paints_of([VIEWPORT, *events], tasks, requests, frame="F", **more)


class TestInference:
    RUN = task("EvaluateScript", "a.js", 60, 10)

    def test_after_an_empty_frame_scripts_make_the_content(self) -> None:
        """It has run at 70; the frame from 70 to 80 is shown at 90."""
        events = [*frame(20), *frame(70, 1), event("firstContentfulPaint", 90)]
        found = paints(events, self.RUN)
        assert found == {"first_paint": RecordedPaint([SCRIPT], 10, 10)}

    def test_a_script_that_ran_before_by_chance_is_not_waited_for(self) -> None:
        """The document is parsed at 40; the paint takes 50 from then on, and the script 10."""
        events = [*frame(70, 1), event("firstContentfulPaint", 100)]
        parsed = task("ParseHTML", "/", 38, 2)._replace(url="/")
        assert paints(events, parsed, self.RUN) == {"first_paint": RecordedPaint([], 10, 40)}

    def test_a_stylesheet_that_blocks_rendering_is_no_delay(self) -> None:
        events = [*frame(70, 1), event("firstContentfulPaint", 90)]
        parsed = task("ParseAuthorStyleSheet", "a.css", 60, 5)._replace(url="a.css")
        sheet = replace(exchange("a.css", Kind.STYLESHEET, 50), blocking="blocking")
        found = paints_of([VIEWPORT, *events], [parsed], [DOCUMENT, sheet], frame="F")
        assert found == {"first_paint": RecordedPaint([], 10, 15)}

    def test_a_task_that_waits_for_the_processor_is_no_delay(self) -> None:
        """The layout takes 9 ms of the processor and 30 on the clock."""
        layout = event("Layout", 70, 30)._replace(cpu_us=9 * US)
        events = [*frame(20), layout, event("PrePaint", 100), event("firstContentfulPaint", 105)]
        drawn = event("PaintTimingVisualizer::LayoutObjectPainted", 100.5, node=1)
        assert paints([*events, drawn], self.RUN) == {"first_paint": RecordedPaint([SCRIPT], 9, 5)}

    def test_an_empty_frame_before_the_document_has_arrived_proves_nothing(self) -> None:
        events = [event("PrePaint", 3), *frame(70, 1), event("firstContentfulPaint", 90)]
        assert paints(events, self.RUN)["first_paint"].after == []

    def test_a_module_runs_in_the_evaluation_after_it_was_compiled(self) -> None:
        events = [*frame(20), *frame(80, 1), event("firstContentfulPaint", 95)]
        tasks = [task("v8.compileModule", "a.js", 55, 1), task("v8.evaluateModule", "", 60, 15)]
        assert paints(events, *tasks)["first_paint"] == RecordedPaint([SCRIPT], 10, 10)

    def test_a_response_counts_that_found_the_thread_idle(self) -> None:
        """The data arrive at 100; a callback until 90, or until 99, is or is not long before."""
        for until_ms, waited in ((80, [SCRIPT, DATA]), (99, [SCRIPT])):
            callback = event("FunctionCall", 75, until_ms - 75)
            events = [*frame(20), callback, *frame(110, 1), event("firstContentfulPaint", 130)]
            assert paints(events, self.RUN)["first_paint"].after == waited

    def test_callbacks_are_work_and_timers_are_delay(self) -> None:
        """From 70 on: a callback of 20 ms, 60 ms of nothing, and the frame of 10 ms, at once."""
        callback = event("FunctionCall", 70, 20)
        events = [*frame(20), callback, *frame(150, 1), event("firstContentfulPaint", 160)]
        assert paints(events, self.RUN)["first_paint"] == RecordedPaint([SCRIPT], 30, 60)

    def test_decoding_delays_the_largest_paint_and_not_the_first(self) -> None:
        """Of the 70 ms after the frame two threads decode images for 50, from 85 to 135."""
        one, other, elsewhere = (
            event("ImageDecodeTask", at_ms, 30)._replace(thread=thread)
            for at_ms, thread in ((85, ("1", "7")), (105, ("1", "8")), (80, ("2", "1")))
        )
        events = [*frame(20), one, other, elsewhere, *frame(70, 1)]
        events.append(event("firstContentfulPaint", 150))
        found = paints(events, self.RUN, hero="a.png")
        assert found["first_paint"] == RecordedPaint([SCRIPT], 10, 20)
        assert found["largest_paint"] == RecordedPaint([], 0, 50)
        assert "largest_paint" not in paints(events, self.RUN)

    def test_text_that_an_animation_reveals_waits_for_the_first_paint(self) -> None:
        events = [*frame(70, 1), event("firstContentfulPaint", 90), *frame(500), *frame(1000, 2)]
        events.append(event("largestContentfulPaint::Candidate", 1020, nodeId=2, node=2))
        found = paints(events, self.RUN)["largest_paint"]
        assert found == RecordedPaint([], 0, 930)

    def test_text_of_a_response_waits_for_it(self) -> None:
        """It is in the frame from 105 on, and not in that of 90."""
        events = [*frame(70, 1), event("firstContentfulPaint", 85), *frame(90), *frame(105, 2)]
        events.append(event("largestContentfulPaint::Candidate", 120, node=2))
        assert paints(events, self.RUN)["largest_paint"] == RecordedPaint([DATA], 0, 20)

    def test_a_response_counts_when_the_main_thread_learns_of_it(self) -> None:
        """It has arrived before the first frame, from 100 on, and is read after it, at 112."""
        read = event("ResourceFinish", 112)._replace(subject="7")
        data = replace(DATA, hop_id="7/0", end_ms=95)
        events = [*frame(100, 1), event("firstContentfulPaint", 115), read, *frame(116, 2)]
        events.append(event("largestContentfulPaint::Candidate", 130, node=2))
        found = paints_of([VIEWPORT, *events], [], [DOCUMENT, data], frame="F")
        assert found["largest_paint"] == RecordedPaint([data], 0, 15)

    def test_an_image_waits_for_its_own_bytes_and_not_for_what_ran_beside(self) -> None:
        """It arrives at 62 and the script runs until 70, both before the frame that shows it."""
        image = exchange("a.png", Kind.IMAGE, 62)
        events = [*frame(30, 1), event("firstContentfulPaint", 45), *frame(72, 2)]
        events.append(event("largestContentfulPaint::Candidate", 90, node=2))
        requests = [DOCUMENT, SCRIPT, image]
        found = paints_of([VIEWPORT, *events], [self.RUN], requests, frame="F", hero="a.png")
        assert found["largest_paint"] == RecordedPaint([], 0, 28)

    def test_an_image_is_shown_in_the_first_frame_with_it_however_often_it_is_drawn(self) -> None:
        """It has arrived at 10; scripts that run between two frames with it do not matter."""
        image = exchange("a.png", Kind.IMAGE, 10)
        events = [*frame(30, 2), event("firstContentfulPaint", 45), *frame(72, 2)]
        events.append(event("largestContentfulPaint::Candidate", 90, node=2))
        requests = [DOCUMENT, SCRIPT, image]
        found = paints_of([VIEWPORT, *events], [self.RUN], requests, frame="F", hero="a.png")
        assert found["largest_paint"] == RecordedPaint([], 0, 45)

    def test_a_largest_paint_in_the_first_frame_has_no_cause_of_its_own(self) -> None:
        events = [*frame(70, 1), event("firstContentfulPaint", 90)]
        events.append(event("largestContentfulPaint::Candidate", 90, node=1))
        assert [*paints(events, self.RUN)] == ["first_paint"]

    def test_a_trace_without_what_frames_show_gives_no_causes(self) -> None:
        events = [*frame(20), *frame(70), event("firstContentfulPaint", 90)]
        assert paints_of(events, [self.RUN], [DOCUMENT, SCRIPT], frame="F") == {}


def test_an_evaluation_counts_for_the_first_module_compiled_since_the_last_one() -> None:
    tasks = [
        task("v8.compileModule", "main.js", 0, 1),
        task("v8.compileModule", "lib.js", 2, 1),
        task("v8.evaluateModule", "", 4, 30),
        task("v8.compileModule", "late.js", 40, 1),
        task("v8.evaluateModule", "", 50, 5),
    ]
    work = work_of(tasks)
    run_ms = {url: work[url].execute_ms for url in ("main.js", "lib.js", "late.js")}
    assert run_ms == {"main.js": 30, "lib.js": 0, "late.js": 5}


def test_an_inline_script_counts_for_the_script_that_blocked_the_parser_before_it() -> None:
    """Those before it, and those after a script that blocks nothing, count for the document."""
    tasks = [
        task("EvaluateScript", "/", 0, 3),
        task("EvaluateScript", "async.js", 10, 1),
        task("EvaluateScript", "/", 20, 4),
        task("EvaluateScript", "a.js", 30, 10),
        task("EvaluateScript", "/", 50, 70),
    ]
    blocking = replace(SCRIPT, blocking="in_body_parser_blocking")
    work = work_of(tasks, [DOCUMENT, replace(SCRIPT, url="async.js"), blocking])
    assert (work["/"].execute_ms, work["a.js"].execute_ms) == (3 + 4, 10 + 70)

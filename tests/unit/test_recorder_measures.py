"""Work from a trace, visible shares, several recordings of one page, header lists: by hand."""

from __future__ import annotations

import json
from typing import Any

from h3sim.importers.chromium.recording import differences, largest_url, merged, painted_rectangles
from h3sim.importers.formats.devtools import RecordedExchange
from h3sim.importers.header_lists import request_lists, response_lists, to_qif
from h3sim.importers.trace_tasks import CpuTime, TraceTask, task_of, work_of
from h3sim.page import Discovery, Kind, Layout, Page, Rectangle, Resource, TriggerEvent


def span(
    name: str, url: str, start: int, cpu: int, key: str = "url", **more: Any
) -> TraceTask | None:
    outer = "beginData" if name == "ParseHTML" else "data"
    made = {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": cpu, "tdur": cpu}
    return task_of(made | {"args": {outer: {key: url}}} | more)


def test_a_script_inside_the_parser_counts_for_itself() -> None:
    found = work_of(
        [
            span("EvaluateScript", "a.js", 2_000, 5_000),
            span("ParseHTML", "/", 0, 10_000),
            span("v8.compile", "a.js", 2_500, 1_000),
            span("EvaluateScript", "/", 8_000, 500),
        ]
    )
    assert found["a.js"] == CpuTime(parse_ms=1.0, execute_ms=4.0, started_us=2_000)
    assert found["/"] == CpuTime(parse_ms=4.5, execute_ms=0.5, started_us=0)


def test_pieces_add_up_and_other_threads_do_not_mix() -> None:
    found = work_of(
        [
            span("ParseAuthorStyleSheet", "a.css", 0, 3_000, "styleSheetUrl"),
            span("ParseAuthorStyleSheet", "a.css", 9_000, 1_000, "styleSheetUrl"),
            span("EvaluateScript", "worker.js", 1_000, 1_000, tid=2),
            span("Layout", "a.css", 0, 9_000),
        ]
    )
    assert (found["a.css"].parse_ms, found["worker.js"].execute_ms) == (4.0, 1.0)


def test_cpu_time_counts_and_not_the_clock() -> None:
    waited = span("EvaluateScript", "a.js", 0, 2_000, dur=90_000)
    assert work_of([waited])["a.js"].execute_ms == 2.0


FACES = [
    {"fontFamily": "Lato", "fontWeight": "400", "fontStyle": "normal", "src": "lato-400"},
    {"fontFamily": "Lato", "fontWeight": "700", "fontStyle": "normal", "src": "lato-700"},
    {"fontFamily": "Lato", "fontWeight": "400", "fontStyle": "italic", "src": "lato-italic"},
    {"fontFamily": "Between", "fontWeight": "600", "fontStyle": "normal", "src": "between-600"},
    {"fontFamily": "Between", "fontWeight": "400", "fontStyle": "normal", "src": "between-400"},
    {"fontFamily": '"Wide"', "fontWeight": "100 900", "fontStyle": "normal", "src": "wide"},
]


def measured(images: dict[str, Any], texts: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"viewport": [50, 20], "images": images, "texts": texts or {}}


def test_rectangles_are_cut_off_at_the_viewport_and_tiny_ones_are_left_out() -> None:
    images = {
        "a.png": [[0, 0, 10, 25], [-5, 15, 10, 10]],
        "b.png": [[60, 0, 10, 10]],
        "pixel.gif": [[1, 1, 0.1, 0.1]],
    }
    found = painted_rectangles(measured(images), [])
    assert found == {
        "a.png": (
            Rectangle(x=0, y=0, width=10, height=20),
            Rectangle(x=0, y=15, width=5, height=5),
        )
    }
    assert Layout(width=50, height=20, rectangles=found).share("a.png") == 0.225


def test_a_text_belongs_to_the_first_web_font_of_its_list_in_the_nearest_weight() -> None:
    def font_of(families: str, weight: str, slope: str = "normal") -> list[str]:
        texts = {json.dumps([families, weight, slope]): [[0, 0, 10, 10]]}
        return [*painted_rectangles(measured({}, texts), FACES)]

    assert font_of("Georgia, lato, Wide", "400") == ["lato-400"]
    assert font_of('"Lato"', "600") == ["lato-700"]
    assert font_of("Lato", "700", "italic") == ["lato-italic"]
    assert font_of("Wide", "350") == ["wide"]
    # Of faces as far off on either side the browser takes one (CSS Fonts 4 § 5.2).
    assert font_of("Between", "500") == ["between-400"]
    assert font_of("Between", "550") == ["between-600"]
    assert font_of("Georgia, serif", "400") == []


def test_the_largest_paint_is_an_image_or_the_font_of_a_text() -> None:
    text = {"at_ms": 1, "url": "", "font": ["Lato", "400", "normal"]}
    assert largest_url({"largest": text | {"url": "hero.jpg"}}, FACES) == "hero.jpg"
    assert largest_url({"largest": text}, FACES) == "lato-400"
    assert largest_url({"largest": text}, []) == ""
    assert largest_url({"largest": None}, FACES) == ""


def page(delay_ms: int, *, by: str = "/", size: int = 9, hero: bool = False) -> Page:
    found = Discovery(at=TriggerEvent.COMPLETE, by=by, delay_ns=delay_ms * 10**6)
    other = Discovery(at=TriggerEvent.COMPLETE, by="/")
    return Page(
        name="p",
        resources=(
            Resource(
                id="/", kind=Kind.DOCUMENT, size_bytes=100, parse_ns=delay_ms, server_ns=delay_ms
            ),
            Resource(id="a", kind=Kind.SCRIPT, size_bytes=9, discovered=other),
            Resource(id="b", kind=Kind.IMAGE, size_bytes=size, discovered=found, hero=hero),
        ),
    )


def test_the_times_of_several_recordings_are_medians() -> None:
    pages = [page(9), page(2), page(4)]
    middle, position = merged(pages)
    assert (middle, position) == (page(4), 0)
    assert differences(pages, position) == []


def test_the_most_frequent_graph_wins_and_what_differs_is_reported() -> None:
    pages = [page(1, by="a"), page(2), page(6), page(3, hero=True)]
    middle, position = merged(pages)
    assert (middle, position) == (page(2), 1)
    assert differences(pages, position) == [
        "b: image ('/', 'complete') auto or image ('a', 'complete') auto"
    ]


def test_a_resource_that_is_not_in_every_recording_is_reported() -> None:
    shorter = Page(name="p", resources=page(1).resources[:2])
    assert differences([page(1), shorter, page(1)], 0) == ["b: in 2 of 3 recordings"]


def exchange(**more: Any) -> RecordedExchange:
    made = RecordedExchange(
        key="",
        hop_id="1/0",
        url="https://x/a?secret=1",
        type="Document",
        frame_id="f",
        start_ms=0.0,
        priorities=[(0.0, "VeryHigh")],
        status=200,
    )
    for field, value in more.items():
        setattr(made, field, value)
    return made


def test_header_lists_hold_no_secrets() -> None:
    sent = (("Host", "x"), ("Cookie", "id=7"), ("Referer", "https://y/?q=me"), ("Accept", "*/*"))
    got = (("Set-Cookie", "id=8"), ("Location", "/b?token=9"), ("Server", "s"))
    made = exchange(request_fields=sent, response_fields=got)
    assert to_qif(request_lists([made])) == (
        ":method\tGET\n:scheme\thttps\n:authority\tx\n:path\t/a\nreferer\thttps://y/\naccept\t*/*\n\n"
    )
    assert to_qif(response_lists([made])) == ":status\t200\nlocation\t/b\nserver\ts\n\n"

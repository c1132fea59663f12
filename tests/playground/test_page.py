"""The playground in a real Chromium: what it shows, what it asks for, who can use it."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

import h3sim
from h3sim.page import page_from_dict
from h3sim.reporting.lane_layout import window_of
from tests.recordings import entry, har

if TYPE_CHECKING:
    from pathlib import Path

    from tests.playground.browsing import Tab

pytestmark = pytest.mark.chromium

STRIPS = "[...document.querySelectorAll('.lane > canvas[role=img]')]"
GHOSTS = "[...document.querySelectorAll('.lane > canvas.ghost')]"
MARKUP = '<img src=//evil.test/x onerror="document.title=1"><script>document.title=2</script>'
TAB_KEY, ESCAPE, SPACE, RIGHT = 9, 27, 32, 39
LESSON = ("One link", "What should", "The send buffer", "Head-of-line", "When round robin")
# What reaches the goal of each step, as changes of controls.
SOLUTIONS: tuple[dict[str, str], ...] = (
    {"rate": "5"},
    {"scheme": "bucket-html"},
    {"buffer": "4"},
    {"transport": "quic"},
    {"page": "http2rulez"},
)


def figures(tab: Tab) -> dict[str, list[str]]:
    """Return the table of figures: by scheme, the cells as text."""
    rows = tab.value(
        "[...document.querySelectorAll('#figures tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return {name: cells for name, *cells in rows}


def text_of(tab: Tab, id_: str) -> str:
    return str(tab.value(f"document.getElementById({json.dumps(id_)}).textContent"))


def choose(tab: Tab, scheme: str) -> None:
    tab.value(f"document.querySelector('#schemes [value={json.dumps(scheme)}]').click()")
    tab.settle()


def give_file(tab: Tab, path: Path, *, until: str) -> None:
    """Choose the file in the dialogue that opens, and wait for what comes of it."""
    root = tab.call("DOM.getDocument")["root"]["nodeId"]
    node = tab.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    tab.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])
    tab.wait_for(until)
    tab.settle()


def page_document(name: str) -> dict[str, Any]:
    found = {"by": "index.html", "at": "request"}
    resources = [
        {"id": "index.html", "bytes": 5000, "kind": "document", "above_the_fold": True},
        {"id": f"{name}.jpg", "bytes": 90000, "kind": "image", "discovered": found},
    ]
    return {"format": "h3sim-page/1", "name": name, "resources": resources}


def expected(page: str, scheme: str, **options: Any) -> list[str]:
    """Return the first cells of a row of figures, worked out here."""
    load = h3sim.simulate(page, scheme=scheme, **options)
    return [f"{load.byte_index():,.1f}", f"{load.byte_index('atf'):,.1f}"]


def test_the_figures_are_those_of_h3sim_and_follow_the_sliders(tab: Tab) -> None:
    tab.go("page=davies-meenan&schemes=rr+fifo")
    assert {name: row[:2] for name, row in figures(tab).items()} == {
        scheme: expected("davies-meenan", scheme) for scheme in ("rr", "fifo")
    }
    tab.change("rate", "5", "input")
    tab.change("loss", "4", "input")
    choose(tab, "fifo")
    lossy = {"rate_mbps": 2, "rtt_ms": 0, "loss": 0.02, "transport": "quic"}
    assert figures(tab)["rr"][:2] == expected("davies-meenan", "rr", **lossy)
    assert list(figures(tab)) == ["rr"]


def test_a_link_restores_the_state(tab: Tab) -> None:
    tab.go("page=http2rulez&schemes=dfifo+spdyrr&rate=3&rtt=50&loss=1&buffer=14&transport=tcp")
    tab.change("cc", "cubic")
    tab.change("seed", "5")
    before, link = figures(tab), tab.value("document.getElementById('link').value")
    tab.go("page=davies-meenan&schemes=rr")
    assert figures(tab) != before
    tab.open(urlsplit(link).fragment)
    assert figures(tab) == before
    values = "['page', 'rate', 'rtt', 'loss', 'buffer', 'transport', 'cc', 'seed']"
    assert tab.value(f"{values}.map((id) => document.getElementById(id).value)") == [
        *("http2rulez", "6", "5", "3", "1", "tcp", "cubic", "5")
    ]
    assert text_of(tab, "rate-value") == "3 Mbit/s"


def test_what_is_not_understood_in_a_link_is_told_and_left_out(tab: Tab) -> None:
    markup = quote(MARKUP)
    tab.go(f"page={markup}&schemes=rr+{markup}&rate=fast&seed=-1&lesson=99&data=@&colour=red")
    reported = text_of(tab, "problems")
    assert [key for key in ("page", "schemes", "rate", "seed", "lesson", "data", "colour")
            if f"{key}=" not in reported] == []  # fmt: skip
    assert list(figures(tab)) == ["rr"]
    assert tab.value("document.querySelectorAll('img, #problems script').length") == 0
    assert tab.message == []


def test_a_page_of_ones_own_is_shown_its_markup_is_text_and_a_link_has_it(
    tab: Tab, tmp_path: Path
) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps(page_document(MARKUP)), encoding="utf-8")
    tab.go("schemes=rr")
    give_file(tab, path, until="document.getElementById('own')")
    assert f"{MARKUP}.jpg" in text_of(tab, "resources")
    assert tab.value("document.querySelectorAll('img').length") == 0
    before, link = figures(tab), tab.value("document.getElementById('link').value")
    tab.go("page=http2rulez")
    tab.open(urlsplit(link).fragment)
    assert figures(tab) == before
    assert f"{MARKUP}.jpg" in text_of(tab, "resources")
    assert tab.value("document.title").startswith("h3sim")
    assert tab.message == []


def test_a_recording_is_imported_and_a_broken_one_is_told(tab: Tab, tmp_path: Path) -> None:
    good, bad = tmp_path / "shop.har", tmp_path / "broken.har"
    requests = (entry("/", 0, 50, mime="text/html"), entry("/a.png", 60, 40, mime="image/png"))
    good.write_text(json.dumps(har(*requests)), encoding="utf-8")
    bad.write_text("{", encoding="utf-8")
    tab.go("schemes=rr")
    give_file(tab, good, until="!document.getElementById('imported').hidden")
    assert "found: requests 2" in text_of(tab, "imported")
    assert "a.png" in text_of(tab, "resources")
    give_file(tab, bad, until="document.getElementById('problems').textContent")
    assert "broken.har: ends at character 1" in text_of(tab, "problems")


def test_a_recording_sets_the_sliders_to_its_estimated_network(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    document = page_document("shop")
    document["recorded_load"] = {"rtt_ms": 37, "rate_mbps": 7.5}
    path.write_text(json.dumps(document), encoding="utf-8")
    tab.go("page=davies-meenan&schemes=rr")
    give_file(tab, path, until="document.getElementById('page').value === 'own page'")
    assert text_of(tab, "rate-value") == "7.5 Mbit/s"
    assert text_of(tab, "rtt-value") == "37 ms"
    load = h3sim.simulate(page_from_dict(document), scheme="rr", rate_mbps=7.5, rtt_ms=37)
    assert figures(tab)["rr"][0] == f"{load.byte_index():,.1f}"


def test_pointing_at_a_resource_shows_it_in_all_strips(tab: Tab) -> None:
    tab.go("page=davies-meenan&schemes=rr+fifo")
    drawn = f"{STRIPS}.map((each) => each.toDataURL())"
    before = tab.value(drawn)
    row = "document.querySelector('#resources [data-resource=\"7\"]')"
    tab.value(f"{row}.dispatchEvent(new PointerEvent('pointerover', {{ bubbles: true }}))")
    assert all(one != other for one, other in zip(before, tab.value(drawn), strict=True))
    loads = {name: h3sim.simulate("davies-meenan", scheme=name) for name in ("rr", "fifo")}
    ends = {
        name: next(timing.finished_ms for timing in load.timings if timing.id == "hero.jpg")
        for name, load in loads.items()
    }
    assert [line.partition(", delayed")[0] for line in answers(tab)] == [
        f"{name}: after {end_ms:,.0f} ms" for name, end_ms in ends.items()
    ]
    tab.value("document.getElementById('resources').dispatchEvent(new Event('pointerleave'))")
    assert tab.value(drawn) == before
    # Without a choice each scheme has the answer about the last resource above the fold.
    assert all(": 8\N{NO-BREAK SPACE}hero.jpg after" in line for line in answers(tab))


def answers(tab: Tab) -> list[str]:
    """Return what is said of the chosen resource, a line for each scheme."""
    lines: list[str] = tab.value(
        "[...document.querySelectorAll('#chosen p:not(.guide)')].map((line) => line.textContent)"
    )
    return lines


def delays_ms(load: h3sim.Load, *awaited: str) -> dict[str, int]:
    """Return how long others were delivered until the last of *awaited*, each requested by the
    one before, was complete: where each packet takes 10 ms, their number tells it.
    """
    rows = {row.id: row for row in load.timings}
    spans = []
    for own, child in zip(awaited, (*awaited[1:], None), strict=True):
        end_ms = rows[own].finished_ms if child is None else rows[child].requested_ms
        spans.append((own, rows[own].requested_ms, min(end_ms, rows[own].finished_ms)))
    ids = {r.stream_id: load.page.resources[r.resource].id for r in load.trace.requests}
    delivered = [
        (ids[row[2]], at_ns / 1e6)
        for row, at_ns in zip(load.trace.packet_rows, load.trace.delivered_at_ns, strict=True)
        if at_ns is not None
    ]
    counts = Counter(
        id_
        for own, from_ms, to_ms in spans
        for id_, at_ms in delivered
        if id_ != own and from_ms < at_ms <= to_ms
    )
    return {id_: 10 * n for id_, n in counts.items()}


def test_the_delay_of_a_resource_counts_that_of_what_requested_it(tab: Tab) -> None:
    tab.go("page=davies-meenan&schemes=rr")
    load = h3sim.simulate("davies-meenan", scheme="rr", record_packets=True)
    expected = delays_ms(load, "index.html", "top.js", "hero.jpg")
    named = re.findall(r"\d+\N{NO-BREAK SPACE}([^ ]+) \(([\d,]+) ms\)", answers(tab)[0])
    assert {id_: int(time_ms.replace(",", "")) for id_, time_ms in named} == {
        id_: expected[id_] for id_ in sorted(expected, key=lambda id_: -expected[id_])[:4]
    }
    rest_ms = sum(sorted(expected.values())[:-4])
    assert f"and {len(expected) - 4} others ({rest_ms:,} ms)" in answers(tab)[0]
    script_ms = sum(delays_ms(load, "index.html", "top.js").values())
    assert f"2\N{NO-BREAK SPACE}top.js, which others delayed by {script_ms:,} ms" in answers(tab)[0]


def move_to(tab: Tab, selector: str) -> None:
    """Move the mouse to the middle of what *selector* finds, which must be on the screen."""
    x, y, height = tab.value(
        f"(() => {{ const box = document.querySelector({json.dumps(selector)})"
        ".getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2, innerHeight]; })()"
    )
    assert 0 <= y < height, f"{selector} is not on the screen"
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


def test_what_delayed_the_hero_image_is_found_at_once_on_a_small_screen(tab: Tab) -> None:
    size_to(tab, 1366, 768)
    tab.go()
    hero, script = (f"#legend button[data-resource='{number}']" for number in (7, 1))
    # Without a movement: what was last above the fold, and who delayed it and its script.
    answer = (
        "after 4,580 ms, delayed most by 3 hidden1.jpg (760 ms), 4 hidden2.jpg (760 ms),"
        " 5 hidden3.jpg (760 ms), 9 bottom.js (720 ms) and 3 others (460 ms). Requested after"
        " 1,860 ms by 2 top.js, which others delayed by 1,490 ms."
    )
    assert spaced(answers(tab)[0]) == f"rr: 8 hero.jpg {answer}"
    # One movement: the image by its name.
    move_to(tab, hero)
    assert spaced(answers(tab)[0]) == f"rr: {answer}"
    line = "document.querySelector('#chosen p:not(.guide)')"
    assert tab.value(f"{line}.getBoundingClientRect().bottom <= innerHeight"), "not on the screen"
    assert tab.value(f"{line}.scrollWidth <= {line}.clientWidth"), "cut"
    # Another: its script.
    move_to(tab, script)
    assert answers(tab)[0].startswith("rr: after 1,860 ms, delayed most by")
    # A click keeps the choice when the mouse goes elsewhere; another lets it go.
    for chosen in (True, False):
        tab.value(f"document.querySelector({json.dumps(hero)}).click()")
        move_to(tab, "#page")
        assert tab.value(f"document.querySelector({json.dumps(hero)}).ariaPressed") == (
            "true" if chosen else "false"
        )
        assert answers(tab)[0].startswith("rr: after" if chosen else "rr: 8")


def spaced(text: str) -> str:
    """Return *text* with spaces at which lines may break."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_a_choice_outlasts_another_window_and_network_and_no_other_page(tab: Tab) -> None:
    size_to(tab, 1366, 768)
    tab.go("page=davies-meenan&schemes=rr")
    hero = "document.querySelector('#legend button[data-resource=\"7\"]')"
    is_chosen = f"{hero}?.ariaPressed === 'true'"
    tab.value(f"{hero}.click()")
    size_to(tab, 1200, 700)
    tab.value("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
    assert tab.value(is_chosen)
    tab.change("rate", "8", "input")
    assert tab.value(is_chosen)
    tab.change("page", "http2rulez")
    assert "The last resource above the fold" in text_of(tab, "chosen")
    tab.go("page=davies-meenan&schemes=rr")
    tab.value(f"{hero}.click()")
    tab.press("Escape", ESCAPE)
    assert not tab.value(is_chosen)


def size_to(tab: Tab, width: int, height: int = 900) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    tab.call("Emulation.setDeviceMetricsOverride", **size)


def set_dark(tab: Tab, *, is_dark: bool) -> None:
    value = "dark" if is_dark else "light"
    feature = {"name": "prefers-color-scheme", "value": value}
    tab.call("Emulation.setEmulatedMedia", features=[feature])
    tab.value("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")


def test_the_cursor_has_the_time_and_the_resource_where_the_mouse_is(tab: Tab) -> None:
    size_to(tab, 1280)
    tab.go("page=davies-meenan&schemes=fifo")
    box = f"{STRIPS}[0].getBoundingClientRect()"
    left, top, width = tab.value(f"(({{left, top, width}}) => [left, top, width])({box})")
    # The strip leaves 44 px on the left and 10 px on the right; fifo sends resource 3 from 400 ms.
    x = left + 44 + (width - 54) * 800 / 4580
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=top + 10)
    tab.wait_for("!document.getElementById('cursor').hidden")
    time, _, resource = text_of(tab, "cursor-text").partition(" · ")
    assert spaced(resource) == "3 hidden1.jpg"
    assert abs(int(time.removesuffix(" ms")) - 800) <= 10


def test_the_name_at_the_cursor_stays_within_a_narrow_screen(tab: Tab) -> None:
    size_to(tab, 390, 844)
    tab.go("page=kicad-pcbnew&schemes=fifo")
    box = f"{STRIPS}[0].getBoundingClientRect()"
    left, top, width = tab.value(f"(({{left, top, width}}) => [left, top, width])({box})")
    for share in (0.2, 0.5, 0.95):
        x = left + share * width
        tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=top + 10)
        tab.wait_for("!document.getElementById('cursor').hidden")
        text = "document.getElementById('cursor-text').getBoundingClientRect()"
        assert tab.value(f"{text}.left") >= 0
        assert tab.value(f"{text}.right") <= 390


def test_a_chosen_resource_is_marked_below_its_packets_alone(tab: Tab) -> None:
    size_to(tab, 1366, 768)
    tab.go("page=kicad-pcbnew&schemes=fifo")
    # The marks are of one colour, whose pixels in the row above the marks of lost packets count.
    marked = (
        f"(() => {{ const strip = {STRIPS}[0], copy = new OffscreenCanvas(strip.width, 1);"
        " const context = copy.getContext('2d', { willReadFrequently: true });"
        " context.drawImage(strip, 0, 9 - strip.height);"
        " const { data } = context.getImageData(0, 0, strip.width, 1);"
        " return [...Array(strip.width).keys()].filter((x) => data[4 * x] === 0xb0"
        " && data[4 * x + 1] === 0x30 && data[4 * x + 2] === 0x7a); })()"
    )
    assert tab.value(marked) == []
    row = "#resources tbody tr[data-resource='33']"
    tab.value(f"document.querySelector({json.dumps(row)}).scrollIntoView({{ block: 'center' }})")
    move_to(tab, row)
    load = h3sim.simulate("kicad-pcbnew", scheme="fifo")
    timing = next(each for each in load.timings if load.page.index[each.id] == 33)
    width = tab.value(f"{STRIPS}[0].getBoundingClientRect().width")
    ms_per_px = window_of([load]).end_ms / (width - 54)
    columns = tab.value(marked)
    assert abs(columns[-1] - (44 + timing.finished_ms / ms_per_px)) <= 2
    assert abs(columns[0] - (44 + timing.first_byte_ms / ms_per_px)) <= 2


def test_strips_and_curves_share_their_axis(tab: Tab) -> None:
    size_to(tab, 1280)
    tab.go("page=davies-meenan&schemes=fifo")
    ends = "(e) => [e.getBoundingClientRect().left, e.getBoundingClientRect().width]"
    every = f"[...{STRIPS}, document.getElementById('axis'), document.getElementById('curves')]"
    assert len({tuple(each) for each in tab.value(f"{every}.map({ends})")}) == 1


def test_the_state_before_stays_below_on_the_same_axis_until_it_is_switched_off(tab: Tab) -> None:
    tab.go("page=http2rulez&schemes=fifo")
    tab.go("page=davies-meenan&schemes=fifo")
    # Another page cannot be compared.
    assert tab.value(f"{GHOSTS}.filter((each) => !each.hidden).length") == 0
    tab.change("rate", "8", "input")
    assert tab.value(f"{GHOSTS}.filter((each) => !each.hidden).length") == 1
    slow_ms = h3sim.simulate("davies-meenan", scheme="fifo").byte_index("atf")
    assert f"(before: {slow_ms:,.0f} ms)" in text_of(tab, "lanes")
    shared = tab.value(f"{STRIPS}[0].toDataURL()")
    tab.value("document.getElementById('compare').click()")
    assert tab.value(f"{GHOSTS}.filter((each) => !each.hidden).length") == 0
    # Alone, the faster state has the axis for itself.
    assert tab.value(f"{STRIPS}[0].toDataURL()") != shared
    tab.value("document.getElementById('compare').click()")


def test_a_held_axis_does_not_follow_a_faster_network(tab: Tab) -> None:
    tab.go("page=davies-meenan&schemes=fifo")
    tab.value("document.getElementById('compare').click()")
    axis = "document.getElementById('axis').toDataURL()"
    before = tab.value(axis)
    tab.value("document.getElementById('hold').click()")
    tab.change("rate", "8", "input")
    assert tab.value(axis) == before
    tab.value("document.getElementById('hold').click()")
    assert tab.value(axis) != before
    tab.value("document.getElementById('compare').click()")


def test_in_the_dark_paper_is_dark_and_pictures_are_drawn_anew(tab: Tab) -> None:
    tab.go("page=davies-meenan&schemes=fifo")
    paper = "getComputedStyle(document.body).backgroundColor"
    curves = "document.getElementById('curves').toDataURL()"
    light, drawn = tab.value(f"[{paper}, {curves}]")
    set_dark(tab, is_dark=True)
    # The browser tells the page of the change when it comes to it.
    tab.wait_for(f"{curves} !== {json.dumps(drawn)}")
    assert tab.value(paper) != light
    set_dark(tab, is_dark=False)
    tab.wait_for(f"{curves} === {json.dumps(drawn)}")
    assert tab.value(paper) == light


def test_a_phone_shows_results_before_controls_and_never_scrolls_sideways(tab: Tab) -> None:
    size_to(tab, 390, 844)
    tab.go("page=davies-meenan&schemes=rr+fifo")
    top = "(id) => document.getElementById(id).getBoundingClientRect().top"
    lanes, lesson, controls = tab.value(f"['lanes', 'lesson', 'controls'].map({top})")
    assert lanes < 844 / 2
    assert lanes < lesson < controls
    assert tab.value("document.documentElement.scrollWidth") == 390
    # What is tapped is answered on the screen, over whatever is there; another tap ends that.
    tap = "document.querySelector('#legend button[data-resource=\"7\"]').click()"
    on_top = (
        "(() => { const box = document.querySelector('#chosen p:not(.guide)')"
        ".getBoundingClientRect(); return document.elementFromPoint(box.x + 5, box.y + 5)"
        "?.closest('#chosen') !== null && box.bottom <= innerHeight })()"
    )
    tab.value(f"{tap}; scrollTo(0, 0)")
    assert tab.value(on_top)
    tab.value(f"{tap}; scrollTo(0, 0)")
    size_to(tab, 1280)


def test_lecture_mode_has_larger_type_and_is_part_of_the_link(tab: Tab) -> None:
    tab.go("schemes=fifo")
    height = "document.querySelector('.lane > canvas[role=img]').getBoundingClientRect().height"
    size = "parseFloat(getComputedStyle(document.body).fontSize)"
    before = tab.value(f"[{size}, {height}]")
    tab.value("document.getElementById('lecture').click()")
    tab.settle()
    assert all(
        large > 1.2 * small
        for small, large in zip(before, tab.value(f"[{size}, {height}]"), strict=True)
    )
    assert "lecture=1" in tab.value("document.getElementById('link').value")
    tab.go("schemes=fifo")
    assert tab.value(f"[{size}, {height}]") == before


def test_embedded_it_shows_results_and_starts_python_with_the_first_change(tab: Tab) -> None:
    # Another page of the same host has it in a frame.
    tab.visit("catalogue.json")
    frame = "document.getElementById('embedded')"
    tab.value(
        "document.body.append(Object.assign(document.createElement('iframe'),"
        " { id: 'embedded', src: '/', width: 900, height: 700 }))"
    )
    inner = f"{frame}.contentDocument"
    tab.wait_for(f"{inner}?.getElementById('results')?.ariaBusy === 'false'")
    rows = f"{inner}.querySelectorAll('#figures tbody tr').length"
    assert tab.value(rows) == 4
    assert tab.value(f"{inner}.getElementById('loading').hidden")
    tab.value(
        f"(() => {{ const rate = {inner}.getElementById('rate'); rate.value = '8';"
        " rate.dispatchEvent(new Event('input')) })()"
    )
    assert not tab.value(f"{inner}.getElementById('loading').hidden")
    tab.wait_for(f"{inner}.getElementById('results').ariaBusy === 'false'")
    assert tab.value(f"{inner}.getElementById('loading').hidden")
    # The page around it, a file of the site, has no icon; nothing else was said.
    assert [line for line in tab.message if "favicon.ico" not in line] == []
    tab.message.clear()
    tab.open()


def test_each_step_of_the_lesson_is_reached_by_its_answer_and_not_before(tab: Tab) -> None:
    tab.go()
    for title, solution in zip(LESSON, SOLUTIONS, strict=True):
        tab.value("document.getElementById('lesson-next').click()")
        tab.settle()
        assert title in text_of(tab, "lesson-title")
        assert text_of(tab, "goal") == "Not yet reached."
        for control, value in solution.items():
            if control == "scheme":
                choose(tab, value)
            else:
                tab.change(control, value, "input" if value.isdigit() else "change")
        assert text_of(tab, "goal") == "✓ Reached.", title
    assert tab.value("document.getElementById('lesson-next').hidden")
    assert tab.message == []


def test_the_keyboard_alone_moves_a_slider_and_picks_a_scheme(tab: Tab) -> None:
    tab.go("schemes=rr")
    tab.value("document.getElementById('file').focus()")
    tab.press("Tab", TAB_KEY)
    assert tab.value("document.activeElement.id") == "rate"
    tab.press("ArrowRight", RIGHT)
    tab.settle()
    assert text_of(tab, "rate-value") == "1.5 Mbit/s"
    assert tab.value("document.activeElement.getAttribute('aria-valuetext')") == "1.5 Mbit/s"
    while tab.value("document.activeElement.value") != "wrr":
        tab.press("Tab", TAB_KEY)
        assert tab.value("document.activeElement !== document.body")
    tab.press(" ", SPACE)
    tab.wait_for("document.querySelectorAll('#figures tbody tr').length === 2")
    assert list(figures(tab)) == ["rr", "wrr"]


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (1280, True), (400, True)])
@pytest.mark.parametrize("fragment", ["", "page=sklearn-svc&loss=1&rtt=50&rate=5&lesson=4"])
def test_axe_finds_nothing_serious(
    tab: Tab, axe: str, fragment: str, width: int, is_dark: bool
) -> None:
    size_to(tab, width)
    set_dark(tab, is_dark=is_dark)
    tab.go(fragment)
    tab.value(f"{axe}; undefined")
    found = tab.value("axe.run().then(({violations, passes}) => ({violations, n: passes.length}))")
    set_dark(tab, is_dark=False)
    assert found["n"] > 20
    assert [(each["id"], [node["html"] for node in each["nodes"]])
            for each in found["violations"]] == []  # fmt: skip


def test_every_control_has_a_label(tab: Tab) -> None:
    tab.go()
    unlabelled = "[...document.querySelectorAll('input, select')].filter((c) => !c.labels.length)"
    assert tab.value("document.querySelectorAll('input, select').length") > 50
    assert tab.value(f"{unlabelled}.map((control) => control.id)") == []


def test_each_picture_says_in_words_what_it_shows(tab: Tab) -> None:
    tab.go("schemes=fifo")
    pictures = "[...document.querySelectorAll('canvas[role=img]')]"
    labels = tab.value(f"{pictures}.map((picture) => picture.getAttribute('aria-label'))")
    assert labels == [
        "Strip of fifo: 458 packets, the last resource is complete after 4,580 ms; what is above"
        " the fold is complete after 3,860 ms.",
        "Share of the bytes in complete resources, over time: fifo has half after 3,860 ms.",
    ]


def test_no_other_host_is_asked_for_anything_and_the_console_stays_empty(tab: Tab) -> None:
    tab.open("page=http2rulez&schemes=rr")
    assert tab.hosts == {tab.host}
    assert tab.message == []


def test_a_client_before_a_server_can_be_added_and_taken_away(tab: Tab) -> None:
    tab.go("page=davies-meenan&schemes=rr")
    tab.value("document.getElementById('client').value = 'safari'")
    tab.value("document.getElementById('server').value = 'quic-go'")
    tab.value("document.getElementById('add-pair').click()")
    tab.settle()
    assert "safari before quic-go" in figures(tab)
    assert "safari%7Equic-go" in str(tab.value("location.hash"))
    choose(tab, "safari before quic-go")
    assert "safari before quic-go" not in figures(tab)

"""Reports in a real Chromium: nothing fetched, nothing wrong, and markup in names is text.

axe-core looks as well where $AXE_CORE names its file; `make check-report` brings it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.reporting import LoadPlots
from h3sim.reporting.race import differences_of
from tools.check_report import errors_in, hostile_page, subjects
from tools.open_page import browser

if TYPE_CHECKING:
    from tools.open_page import OpenPage

pytestmark = pytest.mark.chromium


def axe() -> str | None:
    path = os.environ.get("AXE_CORE")
    return None if path is None else Path(path).read_text("utf-8")


def test_reports_and_animations_have_no_mistake_in_a_browser(tmp_path: Path) -> None:
    with browser() as open_page:
        found = {path.name: list(errors_in(open_page(path), axe())) for path in subjects(tmp_path)}
    assert len(found) == 8
    assert found == {name: [] for name in found}


@pytest.mark.usefixtures("unpainted")
def test_a_timeline_lights_up_a_resource_zooms_and_answers_to_keys(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    h3sim.report([h3sim.simulate(hostile_page(), scheme=name) for name in ("rr", "fifo")]).save(
        path
    )
    with browser() as open_page:
        page = open_page(path)

        def reported() -> str:
            page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            return str(page.evaluate("document.querySelector('.timeline output').textContent"))

        def ink() -> list[str]:
            """What is painted on either canvas."""
            reported()
            return list(page.evaluate(_INK))

        before = ink()
        assert "img src=x" in page.evaluate("document.querySelector('.timeline tbody').textContent")
        page.evaluate("document.querySelector('.timeline .stage').focus()")
        _press(page, "ArrowDown", "ArrowDown")
        assert "2 a.png" in reported()
        assert "image: 50,000 bytes" in reported()
        marked = "document.querySelector('.timeline tr.on th').textContent"
        assert str(page.evaluate(marked)).startswith("2 a.png")
        chosen = ink()
        assert chosen[0] == before[0]
        assert chosen[1] != before[1]
        _press(page, "+", "+")
        assert ink()[0] != before[0]
        _press(page, "Escape", "Home")
        assert ink()[0] == before[0]
        assert "a.png" not in reported()
        page.evaluate(_HOVER)
        assert "1 /" in reported()
        page.settle()
        assert page.problems == []
        assert page.evaluate("document.title") != "taken"


def _press(page: OpenPage, *keys: str) -> None:
    for key in keys:
        event = f"new KeyboardEvent('keydown', {{ key: {key!r}, cancelable: true }})"
        page.evaluate(f"document.querySelector('.timeline .stage').dispatchEvent({event})")


def _n_matters(page: OpenPage) -> int:
    data = "JSON.parse(document.querySelector('.timeline script').textContent)[0].matters.length"
    return int(page.evaluate(data))


@pytest.mark.usefixtures("unpainted")
def test_rows_of_a_large_page_fold_by_kind_and_open(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    load = h3sim.simulate("dijit-bidi-inheritance", scheme="rr")
    h3sim.report(load).save(path)
    with browser() as open_page:
        page = open_page(path)

        def state() -> tuple[str, int]:
            page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            return page.evaluate(_INK)[0], int(page.evaluate(_HEIGHT))

        folded = state()
        assert page.evaluate("document.querySelector('[data-do=fold]').checked")
        page.evaluate("document.querySelector('[data-do=fold]').click()")
        assert state()[1] > folded[1]
        page.evaluate("document.querySelector('[data-do=fold]').click()")
        assert state() == folded
        # 23 resources that mattered have rows of their own, above the groups of stylesheets and
        # fetches. The 25 rows fill 420 pixels; a click opens and closes a group.
        assert _n_matters(page) == 23
        page.evaluate(_CLICK_ROW.replace("ROW", str(120 + 23.5 * 420 / 25)))
        # With its 22 stylesheets there are 47 rows of 12 pixels.
        assert state()[1] == folded[1] + 47 * 12 - 420
        page.evaluate(_CLICK_ROW.replace("ROW", str(120 + 23.5 * 12)))
        assert state() == folded
        _press(page, "ArrowDown", "Enter")  # the document, which is in no group
        assert state()[1] == folded[1]
        _press(page, *["ArrowDown"] * 7, "Enter")  # the first stylesheet of the group
        assert state()[1] == folded[1] + 47 * 12 - 420
        assert page.problems == []


def test_a_race_plays_steps_and_finds_the_next_difference(tmp_path: Path) -> None:
    path = tmp_path / "race.html"
    loads = [h3sim.simulate("davies-meenan", scheme=name) for name in ("rr", "bucket-html")]
    LoadPlots(loads).race(path)
    differences = differences_of(loads)
    with browser() as open_page:
        page = open_page(path)

        def status() -> str:
            return str(page.evaluate("document.getElementById('status').textContent"))

        def press(key: str) -> None:
            event = f"new KeyboardEvent('keydown', {{ key: {key!r}, bubbles: true }})"
            page.evaluate(f"document.querySelector('h1').dispatchEvent({event})")

        # It opens at the start.
        assert status() == "At 0 ms: rr 0 of 4 complete, bucket-html 0 of 4 complete."
        pages = "[...document.querySelectorAll('.lanes canvas')].map((each) => each.toDataURL())"
        empty = page.evaluate(pages)
        for each in differences:
            press("d")
            assert f"At {each.at_ms:,.0f} ms: " in status()
        assert page.evaluate(pages) != empty
        press("ArrowLeft")
        assert f"At {differences[-1].at_ms:,.0f} ms: " not in status()
        # Clocks and film write times as the status does.
        press("Home")
        press("d")
        clock = page.evaluate("document.getElementById('clock-0').textContent")
        assert clock.startswith(f"{differences[0].at_ms:,.0f} ms: ")
        press(" ")
        assert page.evaluate("document.getElementById('play').textContent") == "Pause"
        press(" ")
        assert page.evaluate("document.getElementById('play').textContent") == "Play"
        assert page.problems == []


@pytest.mark.usefixtures("unpainted")
def test_a_timeline_has_a_panel_of_the_wire_only_where_something_is_on_it(tmp_path: Path) -> None:
    heights = []
    with browser() as open_page:
        for network in ("marx-2019", "cable"):
            load = h3sim.simulate("davies-meenan", scheme="rr", network=network)
            h3sim.report(load).save(tmp_path / f"{network}.html")
            page = open_page(tmp_path / f"{network}.html")
            heights.append(page.evaluate(_HEIGHT))
            center = "{ clientX: box.left + box.width / 2, clientY: box.top + 40, bubbles: true }"
            page.evaluate(
                "(() => { const stage = document.querySelector('.timeline .stage'),"
                " box = stage.getBoundingClientRect();"
                f" stage.dispatchEvent(new PointerEvent('pointermove', {center})) }})()"
            )
            page.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
            words = page.evaluate("document.querySelector('.timeline output').textContent")
            assert ("on the wire" in words) == (network == "cable")
    assert heights[0] < heights[1]


_HEIGHT = "document.querySelector('.timeline canvas').clientHeight"
_CLICK_ROW = """
(() => {
  const stage = document.querySelector(".timeline .stage"), box = stage.getBoundingClientRect();
  stage.setPointerCapture = () => {};
  for (const name of ["pointerdown", "pointerup"]) {
    const at = { clientX: box.left + 60, clientY: box.top + ROW };
    stage.dispatchEvent(new PointerEvent(name, at));
  }
})()
"""
_INK = "[...document.querySelectorAll('.timeline canvas')].map((canvas) => canvas.toDataURL())"
_HOVER = """
document.querySelector(".timeline tbody tr").dispatchEvent(new PointerEvent("pointerenter"))
"""


def test_mistakes_are_found_where_there_are_some(tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<!DOCTYPE html><title>bad</title><style>.wide { overflow-x: auto; width: 9rem }</style>"
        "<img src='https://example.org/a.png' onerror=\"document.title = 'taken'\">"
        f"<div class=wide>{'x' * 400}</div><script>unheard.of()</script>"
    )
    with browser() as open_page:
        found = "\n".join(errors_in(open_page(path), axe()))
    assert "unheard is not defined" in found
    assert "asks for https://example.org/a.png" in found
    assert "a name was taken for markup" in found
    assert "something cannot be reached by keyboard" in found
    assert axe() is None or "axe: image-alt" in found

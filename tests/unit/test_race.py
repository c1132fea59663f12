"""Races: which boxes a page has, when loads differ, and what the file holds."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.cli import main
from h3sim.page import Page
from h3sim.reporting import LoadPlots
from h3sim.reporting.race import differences_of, picture_of, words_of
from h3sim.values.errors import InputError
from tests.helpers import page_of
from tools.check_report import hostile_page
from tools.figures import page_named

if TYPE_CHECKING:
    from pathlib import Path

CHILD = {"by": "/", "at": "complete"}
PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 1400, "above_the_fold": True},
    {"id": "a.png", "kind": "image", "bytes": 2800, "above_the_fold": True, "discovered": CHILD},
    {"id": "b.js", "kind": "script", "bytes": 1400, "above_the_fold": True, "discovered": CHILD},
    {"id": "c.png", "kind": "image", "bytes": 1400, "discovered": CHILD},
)

UNMARKED = page_of(
    {"id": "/", "kind": "document", "bytes": 1400},
    {"id": "a.png", "kind": "image", "bytes": 2800, "discovered": CHILD},
)


@pytest.mark.parametrize("n_resources", [9, 120, 600])
def test_boxes_fill_the_viewport_and_do_not_overlap(n_resources: int) -> None:
    boxes = picture_of(page_named(f"synthetic-{n_resources}")).boxes
    assert sum(box.width * box.height for box in boxes) == pytest.approx(480 * 300)
    for index, box in enumerate(boxes):
        assert box.left >= 0
        assert box.left + box.width <= 480 + 1e-6
        assert box.top + box.height <= 300 + 1e-6
        for other in boxes[index + 1 :]:
            assert (
                other.top >= box.top + box.height - 1e-6
                or other.left >= box.left + box.width - 1e-6
            )


def test_boxes_have_the_recorded_shares_as_areas() -> None:
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 9000, "above_the_fold": True},
        {"id": "a.png", "kind": "image", "bytes": 10, "above_the_fold": True, "viewport": 0.5,
         "discovered": CHILD},
        {"id": "b.png", "kind": "image", "bytes": 9000, "discovered": CHILD},
    )  # fmt: skip
    # The image covers half of the viewport, whatever its bytes; the document has the rest.
    areas = {box.resource: box.width * box.height for box in picture_of(page).boxes}
    assert areas == pytest.approx({0: 72_000, 1: 72_000})


def test_loads_differ_from_the_first_completion_until_the_last() -> None:
    # A packet each 10 ms: fifo has a.png at 30 and b.js at 40 ms; in turn b.js is first, at 30.
    loads = [h3sim.simulate(PAGE, scheme=scheme) for scheme in ("fifo", "rr")]
    finished = {
        scheme: {row.id: row.finished_ms for row in load.timings}
        for scheme, load in zip(("fifo", "rr"), loads, strict=True)
    }
    found = differences_of(loads)
    expected = sorted(
        (min(times), index, (times.index(min(times)),))
        for index, id_ in enumerate(("/", "a.png", "b.js"))
        if len(set(times := [finished["fifo"][id_], finished["rr"][id_]])) == 2
    )
    assert [tuple(each) for each in found] == expected
    assert len(found) == 2
    assert "complete after 40 ms with fifo" in words_of(loads, ["fifo", "rr"])[0]


def test_words_say_which_resources_have_boxes() -> None:
    def boxes_of(page: Page) -> str:
        return words_of([h3sim.simulate(page, scheme="rr")], ["rr"])[1].partition(";")[0]

    assert boxes_of(PAGE) == "Boxes stand for the 3 resources above the fold"
    assert boxes_of(UNMARKED) == "Boxes stand for the 2 resources"
    assert boxes_of(page_named("synthetic-1200")).startswith("Boxes stand for the 120 largest of")


def test_no_packet_is_on_the_wire_before_its_resource_was_requested(tmp_path: Path) -> None:
    path = tmp_path / "race.html"
    load = h3sim.simulate("davies-meenan", scheme="rr")
    LoadPlots([load]).race(path)
    found = re.search(r'id="race">(.*?)</script>', path.read_text("utf-8"))
    assert found is not None
    requested_ms = {load.page.index[row.id]: row.requested_ms for row in load.timings}
    packets = json.loads(found[1])["loads"][0]["packets"]
    assert len(packets) == load.packets.sent
    # Without delay each is shown for a while before it arrives, as far back as that.
    assert all(shown >= requested_ms[row] for shown, _, _, row, *_ in packets)
    assert any(shown < arrived - 10 for shown, arrived, *_ in packets)


def test_equal_loads_never_differ() -> None:
    load = h3sim.simulate(PAGE, scheme="rr")
    assert differences_of([load, load]) == []


def test_the_file_needs_nothing_else_and_names_are_no_markup(tmp_path: Path) -> None:
    loads = [h3sim.simulate(hostile_page(), scheme=scheme) for scheme in ("rr", "fifo")]
    path = tmp_path / "race.html"
    LoadPlots(loads).race(path)
    text = path.read_text("utf-8")
    assert "<img" not in text
    assert re.findall(r"(?:src|href)=\"(?!data:,)", text) == []
    assert "default-src 'none'" in text
    found = re.search(r'<script type="application/json" id="race">(.*?)</script>', text)
    assert found is not None
    data = json.loads(found[1])
    for load, own in zip(loads, data["loads"], strict=True):
        delivered = [packet for packet in own["packets"] if packet[5] is not None]
        assert sum(packet[4] for packet in delivered) == load.page.total_bytes
    again = tmp_path / "again.html"
    LoadPlots(loads).race(again)
    assert again.read_bytes() == path.read_bytes()
    with pytest.raises(InputError, match=r"\.html"):
        LoadPlots(loads).race(tmp_path / "race.gif")


def test_compare_writes_a_race_per_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "race.html"
    schemes = ["--scheme", "rr,fifo", "--send-buffer-kb", "0"]
    assert main(["compare", "davies-meenan", *schemes, "--race", str(target)]) == 0
    assert "<title>Race of davies-meenan: rr, fifo</title>" in target.read_text("utf-8")
    assert main(["compare", "davies-meenan", "dc-index", *schemes, "--race", str(target)]) == 0
    assert (tmp_path / "race-dc-index.html").exists()
    assert main(["compare", "davies-meenan", *schemes, "--race", str(tmp_path / "a.gif")]) == 2
    assert "--race: " in capsys.readouterr().err


def recorded_page(**layout: object) -> Page:
    document = PAGE.to_dict() | {"layout": {"width": 960, "height": 500, **layout}}
    return Page.from_dict(document)


def rectangle(*sides: float) -> dict[str, float]:
    return dict(zip(("x", "y", "width", "height"), sides, strict=True))


def test_boxes_are_where_the_layout_was_recorded_and_the_rest_is_below() -> None:
    # Half as large as recorded; a.png twice, and once cut off by the edge of the viewport.
    page = recorded_page(
        rectangles={
            "a.png": [rectangle(0, 0, 960, 200), rectangle(900, 300, 100, 50)],
            "c.png": [rectangle(100, 20, 40, 40)],
        }
    )
    picture = picture_of(page)
    assert (picture.width, picture.height, picture.is_recorded) == (480, 250, True)
    assert [tuple(box) for box in picture.boxes[:3]] == [
        (1, 0, 0, 480, 100),
        (1, 450, 150, 30, 25),
        (3, 50, 10, 20, 20),
    ]
    # Above the fold, but without a rectangle: the document and the script, as large as one another.
    below = picture.boxes[3:]
    assert [box.resource for box in below] == [0, 2]
    assert all(box.top > picture.height for box in below)
    assert max(box.top + box.height for box in below) == pytest.approx(picture.full_height)
    assert picture.resources == (0, 1, 2, 3)
    words = words_of([h3sim.simulate(page, scheme="rr")], ["rr"])
    assert "where they were recorded" in words[1]


def test_a_high_viewport_is_as_high_as_the_picture_may_be() -> None:
    picture = picture_of(
        recorded_page(width=400, height=800, rectangles={"a.png": [rectangle(0, 0, 400, 800)]})
    )
    assert (picture.width, picture.height) == (180, 360)


def test_a_layout_without_anything_visible_is_no_layout() -> None:
    page = recorded_page(rectangles={"a.png": [rectangle(0, 501, 10, 10)]})
    assert not picture_of(page).is_recorded
    assert page.resources[1].viewport == 0

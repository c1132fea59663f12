"""What is above the fold: inferred, read from a file, set by hand."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.browser import infer_above_the_fold, needed_for_first_paint
from h3sim.browser.above_the_fold import guessed_images, guesses
from h3sim.cli.main import main
from h3sim.importers import import_page
from h3sim.page import MarksFrom, Page, page_from_dict
from h3sim.page.model import read_marks
from h3sim.values.errors import InputError
from tests.recordings import SAMPLES, write_recording

if TYPE_CHECKING:
    from pathlib import Path


def page_of(*entries: dict[str, Any]) -> Page:
    root = {"id": "/", "kind": "document", "bytes": 10_000}
    return page_from_dict({"format": "h3sim-page/1", "name": "p", "resources": [root, *entries]})


def entry(id_: str, kind: str, at: int, **more: Any) -> dict[str, Any]:
    found = {"by": "/", "at": "offset", "offset_bytes": at}
    return {"id": id_, "kind": kind, "bytes": 5000, "discovered": found, **more}


def seen(page: Page) -> list[str]:
    return [each.id for each in infer_above_the_fold(page).resources if each.above_the_fold]


def by(parent: str) -> dict[str, str]:
    return {"by": parent, "at": "complete"}


HEAD: dict[str, Any] = {"in_head": True}


def test_what_the_first_paint_waits_for_is_above_the_fold() -> None:
    page = page_of(
        entry("a.css", "stylesheet", 100, **HEAD),
        entry("a.js", "script", 200, **HEAD),
        entry("later.js", "script", 300, defer=True, **HEAD),
        entry("async.js", "script", 400, **{"async": True}, **HEAD),
        entry("end.js", "script", 9000),
        entry("end.css", "stylesheet", 9100),
        {"id": "more.css", "kind": "stylesheet", "bytes": 9, "discovered": by("a.css")},
        {"id": "t.woff2", "kind": "font", "bytes": 9, "discovered": by("more.css")},
        {"id": "u.woff2", "kind": "font", "bytes": 9, "discovered": by("end.css")},
    )
    assert seen(page) == ["/", "a.css", "a.js", "more.css", "t.woff2"]


def test_the_first_five_images_in_document_order_are_likely_to_be_seen() -> None:
    images = [entry(f"{number}.png", "image", 5000 - 100 * number) for number in range(7)]
    page = page_of(*images)
    assert seen(page) == ["/", "2.png", "3.png", "4.png", "5.png", "6.png"]


def guessed(page: Page) -> list[list[str]]:
    found = guesses(infer_above_the_fold(page))
    assert found is not None
    return [[page.resources[index].id for index in sorted(guess)] for guess in found]


def test_other_guesses_have_none_one_ten_and_all_of_the_images() -> None:
    images = [entry(f"{number:02}.png", "image", 100 * number) for number in range(1, 13)]
    ids = [each["id"] for each in images]
    css = entry("a.css", "stylesheet", 50, **HEAD)
    always = ["/", "a.css"]
    assert guessed(page_of(css, *images)) == [
        always,
        [*always, *ids[:1]],
        [*always, *ids[:10]],
        [*always, *ids],
    ]


def test_an_image_that_is_put_off_is_above_the_fold_only_if_all_are() -> None:
    late = entry("late.png", "image", 100, lazy=True)
    assert guessed(page_of(late, entry("a.png", "image", 900))) == [
        ["/"],
        ["/", "a.png"],
        ["/", "late.png", "a.png"],
        ["/", "late.png", "a.png"],
    ]


@pytest.mark.parametrize(
    "known",
    [
        {"hero": True},
        {"fetchpriority": "high"},
        {"recorded": [{"browser": "chrome", "level": "High"}]},
    ],
    ids=str,
)
def test_what_is_known_of_an_image_is_part_of_every_guess(known: dict[str, Any]) -> None:
    page = page_of(entry("a.png", "image", 100), entry("b.png", "image", 900, **known))
    assert all("b.png" in guess for guess in guessed(page))
    assert [page.resources[index].id for index in guessed_images(infer_above_the_fold(page))] == [
        "a.png"
    ]


def test_nothing_is_guessed_of_a_page_whose_layout_was_seen() -> None:
    page = page_of(entry("a.png", "image", 100, viewport=0.2), entry("b.png", "image", 900))
    assert guesses(infer_above_the_fold(page)) is None
    assert guessed_images(infer_above_the_fold(page)) == frozenset()


@pytest.mark.parametrize("more", [{"lazy": True}, {"fetchpriority": "low"}, {"bytes": 99}], ids=str)
def test_an_image_that_is_put_off_or_a_pixel_is_none_of_the_first_five(
    more: dict[str, Any],
) -> None:
    page = page_of(entry("a.png", "image", 100, **more), entry("b.png", "image", 200, bytes=100))
    assert seen(page) == ["/", "b.png"]


def test_images_that_chrome_raised_are_those_that_it_saw() -> None:
    raised = [{"level": "Low"}, {"level": "High", "when": by("/")}]
    page = page_of(
        entry("a.png", "image", 100, recorded=[{"level": "Low"}]),
        entry("b.png", "image", 200, recorded=raised),
    )
    assert seen(page) == ["/", "b.png"]


def test_an_image_that_its_author_calls_important_is_above_the_fold_behind_five_others() -> None:
    images = [entry(f"{number}.png", "image", 100 * number) for number in range(6)]
    page = page_of(*images, entry("hero.png", "image", 9000, fetchpriority="high"))
    assert seen(page)[-1] == "hero.png"


def test_what_led_to_something_seen_is_above_the_fold_too() -> None:
    raised = [{"level": "Low"}, {"level": "High", "when": by("/")}]
    found = {"by": "a.js", "at": "executed"}
    page = page_of(
        entry("a.js", "script", 100, **{"async": True}),
        {"id": "b.png", "kind": "image", "bytes": 900, "discovered": found, "recorded": raised},
    )
    assert seen(page) == ["/", "a.js", "b.png"]


def test_marks_of_a_file_are_ids_and_globs(tmp_path: Path) -> None:
    page = page_of(entry("a[1].png", "image", 1), entry("b.png", "image", 2), entry("c", "font", 3))
    path = tmp_path / "seen.txt"
    path.write_text("# what is seen\n/\n\na[1].png\nb.*\n", encoding="utf-8")
    marked = read_marks(path, page)
    assert [each.above_the_fold for each in marked.resources] == [True, True, True, False]
    assert marked.above_the_fold_from is MarksFrom.HAND


def test_every_line_of_marks_that_names_nothing_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "seen.txt"
    path.write_text("/\nx\ny*\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_marks(path, page_of())
    assert caught.value.lines() == [
        f"{path}: line 2: 'x' matches no resource of p",
        f"{path}: line 3: 'y*' matches no resource of p",
    ]


def test_a_recording_that_knows_no_marks_gets_them_inferred_and_reports_it(tmp_path: Path) -> None:
    imported = import_page(write_recording(tmp_path, SAMPLES["har"]))
    assert imported.page.above_the_fold_from is MarksFrom.HEURISTIC
    assert imported.inferred["above the fold by heuristic"] == 3
    load = h3sim.simulate(imported.page, scheme="fifo", network="cable")
    assert load.notes[0] == ("what is above the fold was inferred from markup and order, not seen")
    assert load.to_dict()["above_the_fold"]["from"] == "heuristic"


def test_a_recording_can_be_left_without_marks(tmp_path: Path) -> None:
    path = write_recording(tmp_path, SAMPLES["har"])
    imported = import_page(path, above_the_fold="none")
    assert not imported.page.knows_above_the_fold
    assert imported.missing[0] == "what is above the fold"


def test_a_graph_of_wprofx_is_marked_by_its_own_critical_path(tmp_path: Path) -> None:
    graph = [*SAMPLES["wprofx"][:-1], {"criticalPath": ["Networking_0", "Scripting_0"]}]
    imported = import_page(write_recording(tmp_path, graph))
    marks = {each.id: (each.critical, each.above_the_fold) for each in imported.page.resources}
    assert marks == {"/": (True, True), "app.js": (True, True), "api": (False, False)}
    assert imported.page.above_the_fold_from is MarksFrom.CRITICAL_PATH
    assert "taken from WProfX's critical path" in str(
        h3sim.simulate(imported.page, network="cable").notes
    )


def test_an_inferred_page_is_read_back_as_it_was_written() -> None:
    page = infer_above_the_fold(page_of(entry("a.css", "stylesheet", 100, **HEAD)))
    assert Page.from_json(page.to_json()) == page
    assert page.to_dict()["above_the_fold_from"] == "heuristic"


def test_a_page_whose_head_names_nothing_can_be_painted_with_the_root_alone() -> None:
    assert needed_for_first_paint(page_of(entry("a.js", "script", 5000))) == [0]


# The command


def write_page(folder: Path) -> Path:
    path = folder / "page.json"
    page = page_of(entry("a.png", "image", 1, above_the_fold=True), entry("b.png", "image", 2))
    path.write_text(page.to_json(), encoding="utf-8")
    return path


def test_mark_without_a_change_lists_and_leaves_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_page(tmp_path)
    before = path.read_bytes()
    assert main(["annotate", str(path)]) == 0
    assert capsys.readouterr().out == (
        "p: 3 resources, 20,000 bytes\n"
        "above the fold: 1 of them, 5,000 bytes (by page)\n\n"
        "resource  kind       bytes  above fold\n"
        "--------  --------  ------  ----------\n"
        "/         document  10,000\n"
        "a.png     image      5,000  yes\n"
        "b.png     image      5,000\n"
    )
    assert path.read_bytes() == before


def test_mark_sets_and_unsets_by_id_and_glob(tmp_path: Path) -> None:
    path = write_page(tmp_path)
    assert main(["annotate", str(path), "--set", "*.png", "--set", "/", "--clear", "b.png"]) == 0
    document = json.loads(path.read_text(encoding="utf-8"))
    marked = [each["id"] for each in document["resources"] if each.get("above_the_fold")]
    assert (marked, document["above_the_fold_from"]) == (["/", "a.png"], "hand")


@pytest.mark.parametrize(
    "command", [["annotate", "--set", "a.png"], ["transform", "--cached", "a.png"]]
)
def test_a_changed_page_can_go_to_standard_output(
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_page(tmp_path)
    before = path.read_bytes()
    name, *options = command
    assert main([name, str(path), *options, "-o", "-"]) == 0
    printed = capsys.readouterr().out
    assert main([name, str(path), *options, "-o", str(tmp_path / "new.json")]) == 0
    assert printed == (tmp_path / "new.json").read_text(encoding="utf-8")
    assert path.read_bytes() == before
    assert not (tmp_path / "-").exists()


def test_mark_reports_every_error_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_page(tmp_path)
    before = path.read_bytes()
    assert main(["annotate", str(path), "--set", "x", "--clear", "y*", "-o", str(tmp_path)]) == 2
    reported = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in reported] == [
        *("--output", "--set", "--clear"),
    ]
    assert path.read_bytes() == before


def test_a_sweep_takes_other_marks_than_those_of_its_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_page(tmp_path)
    study, rows = tmp_path / "study.toml", tmp_path / "rows.csv"
    study.write_text('format = "h3sim-study/1"\npages = ["page.json"]\nschemes = ["fifo"]', "utf-8")
    found = []
    for choice in (["--above-the-fold", "heuristic"], ["--above-the-fold", "none"]):
        assert main(["sweep", str(study), "-j", "1", "--csv", str(rows), *choice]) == 0
        with rows.open(encoding="utf-8") as file:
            (row,) = csv.DictReader(file)
        found.append(row["byte_index_atf_ms"] != "")
    assert found == [True, False]
    assert main(["sweep", str(study), "--above-the-fold", str(tmp_path / "no.txt")]) == 2
    assert "no.txt" in capsys.readouterr().err


def test_a_run_takes_other_marks_than_those_of_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_page(tmp_path)
    for choice, n_marked in (("none", 0), ("heuristic", 3)):
        assert main(["run", str(path), "--json", "--above-the-fold", choice]) == 0
        above = json.loads(capsys.readouterr().out)["above_the_fold"]
        assert (above["resources"] or 0) == n_marked

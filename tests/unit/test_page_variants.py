"""Variants of a page by hand: what comes when, where resources are pushed, hinted at or cached."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim import Page
from h3sim.cli.main import main
from h3sim.page import transforms
from h3sim.values.errors import InputError
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

# A document of ten packets that the server thinks about for 100 ms, a stylesheet half-way through
# it, a font that this names, a script behind the document and what that asks for.
ROOT = {"id": "/", "kind": "document", "bytes": 14_000, "server_ms": 100}
STYLE = {
    "id": "a.css",
    "kind": "stylesheet",
    "bytes": 2800,
    "in_head": True,
    "parse_ms": 7,
    "discovered": {"by": "/", "at": "offset", "offset_bytes": 7000},
}
FONT = {
    "id": "f/a.woff2",
    "kind": "font",
    "bytes": 1400,
    "discovered": {"by": "a.css", "at": "executed", "delay_ms": 1},
}
SCRIPT = {
    "id": "a.js",
    "kind": "script",
    "bytes": 1400,
    "execute_ms": 30,
    "discovered": {"by": "/", "at": "complete"},
}
IMAGE = {
    "id": "b.png",
    "kind": "image",
    "bytes": 1400,
    "discovered": {"by": "a.js", "at": "executed", "delay_ms": 2},
}
PAGE = page_of(ROOT, STYLE, FONT, SCRIPT, IMAGE)


def requested(page: Page, **options: Any) -> dict[str, float]:
    """Return when each resource is asked for: a packet leaves every 10 ms, and nothing is late."""
    load = h3sim.simulate(page, scheme="fifo", **options)
    return {row.id: row.requested_ms for row in load.timings}


def test_as_written_each_waits_for_its_trigger() -> None:
    # The first of the document's packets leaves at 100 ms: the fifth is there at 140, the last at
    # 190. The stylesheet's two follow until 210, and 7 ms of parsing; the script comes at 220, and
    # runs for 30.
    assert requested(PAGE) == {"/": 0, "a.css": 140, "f/a.woff2": 218, "a.js": 190, "b.png": 252}


def test_what_is_pushed_does_not_wait_for_the_server_to_think() -> None:
    found = requested(transforms.with_push(PAGE, "stylesheet"))
    # Its two packets come at the next ticks, 10 and 20 ms; then 7 ms of parsing, and 1 of delay.
    assert found["a.css"] == 0
    assert found["f/a.woff2"] == 28


def test_early_hints_come_before_the_answer() -> None:
    page = transforms.with_early_hints(PAGE, ["a.css", "f/*"])
    assert page.resources[1].id == "(103)"
    assert page.resources[1].header_bytes == 2 * 28 + len("a.css") + len("f/a.woff2")
    found = requested(page)
    # They come with the next packet, at 10 ms, however long the server thinks of the document.
    assert (found["(103)"], found["a.css"], found["f/a.woff2"]) == (0, 10, 10)
    assert all(page.resources[page.index[id_]].preload for id_ in ("a.css", "f/a.woff2"))


def test_hints_of_a_stage_are_requested_when_the_stage_before_is_there() -> None:
    page = transforms.with_staged_hints(PAGE)
    triggers = {r.id: r.discovered for r in page.resources}
    assert {id_: when and (when.by, when.at.value) for id_, when in triggers.items()} == {
        "/": None,
        "a.css": ("/", "offset"),
        "a.js": ("/", "offset"),
        "f/a.woff2": ("a.js", "complete"),
        "b.png": ("f/a.woff2", "complete"),
    }


def test_an_empty_stage_is_passed_over() -> None:
    page = transforms.with_staged_hints(PAGE.without("a.css").without("a.js"))
    assert [r.id for r in page.resources] == ["/"]
    page = transforms.with_staged_hints(
        page_of(ROOT, {**IMAGE, "discovered": SCRIPT["discovered"]})
    )
    assert page.resources[1].discovered.offset_bytes == 0


def test_a_document_with_its_styles_in_it_names_what_they_and_scripts_requested() -> None:
    page = transforms.with_inlined_styles(PAGE, share=0.5)
    assert [r.id for r in page.resources] == ["/", "f/a.woff2", "a.js", "b.png"]
    assert page.resources[0].size_bytes == 14_000 + 1400
    # The styles are its first packet. What they name is asked for then, after their parsing; what
    # the script asked for then, too; the script itself when the document is whole.
    assert requested(page) == {"/": 0, "f/a.woff2": 108, "a.js": 200, "b.png": 100}


@pytest.mark.parametrize("of", [STYLE, SCRIPT])
def test_a_root_that_is_a_style_or_a_script_stays_what_it_was(of: dict[str, Any]) -> None:
    kept = {key: of[key] for key in of if key != "discovered"}
    root = {**kept, "id": "/", "bytes": 14_000}
    before = page_of(root, STYLE, {**IMAGE, "discovered": {"by": "/", "at": "executed"}})
    own, style, image = before.resources
    page = transforms.with_inlined_styles(before)
    grown = replace(own, size_bytes=own.size_bytes + style.size_bytes)
    assert page.resources == (grown, image)


def test_what_a_fresh_copy_asks_for_is_requested_where_that_was() -> None:
    page = transforms.with_cached(PAGE, ["a.css", "a.js"])
    assert [r.id for r in page.resources] == ["/", "f/a.woff2", "b.png"]
    # 140 ms, parsed for 7 and 1 of delay; 190 ms, run for 30 and 2 of delay.
    assert requested(page) == {"/": 0, "f/a.woff2": 148, "b.png": 222}


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_chain_of_fresh_copies_is_passed_over(is_turned: bool) -> None:
    resources = (ROOT, STYLE, FONT, {**IMAGE, "discovered": {"by": "f/a.woff2", "at": "complete"}})
    page = page_of(*(reversed(resources) if is_turned else resources))
    warm = transforms.with_cached(page, ["font", "stylesheet"])
    assert requested(warm) == {"/": 0, "b.png": 148}


def test_changes_of_priority_count_from_where_a_fresh_copy_was() -> None:
    change = {"when": {"by": "a.css", "at": "complete", "delay_ms": 3}, "visible": True}
    page = PAGE.with_("b.png", priority_changes=[change])
    (moved,) = transforms.with_cached(page, "a.css").resources[-1].priority_changes
    assert (moved.when.by, moved.when.offset_bytes, moved.when.delay_ns) == ("/", 7000, 3_000_000)


def test_a_stale_copy_costs_a_header() -> None:
    page = transforms.with_revalidated(PAGE, ["a.css", "image"])
    assert [(r.size_bytes, r.header_bytes) for r in page.resources] == [
        *((14_000, 0), (0, 100), (1400, 0)),
        *((1400, 0), (0, 100)),
    ]
    late = PAGE.with_("b.png", discovered={"by": "a.css", "at": "offset", "offset_bytes": 1400})
    trigger = transforms.with_revalidated(late, "a.css").resources[-1].discovered
    assert (trigger.at.value, trigger.offset_bytes) == ("complete", None)
    # What others name stays where they name it.
    style = transforms.with_revalidated(PAGE, "a.css").resources[1].discovered
    assert (style.by, style.at.value, style.offset_bytes) == ("/", "offset", 7000)


def test_every_name_that_means_nothing_is_reported() -> None:
    with pytest.raises(InputError) as caught:
        transforms.selected(PAGE, ["image", "*.gif", "/", "sound"])
    assert [problem.key for problem in caught.value.problems] == ["*.gif", "/", "sound"]


@pytest.mark.parametrize("names", ["document", ["/", "image"], "*"])
def test_the_root_is_never_meant(names: Any) -> None:
    page = page_of(
        ROOT,
        STYLE,
        {**IMAGE, "id": "frame", "kind": "document", "discovered": SCRIPT["discovered"]},
        {**IMAGE, "discovered": SCRIPT["discovered"]},
    )
    if "/" in names:
        with pytest.raises(InputError, match="/: matches no id or kind"):
            transforms.selected(page, names)
    else:
        assert 0 not in transforms.selected(page, names)


@pytest.mark.parametrize("share", [0, -1, 1.5, "half", None])
def test_a_share_that_is_none_is_refused(share: Any) -> None:
    with pytest.raises(InputError, match="share: must be a share, above 0 and up to 1"):
        transforms.with_inlined_styles(PAGE, share=share)


# On the command line


def written(tmp_path: Path, *options: str) -> Page:
    source, target = tmp_path / "page.json", tmp_path / "edited.json"
    source.write_text(PAGE.to_json(), encoding="utf-8")
    assert main(["transform", str(source), *options, "-o", str(target)]) == 0
    return Page.from_file(target)


def test_the_command_writes_what_the_functions_return(tmp_path: Path) -> None:
    some = {
        "--push": transforms.with_push,
        "--early-hints": transforms.with_early_hints,
        "--cached": transforms.with_cached,
        "--revalidated": transforms.with_revalidated,
    }
    for option, change in some.items():
        names = ["font", "a.css"]
        expected = change(PAGE, names)
        found = written(tmp_path, option, names[0], option, names[1])
        assert (found.name, found.resources) == (expected.name, expected.resources)
    assert written(tmp_path, "--staged-hints") == transforms.with_staged_hints(PAGE)
    assert written(tmp_path, "--inlined-styles") == transforms.with_inlined_styles(PAGE)


def test_changes_are_made_in_the_order_given(tmp_path: Path) -> None:
    page = written(tmp_path, "--cached", "a.css", "--push", "font", "--remove", "a.js")
    expected = transforms.with_push(transforms.with_cached(PAGE, "a.css"), "font").without("a.js")
    assert page.resources == expected.resources


def test_a_given_name_is_the_one_in_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert written(tmp_path, "--cached", "a.css", "--name", "second visit").name == "second visit"
    assert capsys.readouterr().err == (
        "second visit: 4 resources, 18,200 bytes (page: 5 resources, 21,000 bytes)\n"
    )


def test_every_error_is_reported_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "no" / "edited.json"
    arguments = ["davies-meenan", "--cached", "sound", "--push", "*.gif", "--remove", "x"]
    assert main(["transform", *arguments, "-o", str(target)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.removeprefix("h3sim transform: ").split(": ")[:2] for line in lines[:3]] == [
        ["--output", f"there is no folder {str(target.parent)!r}"],
        ["davies-meenan", "sound"],
        ["davies-meenan", "*.gif"],
    ]
    assert "'x'" in lines[3]
    assert not target.exists()


def test_an_edited_page_is_a_page_file(tmp_path: Path) -> None:
    page = written(tmp_path, "--early-hints", "stylesheet")
    assert json.loads((tmp_path / "edited.json").read_text("utf-8")) == page.to_dict()

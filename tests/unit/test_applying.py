"""Hints in the files of a page: what is written, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.advice.applying import apply_edits, is_markup, with_edits
from h3sim.advice.edits import Edit, edits_of
from h3sim.cli.main import main
from h3sim.load import LoadConfig, resolve
from h3sim.study.runner import LoadTask
from h3sim.values.errors import InputError
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.page import Page

DOCUMENT = b"""<!doctype html><html><head><meta charset="utf-8">
<script src="../a.js"></script><link rel=stylesheet href="../a.css"></head>
<body><img src='b.png' alt="a > b" /><img src=b.png fetchpriority=low>
<img loading="lazy" src="https://cdn.test/c.png"></body></html>"""
ROOT_ID = "shop/index.html"


def named(id_: str, kind: str, at: int, **more: Any) -> dict[str, Any]:
    found = {"by": ROOT_ID, "at": "offset", "offset_bytes": at}
    return {"id": id_, "kind": kind, "bytes": 30_000, "discovered": found, **more}


PAGE = page_of(
    {"id": ROOT_ID, "kind": "document", "bytes": 1000},
    named("a.js", "script", 50, in_head=True, render_blocking=True),
    named("a.css", "stylesheet", 60, in_head=True, render_blocking=True),
    named("shop/b.png", "image", 300, viewport=0.5, hero=True),
    named("cdn.test/c.png", "image", 400, lazy=True, viewport=0.1, host="cdn.test"),
    {
        "id": "shop/font.woff2",
        "kind": "font",
        "bytes": 9000,
        "discovered": {"by": "a.css", "at": "complete"},
    },
)


def edits(page: Page = PAGE) -> dict[str, Edit]:
    spec = resolve(page, h3sim.load_scheme("chrome-h2"), LoadConfig(network="4g"))
    return {edit.text: edit for edit in edits_of(LoadTask(spec))}


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("add defer to a.js", {b'src="../a.js"': b'src="../a.js" defer'}),
        ('add fetchpriority="high" to shop/b.png',
         {b'b" />': b'b" fetchpriority="high"/>', b"fetchpriority=low": b'fetchpriority="high"'}),
        ('remove loading="lazy" from cdn.test/c.png', {b' loading="lazy"': b""}),
        ("preload shop/font.woff2", {b'utf-8">': b'utf-8">\n<link rel="preload" as="font"'
         b' href="font.woff2" crossorigin>'}),
        ("preload shop/b.png",
         {b'utf-8">': b'utf-8">\n<link rel="preload" as="image" href="b.png">'}),
    ],
)  # fmt: skip
def test_an_edit_changes_its_tags_and_nothing_else(text: str, replaced: dict[bytes, bytes]) -> None:
    expected = DOCUMENT
    for before, after in replaced.items():
        assert expected.count(before) == 1
        expected = expected.replace(before, after)
    assert with_edits(DOCUMENT, PAGE, [edits()[text]]) == expected


def test_a_preload_of_another_folder_is_relative_to_the_document() -> None:
    font = PAGE.with_("shop/font.woff2")
    moved = PAGE.with_resources(
        each if each.id != "shop/font.woff2" else page_of_font() for each in font.resources
    )
    changed = with_edits(DOCUMENT, moved, [edits(moved)["preload fonts/f.woff2"]])
    assert b'href="../fonts/f.woff2"' in changed


def page_of_font() -> Any:
    made = page_of(
        {"id": "a.css", "kind": "document", "bytes": 9},
        {
            "id": "fonts/f.woff2",
            "kind": "font",
            "bytes": 9000,
            "discovered": {"by": "a.css", "at": "complete"},
        },
    )
    return made.resources[1]


def test_only_edits_of_tags_and_links_are_markup() -> None:
    kinds = {edit.kind for edit in edits().values() if is_markup(edit)}
    assert kinds <= {"fetchpriority", "preload", "preconnect", "defer", "async", "lazy", "not lazy"}
    assert {"defer", "async", "fetchpriority", "preload"} <= kinds
    assert not any(
        is_markup(edit) for edit in edits().values() if edit.kind in ("early hints", "compression")
    )


def test_an_image_of_a_stylesheet_has_no_element_for_attributes() -> None:
    at = {"by": "a.css", "at": "complete"}
    image = {"id": "bg.png", "kind": "image", "bytes": 9000, "viewport": 0.4, "discovered": at}
    sheet = {**named("a.css", "stylesheet", 60, in_head=True)}
    page = page_of({"id": ROOT_ID, "kind": "document", "bytes": 1000}, sheet, image)
    touching = [edit for text, edit in edits(page).items() if "bg.png" in text]
    assert touching
    assert not any(edit.attribute for edit in touching)


class TestFiles:
    def folder(self, at: Path) -> Path:
        (at / "site" / "shop").mkdir(parents=True)
        (at / "site" / ROOT_ID).write_bytes(DOCUMENT)
        (at / "site" / f"{ROOT_ID}.gz").write_bytes(b"the old one")
        (at / "site" / "a.js").write_text("1")
        return at / "site"

    def test_a_copy_is_changed_and_the_files_are_not(self, tmp_path: Path) -> None:
        folder, copy = self.folder(tmp_path), tmp_path / "new" / "copy"
        deferred = [edits()["add defer to a.js"]]
        assert apply_edits(folder, PAGE, [deferred], copy) == deferred
        assert (folder / ROOT_ID).read_bytes() == DOCUMENT
        assert b"defer" in (copy / ROOT_ID).read_bytes()
        assert (copy / "a.js").read_text() == "1"
        assert not (copy / f"{ROOT_ID}.gz").exists()
        assert [path.name for path in copy.parent.iterdir()] == ["copy"]

    def test_the_first_choice_is_made_of_which_the_document_has_the_tags(
        self, tmp_path: Path
    ) -> None:
        folder = self.folder(tmp_path)
        (folder / ROOT_ID).write_bytes(DOCUMENT.replace(b"a.js", b"other.js"))
        found = edits()
        choices = [[found["add defer to a.js"]], [found["preload shop/b.png"]]]
        assert apply_edits(folder, PAGE, choices, tmp_path / "copy") == choices[1]
        with pytest.raises(InputError, match=r"a\.js: no tag of shop/index\.html"):
            apply_edits(folder, PAGE, choices[:1], tmp_path / "other")
        assert not (tmp_path / "other").exists()

    def test_bad_folders_are_refused(self, tmp_path: Path) -> None:
        folder, choices = self.folder(tmp_path), [[edits()["add defer to a.js"]]]
        for files, copy, message in (
            (folder, folder, "exists"),
            (folder, folder / "new", "name a folder elsewhere"),
            (tmp_path, tmp_path.parent / "new", "has no file"),
        ):
            with pytest.raises(InputError, match=message):
                apply_edits(files, PAGE, choices, copy)
        outside = tmp_path / "outside.html"
        outside.write_bytes(DOCUMENT)
        astray = page_of({"id": "../outside.html", "kind": "document", "bytes": 1000})
        with pytest.raises(InputError, match="has no file"):
            apply_edits(folder, astray, [[]], tmp_path / "new")
        assert outside.read_bytes() == DOCUMENT
        with pytest.raises(InputError, match="no hint"):
            apply_edits(folder, PAGE, [], tmp_path / "new")

    def test_the_command_writes_a_copy_with_the_first_hint(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder, page = self.folder(tmp_path), tmp_path / "page.json"
        page.write_text(json.dumps(PAGE.to_dict()))
        words = ["hints", str(page), "--network", "fast-3g", "--seeds", "3"]
        copied = ["--apply", str(folder), "--copy", str(tmp_path / "copy")]
        assert main([*words, "--network-uncertainty", "1", "--transport", "tcp", *copied]) == 0
        assert "Applied: " in capsys.readouterr().out
        assert (tmp_path / "copy" / ROOT_ID).read_bytes() != DOCUMENT
        assert main([*words, "--apply", str(folder)]) == 2

"""What the documentation site is built from; `make docs` builds it, with warnings as errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import h3sim
from h3sim.cli.main import COMMANDS
from tools import docs_site
from tools.notebooks import NOTEBOOKS, read_notebook
from tools.site_links import broken_links

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "source"
    docs_site.write_source(folder, {scheme.name: "words" for scheme in h3sim.list_schemes()})
    return folder


def test_the_index_leads_to_every_page_once(source: Path) -> None:
    listed = [page for pages in docs_site.sections().values() for page in pages]
    files = [*source.rglob("*.md"), *source.glob("notebooks/*.ipynb")]
    written = {path.relative_to(source).with_suffix("").as_posix() for path in files}
    of_api = {page for page in written if page.startswith("reference/h3sim")}
    assert sorted(listed) == sorted(written - of_api - {"index"})


def test_every_public_name_is_described_on_one_page(source: Path) -> None:
    pages = {path.stem: path.read_text("utf-8") for path in source.glob("reference/h3sim*.md")}
    described = {
        page: re.search(r":members: (.*)", text)[1].split(", ") for page, text in pages.items()
    }
    assert set(described["h3sim"]) == {name for name in h3sim.__all__ if not name.startswith("_")}
    assert "LoadConfig" not in described["h3sim.study"]
    assert "sweep" not in described["h3sim.study"]
    assert "sensitivity" in described["h3sim.study"]
    assert "TreeScheduler" in described["h3sim.schedulers"]


def test_every_command_and_those_below_it_have_their_help(source: Path) -> None:
    text = (source / "reference" / "cli.md").read_text("utf-8")
    headings = re.findall(r"^##+ h3sim (.+)$", text, re.M)
    assert {heading.split()[0] for heading in headings} == set(COMMANDS)
    assert any(" " in heading for heading in headings)
    assert "--scheme" in text


def test_a_notebook_becomes_a_page_that_leads_to_the_file_without_outputs(source: Path) -> None:
    page = read_notebook(source / "notebooks" / "07-study.ipynb")
    title = page.cells[0].source
    assert title.startswith("# A study in fifteen lines\n\n{download}`Run it yourself")
    # The site shows a smaller study than the text describes, and says so.
    assert "PAGES=5 SEEDS=3" in title
    copied = source / "downloads" / "notebooks" / "07-study.ipynb"
    assert copied.read_bytes() == (ROOT / "notebooks" / "07-study.ipynb").read_bytes()


def cell_of(kind: str, source: str, **metadata: Any) -> dict[str, Any]:
    bare = {"cell_type": kind, "id": f"cell-{source[0]}", "metadata": metadata, "source": source}
    return bare | ({"outputs": [], "execution_count": None} if kind == "code" else {})


def test_a_page_folds_answers_and_results_to_be_predicted(tmp_path: Path) -> None:
    cells = [
        *(cell_of("markdown", "# Title\ntext"), cell_of("code", "a")),
        *(cell_of("markdown", "**Predict.** What?"), cell_of("code", "b")),
        cell_of("code", "c", jupyter={"source_hidden": True}),
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "x.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    page = docs_site.notebook_page("x.ipynb", read_notebook(tmp_path / "x.ipynb"))
    tags = [cell.metadata["tags"] for cell in page.cells if cell.cell_type == "code"]
    assert tags == [[], ["hide-output"], ["hide-cell"]]


def test_the_site_shows_the_outputs_that_it_is_given(tmp_path: Path) -> None:
    def read(path: Path) -> Any:
        document = json.loads(path.read_text("utf-8"))
        for cell in document["cells"]:
            if cell["cell_type"] == "code":
                text = f"of {path.stem}"
                cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]
        copy = tmp_path / "with-outputs.ipynb"
        copy.write_text(json.dumps(document), encoding="utf-8")
        return read_notebook(copy)

    docs_site.write_source(tmp_path / "source", {}, read=read)
    for path in NOTEBOOKS:
        written = (tmp_path / "source" / "notebooks" / path.name).read_text("utf-8")
        assert f"of {path.stem}" in written


def test_the_home_page_has_four_doors_and_the_playground_if_it_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docs_site, "PLAYGROUND", tmp_path / "playground")
    without = docs_site.index_page()
    doors = re.findall(r"^- \*\*(.+?)\*\*: ", without, re.M)
    assert doors == ["Teach", "Study", "Test a scheduler", "Look at my page"]
    assert "davies-meenan.png" in without
    assert "pip install" in without
    assert "<iframe" not in without
    (tmp_path / "playground").mkdir()
    assert '<iframe src="play/"' in docs_site.index_page()


def test_files_that_pages_link_to_come_along(source: Path) -> None:
    assert (source / "LICENSE").is_file()
    assert (source / "docs" / "images" / "davies-meenan.png").is_file()


def test_a_second_writing_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    docs_site.write_source(tmp_path / "source", {})
    (tmp_path / "source" / "gone.md").write_text("# Gone\n", encoding="utf-8")
    docs_site.write_source(tmp_path / "source", {})
    assert not (tmp_path / "source" / "gone.md").exists()


def test_every_scheme_has_its_picture_and_its_source(source: Path) -> None:
    pages = [source / "docs" / "generated" / f"{half}s.md" for half in ("server", "scheme")]
    text = "".join(page.read_text("utf-8") for page in pages)
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^##|\Z)", text, re.M | re.S))
    for scheme in h3sim.list_schemes():
        if scheme.name not in sections:  # a pair, whose halves have sections
            assert f"| `{scheme.name}` | [" in text
            continue
        assert f"(../images/schemes/{scheme.name}.png)" in sections[scheme.name], scheme.name
        assert "Source: " in sections[scheme.name], scheme.name


def test_every_network_stands_on_its_page(source: Path) -> None:
    text = (source / "docs" / "generated" / "shipped-networks.md").read_text("utf-8")
    missing = [each.name for each in h3sim.list_networks() if f"`{each.name}`" not in text]
    assert missing == []


def test_links_to_nothing_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1><a href="#top">x</a><a href="b/#here">x</a><a href="b/#gone">x</a>'
        '<a href="c.html">x</a><a href="https://example.org/gone">x</a><img src="no.png">'
    )
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text('<p id="here">b <a href="../a.html">x</a>')
    assert list(broken_links(tmp_path)) == [
        "a.html: b/#gone: there is no such heading",
        "a.html: c.html: there is no such file",
        "a.html: no.png: there is no such file",
    ]


def test_a_gallery_shows_each_figure_in_words_too() -> None:
    text = docs_site.gallery({"load": "Words.", "deltas": "Others."})
    assert text.endswith(
        "\n### load\n\n![Words.](images/figures/load.png)\n\n### deltas\n\n"
        "![Others.](images/figures/deltas.png)\n"
    )


def test_every_page_has_its_section() -> None:
    # A page in none would stand at the end, under a heading that says nothing.
    assert "More" not in docs_site.sections()

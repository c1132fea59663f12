"""The recorded pages of the corpus: facts that can be read, spread as the documentation says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from h3sim import catalog
from h3sim.catalog.resources import root
from h3sim.page import Kind, Level, schema
from tests.helpers import page_of
from tools.corpus_figure import shape_of, summary
from tools.record_corpus import with_priorities
from tools.sites import read_sources

CHECKOUT = Path(__file__).parents[2]
PAGES = {page.name: page for page in catalog.list_pages()}
RECORDED = [page for page in PAGES.values() if "h3sim" in page.provenance["tool"]]


def test_there_are_at_least_sixty_recorded_pages_from_the_list_of_sources() -> None:
    names = [page.name for page in RECORDED]
    assert len(names) >= 60
    sources = {source.name: source for source in read_sources()}
    assert names == [name for name in sorted(sources) if name in PAGES]
    for page in RECORDED:
        assert page.provenance["source"] == sources[page.name].source
        assert page.provenance["licence"] == sources[page.name].site.licence


def test_every_recorded_resource_has_the_priority_that_chrome_gave_it() -> None:
    resources = [resource for page in RECORDED for resource in page.resources]
    assert all(resource.recorded[0].when is None for resource in resources)
    later = [r for r in resources if len(r.recorded) > 1]
    # Layout shows images, and Chrome raises these.
    assert {(r.kind, r.recorded[-1].level) for r in later} == {(Kind.IMAGE, Level.HIGH)}


def test_priorities_are_added_by_id_and_nothing_else_changes() -> None:
    found = {"by": "/", "at": "request"}
    image = {"kind": "image", "bytes": 9, "discovered": found}
    root = {"id": "/", "kind": "document", "bytes": 900}
    shipped = page_of(root, {"id": "a", **image}, {"id": "gone", **image})
    message = [{"browser": "chrome", "level": "Low"}]
    again = page_of(
        {**root, "bytes": 1},
        {"id": "new", **image, "recorded": message},
        {"id": "a", **image, "bytes": 7, "recorded": message},
    )
    merged, missing = with_priorities(shipped, again)
    assert missing == ["gone"]
    assert [len(resource.recorded) for resource in merged.resources] == [0, 1, 0]
    bare = [replace(resource, recorded=()) for resource in merged.resources]
    assert shipped.with_resources(bare) == shipped


@pytest.mark.parametrize(("size", "pages"), [("small", 20), ("medium", 12), ("large", 20)])
def test_each_class_of_sizes_is_well_filled(size: str, pages: int) -> None:
    assert len(catalog.page_set(f"corpus:{size}") or ()) >= pages


def test_every_page_fits_the_schema_and_goes_by_the_name_of_its_file() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema())
    for file in root("corpora").iterdir():
        if file.name.endswith(".json"):
            document = json.loads(file.read_text(encoding="utf-8"))
            assert f"{document['name']}.json" == file.name
            assert [*validator.iter_errors(document)] == []


def test_the_corpus_holds_facts_and_stays_small() -> None:
    text = "".join(
        file.read_text(encoding="utf-8")
        for file in root("corpora").iterdir()
        if file.name.endswith(".json")
    )
    assert len(text) < 3_000_000
    assert not re.search(r"127\.0\.0\.1|<html|function *\(", text)
    ids = [resource.id for page in RECORDED for resource in page.resources]
    assert [id_ for id_ in ids if "?" in id_ or id_.startswith("data:")] == []


def test_every_recorded_page_knows_what_is_seen_first() -> None:
    for page in RECORDED:
        document = page.resources[page.root]
        assert document.kind is Kind.DOCUMENT
        assert document.critical
        assert document.above_the_fold
        assert document.parse_ns > 0
        assert sum(resource.hero for resource in page.resources) >= 1
        assert all(resource.above_the_fold for resource in page.resources if resource.viewport)


def test_the_documentation_has_the_tables_that_the_command_prints() -> None:
    shapes = [shape_of(PAGES[name]) for name in catalog.page_set("corpus")]
    text = " ".join(
        (CHECKOUT / "docs" / "generated" / "corpus.md").read_text(encoding="utf-8").split()
    )
    web = [shape_of(catalog.load_page(name)) for name in catalog.page_set("web") or ()]
    for line in summary(shapes, web).splitlines()[2:]:
        assert " ".join(line.split()) in text

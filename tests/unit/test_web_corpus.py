"""The set `web`: which recordings are chosen, what is inferred for them, and what is drawn."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim import catalog
from h3sim.catalog.resources import root
from h3sim.values.errors import UnknownNameError
from tools.web_corpus import UNFIT, chosen, document_of, is_visible, left_out, with_causes
from validation.vgprio import BASELINE, MEASURED, SCHEMES, Changes, agrees, halves

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("web-2015-2019.jsonl.gz", "web-2020-2026.jsonl.gz")


def row(id_: str, parent: str | None, kind: str, start_ms: float, **keys: Any) -> dict[str, Any]:
    basis = "none" if parent is None else "referer"
    known = {"first_byte_ms": start_ms + 60, "end_ms": start_ms + 80, "host": "h0"}
    return {
        "id": id_,
        "parent": parent,
        "parent_basis": basis,
        "type": kind,
        "body_bytes": 5000,
        "start_ms": start_ms,
        "sent_ms": start_ms,
        **known,
        **keys,
    }


def table(site: str = "shop.example", *rows: dict[str, Any], **keys: Any) -> dict[str, Any]:
    rows = rows or (row("r0", None, "html", 0),)
    return {
        "name": f"{site}-2025-har",
        "site": site,
        "year": 2025,
        "grade": "C",
        "source_repo": "a/b",
        "source_path": "c.har",
        "commit": "d",
        "licence": "MIT",
        "device": "desktop",
        "main_document": "r0",
        "page": {"onload_ms": 900.0},
        "coverage": {"size": 1.0, "parent": 1.0, "first_byte": 1.0},
        "hosts": [
            {"id": "h0", "same_site": True, "ip": 0},
            {"id": "h1", "same_site": True, "ip": 0},
            {"id": "h2", "same_site": False, "ip": 1},
        ],
        "resources": [*rows],
        **keys,
    }


def test_a_complete_load_is_chosen_and_an_incomplete_one_says_why_not() -> None:
    assert left_out(table()) == ""
    assert left_out(table(grade="E")) == "grade"
    assert left_out(table(page={})) == "load event"
    assert left_out(table(coverage={"size": 0.5, "parent": 1, "first_byte": 1})) == "sizes"
    assert left_out(table(min(UNFIT))) == "site unfit for a lecture"


def test_of_several_loads_of_a_site_the_best_grade_is_chosen_and_then_the_newest() -> None:
    loads = [table(year=2019, grade="B"), table(year=2018, grade="B"), table(year=2025)]
    assert [load["year"] for load in chosen(loads, Counter())] == [2019]


def test_what_is_requested_long_after_the_document_was_inserted_by_the_last_script() -> None:
    rows = (
        row("r0", None, "html", 0),
        row("r1", "r0", "js", 50),
        row("r2", "r0", "js", 100),
        row("r3", "r0", "image", 120),
        row("r4", "r0", "image", 400),
        row("r5", "r0", "image", 400, parent_basis="initiator"),
    )
    parents = {each["id"]: each["parent"] for each in with_causes(table("a", *rows))["resources"]}
    assert parents == {"r0": None, "r1": "r0", "r2": "r0", "r3": "r0", "r4": "r2", "r5": "r0"}


def test_an_image_whose_priority_rose_was_seen_and_one_that_kept_it_after_the_paint_not() -> None:
    known = {"priority_initial": "Low", "in_main_frame": True}
    load = table(page={"first_paint_ms": 100})
    raised = row("r1", "r0", "image", 50, priority_final="Medium", **known)
    late = row("r2", "r0", "image", 50, priority_final="Low", **known)
    early = row("r3", "r0", "image", 0, priority_final="Low", **known)
    assert [is_visible(each, load) for each in (raised, late, early)] == [True, False, None]


def test_a_line_has_think_times_and_hosts_but_no_address_or_round_trip() -> None:
    rows = (
        row("r0", None, "html", 0, connect_ms=20, protocol="h2", first_byte_ms=20),
        row("r1", "r0", "js", 90, host="h1", protocol="h2", first_byte_ms=150, end_ms=160),
        row("r2", "r0", "image", 300, host="h2", protocol="h2", first_byte_ms=320, connect_ms=20),
    )
    page = document_of(table("shop.example", *rows))["page"]
    assert page["name"] == "shop.example-2025"
    assert [each.get("host", "") for each in page["resources"]] == [
        "site-h0",
        "site-h1",
        "third-h2",
    ]
    assert page["resources"][1]["server_ms"] == pytest.approx(40.0)
    assert all(host.keys() <= {"certificate", "server"} for host in page.get("hosts", {}).values())
    assert page["recorded_load"] == {
        "load_event_ms": 900,
        "completed_ms": {"r0": 80, "r1": 160, "r2": 380},
    }


def test_the_shipped_files_have_facts_only_and_stay_small() -> None:
    data = [(root("corpora") / name).read_bytes() for name in FILES]
    assert sum(map(len, data)) < 6_000_000
    for each in data:
        text = gzip.decompress(each).decode()
        for line in map(json.loads, text.splitlines()):
            page = line["page"]
            assert {"source", "recorded", "licence"} <= page["provenance"].keys()
            hosts = {resource.get("host", "site-h0") for resource in page["resources"]}
            assert all(re.fullmatch(r"(site|third)-h\d+", host) for host in hosts)
            assert all(re.fullmatch(r"r\d+", resource["id"]) for resource in page["resources"])
            assert page["name"].rpartition("-")[0] not in UNFIT


def test_each_page_of_the_web_is_in_one_size_class_and_one_period() -> None:
    web = catalog.page_set("web") or ()
    for parts in (("small", "medium", "large"), ("2015-2019", "2020-2026")):
        found = [name for part in parts for name in catalog.page_set(f"web:{part}") or ()]
        assert sorted(found) == [*web]
    assert 300 <= len(web) <= 400


def test_a_draw_changes_what_is_not_recorded_and_nothing_else() -> None:
    name = (catalog.page_set("web:small") or ())[3]
    plain, again, other = (h3sim.load_page(name + draw) for draw in ("", " draw 0", " draw 7"))
    assert plain.resources == again.resources != other.resources
    for one, two in zip(plain.resources, other.resources, strict=True):
        assert (one.size_bytes, one.host, one.kind) == (two.size_bytes, two.host, two.kind)
    with pytest.raises(UnknownNameError):
        h3sim.load_page(f"{name} draw x")


def test_a_cell_agrees_with_the_testbed_only_if_all_its_figures_are_near() -> None:
    measured = MEASURED[0].changes["rr"]
    near = Changes(*(value + 2.9 for value in measured))
    assert agrees(measured, near)
    assert not agrees(measured, near._replace(median=measured.median + 3.1))
    assert not agrees(measured, near._replace(worse=measured.worse + 12.1))


def _results(path: Path, of_site: dict[str, float]) -> Path:
    """Write the testbed's results, in which a scheme takes that much longer than Chrome's."""
    rows = [
        f"{site},{scheme},{1000 * (1 if scheme == BASELINE else factor)},{cell.rate_mbps},"
        f"{cell.rtt_ms},{cell.loss}"
        for cell, (site, factor) in product(MEASURED, of_site.items())
        for scheme in (BASELINE, *SCHEMES)
    ]
    path.write_text("\n".join(["", "website,strategy,si,bw,rtt,loss", *rows]), "utf-8")
    return path


def test_halves_of_a_testbed_agree_in_all_cells_only_if_its_sites_are_alike(tmp_path: Path) -> None:
    alike = _results(tmp_path / "alike.csv", {f"site-{n}": 1.1 for n in range(8)})
    counts, ratios = halves(alike)
    assert {*counts} == {2 * len(MEASURED)}
    assert {ratio for each in ratios.values() for ratio in each} == {1.0}
    mixed = _results(tmp_path / "mixed.csv", {f"site-{n}": 1 + n / 10 for n in range(8)})
    assert min(halves(mixed)[0]) < 2 * len(MEASURED)

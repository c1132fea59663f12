"""Fact tables: what of a recording becomes a page, worked out by hand on small tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.engine import LoadSpec
from h3sim.importers import RecordingError, facts_from_dict, import_page
from h3sim.load.network_path import resolve_path
from h3sim.load.run import run_spec
from h3sim.page import Kind, Page, TriggerEvent, page_from_dict, page_to_dict
from h3sim.values.errors import PageError
from tests.helpers import unworded
from tests.recordings import SITE, entry, har, write_recording
from validation.data import PAGES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def row(id_: str, parent: str | None = "r0", **values: Any) -> dict[str, Any]:
    """Return a row: an image of 1000 bytes, unless *values* say otherwise."""
    return {
        "id": id_,
        "parent": parent,
        "type": "image",
        "body_bytes": 1000,
        "start_ms": 500,
    } | values


def root(**values: Any) -> dict[str, Any]:
    """Return the row of a document of 8000 bytes that came from 100 to 180 ms."""
    recorded = {"type": "html", "body_bytes": 8000, "start_ms": 0}
    recorded |= {"first_byte_ms": 100, "end_ms": 180, "status": 200, "parent_basis": "none"}
    return row("r0", None, **recorded | values)


def page_of(*rows: dict[str, Any], **table: Any) -> Page:
    """Return the page of a table of these rows."""
    return facts_from_dict({"name": "made-up", "resources": list(rows)} | table).page


def trigger(*rows: dict[str, Any]) -> tuple[TriggerEvent, int | None, float]:
    """Return what triggers the last of *rows*: event, offset, delay in ms."""
    discovery = page_of(*rows).resources[-1].discovered
    assert discovery is not None
    return discovery.at, discovery.offset_bytes, discovery.delay_ns / 1e6


def issues(*rows: Any, **table: Any) -> list[str]:
    """Return the mistakes of a table of these rows, a line each."""
    with pytest.raises(PageError) as caught:
        facts_from_dict({"name": "made-up", "resources": list(rows)} | table, source="t.json")
    return unworded(caught.value.lines())


def test_ids_kinds_bytes_and_parents_stay_what_they_are() -> None:
    page = page_of(
        root(),
        row("r1", type="css", body_bytes=70, start_ms=185),
        row("r2", "r1", type="font", body_bytes=0, start_ms=900),
        row("r3", type="xhr", body_bytes=2**40, start_ms=901),
    )
    text = [
        (r.id, r.kind, r.size_bytes, r.discovered.by if r.discovered else None)
        for r in page.resources
    ]
    assert text == [
        ("r0", Kind.DOCUMENT, 8000, None),
        ("r1", Kind.STYLESHEET, 70, "r0"),
        ("r2", Kind.FONT, 0, "r1"),
        ("r3", Kind.FETCH, 2**40, "r0"),
    ]


@pytest.mark.parametrize(
    ("child", "parent", "expected"),
    [
        ({"start_ms": 40}, {}, (TriggerEvent.REQUEST, None, 40)),
        ({"start_ms": 180}, {}, (TriggerEvent.COMPLETE, None, 0)),
        ({"start_ms": 200.5}, {}, (TriggerEvent.COMPLETE, None, 20.5)),
        # Half of the time between the first byte and the last: half of the bytes.
        ({"start_ms": 140}, {}, (TriggerEvent.OFFSET, 4000, 0)),
        # Two chunks were there, for 5 ms.
        (
            {"start_ms": 155},
            {"chunks": [[110, 1000], [150, 2000], [180, 5000]]},
            (TriggerEvent.OFFSET, 3000, 5),
        ),
        # Bytes came, but no chunk says which.
        ({"start_ms": 105}, {"chunks": [[110, 8000]]}, (TriggerEvent.OFFSET, 1, 5)),
        # The tag stands at 2000, which the second chunk brought.
        (
            {"start_ms": 300, "ref_offset": 2000},
            {"chunks": [[110, 1000], [150, 2000], [180, 5000]]},
            (TriggerEvent.OFFSET, 2000, 150),
        ),
        # On the wire it is half as long, and so is the offset; a quarter of 80 ms after 100.
        (
            {"start_ms": 300, "ref_offset": 4000},
            {"content_bytes": 16000},
            (TriggerEvent.OFFSET, 2000, 180),
        ),
        # An offset behind the end says nothing.
        ({"start_ms": 300, "ref_offset": 8001}, {}, (TriggerEvent.COMPLETE, None, 120)),
        # Nobody knows when the parent was there.
        ({"start_ms": 300}, {"end_ms": None}, (TriggerEvent.COMPLETE, None, 200)),
        (
            {"start_ms": 300},
            {"end_ms": None, "first_byte_ms": None},
            (TriggerEvent.COMPLETE, None, 300),
        ),
        # A redirect without a body.
        ({"start_ms": 120}, {"body_bytes": 0}, (TriggerEvent.COMPLETE, None, 0)),
    ],
)
def test_times_say_what_triggers_a_request(
    child: dict[str, Any], parent: dict[str, Any], expected: tuple[TriggerEvent, int | None, float]
) -> None:
    assert trigger(root(**parent), row("r1", **child)) == expected


def test_what_a_script_asks_for_waits_for_its_execution() -> None:
    script = row("r1", type="js", start_ms=190, first_byte_ms=200, end_ms=210, exec_ms=30)
    assert trigger(root(), script, row("r2", "r1", start_ms=245)) == (
        TriggerEvent.EXECUTED,
        None,
        5,
    )
    # Sooner than it can have run: it was something else that asked.
    assert trigger(root(), script, row("r2", "r1", start_ms=230)) == (
        TriggerEvent.COMPLETE,
        None,
        20,
    )
    assert page_of(root(), script).resources[1].execute_ns == 30_000_000


def flags(*rows: dict[str, Any], **table: Any) -> dict[str, list[str]]:
    """Return the flags of each resource, in the page format's words."""
    document = page_to_dict(page_of(*rows, **table))
    return {
        entry["id"]: sorted(key for key, value in entry.items() if value is True)
        for entry in document["resources"]
    }


def test_chromes_priorities_tell_which_scripts_block() -> None:
    def script(id_: str, priority: str) -> dict[str, Any]:
        return row(id_, type="js", chrome_priority=priority, initiator_type="parser")

    assert flags(
        root(), script("early", "High"), script("late", "Medium"), script("free", "Low")
    ) == {
        "r0": [],
        "early": ["in_head", "render_blocking"],
        "late": ["after_first_image"],
        "free": ["async"],
    }


def test_a_script_of_high_priority_behind_an_image_is_not_in_the_head() -> None:
    def script(id_: str) -> dict[str, Any]:
        return row(id_, type="js", chrome_priority="High", initiator_type="parser")

    assert flags(root(), script("ahead.js"), row("i"), script("behind.js")) == {
        "r0": [],
        "ahead.js": ["in_head", "render_blocking"],
        "i": [],
        "behind.js": [],
    }


def test_without_priorities_the_order_of_requests_tells() -> None:
    assert flags(
        root(),
        row("before.css", type="css"),
        row("before.js", type="js"),
        row("i"),
        row("after.js", type="js"),
        row("injected.js", type="js", initiator_type="script"),
        row("deep.js", "before.js", type="js"),
        hol=[
            {"kind": "script-defer", "resource": "before.js"},
            {"kind": "css", "resource": "before.css"},
            {"kind": "script-sync", "inline": True, "resource": None},
        ],
    ) == {
        "r0": [],
        "before.css": ["in_head", "render_blocking"],
        "before.js": ["defer"],
        "i": [],
        "after.js": ["after_first_image"],
        "injected.js": [],
        "deep.js": [],
    }


def test_the_head_is_that_of_the_document_behind_the_redirects() -> None:
    redirect = root(type="other", status=301, body_bytes=0, end_ms=100)
    document = row("r1", type="html", start_ms=101, first_byte_ms=200, end_ms=210, status=200)
    style = row("r2", "r1", type="css", start_ms=220)
    page = page_of(redirect, document, style)
    assert [resource.in_head for resource in page.resources] == [False, False, True]
    assert page.resources[0].kind is Kind.DOCUMENT
    assert [resource.is_root for resource in page.resources] == [False, True, False]


def test_a_document_that_was_not_modified_leads_nowhere_else() -> None:
    style = row("r1", type="css", start_ms=220)
    assert flags(root(status=304), style, row("r2", "r1", type="css")) == {
        "r0": [],
        "r1": ["in_head", "render_blocking"],
        "r2": [],
    }


def _counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {what: number for what, number in counts.items() if number}


def test_the_report_counts_what_was_found_inferred_and_missing() -> None:
    report = facts_from_dict(
        {
            "name": "made-up",
            "site": "shop.example",
            "resources": [
                root(mime="text/html; charset=utf-8", resp_header_bytes=300, cookie="a=1"),
                row("r1", start_ms=140, parent_basis="referer", body_bytes=None),
                row("r2", start_ms=200, parent_basis="initiator", initiator_type="preload"),
            ],
        }
    )
    assert (_counted(report.found), _counted(report.inferred)) == (
        {
            "requests": 3,
            "hosts": 1,
            "initiators": 1,
            "kinds": 3,
            "body sizes": 2,
            "preloads": 1,
        },
        {
            "parent from referer": 1,
            "trigger from the clock": 1,
            "trigger from the kind of the parent": 1,
        },
    )
    sizes = ("body sizes of 1", "header sizes of 2", "request sizes of 3")
    assert report.missing == (
        *(f"{missing}, taken as 0" for missing in sizes),
        "media types of 2",
        "what is critical or the hero",
        "server think times of 3",
    )


def test_no_cookie_header_value_or_query_string_gets_into_a_page() -> None:
    page = page_of(
        root(cookie="SECRET", headers={"set-cookie": "SECRET"}, url="https://x/?SECRET"),
        row("r1", mime="content-type: image/png; SECRET", file="a.png?SECRET", host="SECRET"),
        row("r2", mime="image/png;charset=SECRET"),
        source_repo="someone/recordings",
        source_path="a.har?SECRET",
        url="https://x/?SECRET",
    )
    assert "SECRET" not in json.dumps(page_to_dict(page))
    assert [resource.mime for resource in page.resources] == ["", "", "image/png"]
    assert page.provenance == {
        "source": "someone/recordings a.har",
        "hosts": "1",
        "dialect": "facts",
    }


def test_a_page_from_a_table_can_be_written_and_read_again() -> None:
    page = page_of(root(), row("r1", type="js", chrome_priority="Low"), row("r2", "r1"))
    assert page_from_dict(page_to_dict(page)) == page


def test_every_mistake_is_told_with_file_and_key() -> None:
    assert issues(
        root(body_bytes=-1, first_byte_ms="soon"),
        row("r0", type="picture", start_ms=None),
        "an image",
        {"id": "r3", "parent": "r0", "type": "image", "start_ms": 1},
        row("a?token=1", chunks=[[100.5, 2], [0.4, 3], 7], mime=5),
        row("r5", end_ms=399, body_bytes=1.5),
    ) == unworded(
        [
            "t.json: resources[0].body_bytes: is -1",
            "t.json: resources[0].first_byte_ms: is 'soon'",
            "t.json: resources[1].type: 'picture' is not one of"
            " html, css, js, font, image, xhr, media, other",
            "t.json: resources[1].start_ms: is None",
            "t.json: resources[2]: must be a table, is 'an image'",
            "t.json: resources[3].body_bytes: is missing",
            "t.json: resources[4].id: must be a plain name, without a query string: 'a?token=1'",
            "t.json: resources[4].mime: is 5",
            "t.json: resources[4].chunks[2]: must be [ms, bytes], is 7",
            "t.json: resources[4].chunks[1][0]: lies before the chunk ahead of it: 0.4",
            "t.json: resources[5].body_bytes: is 1.5",
            "t.json: resources[5].end_ms: lies before start_ms: 399",
            "t.json: resources[1].id: 'r0' is already the id of resources[0]",
        ]
    )


def test_mistakes_of_the_graph_are_told_beside_others() -> None:
    assert issues(
        root(),
        row("r1", None),
        row("r2", "nobody", body_bytes=-1),
        row("r3", "r4"),
        row("r4", "r3"),
        hol=[{"kind": "css", "resource": "r9"}],
    )[1:] == [
        "t.json: resources[1].parent: a second root beside resources[0]:"
        " only one may have no parent",
        "t.json: resources[2].parent: no resource has the id 'nobody'",
        "t.json: resources[3].parent: a cycle: r3 waits for r4 waits for r3",
        "t.json: hol[0].resource: no resource has the id 'r9'",
    ]
    assert issues() == ["t.json: resources: a page needs at least one resource"]
    assert issues(name=3)[1:] == ["t.json: resources: a page needs at least one resource"]
    assert issues(row("r1", "r1")) == [
        "t.json: resources: no root: one row must have the parent null",
        "t.json: resources[0].parent: a cycle: r1 waits for r1",
    ]


def test_times_that_run_backwards_by_a_little_are_mended_and_told() -> None:
    read = facts_from_dict(
        {
            "name": "made-up",
            "resources": [
                root(first_byte_ms=-0.0),
                row("r1", first_byte_ms=495.2, end_ms=499.9),
                row("r2", "r1", start_ms=550, chunks=[[600, 1], [598.5, 999]]),
            ],
        }
    )
    assert unworded(read.mended) == [
        "resources[1].first_byte_ms: lies 4.8 ms before start_ms, taken as that",
        "resources[1].end_ms: lies 0.1 ms before start_ms, taken as that",
        "resources[2].chunks[1][0]: lies 1.5 ms before the chunk ahead of it, taken as that",
    ]
    last = read.page.resources[2].discovered
    assert last is not None
    assert (last.at, last.delay_ns) == (TriggerEvent.COMPLETE, 50_000_000)


def test_times_that_run_backwards_by_more_are_mistakes() -> None:
    assert issues(root(), row("r1", end_ms=399.9)) == [
        "t.json: resources[1].end_ms: lies before start_ms: 399.9"
    ]


def test_the_number_of_hosts_is_kept_and_not_their_names() -> None:
    page = page_of(root(host="a.example"), row("r1", host="b.example"), row("r2", host="a.example"))
    assert page.provenance["hosts"] == "2"
    assert "example" not in repr(page)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ([], "t.json: is []"),
        ({}, "t.json: name: is missing\nt.json: resources: is missing"),
        (
            {"name": 3, "resources": 4},
            "t.json: name: is 3\nt.json: resources: is 4",
        ),
    ],
)
def test_what_is_no_table_is_told(document: object, expected: str) -> None:
    with pytest.raises(PageError) as caught:
        facts_from_dict(document, source="t.json")
    assert unworded(caught.value.lines()) == unworded(expected.splitlines())


def test_a_table_and_a_har_of_one_load_make_the_same_page(tmp_path: Path) -> None:
    moved = {"response_status": 302, "response_redirectURL": "/new.png"}
    asked: list[tuple[str, str, str, int, str | None, dict[str, Any]]] = [
        ("/", "html", "text/html", 0, None, {"_priority": "VeryHigh"}),
        ("app.js", "js", "text/javascript", 90, "/", {"_priority": "High"}),
        ("old.png", "image", "image/png", 120, "/", {"_priority": "Low", **moved}),
        ("late.js", "js", "text/javascript", 170, "app.js", {"_priority": "Low"}),
        ("new.png", "image", "image/png", 185, "old.png", {}),
    ]
    entries, rows = [], []
    for id_, word, mime, start_ms, parent, more in asked:
        named = {"type": "parser", "url": f"{SITE}/{(parent or '').strip('/')}"}
        initiator = {"_initiator": named} if parent else {}
        entries.append(entry(f"/{id_.strip('/')}", start_ms, 60, mime=mime, **more, **initiator))
        del entries[-1]["timings"]["wait"]  # what a server thinks no table tells
        rows.append(
            row(id_, parent, type=word, mime=mime, start_ms=start_ms,
                first_byte_ms=start_ms + 40, end_ms=start_ms + 60, content_bytes=2000,
                req_header_bytes=300, resp_header_bytes=100,
                status=more.get("response_status", 200), chrome_priority=more.get("_priority"))
        )  # fmt: skip
    page = import_page(write_recording(tmp_path, har(*entries)), above_the_fold="none").page
    assert page_of(*rows).resources == page.resources


def test_of_a_table_the_requests_to_one_host_can_be_kept(tmp_path: Path) -> None:
    rows = [root(host="SECRET"), row("r1", host="other"), row("r2", "r1")]
    path = write_recording(tmp_path, {"name": "made-up", "resources": rows})
    page = import_page(path, host="host-1").page
    assert [(each.id, each.discovered and each.discovered.by) for each in page.resources] == [
        ("r0", None),
        ("r2", "r0"),
    ]


def test_a_table_with_mended_times_is_refused_where_nothing_may_be_wrong(tmp_path: Path) -> None:
    table = {"name": "made-up", "resources": [root(), row("r1", first_byte_ms=495.2)]}
    path = write_recording(tmp_path, table)
    with pytest.raises(RecordingError, match=r"first_byte_ms: lies 4\.8 ms before start_ms"):
        import_page(path, strict=True)


def test_every_table_becomes_a_page_with_all_its_resources_bytes_and_parents() -> None:
    assert len(PAGES) == 59
    for path in PAGES:
        table = json.loads(path.read_text(encoding="utf-8"))
        read = import_page(path, above_the_fold="none")
        page = read.page
        assert [(r.id, r.size_bytes) for r in page.resources] == [
            (entry["id"], entry["body_bytes"] or 0) for entry in table["resources"]
        ]
        assert [r.discovered and r.discovered.by for r in page.resources] == [
            entry["parent"] for entry in table["resources"]
        ]
        n_unknown = sum(entry["body_bytes"] is None for entry in table["resources"])
        assert read.found["body sizes"] + n_unknown == len(page.resources)


def test_every_table_and_every_scheme_load_at_the_constant_pace() -> None:
    schemes = h3sim.list_schemes()
    # Larger packets at the same ticks, and each scheme over every eighth page: what a quick test
    # can afford.
    config = h3sim.LoadConfig(packet_bytes=5600)
    resolved = resolve_path(h3sim.load_page("creative"), config)
    network, profile = resolved.network, resolved.profile
    loaded: set[str] = set()
    for position, path in enumerate(PAGES):
        page = import_page(path, above_the_fold="none").page
        stream_bytes = sum(resource.stream_bytes for resource in page.resources)
        for scheme in schemes[position % 8 :: 8]:
            load = run_spec(LoadSpec(page, scheme=scheme, network=network, profile=profile))
            assert len(load.trace.requests) == len(page.resources)
            assert sum(row[4] for row in load.trace.packet_rows) == stream_bytes
            loaded.add(scheme.name)
    assert loaded == {scheme.name for scheme in schemes}


def test_a_basis_with_control_characters_is_spelt_out_and_cut_in_the_report(tmp_path: Path) -> None:
    rows = [root(), row("r1", parent_basis="\x00\x1b[31m"), row("r2", parent_basis="x" * 10_000)]
    report = import_page(write_recording(tmp_path, {"name": "made-up", "resources": rows})).lines()
    assert all(line.isprintable() for line in report)
    assert any("parent from \\x00\\x1b[31m 1" in line for line in report)
    assert max(map(len, report)) < 500


def test_of_a_row_with_very_many_mistakes_the_rest_is_not_read() -> None:
    table = {"name": "x", "resources": [root(), row("r1", chunks=[0] * 10_000)]}
    with pytest.raises(PageError) as caught:
        facts_from_dict(table)
    assert caught.value.problems[0].key == "resources[1].chunks[0]"
    assert "4,9" in caught.value.problems[-1].message  # of 5,001 that were looked for

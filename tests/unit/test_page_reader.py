"""Page files: what they may hold, and that every mistake is told at once with its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import h3sim
from h3sim.page import (
    Discovery,
    FetchPriority,
    Kind,
    Page,
    Resource,
    TriggerEvent,
    page_from_dict,
    page_to_dict,
    read_page,
    schema,
)
from h3sim.values.errors import PageError
from tests.helpers import page_document

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 1000}


def document(*resources: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return page_document(ROOT, *resources) | keys


def child(id_: str = "a", **keys: Any) -> dict[str, Any]:
    discovered = {"by": "/", "at": "complete"}
    return {"id": id_, "kind": "image", "bytes": 10, "discovered": discovered} | keys


def problems(given: object) -> dict[str, str]:
    """Return what is wrong with a document, by place; each place must be named once."""
    with pytest.raises(PageError) as caught:
        page_from_dict(given)  # type: ignore[arg-type]
    found = {problem.key: problem.message for problem in caught.value.problems}
    assert len(found) == len(caught.value.problems)
    return found


def reported(path: Path) -> list[str]:
    """Return the lines that reading a broken file gives."""
    with pytest.raises(PageError) as caught:
        read_page(path)
    return caught.value.lines()


# What a file may hold


FULL = {
    "format": "h3sim-page/1",
    "name": "full",
    "url": "https://example.org/",
    "provenance": {"source": "made up", "licence": "CC0"},
    "resources": [
        {
            "id": "/",
            "kind": "document",
            "mime": "text/html",
            "bytes": 3600,
            "header_bytes": 180,
            "request_bytes": 350,
            "server_ms": 1.5,
            "parse_ms": 2.25,
            "execute_ms": 3.0,
            "response_offsets": [0, 1400, 1400],
        },
        {
            "id": "hero",
            "kind": "image",
            "bytes": 0,
            "in_head": True,
            "async": True,
            "defer": True,
            "preload": True,
            "render_blocking": True,
            "after_first_image": True,
            "above_the_fold": True,
            "critical": True,
            "hero": True,
            "fetchpriority": "high",
            "viewport": 0.5,
            "discovered": {"by": "/", "at": "offset", "offset_bytes": 3600, "delay_ms": 0.000001},
        },
        {
            "id": "late",
            "kind": "fetch",
            "bytes": 1,
            "discovered": {"at": "time", "delay_ms": 120.0},
        },
        {"id": "x", "kind": "other", "bytes": 1, "discovered": {"by": "late", "at": "request"}},
        {"id": "y", "kind": "media", "bytes": 1, "discovered": {"by": "hero", "at": "executed"}},
    ],
}


def test_every_field_is_read() -> None:
    page = page_from_dict(FULL)
    assert (page.name, page.url) == ("full", "https://example.org/")
    assert page.provenance == {"source": "made up", "licence": "CC0"}
    assert page.resources[0] == Resource(
        id="/",
        kind=Kind.DOCUMENT,
        mime="text/html",
        size_bytes=3600,
        header_bytes=180,
        request_bytes=350,
        server_ns=1_500_000,
        parse_ns=2_250_000,
        execute_ns=3_000_000,
        response_offsets=(0, 1400, 1400),
    )
    assert page.resources[1] == Resource(
        id="hero",
        kind=Kind.IMAGE,
        size_bytes=0,
        in_head=True,
        is_async=True,
        is_defer=True,
        preload=True,
        render_blocking=True,
        after_first_image=True,
        above_the_fold=True,
        critical=True,
        hero=True,
        fetchpriority=FetchPriority.HIGH,
        viewport=0.5,
        discovered=Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=3600, delay_ns=1),
    )
    assert page.resources[2].discovered == Discovery(at=TriggerEvent.TIME, delay_ns=120_000_000)
    assert page.resources[3].discovered == Discovery(at=TriggerEvent.REQUEST, by="late")
    assert page.resources[4].discovered == Discovery(at=TriggerEvent.EXECUTED, by="hero")


@pytest.mark.parametrize("flag", ["in_head", "async", "defer", "preload", "critical", "hero"])
def test_a_flag_sets_no_other(flag: str) -> None:
    page = page_from_dict(document(child(**dict[str, Any]({flag: True}))))
    (flagged,) = page_to_dict(page)["resources"][1:]
    assert flagged == child(**dict[str, Any]({flag: True}))


@pytest.mark.parametrize("given", [FULL, document(), document(child(), child("b"))])
def test_a_page_that_is_written_reads_back_equal(given: dict[str, Any]) -> None:
    page = page_from_dict(given)
    assert page_to_dict(page) == given
    assert page_from_dict(json.loads(json.dumps(page_to_dict(page)))) == page


@pytest.mark.parametrize("name", ["http2rulez", "davies-meenan"])
def test_shipped_pages_read_back_equal(name: str) -> None:
    page = h3sim.load_page(name)
    assert page_from_dict(page_to_dict(page)) == page


def test_the_root_need_not_stand_first() -> None:
    given = document(name="x")
    given["resources"] = [child(), ROOT]
    page = page_from_dict(given)
    assert page.root == 1
    assert page.children == {1: (0,)}


def test_integers_may_be_written_with_a_point() -> None:
    assert page_from_dict(document(child(bytes=10.0))).resources[1].size_bytes == 10


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(document()).encode())
    assert read_page(path).root == 0


def test_the_graph_has_an_edge_from_each_parent() -> None:
    graph = page_from_dict(FULL).graph
    assert sorted(graph.edges(data="at")) == [
        ("/", "hero", "offset"),
        ("hero", "y", "executed"),
        ("late", "x", "request"),
    ]
    assert graph.nodes["hero"] == {"kind": "image", "bytes": 0}


# Mistakes between resources


def test_a_parent_that_is_missing_is_named() -> None:
    found = problems(document(child(discovered={"by": "b", "at": "complete"})))
    assert list(found) == ["resources[1].discovered.by"]
    assert "'b'" in found["resources[1].discovered.by"]


def test_a_cycle_is_reported_once_with_its_members() -> None:
    ring = [
        child("a", discovered={"by": "c", "at": "complete"}),
        child("b", discovered={"by": "a", "at": "complete"}),
        child("c", discovered={"by": "b", "at": "complete"}),
        child("d", discovered={"by": "c", "at": "complete"}),  # hangs on the circle
    ]
    found = problems(document(*ring))
    assert list(found) == ["resources[1].discovered.by"]
    assert "a waits for c waits for b waits for a" in found["resources[1].discovered.by"]


@pytest.mark.parametrize(
    ("n_members", "steps"),
    [
        (5, "a0 waits for a4 waits for a3 waits for a2 waits for a1 waits for a0"),
        (6, "a0 waits for a5 waits for a4 waits for a3 waits for a2 waits for 1 more waits for a0"),
        (9, "a0 waits for a8 waits for a7 waits for a6 waits for a5 waits for 4 more waits for a0"),
    ],
)
def test_of_a_long_cycle_five_members_are_reported_and_how_many_more(
    n_members: int, steps: str
) -> None:
    ring = [
        child(f"a{n}", discovered={"by": f"a{(n - 1) % n_members}", "at": "complete"})
        for n in range(n_members)
    ]
    (message,) = problems(document(*ring)).values()
    assert steps in message


def test_a_resource_that_waits_for_itself_is_a_circle() -> None:
    found = problems(document(child("a", discovered={"by": "a", "at": "request"})))
    assert "a waits for a" in found["resources[1].discovered.by"]


def test_two_cycles_are_reported_one_by_one() -> None:
    pairs = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    rings = [child(id_, discovered={"by": by, "at": "complete"}) for id_, by in pairs]
    assert list(problems(document(*rings))) == [
        "resources[1].discovered.by",
        "resources[3].discovered.by",
    ]


def test_a_second_root_is_reported() -> None:
    found = problems(document({"id": "b", "kind": "document", "bytes": 1}))
    assert list(found) == ["resources[1]"]
    assert "second root" in found["resources[1]"]


def test_a_page_without_a_root_is_reported() -> None:
    given = document()
    given["resources"] = [child("a", discovered={"at": "time"})]
    assert "no root" in problems(given)["resources"]


@pytest.mark.parametrize("resources", [[], None])
def test_a_page_needs_a_resource(resources: list[object] | None) -> None:
    given = document()
    given["resources"] = resources
    if resources is None:
        del given["resources"]
    assert list(problems(given)) == ["resources"]


def test_a_duplicated_id_is_reported() -> None:
    found = problems(document(child("a"), child("b"), child("a")))
    assert list(found) == ["resources[3].id"]
    assert "resources[1]" in found["resources[3].id"]


def test_an_offset_behind_the_end_of_the_parent_is_reported() -> None:
    late = {"by": "/", "at": "offset", "offset_bytes": 1001}
    found = problems(document(child(discovered=late)))
    assert list(found) == ["resources[1].discovered.offset_bytes"]
    assert "1001" in found["resources[1].discovered.offset_bytes"]
    assert "1000" in found["resources[1].discovered.offset_bytes"]


def test_an_offset_at_the_end_of_the_parent_is_none() -> None:
    end = {"by": "/", "at": "offset", "offset_bytes": 1000}
    assert page_from_dict(document(child(discovered=end))).children == {0: (1,)}


@pytest.mark.parametrize("given", [FULL, document(), document(child(bytes=10.0))])
def test_the_schema_accepts_what_the_reader_accepts(given: dict[str, Any]) -> None:
    assert page_from_dict(given).resources
    errors = jsonschema.Draft202012Validator(schema()).iter_errors(given)
    assert [error.message for error in errors] == []


# Many mistakes at once, and files that are no pages


def test_every_error_is_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    given = document(
        child("a", bytes=-5, colour="red"),
        child("a", kind="video"),
        child("b", discovered={"by": "nobody", "at": "complete"}),
        child("c", discovered={"by": "/", "at": "offset", "offset_bytes": 2000}),
        {"id": "d", "kind": "font", "bytes": 1},
        child("e", discovered={"by": "f", "at": "complete"}),
        child("f", discovered={"by": "e", "at": "complete"}),
        format="h3sim-page/0",
    )
    path.write_text(json.dumps(given), encoding="utf-8")
    lines = reported(path)
    assert all(line.startswith(f"{path}: ") for line in lines)
    positions = [line.removeprefix(f"{path}: ").partition(": ")[0] for line in lines]
    assert sorted(positions) == sorted(
        [
            "format",
            "resources[1].colour",
            "resources[1].bytes",
            "resources[2].id",
            "resources[2].kind",
            "resources[3].discovered.by",
            "resources[4].discovered.offset_bytes",
            "resources[5]",
            "resources[6].discovered.by",
        ]
    )


def test_a_duplicated_key_of_an_object_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    text = json.dumps(document(child()))
    path.write_text(text.replace('"bytes": 10,', '"bytes": 10, "bytes": 20,'), encoding="utf-8")
    (line,) = reported(path)
    assert line.startswith(f"{path}: resources[1].bytes: ")
    assert "is duplicated" in line


@pytest.mark.parametrize(
    ("content", "shown_text"),
    [
        (b'{"format": "\xff"}', "not UTF-8: byte 12"),
        (b'{"format": ', "not JSON"),
        (b"", "not JSON"),
        (b"<html>", "not JSON: Expecting value at line 1, column 1"),
        (b'{"format', "not JSON: Unterminated string starting at line 1, column 2"),
        (b"[]", "must be an object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not JSON"),
    ],
    ids=[
        *("bytes", "cut off", "empty", "html", "cut string"),
        *("list", "deep list", "deep object", "long number"),
    ],
)
def test_what_is_no_page_is_reported_in_one_line(
    tmp_path: Path, content: bytes, shown_text: str
) -> None:
    path = tmp_path / "page.json"
    path.write_bytes(content)
    (line,) = reported(path)
    assert line.startswith(f"{path}: ")
    assert shown_text in line


def test_nesting_of_any_depth_is_reported_and_never_breaks_the_reader(tmp_path: Path) -> None:
    # Near the limit of the interpreter a value may be read and not be shown any more.
    path = tmp_path / "page.json"
    for depth in range(800, 1001):
        nested = "[" * depth + "]" * depth
        path.write_text(json.dumps(document(child(bytes="?"))).replace('"?"', nested))
        assert len(reported(path)) == 1


@pytest.mark.parametrize("name", ["missing.json", "folder.json"])
def test_a_path_that_cannot_be_read_is_reported_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.json").mkdir()
    (line,) = reported(tmp_path / name)
    assert line.startswith(f"{tmp_path / name}: ")


@pytest.mark.parametrize("given", [None, 3, "page", [ROOT]])
def test_a_document_that_is_no_object_is_told(given: object) -> None:
    assert list(problems(given)) == [""]


# Pages as values


def test_a_resource_names_all_that_is_wrong_with_it() -> None:
    with pytest.raises(PageError) as caught:
        Resource(id="", kind="picture", size_bytes=-1, viewport=2, response_offsets=(1, 0))  # type: ignore[arg-type]
    assert [problem.key for problem in caught.value.problems] == [
        *("id", "kind", "bytes", "viewport", "response_offsets")
    ]
    with pytest.raises(PageError) as caught:
        Discovery(at=TriggerEvent.COMPLETE, offset_bytes=-1, delay_ns=-1)
    assert [problem.key for problem in caught.value.problems] == ["offset_bytes", "delay_ms", "by"]
    with pytest.raises(PageError, match="is only allowed with at = 'offset'"):
        Discovery(at=TriggerEvent.COMPLETE, by="/", offset_bytes=1)


def test_choices_may_be_given_by_their_names() -> None:
    given = Resource(id="a", kind="image", size_bytes=1, fetchpriority="high")  # type: ignore[arg-type]
    assert given == Resource(
        id="a", kind=Kind.IMAGE, size_bytes=1, fetchpriority=FetchPriority.HIGH
    )


def test_equal_pages_are_equal_and_hash_alike() -> None:
    one, other = page_from_dict(FULL), page_from_dict(FULL)
    assert one == other
    assert hash(one) == hash(other)
    assert one != page_from_dict({**FULL, "name": "another"})


def test_a_page_made_in_code_is_checked_like_a_file() -> None:
    image = Resource(
        id="a",
        kind=Kind.IMAGE,
        size_bytes=1,
        discovered=Discovery(at=TriggerEvent.COMPLETE, by="b"),
    )
    with pytest.raises(PageError) as caught:
        Page(name="page", resources=(image,))
    assert {problem.key for problem in caught.value.problems} == {
        "resources",
        "resources[0].discovered.by",
    }

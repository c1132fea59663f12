"""Page files: single values that are wrong, each refused by the reader and by the schema."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import h3sim
from h3sim.page import page_from_dict, page_to_dict, read_page, schema
from h3sim.values.errors import PageError
from tests.helpers import page_document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def document(**keys: Any) -> dict[str, Any]:
    """Return a page of a root and a child, for which *keys* are set."""
    discovered = {"by": "/", "at": "complete"}
    child = {"id": "a", "kind": "image", "bytes": 10, "discovered": discovered} | keys
    return page_document({"id": "/", "kind": "document", "bytes": 1000}, child)


def positions(given: object) -> list[str]:
    with pytest.raises(PageError) as caught:
        page_from_dict(given)  # type: ignore[arg-type]
    return [problem.key for problem in caught.value.problems]


def set_(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    """Return what sets a value, by its path below the second resource."""

    def change(given: dict[str, Any]) -> None:
        at: Any = given["resources"][1]
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to

    return change


def set_top(key: str, to: object) -> Callable[[dict[str, Any]], None]:
    return lambda given: given.update({key: to})


def drop(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(given: dict[str, Any]) -> None:
        at: Any = given["resources"][1] if len(path) > 1 or path[0] != "name" else given
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


RESOURCE = "resources[1]"
DISCOVERED = f"{RESOURCE}.discovered"
SINGLE = {
    "no name": (drop("name"), "name"),
    "no id": (drop("id"), f"{RESOURCE}.id"),
    "no kind": (drop("kind"), f"{RESOURCE}.kind"),
    "no bytes": (drop("bytes"), f"{RESOURCE}.bytes"),
    "no at": (drop("discovered", "at"), f"{DISCOVERED}.at"),
    "no by": (drop("discovered", "by"), f"{DISCOVERED}.by"),
    "format of tomorrow": (set_top("format", "h3sim-page/2"), "format"),
    "name a number": (set_top("name", 7), "name"),
    "url a list": (set_top("url", []), "url"),
    "provenance text": (set_top("provenance", "me"), "provenance"),
    "provenance a number": (set_top("provenance", {"recorded": 2026}), "provenance.recorded"),
    "resources an object": (set_top("resources", {}), "resources"),
    "unknown key of the page": (set_top("titel", "x"), "titel"),
    "unknown key of a resource": (set_("size", to=1), f"{RESOURCE}.size"),
    "unknown key of a discovery": (set_("discovered", "when", to=1), f"{DISCOVERED}.when"),
    "id empty": (set_("id", to=""), f"{RESOURCE}.id"),
    "id a number": (set_("id", to=1), f"{RESOURCE}.id"),
    "kind unknown": (set_("kind", to="video"), f"{RESOURCE}.kind"),
    "kind a list": (set_("kind", to=["image"]), f"{RESOURCE}.kind"),
    "mime null": (set_("mime", to=None), f"{RESOURCE}.mime"),
    "bytes negative": (set_("bytes", to=-1), f"{RESOURCE}.bytes"),
    "bytes broken": (set_("bytes", to=1.5), f"{RESOURCE}.bytes"),
    "bytes text": (set_("bytes", to="10"), f"{RESOURCE}.bytes"),
    "bytes true": (set_("bytes", to=True), f"{RESOURCE}.bytes"),
    "bytes infinite": (set_("bytes", to=float("inf")), f"{RESOURCE}.bytes"),
    "bytes more than a stream": (set_("bytes", to=2**62), f"{RESOURCE}.bytes"),
    "header_bytes negative": (set_("header_bytes", to=-1), f"{RESOURCE}.header_bytes"),
    "request_bytes negative": (set_("request_bytes", to=-1), f"{RESOURCE}.request_bytes"),
    "flag a number": (set_("async", to=1), f"{RESOURCE}.async"),
    "flag null": (set_("above_the_fold", to=None), f"{RESOURCE}.above_the_fold"),
    "fetchpriority unknown": (set_("fetchpriority", to="top"), f"{RESOURCE}.fetchpriority"),
    "server_ms negative": (set_("server_ms", to=-0.1), f"{RESOURCE}.server_ms"),
    "parse_ms text": (set_("parse_ms", to="1"), f"{RESOURCE}.parse_ms"),
    "execute_ms over a day": (set_("execute_ms", to=86_400_001), f"{RESOURCE}.execute_ms"),
    "execute_ms infinite": (set_("execute_ms", to=float("inf")), f"{RESOURCE}.execute_ms"),
    "server_ms a huge number": (set_("server_ms", to=1e308), f"{RESOURCE}.server_ms"),
    "server_ms a huge whole number": (set_("server_ms", to=10**400), f"{RESOURCE}.server_ms"),
    "viewport over 1": (set_("viewport", to=1.1), f"{RESOURCE}.viewport"),
    "viewport true": (set_("viewport", to=True), f"{RESOURCE}.viewport"),
    "response_offsets a number": (set_("response_offsets", to=3), f"{RESOURCE}.response_offsets"),
    "response_offsets text": (
        set_("response_offsets", to=["0"]),
        f"{RESOURCE}.response_offsets[0]",
    ),
    "response_offsets negative": (
        set_("response_offsets", to=[-1]),
        f"{RESOURCE}.response_offsets[0]",
    ),
    "discovered null": (set_("discovered", to=None), DISCOVERED),
    "discovered text": (set_("discovered", to="/"), DISCOVERED),
    "at unknown": (set_("discovered", "at", to="load"), f"{DISCOVERED}.at"),
    "by a number": (set_("discovered", "by", to=0), f"{DISCOVERED}.by"),
    "delay_ms negative": (set_("discovered", "delay_ms", to=-1), f"{DISCOVERED}.delay_ms"),
    "delay_ms over a day": (set_("discovered", "delay_ms", to=1e9), f"{DISCOVERED}.delay_ms"),
    "delay_ms null": (set_("discovered", "delay_ms", to=None), f"{DISCOVERED}.delay_ms"),
    "offset without at": (
        set_("discovered", "offset_bytes", to=1),
        f"{DISCOVERED}.offset_bytes",
    ),
    "at without offset": (set_("discovered", "at", to="offset"), f"{DISCOVERED}.offset_bytes"),
    "offset negative": (
        set_("discovered", to={"by": "/", "at": "offset", "offset_bytes": -1}),
        f"{DISCOVERED}.offset_bytes",
    ),
    "offset broken": (
        set_("discovered", to={"by": "/", "at": "offset", "offset_bytes": 0.5}),
        f"{DISCOVERED}.offset_bytes",
    ),
    "resource a list": (lambda given: given["resources"].append([]), "resources[2]"),
}


@pytest.mark.parametrize("flaw", SINGLE)
def test_a_single_error_is_reported_with_its_place_and_refused_by_the_schema(flaw: str) -> None:
    change, position = SINGLE[flaw]
    given = copy.deepcopy(document())
    change(given)
    assert positions(given) == [position]
    assert not jsonschema.Draft202012Validator(schema()).is_valid(given)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("key", ["bytes", "server_ms", "viewport"])
def test_what_json_does_not_know_as_a_number_is_refused(
    tmp_path: Path, key: str, value: str
) -> None:
    path = tmp_path / "page.json"
    number = json.dumps(document(**{key: "?"})).replace('"?"', value)
    path.write_text(number, encoding="utf-8")
    with pytest.raises(PageError) as caught:
        read_page(path)
    (line,) = caught.value.lines()
    assert line.startswith(f"{path}: resources[1].{key}: must be ")
    assert value in line


def test_offsets_of_a_response_must_rise() -> None:
    # Order is one of the things that a schema cannot say.
    assert positions(document(response_offsets=[1400, 0])) == [f"{RESOURCE}.response_offsets"]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", ["http2rulez", "davies-meenan"])
def test_the_schema_accepts_the_shipped_pages(name: str) -> None:
    given = page_to_dict(h3sim.load_page(name))
    errors = jsonschema.Draft202012Validator(schema()).iter_errors(given)
    assert [error.message for error in errors] == []

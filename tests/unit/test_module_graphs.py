"""Module scripts run when all that they import has arrived, in the order of their imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from tests.helpers import AT_ONCE, page_of

if TYPE_CHECKING:
    from h3sim.page import Page

PACKET = 1400


def script(id_: str, by: Any, at: Any = "complete", **more: Any) -> dict[str, Any]:
    """Return a module that is imported by others, or found at an offset of the document."""
    found: Any = {"by": by, "at": at}
    if isinstance(by, int):
        found = {"by": "/", "at": "offset", "offset_bytes": by}
    elif isinstance(by, list):
        found = [{"by": each, "at": at} for each in by]
    entry = {"id": id_, "kind": "script", "bytes": PACKET, "module": True, "discovered": found}
    return {**entry, **more}


def page_with(*resources: dict[str, Any], packets: int = 1, **root: Any) -> Page:
    return page_of({"id": "/", "kind": "document", "bytes": packets * PACKET, **root}, *resources)


def parsed(page: Page, **options: Any) -> h3sim.Load:
    return h3sim.simulate(page, **{"scheme": "fifo", **AT_ONCE, **options})


def executed(load: h3sim.Load) -> list[tuple[str | None, float, float]]:
    rows = (row for row in load.activities() if row.work == "execute")
    return [(row.id, row.began_ms, row.ended_ms) for row in rows]


def requested(load: h3sim.Load) -> dict[str, float]:
    return {row.id: row.requested_ms for row in load.timings}


def test_a_module_runs_after_all_that_it_imports() -> None:
    """a is there at 20, b at 30, c at 40: then c, b and a run, 1 ms each."""
    chain = [script("a", 100), script("b", "a"), script("c", "b")]
    image = {
        "id": "hero",
        "kind": "image",
        "bytes": PACKET,
        "discovered": {"by": "a", "at": "executed"},
    }
    page = page_with(*({**each, "execute_ms": 1} for each in chain), image)
    load = parsed(page)
    assert executed(load) == [("c", 40, 41), ("b", 41, 42), ("a", 42, 43)]
    assert requested(load)["hero"] == 43
    # The replay has the same order of events.
    assert requested(h3sim.simulate(page, scheme="fifo"))["hero"] == 43


def test_a_module_blocks_neither_the_parser_nor_the_first_paint() -> None:
    load = parsed(page_with(script("a", 100, in_head=True), script("b", "a"), packets=2))
    assert load.first_paint_ms == 10
    classic = script("a", 100, in_head=True, module=False)
    assert parsed(page_with(classic, packets=2)).first_paint_ms == 30
    # DOMContentLoaded waits for it, as for a deferred script.
    assert load.dom_content_loaded_ms == 40


def test_modules_run_in_the_order_of_the_document_whichever_graph_is_complete_first() -> None:
    slow = [script("a", 100), script("b", "a", server_ms=90)]
    load = parsed(page_with(*slow, script("z", 200)))
    assert [id_ for id_, _, _ in executed(load)] == ["b", "a", "z"]
    # An async one runs as soon as its own graph has arrived.
    free = parsed(page_with(*slow, script("z", 200, **{"async": True})))
    assert [id_ for id_, _, _ in executed(free)] == ["z", "b", "a"]


def test_an_async_module_waits_for_its_imports_too() -> None:
    page = page_with(script("a", 100, **{"async": True}), script("b", "a", server_ms=90))
    assert executed(parsed(page)) == [("b", 110, 110), ("a", 110, 110)]


def test_a_module_that_two_others_import_is_requested_and_run_once() -> None:
    """Each of the two waits for it; it is requested when the first of them is there."""
    page = page_with(
        script("a", 100),
        script("z", 200),
        script("shared", ["a", "z"], server_ms=50, execute_ms=2),
    )
    load = parsed(page)
    assert requested(load)["shared"] == 20
    assert executed(load) == [("shared", 70, 72), ("a", 72, 72), ("z", 72, 72)]


def test_modules_that_import_each_other_run_once() -> None:
    page = page_with(
        script(
            "a",
            100,
            discovered=[
                {"by": "/", "at": "offset", "offset_bytes": 100},
                {"by": "b", "at": "complete"},
            ],
        ),
        script("b", "a"),
    )
    load = parsed(page)
    assert [id_ for id_, _, _ in executed(load)] == ["b", "a"]
    assert load.dom_content_loaded_ms == 30


def test_a_preloaded_module_runs_only_with_its_importer() -> None:
    """A modulepreload saves the round trips, not the order."""
    preload = [
        {"by": "/", "at": "offset", "offset_bytes": 50},
        {"by": "a", "at": "complete"},
    ]
    deep = script("b", "a", discovered=preload, preload=True)
    load = parsed(page_with(script("a", 100, server_ms=100), deep), scheme="rr")
    assert requested(load)["b"] == 10
    assert [id_ for id_, _, _ in executed(load)] == ["b", "a"]


def test_a_dynamic_import_runs_on_its_own() -> None:
    """Its importer does not wait for it: it is requested when that has run."""
    page = page_with(
        script("a", 100),
        script("b", "a", "executed", server_ms=30),
        script("c", "b", server_ms=20),
    )
    load = parsed(page)
    assert executed(load) == [("a", 20, 20), ("c", 70, 70), ("b", 70, 70)]
    assert load.dom_content_loaded_ms == 20
    assert load.load_event_ms == 70


def test_a_graph_of_ten_modules_holds_back_what_its_entry_shows() -> None:
    """The entry, nine nested imports and the image: eleven round trips after the document."""
    chain = [script("m0", 300, defer=True, bytes=300)]
    chain += [script(f"m{n}", f"m{n - 1}", bytes=300) for n in range(1, 10)]
    shown = {"hero": True, "viewport": 0.5, "above_the_fold": True}
    found = {"by": "m0", "at": "executed"}
    image = {"id": "main.jpg", "kind": "image", "bytes": 5000, "discovered": found, **shown}
    page = page_with(*chain, image)
    load = h3sim.simulate(
        page, scheme="chrome-eps", network="4g", rtt_ms=150, transport="tcp", browser="parse"
    )
    assert load.largest_paint_ms is not None
    assert load.largest_paint_ms > (2 + 1 + 10 + 1) * 150
    steps = [row.id for row in load.critical_path() if row.work == "download"]
    assert steps == ["/", *(f"m{n}" for n in range(10)), "main.jpg"]
    assert all(row.policy == "F" for row in load.activities() if row.work == "execute")


@pytest.mark.parametrize("flag", ["defer", "async"])
def test_a_script_without_imports_runs_as_before(flag: str) -> None:
    page = page_with(script("a", 100, **{flag: True}, execute_ms=3))
    assert executed(parsed(page)) == [("a", 20, 23)]


def test_a_long_chain_of_imports_is_followed() -> None:
    chain = [script("m0", 1)] + [script(f"m{n}", f"m{n - 1}", bytes=1) for n in range(1, 1500)]
    page = page_with(*chain)
    assert page.module_graphs[1] == tuple(range(1500, 0, -1))

"""Pages of several roots, worked out by hand: two tabs, a frame opened by script, a redirect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.browser import infer_above_the_fold
from h3sim.cli import main
from h3sim.page import Page
from h3sim.page.model import parts_of
from h3sim.values.errors import PageError
from tests.helpers import AT_ONCE, page_document, with_updates

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 14_000}
"""Ten packets of a constant rate: 100 ms."""


def tab(after_ms: float = 50, **keys: Any) -> dict[str, Any]:
    found = {"at": "time", "delay_ms": after_ms}
    return {
        "id": "b/",
        "kind": "document",
        "bytes": 14_000,
        "root": True,
        "discovered": found,
        **keys,
    }


def child(id_: str, by: str, at: str = "complete", **keys: Any) -> dict[str, Any]:
    discovered = {"by": by, "at": at, **({"offset_bytes": 0} if at == "offset" else {})}
    return {"id": id_, "kind": "image", "bytes": 1400, "discovered": discovered, **keys}


def page(*entries: Any) -> Page:
    return Page.from_dict(page_document(*entries))


def requested(load: h3sim.Load) -> dict[str, float]:
    return {row.id: row.requested_ms for row in load.timings}


TWO = page(ROOT, child("a", "/"), tab(), child("b", "b/"))


class TestThePage:
    def test_a_resource_belongs_to_the_nearest_root_above_it(self) -> None:
        nested = page(ROOT, child("a", "/"), tab(discovered={"by": "a", "at": "complete"}),
                      child("b", "b/"), child("c", "b"), child("d", "/"))  # fmt: skip
        assert nested.roots == (0, 2)
        assert nested.root_of == (0, 0, 2, 2, 2, 0)

    def test_what_comes_by_the_clock_belongs_to_the_first_root_or_that_of_its_parent(self) -> None:
        beacon = {"id": "x", "kind": "other", "bytes": 0, "discovered": {"at": "time"}}
        of_tab = beacon | {"id": "y", "discovered": {"at": "time", "by": "b"}}
        assert page(ROOT, tab(), child("b", "b/"), beacon, of_tab).root_of == (0, 1, 1, 0, 1)

    def test_a_circle_of_what_comes_by_the_clock_belongs_to_the_first_root(self) -> None:
        # Nothing waits for who is named there, so a circle of such is no mistake.
        def timed(id_: str, by: str) -> dict[str, Any]:
            discovered = {"at": "time", "by": by}
            return {"id": id_, "kind": "other", "bytes": 0, "discovered": discovered}

        circle = (timed("x", "y"), timed("y", "x"), timed("w", "x"))
        assert page(ROOT, tab(), *circle, child("b", "w")).root_of == (0, 1, 0, 0, 0, 0)

    def test_a_page_of_one_root_is_its_only_part(self) -> None:
        one = page(ROOT, child("a", "/"))
        (part,) = parts_of(one)
        assert part.page is one

    def test_a_part_knows_nothing_of_what_others_change(self) -> None:
        change = {"when": {"by": "a", "at": "complete"}, "visible": True}
        both = page(ROOT, child("a", "/"), tab(), child("b", "b/", priority_changes=[change]))
        first, second = parts_of(both)
        assert [r.id for r in first.page.resources] == ["/", "a"]
        assert [r.id for r in second.page.resources] == ["b/", "b"]
        assert second.page.resources[1].priority_changes == ()

    def test_a_part_knows_nothing_of_words_that_others_brought_about(self) -> None:
        own = {"urgency": 3, "incremental": False}
        later = [{"urgency": 1, "when": {"by": by, "at": "complete"}} for by in ("a", "b/")]
        both = page(ROOT, child("a", "/"), tab(), child("b", "b/", recorded=[own, *later]))
        (b,) = parts_of(both)[1].page.resources[1:]
        assert [entry.when and entry.when.by for entry in b.recorded] == [None, "b/"]

    def test_the_graph_names_its_roots(self) -> None:
        assert TWO.graph.graph["roots"] == ["/", "b/"]
        assert not list(TWO.graph.predecessors("b/"))

    def test_a_second_root_has_to_be_marked_as_one(self) -> None:
        two = [ROOT, {**ROOT, "id": "b/"}]
        with pytest.raises(PageError, match="without 'discovered' it needs 'root' to be true"):
            page(*two)
        two[1]["root"] = True
        assert page(*two).roots == (0, 1)

    def test_a_file_keeps_roots_and_tabs_in_the_background(self) -> None:
        hidden = {"when": {"at": "time"}, "hidden": True}
        written = page(ROOT, tab(priority_changes=[hidden])).to_dict()
        assert Page.from_dict(written).to_dict() == written
        assert written["resources"][1]["root"] is True
        assert written["resources"][1]["priority_changes"] == [hidden]

    def test_marks_are_inferred_root_by_root(self) -> None:
        images = [child(f"{by}{n}", by, "offset") for by in ("/", "b/") for n in range(6)]
        marked = infer_above_the_fold(page(ROOT, tab(), *images))
        seen = [each.id for each in marked.resources if each.above_the_fold]
        # Of each document the first five images.
        assert seen == ["/", "b/", *(f"{by}{n}" for by in ("/", "b/") for n in range(5))]


class TestTheLoad:
    def test_each_root_is_requested_at_its_time(self) -> None:
        # In turn from 50 ms on, 10 ms a packet: "/" has five more until 150, "b/" until 200.
        load = h3sim.simulate(TWO, scheme="rr")
        assert requested(load) == {"/": 0, "b/": 50, "a": 150, "b": 210}

    def test_a_root_that_waits_for_the_handshake_leaves_with_the_first(self) -> None:
        load = h3sim.simulate(TWO, scheme="rr", rtt_ms=400)
        assert requested(load)["b/"] == requested(load)["/"] == 400

    def test_a_figure_for_each_root_counts_from_its_request(self) -> None:
        load = h3sim.simulate(TWO, scheme="fifo")
        # One after the other: "/" until 100, "b/" until 200, "a" until 210, "b" until 220.
        rows = [(r.id, r.requested_ms, r.resources, r.bytes, r.finished_ms) for r in load.roots]
        assert rows == [("/", 0, 2, 15_400, 210), ("b/", 50, 2, 15_400, 170)]
        (_, both) = load.to_dict()["roots"]
        assert both["id"] == "b/"
        assert both["load_event_ms"] is None

    def test_a_page_of_one_root_lists_no_roots(self) -> None:
        load = h3sim.simulate("davies-meenan", scheme="rr")
        assert "roots" not in load.to_dict()
        (row,) = load.roots
        assert (row.byte_index_ms, row.byte_index_atf_ms, row.finished_ms) == (
            *(load.byte_index(which) for which in ("all", "atf")),
            load.page_load_ms,
        )

    def test_rules_take_each_root_for_a_main_document(self) -> None:
        frame = tab(50, root=False)
        orders = []
        for other in (tab(50), frame):
            load = h3sim.simulate(page(ROOT, other), scheme="chrome-eps")
            fields = {
                reported.element_id: reported.signal.urgency for reported in load.trace.signals
            }
            orders.append(fields[0] == fields[4])
        assert orders == [True, True]

    def test_the_command_line_shows_each_root(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "two.json"
        path.write_text(TWO.to_json(), encoding="utf-8")
        assert main(["run", str(path), "--scheme", "fifo"]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert ["b/", "50.0", "2", "15,400"] in [line[:4] for line in lines]


class TestABrowserThatParses:
    def alone(self, **options: Any) -> Any:
        (row,) = h3sim.simulate(
            page(ROOT, child("a", "/", "offset")), browser="parse", **options
        ).roots
        return row

    def test_a_tab_that_opens_later_is_as_one_alone(self) -> None:
        both = page(ROOT, child("a", "/", "offset"), tab(5000), child("b", "b/", "offset"))
        load = h3sim.simulate(both, browser="parse")
        alone = self.alone()
        first, second = load.roots
        assert first == alone
        # Its request comes at the instant of a tick, which takes it along: a packet earlier.
        assert second.requested_ms == 5000
        assert second.load_event_ms == alone.load_event_ms - 10
        # Milestones of the whole load are those of the first tab.
        assert load.first_paint_ms == alone.first_paint_ms
        assert load.load_event_ms == alone.load_event_ms
        assert load.critical_path()[0].id == "/"

    def test_each_tab_has_a_main_thread(self) -> None:
        slow = {"execute_ms": 400}
        both = page({**ROOT, **slow}, tab(0, **slow))
        alone = h3sim.simulate(page({**ROOT, **slow}), browser="parse")
        load = h3sim.simulate(both, browser="parse", rate_mbps=100)
        # On one thread the second would have to wait for the first.
        assert all(row.load_event_ms < alone.load_event_ms + 100 for row in load.roots)

    def test_a_script_opens_a_frame_whose_document_is_parsed(self) -> None:
        script = child("a.js", "/", kind="script", execute_ms=30)
        frame = tab(discovered={"by": "a.js", "at": "executed", "delay_ms": 7})
        load = h3sim.simulate(
            page(ROOT, script, frame, child("b", "b/", "offset")), browser="parse"
        )
        # "/" is there at 100, the script at 110; it runs until 140.
        assert requested(load)["b/"] == 147
        assert load.roots[1].load_event_ms is not None

    @pytest.mark.parametrize(
        ("at", "asked_ms"), [("request", 0), ("offset", 50), ("complete", 100)]
    )
    def test_any_event_of_another_root_can_lead_to_one(self, at: str, asked_ms: float) -> None:
        when: dict[str, Any] = {"by": "/", "at": at}
        when |= {"offset_bytes": 7000} if at == "offset" else {}
        both = page(ROOT, tab(discovered=when))
        assert requested(h3sim.simulate(both, browser="parse"))["b/"] == asked_ms
        assert requested(h3sim.simulate(both))["b/"] == asked_ms

    def test_a_redirect_leads_to_the_document_that_is_painted(self) -> None:
        hop = {"id": "/", "kind": "document", "bytes": 100, "header_bytes": 100}
        landed = tab(discovered={"by": "/", "at": "complete"})
        load = h3sim.simulate(page(hop, landed, child("a", "b/", "offset")), **AT_ONCE)
        # The hop takes a packet, until 10 ms; the first packet of the document comes at 20 ms.
        assert (load.first_paint_ms, load.load_event_ms) == (20, 120)

    def test_layout_reports_the_images_of_its_own_tab(self) -> None:
        def seen_in(root: str) -> list[dict[str, Any]]:
            style = child(f"{root}.css", root, "offset", kind="stylesheet", in_head=True)
            image = child(f"{root}.png", root, "offset", above_the_fold=True, bytes=28_000)
            return [{**style, "render_blocking": True}, image]

        both = page(ROOT, *seen_in("/"), tab(2000), *seen_in("b/"))
        load = h3sim.simulate(both, scheme=with_updates("chrome-eps"), browser="parse")
        of_images = {row.stream_id: row.requested_ms for row in load.timings if row.kind == "image"}
        raised = {
            reported.element_id: reported.at_ns / 10**6
            for reported in load.trace.signals
            if reported.element_id in of_images
        }
        # Each is told of once more than with its request, when its own tab is laid out.
        assert [number for number in of_images if raised[number] > of_images[number]] == [8, 20]
        assert raised[8] < 2000 < raised[20]


class TestTheBackground:
    def test_requests_of_a_hidden_tab_are_marked_as_such(self) -> None:
        hidden = [{"when": {"at": "time"}, "hidden": True}]
        both = page(ROOT, tab(50, priority_changes=hidden))
        load = h3sim.simulate(both, scheme="firefox-eps")
        in_sight, of_tab = (reported.signal for reported in load.trace.signals)
        assert (in_sight.urgency, of_tab.urgency) == (0, 6)

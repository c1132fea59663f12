"""Why a browser waits, by hand: policies of WProf, slack, where time goes, and what would be."""

from __future__ import annotations

import json
from typing import Any

import pytest

import h3sim
from h3sim.advice.optimality import WHAT_IFS
from h3sim.cli.main import main
from tests.helpers import AT_ONCE, page_of

# Packets of 1400 bytes, every 10 ms. A document of two packets names a stylesheet, a script behind
# it and an image at its end; the style names a font; the script, once it has run, asks for more.
ROOT = {"id": "/", "kind": "document", "bytes": 2800, "parse_ms": 4}


def within(offset_bytes: int) -> dict[str, Any]:
    return {"by": "/", "at": "offset", "offset_bytes": offset_bytes}


STYLE = {
    "id": "s.css",
    "kind": "stylesheet",
    "bytes": 1400,
    "in_head": True,
    "parse_ms": 6,
    "discovered": within(100),
}
SCRIPT = {
    "id": "a.js",
    "kind": "script",
    "bytes": 1400,
    "in_head": True,
    "execute_ms": 60,
    "discovered": within(200),
}
IMAGE = {"id": "b.png", "kind": "image", "bytes": 1400, "discovered": within(2800)}
FONT = {
    "id": "f.woff2",
    "kind": "font",
    "bytes": 1400,
    "discovered": {"by": "s.css", "at": "complete"},
}
MORE = {
    "id": "more",
    "kind": "fetch",
    "bytes": 2800,
    "discovered": {"by": "a.js", "at": "executed"},
}
PAGE = page_of(ROOT, STYLE, SCRIPT, IMAGE, FONT, MORE)


@pytest.fixture(scope="module")
def load() -> Any:
    return h3sim.simulate(PAGE, scheme="fifo", **AT_ONCE)


def row_of(load: Any, work: str, id_: str | None = None) -> Any:
    return next(row for row in load.activities() if (row.work, row.id) == (work, id_))


def test_each_wait_has_the_policy_of_its_cause(load: Any) -> None:
    found = {(row.work, row.id): row.policy for row in load.activities() if row.work != "parse"}
    assert found == {
        ("download", "/"): None,
        ("download", "s.css"): "B",  # the scanner saw it in the first packet
        ("download", "a.js"): "B",
        ("download", "b.png"): "B",
        ("style", "s.css"): "F",  # it has come
        ("execute", "a.js"): "F",  # it has come, later than the style was ready
        ("download", "f.woff2"): "B",  # there is a layout that needs it
        ("download", "more"): "F",  # the script asks for it
        ("first paint", None): "F",
        ("DOMContentLoaded", None): "F",
        ("load", None): "F",
    }


def test_where_stylesheets_stop_the_parser_that_is_output() -> None:
    def policies(**how: Any) -> set[tuple[str, str]]:
        load = h3sim.simulate(PAGE, scheme="fifo", **AT_ONCE, **how)
        edges = load.activity_graph().edges(data=True)
        works = {index: row.work for index, row in enumerate(load.activities())}
        parsed = (edge for edge in edges if works[edge[1]] == "parse")
        return {(works[before], message["policy"]) for before, _, message in parsed}

    assert ("style", "O") in policies(stylesheets_block_parser=True)
    assert ("style", "O") not in policies()


def test_the_parser_waits_for_a_script_and_a_script_for_a_stylesheet() -> None:
    page = page_of(ROOT, {**STYLE, "parse_ms": 40}, SCRIPT, IMAGE)
    load = h3sim.simulate(page, scheme="fifo", **AT_ONCE)
    assert row_of(load, "execute", "a.js").policy == "O"  # it came while the style was parsed
    assert "O" in {row.policy for row in load.activities() if row.work == "parse"}


def test_what_is_ready_while_another_computes_waits_for_the_main_thread() -> None:
    asynchronous = {**SCRIPT, "id": "b.js", "async": True}
    slow = {**SCRIPT, "async": True, "execute_ms": 50}
    page = page_of(ROOT, slow, asynchronous)
    load = h3sim.simulate(page, scheme="fifo", **AT_ONCE)
    second = row_of(load, "execute", "b.js")
    assert (second.policy, second.began_ms) == ("R", row_of(load, "execute", "a.js").ended_ms)


def test_slack_is_what_the_load_event_would_not_have_noticed() -> None:
    load = h3sim.simulate(PAGE.without("f.woff2"), scheme="fifo", **AT_ONCE)
    event_ms = load.load_event_ms
    image, last = row_of(load, "download", "b.png"), row_of(load, "download", "more")
    assert last.slack_ms == 0
    assert last.is_on_path
    assert last.ended_ms == event_ms
    # Nothing but the load event waits for the image.
    assert image.slack_ms == event_ms - image.ended_ms > 0
    assert not image.is_on_path
    # The script asked for what came last, and began when it was there: no slack on that way.
    assert row_of(load, "execute", "a.js").slack_ms == 0
    assert row_of(load, "download", "a.js").slack_ms == 0


def test_a_later_end_within_its_slack_changes_no_load_event(load: Any) -> None:
    image = row_of(load, "download", "b.png")
    late = PAGE.with_("b.png", server_ms=image.slack_ms - 10)
    assert h3sim.simulate(late, scheme="fifo", **AT_ONCE).load_event_ms == load.load_event_ms


@pytest.mark.parametrize("by", ["policy", "kind", "resource", "part"])
def test_contributions_add_up_to_the_load_event(load: Any, by: str) -> None:
    rows = load.contributions(by)
    assert sum(row.time_ms for row in rows) == pytest.approx(load.load_event_ms)
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert [row.time_ms for row in rows] == sorted((row.time_ms for row in rows), reverse=True)


def test_contributions_by_kind_are_those_of_the_path(load: Any) -> None:
    spent: dict[str, float] = {}
    for step in load.critical_path():
        kind = "page" if step.id is None else PAGE.resources[PAGE.index[step.id]].kind.value
        spent[kind] = spent.get(kind, 0) + sum(step[4:])
    assert {row.name: row.time_ms for row in load.contributions("kind")} == pytest.approx(spent)


def test_contributions_by_anything_else_are_refused(load: Any) -> None:
    with pytest.raises(ValueError, match="by must be policy, kind, resource or part, is 'colour'"):
        load.contributions("colour")


def test_the_graph_has_the_rows_and_states_why(load: Any) -> None:
    graph, rows = load.activity_graph(), load.activities()
    assert [graph.nodes[index] for index in range(len(rows))] == [row._asdict() for row in rows]
    last = {after: before for before, after, is_last in graph.edges(data="is_last") if is_last}
    assert last == {n: row.after for n, row in enumerate(rows) if row.after is not None}
    assert {why for *_, why in graph.edges(data="why")} <= {
        *("flow", "output", "binding", "resource")
    }


def test_a_load_that_was_not_computed_has_none_of_it() -> None:
    load = h3sim.simulate(PAGE, scheme="fifo")
    assert (len(load.activities()), len(load.contributions())) == (0, 0)
    assert load.activity_graph().number_of_nodes() == 0


# What if


def test_what_would_be_is_reported_every_page() -> None:
    found = h3sim.what_if([PAGE, "davies-meenan"], scheme="fifo", network="cable", **AT_ONCE)
    assert [(row.page, row.what) for row in found.rows] == [
        (page, what) for page in ("page", "davies-meenan") for what in WHAT_IFS
    ]
    of_page = {row.what: row.load_event_ms for row in found.rows if row.page == "page"}
    as_it_is = h3sim.simulate(PAGE, scheme="fifo", network="cable", **AT_ONCE)
    assert of_page["as it is"] == as_it_is.load_event_ms
    # Without a network all that is left is computing: parser, style and script, one by one.
    assert of_page["no network"] == pytest.approx(4 + 6 + 60, abs=0.1)
    # So it is with a cache, behind a document that still has to come.
    assert of_page["all cached"] > of_page["no network"]
    assert all(value <= of_page["as it is"] for value in of_page.values())
    assert found.configuration["scheme"] == "fifo"


def test_the_mean_part_is_geometric() -> None:
    found = h3sim.what_if([PAGE, "davies-meenan"], scheme="fifo", network="cable", **AT_ONCE)
    parts = [row.part for row in found.rows if row.what == "half the RTT"]
    assert found.mean_part("half the RTT") == pytest.approx((parts[0] * parts[1]) ** 0.5)
    assert found.mean_part("as it is") == 1


def test_mean_contributions_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["what-if", "davies-meenan", "http2rulez", "--network", "cable"]
    assert main([*arguments, "--cpu-slowdown", "4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "h3sim-what-if/1"
    for by in ("policy", "kind", "part"):
        parts = [row["mean_part"] for row in document["contributions"] if row["by"] == by]
        assert sum(parts) == pytest.approx(1)
    assert document["configuration"]["cpu_slowdown"] == 4


def test_the_command_shows_a_table_and_where_time_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", "davies-meenan", "http2rulez", "--network", "cable"]) == 0
    shown = capsys.readouterr().out
    assert all(what in shown for what in WHAT_IFS)
    assert "mean of 2 pages" in shown
    assert "critical path by blocking rule: " in shown
    assert "without the network 0.02" in " ".join(shown.split())


def test_the_last_line_names_the_resource_that_takes_most_of_the_path(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["what-if", "davies-meenan", "--scheme", "dfifo"]) == 0
    *_, last = capsys.readouterr().out.split("\n\n")
    longest, *_ = h3sim.simulate("davies-meenan", scheme="dfifo", browser="parse").contributions(
        "resource"
    )
    assert longest.name in last
    assert f"{100 * longest.share:.0f} %" in last


def test_every_error_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", "nope", "--scheme", "nor-this", "--network", "cablex"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_without_a_network_there_is_no_handshake_either() -> None:
    over: dict[str, Any] = {"scheme": "fifo", "network": "cable", **AT_ONCE}
    path = h3sim.simulate(PAGE, **over).critical_path()
    assert (path[0].work, path[0].began_ms, path[0].network_ms) == ("connect", 0, path[0].ended_ms)
    asked = h3sim.what_if(PAGE, **over, cpu_slowdown=0.001)
    rows = {row.what: row.load_event_ms for row in asked.rows}
    assert rows["no network"] < path[0].network_ms

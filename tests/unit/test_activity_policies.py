"""Wang et al. (WProf, NSDI 2013), Table 1, by hand: each pair of activities and its policy; slack.

A page of one of each: what is asked for by the document's bytes, by a style, by a script.
"""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.metrics.critical_path import Dependency, DependencyPolicy, dependencies, slacks_ns
from h3sim.trace import Activity, Work
from h3sim.values.units import ms
from tests.helpers import page_of


def named(id_: str, kind: str, **more: Any) -> dict[str, Any]:
    found = {"by": "/", "at": "offset", "offset_bytes": 50}
    return {"id": id_, "kind": kind, "bytes": 100, "discovered": found, **more}


def by(parent: str, at: str, id_: str, **more: Any) -> dict[str, Any]:
    return {**named(id_, "fetch"), "discovered": {"by": parent, "at": at}, **more}


PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 1000},
    named("a.css", "stylesheet"),
    named("sync.js", "script"),
    named("async.js", "script", **{"async": True}),
    named("defer.js", "script", defer=True),
    named("preload.js", "script", preload=True),
    named("frame", "document"),
    by("a.css", "complete", "font"),
    by("sync.js", "executed", "data", kind="fetch"),
    by("/", "complete", "late", discovered={"by": "/", "at": "complete", "delay_ms": 7}),
)
DOWNLOAD, PARSE, STYLE, EXECUTE = Work.DOWNLOAD, Work.PARSE, Work.STYLE, Work.EXECUTE
PAINT, READY, LOAD = Work.FIRST_PAINT, Work.DOM_CONTENT_LOADED, Work.LOAD
WAITS = [
    # A tag is seen by the scanner before the parser comes (B3); what follows the whole does (F).
    ((DOWNLOAD, "/"), (DOWNLOAD, "a.css"), "B"),
    ((DOWNLOAD, "/"), (DOWNLOAD, "late"), "F"),
    ((PARSE, "/"), (DOWNLOAD, "a.css"), "F"),
    ((DOWNLOAD, "frame"), (DOWNLOAD, "a.css"), "F"),
    ((EXECUTE, "sync.js"), (DOWNLOAD, "data"), "F"),
    # What a style names waits for a layout (B1), what is lazy for a paint (B2).
    ((PAINT, None), (DOWNLOAD, "font"), "B"),
    ((READY, None), (DOWNLOAD, "font"), "B"),
    # The parser needs the document (F), waits for a script that it came to (O1), or for a turn.
    ((DOWNLOAD, "/"), (PARSE, "/"), "F"),
    ((PARSE, "/"), (PARSE, "/"), "F"),
    ((DOWNLOAD, "frame"), (PARSE, "/"), "R"),
    ((EXECUTE, "sync.js"), (PARSE, "/"), "O"),
    ((EXECUTE, "async.js"), (PARSE, "/"), "R"),
    ((EXECUTE, "defer.js"), (PARSE, "/"), "R"),
    ((EXECUTE, "preload.js"), (PARSE, "/"), "R"),
    ((STYLE, "a.css"), (PARSE, "/"), "R"),
    ((PAINT, None), (PARSE, "/"), "R"),
    # A style is parsed when it is there, or when the main thread is free (R3).
    ((DOWNLOAD, "a.css"), (STYLE, "a.css"), "F"),
    ((EXECUTE, "async.js"), (STYLE, "a.css"), "R"),
    # A script waits for its bytes (F), for styles (O2) and for the parser, which came to it first;
    # deferred ones for each other; those that need no order for a turn.
    ((DOWNLOAD, "sync.js"), (EXECUTE, "sync.js"), "F"),
    ((DOWNLOAD, "async.js"), (EXECUTE, "sync.js"), "R"),
    ((STYLE, "a.css"), (EXECUTE, "sync.js"), "O"),
    ((PARSE, "/"), (EXECUTE, "sync.js"), "O"),
    ((PARSE, "/"), (EXECUTE, "defer.js"), "O"),
    ((EXECUTE, "sync.js"), (EXECUTE, "defer.js"), "O"),
    ((EXECUTE, "async.js"), (EXECUTE, "sync.js"), "R"),
    ((PARSE, "/"), (EXECUTE, "async.js"), "R"),
    ((STYLE, "a.css"), (EXECUTE, "preload.js"), "R"),
    ((PARSE, "/"), (EXECUTE, "frame"), "R"),
    # The first paint waits for styles (O3); milestones are the results of what leads to them.
    ((STYLE, "a.css"), (PAINT, None), "O"),
    ((PARSE, "/"), (PAINT, None), "F"),
    ((STYLE, "a.css"), (READY, None), "F"),
    ((EXECUTE, "defer.js"), (READY, None), "F"),
    ((STYLE, "a.css"), (READY, "sync.js"), "F"),
    # The same work before, and none that the page knows, say nothing: it waits for its turn.
    ((DOWNLOAD, "/"), (DOWNLOAD, "/"), "F"),
    ((STYLE, "/"), (PARSE, "/"), "R"),
    ((EXECUTE, None), (PARSE, "/"), "R"),
    ((EXECUTE, "sync.js"), (EXECUTE, "sync.js"), "R"),
    ((DOWNLOAD, "async.js"), (EXECUTE, "defer.js"), "R"),
    # What is of no resource of the page needs what it waited for.
    ((DOWNLOAD, "/"), (Work.LOOK_UP, None), "F"),
    ((PAINT, None), (Work.CONNECT, None), "F"),
    ((STYLE, "a.css"), (EXECUTE, None), "F"),
]


def done(
    work: Work, id_: str | None, began_ms: float = 0, ended_ms: float = 0, after: int | None = None
) -> Activity:
    """Return an activity of the resource of that id."""
    index = None if id_ is None else PAGE.index[id_]
    return Activity(work, index, ms(began_ms), ms(ended_ms), after)


@pytest.mark.parametrize(("before", "after", "policy"), WAITS)
def test_each_wait_has_its_policy(before: Any, after: Any, policy: str) -> None:
    waits = done(*after)._replace(after=0)
    [found] = dependencies([done(*before), waits], PAGE)
    assert found == Dependency(0, 1, DependencyPolicy(policy), is_last=True)


def test_what_is_computed_waits_for_its_download_and_the_load_event_for_all_before_it() -> None:
    activities = [
        done(DOWNLOAD, "/", 0, 10),
        done(DOWNLOAD, "a.css", 5, 20, after=0),
        done(DOWNLOAD, "sync.js", 5, 15, after=0),
        done(PARSE, "/", 10, 12, after=0),
        done(STYLE, "a.css", 20, 30, after=1),
        done(EXECUTE, "sync.js", 30, 40, after=4),
        done(DOWNLOAD, "late", 17, 50, after=0),
        done(LOAD, None, 40, 40, after=5),
    ]
    found = [
        (each.before, each.after, each.policy.value, each.is_last)
        for each in dependencies(activities, PAGE)
    ]
    assert found == [
        (0, 1, "B", True),
        (0, 2, "B", True),
        (0, 3, "F", True),
        (1, 4, "F", True),
        (2, 5, "F", False),
        (4, 5, "O", True),
        (0, 6, "F", True),
        *((n, 7, "F", n == 5) for n in range(6)),
    ]


def test_slack_is_the_least_of_what_follows_without_the_delays_of_the_page() -> None:
    # The script could end 4 ms later, and the style before it 4 + 3. The download of the document
    # ended at 10: "late" was asked for 12 ms later, 7 of which the page has for itself: 5, and the
    # 2 that it may be later. Its first bytes were enough for the style: that is no slack.
    activities = [
        done(DOWNLOAD, "/", 0, 10),
        done(DOWNLOAD, "a.css", 5, 20, after=0),
        done(EXECUTE, "sync.js", 23, 36, after=1),
        done(DOWNLOAD, "late", 22, 38, after=0),
        done(DOWNLOAD, "frame", 22, 90, after=0),
        done(LOAD, None, 40, 40, after=3),
    ]
    edges = [
        Dependency(0, 1, DependencyPolicy.BINDING, is_last=True),
        Dependency(1, 2, DependencyPolicy.OUTPUT, is_last=True),
        Dependency(0, 3, DependencyPolicy.FLOW, is_last=True),
        Dependency(0, 4, DependencyPolicy.FLOW, is_last=True),
        Dependency(4, 5, DependencyPolicy.FLOW, is_last=False),
        Dependency(2, 5, DependencyPolicy.FLOW, is_last=False),
        Dependency(3, 5, DependencyPolicy.FLOW, is_last=True),
    ]
    slacks = slacks_ns(activities, edges, PAGE)
    assert slacks == [ms(5 + 2), ms(4 + 3), ms(4), ms(2), None, 0]
    # Where the delay was not even waited out there is no slack below none.
    activities[3] = done(DOWNLOAD, "late", 12, 38, after=0)
    assert slacks_ns(activities, edges, PAGE)[0] == ms(2)


def test_what_ends_as_another_begins_has_no_slack_but_what_that_has() -> None:
    # The script begins as the style's download ends, and could end 4 ms later: so could that.
    activities = [
        done(DOWNLOAD, "a.css", 0, 20),
        done(EXECUTE, "sync.js", 20, 36, after=0),
        done(EXECUTE, "defer.js", 20, 39, after=0),
        done(LOAD, None, 40, 40, after=1),
    ]
    edges = [
        Dependency(0, 1, DependencyPolicy.OUTPUT, is_last=True),
        Dependency(0, 2, DependencyPolicy.OUTPUT, is_last=True),
        Dependency(1, 3, DependencyPolicy.FLOW, is_last=True),
        Dependency(2, 3, DependencyPolicy.FLOW, is_last=False),
    ]
    assert slacks_ns(activities, edges, PAGE) == [ms(1), ms(4), ms(1), 0]


@pytest.mark.parametrize(
    ("after", "slack_ms"),
    # Of what the page holds back for 7 ms, the request alone is held back.
    [
        ((DOWNLOAD, "late"), 3),
        ((EXECUTE, "late"), 10),
        ((Work.LOOK_UP, None), 10),
        ((PAINT, None), 10),
    ],
)
def test_a_delay_of_the_page_is_one_of_the_request(after: Any, slack_ms: float) -> None:
    activities = [
        done(DOWNLOAD, "/", 0, 10),
        done(after[0], after[1], 20, 30),
        done(LOAD, None, 30, 30),
    ]
    edges = [
        Dependency(0, 1, DependencyPolicy.FLOW, is_last=True),
        Dependency(1, 2, DependencyPolicy.FLOW, is_last=True),
    ]
    assert slacks_ns(activities, edges, PAGE)[0] == ms(slack_ms)


@pytest.mark.parametrize(
    ("before", "after", "policy"),
    [
        ((STYLE, "a.css"), (PARSE, "/"), "O"),
        ((EXECUTE, "async.js"), (PARSE, "/"), "R"),
        ((DOWNLOAD, "/"), (PARSE, "/"), "F"),
        ((STYLE, "a.css"), (STYLE, "a.css"), "F"),
        ((STYLE, "a.css"), (READY, None), "F"),
    ],
)
def test_where_styles_stop_the_parser_it_alone_waits_for_them(
    before: Any, after: Any, policy: str
) -> None:
    waits = done(*after)._replace(after=0)
    [found] = dependencies([done(*before), waits], PAGE, stylesheets_block_parser=True)
    assert found.policy is DependencyPolicy(policy)


def test_the_load_event_waits_for_what_ends_as_it_begins_and_not_for_what_ends_later() -> None:
    activities = [
        done(DOWNLOAD, "/", 0, 40),
        done(DOWNLOAD, "a.css", 0, 41),
        done(LOAD, None, 40, 40),
        done(DOWNLOAD, "frame", 0, 9),
    ]
    assert [(each.before, each.after) for each in dependencies(activities, PAGE)] == [(0, 2)]

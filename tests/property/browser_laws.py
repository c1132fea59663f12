"""Laws of a load that the browser computed, each a function that raises AssertionError."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from h3sim.browser import needed_for_first_paint
from h3sim.page import Kind
from h3sim.trace import Work


def check_the_main_thread_does_one_thing_at_a_time(load: Any) -> None:
    """No computation begins before the one before it has ended."""
    computed = [done for done in load.trace.activities if done.work.is_computation]
    for before, after in pairwise(computed):
        assert before.ended_at_ns <= after.began_at_ns, (before, after)


def check_what_runs_is_there(load: Any) -> None:
    """Every script and stylesheet runs once, and not before all of it was delivered."""
    finished = {row.id: row.finished_ms for row in load.timings}
    resources = load.page.resources
    ran = [
        (resources[done.resource].id, done.began_at_ns / 1e6)
        for done in load.trace.activities
        if done.work in (Work.STYLE, Work.EXECUTE)
    ]
    kinds = (Kind.STYLESHEET, Kind.SCRIPT)
    expected = {r.id for n, r in enumerate(resources) if r.kind in kinds and n != load.page.root}
    assert expected <= {id_ for id_, _ in ran}
    assert len({id_ for id_, _ in ran}) == len(ran)
    for id_, at_ms in ran:
        assert at_ms >= finished[id_], id_


def check_nothing_is_painted_before_what_it_needs(load: Any) -> None:
    """What the first paint is said to need is there when it comes; of the root, its head is."""
    finished = {row.id: row.finished_ms for row in load.timings}
    resources = load.page.resources
    for index in needed_for_first_paint(load.page):
        if index != load.page.root:
            assert finished[resources[index].id] <= load.first_paint_ms, resources[index].id


def check_the_load_event_waits_for_what_was_asked_for(load: Any) -> None:
    """DOMContentLoaded comes no later than load, and that behind all that was requested before.

    Lazy images do not delay it (HTML § 4.8.4.3).
    """
    assert 0 <= load.dom_content_loaded_ms <= load.load_event_ms
    for row in load.timings:
        if load.page.resources[load.page.index[row.id]].is_lazy:
            continue
        asked_before = row.requested_ms < load.load_event_ms
        assert not asked_before or row.finished_ms <= load.load_event_ms, row.id


def check_the_critical_path_adds_up(load: Any) -> None:
    """Its steps follow one another, and their times add up to that of the milestone."""
    for milestone in ("first paint", "DOMContentLoaded", "load"):
        path = load.critical_path(milestone)
        spent_ms = sum(sum(row[4:]) for row in path)
        assert path[0].began_ms + spent_ms == pytest.approx(path[-1].ended_ms, abs=1e-4)
        if load.connections[0].ready_at_ns:  # a handshake is part of the way
            assert path[0].began_ms == 0
        assert all(a.ended_ms <= b.began_ms + 1e-6 for a, b in pairwise(path))

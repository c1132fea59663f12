"""Laws of a load that the browser computed, each a function that raises AssertionError."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from h3sim.browser import needed_for_first_paint
from h3sim.browser.requests import is_lazy
from h3sim.load.painting import Painting, frame_ns
from h3sim.metrics import Element, seen_at_ns, speed_index_ns, timings
from h3sim.page import ImageFormat, Kind
from h3sim.trace import Work

_BY_ROWS = (ImageFormat.JPEG, ImageFormat.PNG, ImageFormat.GIF, ImageFormat.WEBP)


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
    if resources[load.page.root].kind is not Kind.DOCUMENT:
        assert load.first_paint_ms is None
        return
    for index in needed_for_first_paint(load.page):
        if index != load.page.root:
            assert finished[resources[index].id] <= load.first_paint_ms, resources[index].id


def check_the_load_event_waits_for_what_was_asked_for(load: Any) -> None:
    """DOMContentLoaded comes no later than load, and that behind all that was requested before.

    Neither lazy images (HTML § 4.8.4.3) nor what prefetch links name delay it.
    """
    if load.page.resources[load.page.root].kind is Kind.DOCUMENT:
        assert 0 <= load.dom_content_loaded_ms <= load.load_event_ms
    else:
        assert load.dom_content_loaded_ms is None
    for row in load.timings:
        resource = load.page.resources[load.page.index[row.id]]
        if is_lazy(resource) or resource.is_prefetched:
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


def painted(load: Any) -> tuple[int, list[Element], Element]:
    """Return the first paint, and what is painted from then on: the elements and the text."""
    spec = load.spec
    of_load = Painting(load.page, load.trace, timings(load.trace), spec.browser)
    return round(load.first_paint_ms * 1e6), of_load.elements, of_load.text


def check_paints_rise(load: Any) -> None:
    """Of each element ever more is painted, until all of it is, and never before the first paint.

    All times lie between the first paint and the last byte, and the frame that shows it.
    """
    first_paint_ns, elements, text = painted(load)
    shown_after_ns = frame_ns(load.spec.browser)
    last_ns = max(row.finished_at_ns for row in timings(load.trace))
    for element in (*elements, text):
        shares = [share for _, share in element.partial]
        assert shares == sorted(set(shares))
        assert all(0 < share < 1 for share in shares)
        steps = list(element.steps(first_paint_ns))
        assert sum(share for _, share in steps) == 1
        assert steps == sorted(steps, key=lambda step: step[0])
        assert steps[0][0] >= first_paint_ns
        assert steps[-1][0] <= max(first_paint_ns, last_ns + shown_after_ns, _last_script_ns(load))


def _last_script_ns(load: Any) -> int:
    """Return when the last computation ended: text may wait for that, and then for a frame."""
    ended: list[int] = [
        done.ended_at_ns for done in load.trace.activities if done.work.is_computation
    ]
    shown_after_ns = frame_ns(load.spec.browser)
    return max(ended, default=0) + shown_after_ns


def check_painting_is_never_behind(load: Any) -> None:
    """What is painted as it loads is never behind the same elements painted once complete.

    Both are all there at the same time, so the SpeedIndex is no larger.
    """
    first_paint_ns, elements, text = painted(load)
    complete = [element._replace(partial=()) for element in elements]
    if not elements:
        return
    text_complete = text._replace(partial=())
    index = speed_index_ns(first_paint_ns, elements, text=text)
    assert index <= speed_index_ns(first_paint_ns, complete, text=text_complete)
    for share in (Fraction(n, 20) for n in range(21)):
        progressive_ns = seen_at_ns(first_paint_ns, elements, share, text=text)
        complete_ns = seen_at_ns(first_paint_ns, complete, share, text=text_complete)
        assert progressive_ns <= complete_ns
    assert progressive_ns == complete_ns


def check_only_delivered_rows_are_painted(load: Any) -> None:
    """Of an image painted by rows no larger share is seen than had been delivered a frame ago."""
    _, elements, _ = painted(load)
    resources = load.page.resources
    shown_after_ns = frame_ns(load.spec.browser)
    shown = [
        row
        for row in timings(load.trace)
        if resources[row.resource].viewport
        and resources[row.resource].kind in (Kind.IMAGE, Kind.MEDIA, Kind.FONT)
    ]
    for row, element in zip(shown, elements, strict=True):
        resource = resources[row.resource]
        if resource.kind is not Kind.IMAGE or resource.painted_format not in _BY_ROWS:
            continue
        packets = [each for each in load.trace.packet_rows if each[2] == row.stream_id]
        for at_ns, share in element.partial:
            ends = [
                p[3] + p[4] for p in packets if p[6] is not None and p[6] <= at_ns - shown_after_ns
            ]
            assert share * resource.size_bytes <= max(ends) - resource.header_bytes

"""The metrics of a load by navigation: two tabs, say, or a page and a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim import metrics
from h3sim.trace import Work
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.metrics import Timing
    from h3sim.page import Page
    from h3sim.trace import Activity


class RootRow(NamedTuple):
    """A row of `Load.roots`: one root with all that it brought.

    *requested_ms* counts from navigation start, all other times from then on: so roots compare with
    loads of theirs alone. A ByteIndex is None where no byte counts; the last three are None unless
    the browser computed its load.
    """

    id: str
    requested_ms: float
    resources: int
    bytes: int
    byte_index_ms: float | None
    byte_index_atf_ms: float | None
    finished_ms: float
    first_paint_ms: float | None
    dom_content_loaded_ms: float | None
    load_event_ms: float | None


def root_rows(
    page: Page, timings: Sequence[Timing], activities: Sequence[Activity]
) -> Iterator[RootRow]:
    """Yield a row for each root, in the order in which they were asked for."""
    milestones = _milestones(page, activities)
    requested_at_ns = {timing.resource: timing.requested_at_ns for timing in timings}
    for root in sorted(page.roots, key=lambda root: requested_at_ns[root]):
        of_root = [timing for timing in timings if page.root_of[timing.resource] == root]
        begun_ns = requested_at_ns[root]
        seen = [each for each in of_root if page.resources[each.resource].above_the_fold]
        times = milestones.get(root, {})
        yield RootRow(
            id=page.resources[root].id,
            requested_ms=to_ms(begun_ns),
            resources=len(of_root),
            bytes=sum(page.resources[each.resource].size_bytes for each in of_root),
            byte_index_ms=_byte_index_ms(page, of_root, begun_ns),
            byte_index_atf_ms=_byte_index_ms(page, seen, begun_ns),
            finished_ms=to_ms(max(each.finished_at_ns for each in of_root) - begun_ns),
            first_paint_ms=_since(times.get(Work.FIRST_PAINT), begun_ns),
            dom_content_loaded_ms=_since(times.get(Work.DOM_CONTENT_LOADED), begun_ns),
            load_event_ms=_since(times.get(Work.LOAD), begun_ns),
        )


def _byte_index_ms(page: Page, timings: Iterable[Timing], begun_ns: int) -> float | None:
    weighed = ((page.resources[each.resource].size_bytes, each.finished_at_ns) for each in timings)
    index_ns = metrics.byte_index_ns(weighed, origin_ns=begun_ns)
    return None if index_ns is None else float(index_ns / 10**6)


def _since(at_ns: int | None, begun_ns: int) -> float | None:
    return None if at_ns is None else to_ms(at_ns - begun_ns)


def _milestones(page: Page, activities: Sequence[Activity]) -> dict[int, dict[Work, int]]:
    """Return when each root came to what: a milestone follows on activities of its root."""
    found: dict[int, dict[Work, int]] = {}
    root = page.root
    for done in activities:
        # Activities stand root by root, and each begins with the download of the root itself.
        if done.resource is not None:
            root = page.root_of[done.resource]
        else:
            found.setdefault(root, {}).setdefault(done.work, done.began_at_ns)
    return found

"""What the browser knew of a resource: in the head, async, blocking, preloaded, hinted.

Only what a recording bears out is set. Markup, where it was recorded, has been looked at before
(`markup`) and decides; then the recorder's word for blocking, then Chrome's first priority, then
the order of requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.capture.inference.recorded import UNIMPORTANT, level_of
from h3sim.page import FetchPriority, Kind, Level

if TYPE_CHECKING:
    from collections import Counter

    from h3sim.capture.inference.observed import Observed

__all__ = ["flags_of"]

_BLOCKING = "blocking"
_NOT_BLOCKING = frozenset(
    ("non_blocking", "nonblocking", "non_blocking_dynamic", "nonblockingdynamic")
)
_IN_HEAD = {"in_head": True, "render_blocking": True}
_IMPORTANT = (Level.VERY_HIGH, Level.HIGH)


def flags_of(
    request: Observed,
    kind: Kind,
    inferred: Counter[str],
    *,
    in_document: bool,
    before_image: bool,
) -> dict[str, Any]:
    """Return the flags of *request* as fields of a `Resource`, and count what was inferred.

    *in_document* says that the page's document names it, *before_image* that it was asked for
    before the first image that this does.
    """
    if request.flags is not None:
        return dict(request.flags)
    flags: dict[str, Any] = {"preload": request.is_preload} if request.is_preload else {}
    is_parsed = request.initiator_type in ("parser", "preload", "")
    if kind is Kind.IMAGE and level_of(request.priority) in _IMPORTANT and is_parsed:
        # Chrome asks for images with Low; nothing but the author's hint makes it High at first.
        flags["fetchpriority"] = FetchPriority.HIGH
        inferred["fetchpriority from Chrome's priority"] += 1
    if kind not in (Kind.STYLESHEET, Kind.SCRIPT) or request.is_preload:
        return flags
    if not in_document:
        if kind is Kind.SCRIPT and level_of(request.priority) in UNIMPORTANT:
            flags["is_async"] = True  # what a script adds is, unless it says otherwise
            inferred["async from Chrome's priority"] += 1
        return flags
    found: dict[str, Any] = {}
    if request.blocking:
        inferred["in head, async from the recorder's word for blocking"] += 1
        if request.blocking == _BLOCKING:
            found = _IN_HEAD
        elif request.blocking in _NOT_BLOCKING and kind is Kind.SCRIPT:
            found = {"is_async": True}
    elif request.priority:
        inferred["in head, async, blocking from Chrome's priority"] += 1
        found = _by_priority(level_of(request.priority), kind)
    elif request.start_ms is not None:
        inferred["in head, blocking from the order of requests"] += 1
        found = _IN_HEAD if before_image else {"after_first_image": True}
    return flags | found


def _by_priority(level: Level | None, kind: Kind) -> dict[str, Any]:
    """Return what Chrome's table of priorities tells of what its parser found.

    A stylesheet that blocks has the highest priority. A script that blocks is High before the
    first image and Medium after it; one that is async or deferred is Low.
    """
    if kind is Kind.STYLESHEET:
        return _IN_HEAD if level is Level.VERY_HIGH else {}
    if level in _IMPORTANT:
        return _IN_HEAD
    return {"is_async": True} if level in UNIMPORTANT else {"after_first_image": True}

"""What a recording says of the requests that are in the page, and what it does not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from h3sim.capture.inference.kinds import plain_mime
from h3sim.capture.inference.observed import Size
from h3sim.capture.inference.sizes import NOT_MODIFIED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.capture.inference.observed import Observed

__all__ = ["found_in", "missing_in", "sizes_inferred_in"]


def found_in(requests: Sequence[Observed]) -> Counter[str]:
    """Return how many of *requests* have what can be recorded."""
    found: Counter[str] = Counter()
    for request in requests:
        found["initiators"] += bool(request.initiator)
        found["stacks"] += bool(request.stack)
        found["Referers"] += bool(request.referer)
        found["triggers"] += request.trigger is not None
        found["redirects"] += request.redirect_of is not None
        found["priorities"] += bool(request.priority)
        found["kinds"] += request.kind is not None
        found["body sizes"] += request.body_from is Size.RECORDED
        found["execution times"] += request.execute_ms > 0
        found["on the critical path"] += request.is_critical
        found["pushes"] += request.is_pushed
        found["preloads"] += request.is_preload
        found["answers 304"] += request.status == NOT_MODIFIED
    return found


def sizes_inferred_in(requests: Sequence[Observed]) -> Counter[str]:
    """Return from what the sizes of *requests* were taken that are not recorded as such."""
    inferred: Counter[str] = Counter()
    known = (Size.RECORDED, Size.NONE)
    for request in requests:
        for what, basis in (
            ("body", request.body_from),
            ("header", request.header_from),
            ("request", request.request_from),
        ):
            if basis not in known:
                inferred[f"{what} size from {basis.value}"] += 1
    return inferred


def missing_in(requests: Sequence[Observed]) -> list[str]:
    """Return what nothing is known of, with the number of requests that lack it."""
    counted = (
        ("body sizes", ", taken as 0", lambda request: request.body_bytes is None),
        ("header sizes", ", taken as 0", lambda request: request.header_bytes is None),
        ("request sizes", ", taken as 0", lambda request: request.request_bytes is None),
        ("times", "", lambda request: request.start_ms is None),
        ("media types", "", lambda request: not plain_mime(request.mime)),
    )
    return [
        f"{what} of {number:,}{instead}"
        for what, instead, is_missing in counted
        if (number := sum(map(is_missing, requests)))
    ]

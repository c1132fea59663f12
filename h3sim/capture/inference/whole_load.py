"""What a recording says of a load as a whole, on the clock of a load that replays it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from h3sim.capture.inference.estimates import recorded_load
from h3sim.capture.inference.observed import RequestOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.inference.estimates import EstimatedPath
    from h3sim.capture.inference.observed import Observed, Recording
    from h3sim.page import RecordedLoad

__all__ = ["load_as_a_whole"]

_TRANSFERRED = (RequestOutcome.ANSWERED, RequestOutcome.FAILED)


def load_as_a_whole(
    recording: Recording,
    kept: Mapping[str, Observed],
    path: EstimatedPath | None,
    *,
    root_start_ms: float | None,
    zero_ms: float | None,
) -> RecordedLoad | None:
    """Return what *recording* says of the load as a whole; its page has *kept*, by id.

    Its times count from *zero_ms*: when a load that first opens a connection would have begun.
    """
    begun_ms = root_start_ms if recording.begun_ms is None else recording.begun_ms
    since_ms = 0.0 if zero_ms is None or begun_ms is None else zero_ms - begun_ms
    times_ms = {name: at_ms - since_ms for name, at_ms in recording.times_ms.items()}
    completed_ms: dict[str, float] = {}
    if zero_ms is not None:
        completed_ms = {
            id_: request.end_ms - zero_ms
            for id_, request in kept.items()
            if request.end_ms is not None and request.end_ms > zero_ms
        }
    if completed_ms:
        times_ms["finished"] = max(completed_ms.values())
    most = Counter(each.protocol for each in kept.values() if each.protocol).most_common(1)
    is_remote = recording.has_addresses and not recording.is_local
    n_bytes = sum(
        (request.body_bytes or 0) + (request.header_bytes or 0)
        for request in recording.requests
        if request.outcome in _TRANSFERRED
    )
    return recorded_load(
        path,
        times_ms,
        completed_ms=completed_ms if is_remote else {},
        n_bytes=n_bytes if is_remote else None,
        protocol=most[0][0] if most else "",
    )

"""What event of its parent made the browser ask for a resource, from when both happened.

The rules stand in `docs/importing.md`, and are the same for every dialect that has times. They are
chosen so that a load over a network like the recorded one asks for each resource when the recorded
load did. What was recorded between event and request becomes the delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import At, Kind
from h3sim.units import ms

if TYPE_CHECKING:
    from h3sim.capture.inference.observed import Observed

__all__ = ["Found", "trigger_of"]


class Found(NamedTuple):
    """A trigger, and in words what it was worked out from."""

    at: At
    offset_bytes: int | None
    delay_ms: float
    basis: str


def trigger_of(child: Observed, parent: Observed, parent_kind: Kind, *, direct: bool) -> Found:
    """Return the trigger of *child*, an event of *parent*.

    *direct* says that nothing that was left out of the page stood between the two.
    """
    if child.is_pushed:
        return Found(At.REQUEST, None, _after(child, _left_ms(parent)), "trigger from the push")
    if child.redirect_of is not None and direct:
        return Found(At.COMPLETE, None, _after(child, parent.end_ms), "trigger from the redirect")
    first_ms = parent.start_ms if parent.first_byte_ms is None else parent.first_byte_ms
    if _is_before(child, first_ms):
        delay_ms = _after(child, _left_ms(parent))
        return Found(At.REQUEST, None, delay_ms, "trigger for a request before its parent came")
    if parent_kind is Kind.DOCUMENT and direct and child.offset is not None:
        offset = _on_the_wire(child.offset, parent)
        if offset is not None:
            delay_ms = _after(child, _arrival_ms(offset, parent))
            return Found(At.OFFSET, offset, delay_ms, "trigger from the place in the document")
    if _is_before(child, parent.end_ms):
        offset, delay_ms = _arrived(parent, child)
        if offset:
            return Found(
                At.OFFSET, offset, max(0.0, delay_ms + child.held_ms), "trigger from the clock"
            )
    return _when_there(child, parent, parent_kind)


def _when_there(child: Observed, parent: Observed, parent_kind: Kind) -> Found:
    """Return what follows when all of the parent is there; a script has then to run, too."""
    ends = (parent.end_ms, parent.first_byte_ms, parent.start_ms)
    end_ms = next((at_ms for at_ms in ends if at_ms is not None), None)
    if child.start_ms is None or end_ms is None:
        event = At.EXECUTED if parent_kind is Kind.SCRIPT else At.COMPLETE
        return Found(event, None, 0.0, "trigger without times")
    basis = "trigger from the kind of the parent"
    ran_ms = end_ms + parent.parse_ms + parent.execute_ms
    if parent_kind is Kind.SCRIPT and child.start_ms >= ran_ms:
        return Found(At.EXECUTED, None, max(0.0, child.start_ms - ran_ms + child.held_ms), basis)
    return Found(At.COMPLETE, None, _after(child, end_ms), basis)


def _on_the_wire(decoded_offset: int, parent: Observed) -> int | None:
    """Return the offset in what was transferred, as if each part were compressed alike.

    None stands for what lies behind the end: a decoded size, or the offset, is not what it seems.
    """
    size, decoded = parent.body_bytes, parent.decoded_bytes
    if not size:
        return None
    if decoded is None or decoded <= size:
        return decoded_offset if decoded_offset <= size else None
    return decoded_offset * size // decoded if decoded_offset <= decoded else None


def _arrival_ms(offset: int, parent: Observed) -> float | None:
    """Return when *offset* bytes of *parent* had come: by its pieces, else at an even pace."""
    come = 0
    for at_ms, n_bytes in parent.pieces:
        come += n_bytes
        if come >= offset:
            return at_ms
    first_ms, end_ms, size = parent.first_byte_ms, parent.end_ms, parent.body_bytes
    if first_ms is None or end_ms is None or not size:
        return parent.start_ms if end_ms is None else end_ms
    return first_ms + (end_ms - first_ms) * min(offset, size) / size


def _arrived(parent: Observed, child: Observed) -> tuple[int, float]:
    """Return how many bytes of *parent* had come when *child* was asked for, and for how long."""
    now_ms, size = child.start_ms or 0.0, parent.body_bytes or 0
    first_ms, end_ms = parent.first_byte_ms, parent.end_ms
    come = [(at_ms, n_bytes) for at_ms, n_bytes in parent.pieces if at_ms <= now_ms]
    n_come = min(size, sum(n_bytes for _, n_bytes in come))
    if n_come:
        return n_come, now_ms - come[-1][0]
    if first_ms is None or end_ms is None or end_ms <= first_ms:
        return 0, 0.0
    if parent.pieces:  # the first bytes came, but no piece tells how many
        return min(1, size), now_ms - first_ms
    # In whole nanoseconds: a share as a float may fall a hair short of a byte.
    n_come = size * ms(now_ms - first_ms) // ms(end_ms - first_ms)
    return max(1, n_come) if size else 0, 0.0


def _left_ms(parent: Observed) -> float | None:
    """Return when the request had left: that is what a load calls the request for it."""
    return parent.start_ms if parent.sent_ms is None else parent.sent_ms


def _after(child: Observed, event_ms: float | None) -> float:
    if child.start_ms is None or event_ms is None:
        return 0.0
    return max(0.0, child.start_ms + child.held_ms - event_ms)


def _is_before(child: Observed, event_ms: float | None) -> bool:
    return child.start_ms is not None and event_ms is not None and child.start_ms < event_ms

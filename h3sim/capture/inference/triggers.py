"""What event of its parent made the browser ask for a resource, from when both happened.

The rules stand in `docs/importing.md`. They are chosen so that a load over a network like the
recorded one asks for each resource about when the recorded load did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import At, Kind

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
        return Found(At.REQUEST, None, _after(child, parent.start_ms), "trigger from the push")
    if child.redirect_of is not None and direct:
        return Found(At.COMPLETE, None, _after(child, parent.end_ms), "trigger from the redirect")
    if parent_kind is Kind.DOCUMENT and not _is_scripted(child, direct=direct):
        return _by_parser(child, parent, direct=direct)
    event = At.EXECUTED if parent_kind is Kind.SCRIPT else At.COMPLETE
    ready_ms = parent.end_ms
    if event is At.EXECUTED and ready_ms is not None:
        ready_ms += parent.parse_ms + parent.execute_ms
    basis = "trigger from the kind of the parent"
    if _is_before(child, ready_ms):
        basis = "trigger for a request that began before its parent's end"
    return Found(event, None, _after(child, ready_ms), basis)


def _is_scripted(child: Observed, *, direct: bool) -> bool:
    """Return whether what stood between a document and *child* cannot be its parser."""
    return not direct and child.offset is None


def _by_parser(child: Observed, parent: Observed, *, direct: bool) -> Found:
    """Return where in a document its parser, or a script in it, was."""
    size = parent.body_bytes or 0
    if direct and child.offset is not None and size:
        offset = min(size, _on_the_wire(child.offset, parent))
        delay_ms = _after(child, _arrival_ms(offset / size, parent))
        return Found(At.OFFSET, offset, delay_ms, "trigger from the place in the document")
    start_ms, first_ms, end_ms = child.start_ms, parent.first_byte_ms, parent.end_ms
    if start_ms is None or end_ms is None:
        return Found(At.COMPLETE, None, 0.0, "trigger without times")
    first_ms = end_ms if first_ms is None else first_ms
    if start_ms >= end_ms or not size:
        return Found(At.COMPLETE, None, _after(child, end_ms), "trigger from the clock")
    if start_ms < first_ms:
        delay_ms = _after(child, parent.start_ms)
        return Found(At.REQUEST, None, delay_ms, "trigger from the clock")
    offset = int(size * _share_by(start_ms, parent))
    return Found(At.OFFSET, offset, 0.0, "trigger from the clock")


def _on_the_wire(decoded_offset: int, parent: Observed) -> int:
    """Return the offset in what was transferred, as if each part were compressed alike."""
    decoded, size = parent.decoded_bytes, parent.body_bytes or 0
    if not decoded or decoded <= size:
        return decoded_offset
    return -(-decoded_offset * size // decoded)


def _arrival_ms(share: float, parent: Observed) -> float | None:
    """Return when so much of *parent* had come: by its pieces, else as if at an even pace."""
    if parent.end_ms is None:
        return None
    total, come = sum(n_bytes for _, n_bytes in parent.pieces), 0
    for at_ms, n_bytes in parent.pieces if total else ():
        come += n_bytes
        if come >= share * total:
            return at_ms
    first_ms = parent.end_ms if parent.first_byte_ms is None else parent.first_byte_ms
    return first_ms + share * (parent.end_ms - first_ms)


def _share_by(at_ms: float, parent: Observed) -> float:
    """Return how much of *parent* had come by then, 0 to 1; it is between first byte and end."""
    total = sum(n_bytes for _, n_bytes in parent.pieces)
    if total:
        return sum(n_bytes for when, n_bytes in parent.pieces if when <= at_ms) / total
    first_ms, end_ms = parent.first_byte_ms, parent.end_ms
    if first_ms is None or end_ms is None or end_ms <= first_ms:
        return 1.0
    return min(1.0, max(0.0, (at_ms - first_ms) / (end_ms - first_ms)))


def _after(child: Observed, event_ms: float | None) -> float:
    if child.start_ms is None or event_ms is None:
        return 0.0
    return max(0.0, child.start_ms - event_ms)


def _is_before(child: Observed, event_ms: float | None) -> bool:
    return child.start_ms is not None and event_ms is not None and child.start_ms < event_ms

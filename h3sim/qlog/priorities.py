"""What a log says of priorities: the Priority field, PRIORITY_UPDATE, and PRIORITY frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.signals import DEFAULT_URGENCY, Eps, H2Priority, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.signals import Signal
    from h3sim.trace import Trace

__all__ = ["PriorityFrame", "field_values", "priority_changes", "priority_frames"]

_DEFAULT_FIELD_VALUE = f"u={DEFAULT_URGENCY}"
"""The default priority, spelled out: a Priority field leaves it out (RFC 9218 § 4.1)."""


class PriorityFrame(NamedTuple):
    """A frame about a stream or a placeholder, when the server learnt of it."""

    at_ns: int
    frame: dict[str, Any]


def field_values(trace: Trace) -> dict[int, str]:
    """Return the Priority field of each request that has one (RFC 9218 § 5).

    >>> from h3sim.trace import Delivery, SignalSent, Trace
    >>> said = (SignalSent(0, 0, Eps(urgency=0, incremental=True)), SignalSent(0, 4, Eps()))
    >>> field_values(Trace(delivery=Delivery.STREAM, requests=(), signals=said))
    {0: 'u=0, i'}
    """
    values: dict[int, str] = {}
    for _, element_id, signal in trace.signals:
        if isinstance(signal, Eps):
            values.setdefault(element_id, signal.field_value)
    return {stream_id: value for stream_id, value in values.items() if value}


def priority_frames(trace: Trace) -> Iterator[PriorityFrame]:
    """Yield the frames in which other signals go: what a tree is told, and later EPS.

    Buckets and ranks have no frame, and neither goes over the wire.
    """
    has_field: dict[int, None] = {}
    for at_ns, element_id, signal in trace.signals:
        if isinstance(signal, H2Priority | StrictPriority):
            yield PriorityFrame(at_ns, _in_tree(element_id, signal))
        elif isinstance(signal, Eps) and element_id in has_field:
            frame = {"element_id": element_id, "value": signal.field_value}
            yield PriorityFrame(at_ns, {"frame_type": "priority_update", **frame})
        has_field[element_id] = None


def priority_changes(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield when the server learns the RFC 9218 priority of a stream, first or anew, and the data.

    The data are those of `http3:priority_updated` (draft-ietf-quic-qlog-h3-events-13 § 3.5).

    >>> from h3sim.trace import Delivery, SignalSent, Trace
    >>> signals = (SignalSent(0, 0, Eps(urgency=5)), SignalSent(7, 0, Eps(urgency=0)))
    >>> trace = Trace(delivery=Delivery.STREAM, requests=(), signals=signals)
    >>> [(at_ns, data.get("old"), data["new"]) for at_ns, data in priority_changes(trace)]
    [(0, None, 'u=5'), (7, 'u=5', 'u=0')]
    """
    known: dict[int, str] = {}
    for at_ns, stream_id, signal in trace.signals:
        if isinstance(signal, Eps):
            old = {"old": known[stream_id]} if stream_id in known else {}
            known[stream_id] = signal.field_value or _DEFAULT_FIELD_VALUE
            cause = {"trigger": "client_signal_received", "reason": "client_signal_only"}
            yield at_ns, {"stream_id": stream_id, **old, "new": known[stream_id], **cause}


def _in_tree(element_id: int, signal: Signal) -> dict[str, Any]:
    """Return a PRIORITY frame as draft-marx-qlog-event-definitions-quic-h3-00 has it.

    The weight is the effective one, 1 to 256; a parent that is left out is the root.
    """
    assert isinstance(signal, H2Priority | StrictPriority)  # noqa: S101 - the caller's promise
    frame: dict[str, Any] = {"frame_type": "priority"}
    kind, number = _element(element_id)
    frame |= {"prioritized_element_type": kind, "prioritized_element_id": number}
    if signal.depends_on is not None:
        kind, number = _element(signal.depends_on)
        frame |= {"element_dependency_type": kind, "element_dependency_id": number}
    frame |= {"weight": signal.weight}
    if isinstance(signal, StrictPriority):
        return frame | {"strict": signal.strict}
    return frame | {"exclusive": signal.exclusive}


def _element(element_id: int) -> tuple[str, int]:
    """Return what kind of element an id is of, and its number; placeholders count from 0 on."""
    return ("request_stream", element_id) if element_id >= 0 else ("placeholder", -1 - element_id)

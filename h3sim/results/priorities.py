"""What was said of a response's priority, in few characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.signals import BucketPriority, Eps, H2Priority, StrictPriority

if TYPE_CHECKING:
    from h3sim.signals import Signal
    from h3sim.trace import Trace

__all__ = ["priorities_of", "priority_text"]


def priorities_of(trace: Trace) -> dict[int, str]:
    """Return what was said first of each stream; where all say the same, nothing is worth it."""
    said: dict[int, str] = {}
    for _, element_id, signal in trace.signals:
        if element_id >= 0:
            said.setdefault(element_id, priority_text(signal))
    return said if len(dict.fromkeys(said.values())) > 1 else {}


def priority_text(signal: Signal) -> str:
    """Return what *signal* says in few characters.

    >>> priority_text(Eps(urgency=0, incremental=True)), priority_text(Eps())
    ('u=0,i', 'u=3')
    >>> priority_text(H2Priority(weight=220)), priority_text(BucketPriority(bucket=3, level=1))
    ('w=220', 'bucket 3.1')
    """
    match signal:
        case Eps():
            return f"u={signal.urgency}{',i' * signal.incremental}"
        case H2Priority():
            return f"w={signal.weight}"
        case BucketPriority():
            return f"bucket {signal.bucket}.{signal.level}"
        case StrictPriority():
            return f"strict {signal.strict}, w={signal.weight}"
    return f"rank {signal.value}"

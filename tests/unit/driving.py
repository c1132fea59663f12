"""Drives a scheduler by hand, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from h3sim.signals import H2Priority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal

__all__ = ["TURN_BYTES", "drain_order", "on", "opened", "turns"]

TURN_BYTES = 1400

SchedulerT = TypeVar("SchedulerT", bound="Scheduler")


def on(parent: int | None, weight: int = 16, *, exclusive: bool = False) -> H2Priority:
    """Return a place under *parent*, None for the root."""
    return H2Priority(weight=weight, depends_on=parent, exclusive=exclusive)


def opened(scheduler: SchedulerT, signals: Mapping[int, Signal]) -> SchedulerT:
    """Open each stream and placeholder, in order, and activate the streams."""
    for element_id, signal in signals.items():
        scheduler.open(element_id, signal)
    for element_id in signals:
        if element_id >= 0:
            scheduler.activate(element_id)
    return scheduler


def turns(scheduler: Scheduler, n_turns: int, n_bytes: int = TURN_BYTES) -> list[int | None]:
    """Let the scheduler give so many turns of *n_bytes*; return who had them."""
    picked = []
    for _ in range(n_turns):
        stream_id = scheduler.pick()
        picked.append(stream_id)
        if stream_id is not None:
            scheduler.charge(stream_id, n_bytes)
    return picked


def drain_order(scheduler: Scheduler, n_streams: int) -> list[int | None]:
    """Let each stream picked have one turn and no more; return them in order."""
    picked = []
    for _ in range(n_streams):
        picked += turns(scheduler, 1)
        if picked[-1] is not None:
            scheduler.deactivate(picked[-1])
    return picked

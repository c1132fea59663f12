"""Kinds of schedulers by name: those of h3sim, and schedulers that other packages bring along."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.errors import InputError, Problem
from h3sim.plugins import PluginRegistry
from h3sim.schemes.kinds import CustomScheduler, SchedulerKind, SignalKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler

__all__ = ["ABOUT", "ENTRY_POINT_GROUP", "REGISTRY", "scheduler_kind_named", "scheduler_named"]

ENTRY_POINT_GROUP = "h3sim.schedulers"
"""Where a package announces a scheduler: a name, and a class or function that makes one."""

REGISTRY: PluginRegistry[Callable[..., Scheduler]] = PluginRegistry(
    ENTRY_POINT_GROUP,
    "scheduler",
    {kind.value: partial(kind.make, turn_bytes=1400) for kind in SchedulerKind},
)
"""What makes a scheduler, by name."""

ABOUT = {kind.value: kind.about for kind in SchedulerKind if kind.about}
"""What tells those apart that are of one class."""


def scheduler_kind_named(
    name: str, *, signal_kind: SignalKind = SignalKind.TREE
) -> SchedulerKind | CustomScheduler:
    """Return the kind of that name; the clients of a plug-in say what *signal_kind* names.

    Raises:
        UnknownNameError: if there is none.

    >>> scheduler_kind_named("round-robin")
    <SchedulerKind.ROUND_ROBIN: 'round-robin'>
    """
    for kind in SchedulerKind:
        if kind.value == name:
            return kind
    return CustomScheduler(value=name, factory=REGISTRY.named(name), signal_kind=signal_kind)


def scheduler_named(
    given: Scheduler | Callable[..., Scheduler] | str,
) -> tuple[str, Scheduler | Callable[..., Scheduler]]:
    """Return what to call a scheduler that is given, and what makes it, or the object to copy.

    Raises:
        InputError: if it neither is a scheduler nor a name, and cannot be called.
        UnknownNameError: if there is none of that name.

    >>> from h3sim.schedulers import FifoScheduler
    >>> scheduler_named(FifoScheduler)
    ('FifoScheduler', <class 'h3sim.schedulers.fifo.FifoScheduler'>)
    """
    if isinstance(given, str):
        return given, REGISTRY.named(given)
    if not callable(given) and not hasattr(given, "pick"):
        message = f"must be a name, what makes a scheduler, or a scheduler, is {given!r}"
        raise InputError([Problem(key="scheduler", message=message)])
    made_by = getattr(given, "func", given)  # of a functools.partial
    named = getattr(made_by, "__name__", "")
    return named if named.isidentifier() else type(given).__name__, given

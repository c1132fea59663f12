"""Mechanisms by name: those of h3sim, and schedulers that other packages bring along."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.errors import InputError, Problem
from h3sim.plugins import PluginRegistry
from h3sim.schemes.mechanism import Mechanism, OwnMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler

__all__ = ["ENTRY_POINT_GROUP", "REGISTRY", "TREES", "mechanism_named", "scheduler_named"]

ENTRY_POINT_GROUP = "h3sim.schedulers"
"""Where a package announces a scheduler: a name, and a class or function that makes one."""

REGISTRY: PluginRegistry[Callable[..., Scheduler]] = PluginRegistry(
    ENTRY_POINT_GROUP,
    "scheduler",
    {mechanism.value: partial(mechanism.make, turn_bytes=1400) for mechanism in Mechanism},
)
"""What makes a scheduler, by name."""

TREES = {
    Mechanism.TREE.value: "Parents before children; siblings share by weight (RFC 7540)",
    Mechanism.ZERO_TREE.value: "The tree where 255 goes first and 0 last (Marx 2019 § 3.3)",
    Mechanism.ZERO_LAST_TREE.value: "The tree where 0 goes last, one at a time (PR 2723)",
    Mechanism.NGHTTP2_TREE.value: "The tree in whole cycles, the rest carried on (nghttp2)",
    Mechanism.H2O_CALENDAR.value: "The tree as a calendar of 64 slots, bytes uncounted (h2o)",
    Mechanism.ATS_HEAP.value: "The tree as a heap of points that only grow (Traffic Server)",
}
"""What tells the trees apart, which are one class."""


def mechanism_named(name: str, *, speaks: Mechanism = Mechanism.TREE) -> Mechanism | OwnMechanism:
    """Return the mechanism of that name; the clients of a plug-in say what *speaks* says.

    Raises:
        UnknownNameError: if there is none.

    >>> mechanism_named("round-robin")
    <Mechanism.ROUND_ROBIN: 'round-robin'>
    """
    for mechanism in Mechanism:
        if mechanism.value == name:
            return mechanism
    return OwnMechanism(value=name, factory=REGISTRY.named(name), speaks=speaks)


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

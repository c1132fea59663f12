"""Mechanisms by name: those of h3sim, and schedulers that other packages bring along."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.plugins import PluginRegistry
from h3sim.schemes.mechanism import Mechanism, OwnMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler

__all__ = ["ENTRY_POINT_GROUP", "REGISTRY", "mechanism_named"]

ENTRY_POINT_GROUP = "h3sim.schedulers"
"""Where a package announces a scheduler: a name, and a class or function that makes one."""

REGISTRY: PluginRegistry[Callable[..., Scheduler]] = PluginRegistry(
    ENTRY_POINT_GROUP,
    "scheduler",
    {mechanism.value: partial(mechanism.make, turn_bytes=1400) for mechanism in Mechanism},
)
"""What makes a scheduler, by name."""


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

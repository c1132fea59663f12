"""What a process says of a scheduler whose ties a set decides, and of one whose ids do."""

from __future__ import annotations

from typing import Any

import h3sim
from tests.mutants.schedulers import HighestFirst, SetOrdered
from tests.property.runs import scheduler_made_by


def digest_of_a_set() -> Any:
    """Return the digest of a load in which a set decides the order."""
    return _digest(SetOrdered)


def digest_of_ids() -> Any:
    """Return the digest of a load in which ids do."""
    return _digest(HighestFirst)


def _digest(scheduler: Any) -> Any:
    with scheduler_made_by(lambda *_: scheduler()):
        return h3sim.simulate("davies-meenan").trace.digest()

"""What a process says of a scheduler whose ties a set decides, and of one whose ids do."""

from __future__ import annotations

import h3sim
from tests.mutants.schedulers import HighestFirst, SetOrdered
from tests.property.runs import scheduler_made_by


def digest_of_a_set():
    """Return the digest of a load in which a set decides the order."""
    return _digest(SetOrdered)


def digest_of_ids():
    """Return the digest of a load in which ids do."""
    return _digest(HighestFirst)


def _digest(scheduler):
    with scheduler_made_by(lambda *_: scheduler()):
        return h3sim.simulate("davies-meenan").trace.digest()

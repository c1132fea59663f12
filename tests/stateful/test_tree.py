"""The tree scheduler beside a slow reference, through its public methods only."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from h3sim.conformance import Call, Event, ReferenceTree, SchedulerMachine
from h3sim.conformance.strategies import h2_signals
from h3sim.schedulers import TreeScheduler, Weights
from h3sim.signals import BucketPriority, H2Priority
from tests.effort import states

NODES = st.sampled_from([*range(0, 32, 4), -1, -2, -3])
TURN_BYTES = st.sampled_from([1400, 1400, 1, 999])
WHAT_A_TREE_DOES_NOT_KNOW = st.just(BucketPriority(bucket=1, level=1))


WEIGHTS = [weights for weights in Weights if weights is not Weights.QUICKER_ZERO]
"""What Quicker's heap makes of equal times has a reference of its own (`test_quicker_laws.py`)."""


class TreeMachine(SchedulerMachine):
    """Streams and placeholders, moved about and served.

    Each is opened once, as `Scheduler` has it: what has gone is named as a parent at most.
    """

    make_scheduler = TreeScheduler
    make_reference = ReferenceTree
    has_placeholders = True

    @initialize(data=st.data())
    def start(self, data: Any) -> None:
        weights, turn_bytes = data.draw(st.sampled_from(WEIGHTS)), data.draw(TURN_BYTES)
        low, high = weights.limits
        self.weights = weights
        self.signals = h2_signals(min_weight=low, max_weight=high) | WHAT_A_TREE_DOES_NOT_KNOW
        made = (self.make_scheduler, self.make_reference)
        settled = [make(turn_bytes=turn_bytes, weights=weights) for make in made]
        self.make_scheduler, self.make_reference = (lambda: settled[0]), (lambda: settled[1])  # type: ignore[assignment, misc]
        super().start(data)

    @precondition(lambda self: self.scheduler.signals)
    @rule(data=st.data(), weight=st.sampled_from([16, 1, 255, 32, 100]))
    def change_only_the_weight(self, data: Any, weight: int) -> None:
        node_id = data.draw(st.sampled_from(sorted(self.scheduler.signals)))
        parent = self.reference.scheduler.parent_of(node_id)  # type: ignore[attr-defined]
        signal = H2Priority(weight=weight, depends_on=parent)
        self.apply_to_both(Event(Call.UPDATE, node_id, signal))

    @rule(node_id=NODES)
    def be_refused(self, node_id: int) -> None:
        """What is refused changes nothing: the invariant still holds."""
        tree = self.scheduler.scheduler
        is_open = node_id in self.scheduler.signals
        call = tree.update if is_open else tree.open
        unknown_weight = 0 if self.weights is Weights.SHARES else 256
        with pytest.raises(ValueError, match="itself"):
            call(node_id, H2Priority(depends_on=node_id))
        with pytest.raises(ValueError, match="weight must be"):
            call(node_id, H2Priority(weight=unknown_weight, exclusive=True))
        if is_open:
            with pytest.raises(ValueError, match="open already"):
                tree.open(node_id, H2Priority(exclusive=True))


TreeMachine.TestCase.settings = states(100, usual=40)
TestTree = TreeMachine.TestCase

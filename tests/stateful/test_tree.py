"""The tree scheduler beside a slow reference, through its public methods only."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from h3sim.schedulers import TreeScheduler, Weights
from h3sim.signals import BucketPriority, H2Priority
from tests.property.strategies import law
from tests.stateful.reference_tree import ReferenceTree

STREAMS = st.sampled_from(range(0, 32, 4))
PLACEHOLDERS = st.sampled_from([-1, -2, -3])
NODES = st.one_of(STREAMS, PLACEHOLDERS)
PARENTS = st.one_of(st.none(), NODES)
WEIGHTS = st.one_of(st.sampled_from([16, 16, 1, 255, 0, 256, 32]), st.integers(0, 256))
TURN_BYTES = st.sampled_from([1400, 1400, 1, 999])


class TreeMachine(RuleBasedStateMachine):
    """Streams and placeholders from a small pool, moved about and served.

    Each is opened once, as `Scheduler` has it: what has gone is named as a parent at most.
    """

    make = TreeScheduler

    @initialize(turn_bytes=TURN_BYTES, weights=st.sampled_from(Weights))
    def start(self, turn_bytes, weights):
        self.weights, self.turn_bytes = weights, turn_bytes
        self.tree = self.make(turn_bytes=turn_bytes, weights=weights)
        self.gone = []
        zero = weights is Weights.ZERO
        self.reference = ReferenceTree(turn_bytes=turn_bytes, has_zero_weights=zero)

    def both(self, call, *arguments):
        """Do the same to the tree and to the reference."""
        for target in (self.tree, self.reference):
            getattr(target, call)(*arguments)

    def signal(self, weight, depends_on, exclusive):
        """Return the signal, its weight brought into what the tree takes."""
        low, high = (1, 256) if self.weights is Weights.SHARES else (0, 255)
        weight = min(max(weight, low), high)
        return H2Priority(weight=weight, depends_on=depends_on, exclusive=exclusive)

    def open_or_update(self, node_id, signal):
        """Say *signal*, unless the node has gone."""
        if node_id in self.reference.ids:
            self.both("update", node_id, signal)
        elif node_id not in self.gone:
            self.both("open", node_id, signal)

    @rule(node_id=NODES, weight=WEIGHTS, depends_on=PARENTS, exclusive=st.booleans())
    def place(self, node_id, weight, depends_on, exclusive):
        if depends_on != node_id:
            self.open_or_update(node_id, self.signal(weight, depends_on, exclusive))

    @rule(stream_id=STREAMS, weight=WEIGHTS, depends_on=PARENTS)
    def place_with_data(self, stream_id, weight, depends_on):
        if stream_id != depends_on and stream_id not in self.gone:
            self.open_or_update(stream_id, self.signal(weight, depends_on, exclusive=False))
            self.both("activate", stream_id)

    @rule(node_id=NODES)
    def say_what_a_tree_does_not_know(self, node_id):
        self.open_or_update(node_id, BucketPriority(bucket=1, level=1))

    @precondition(lambda self: self.reference.ids)
    @rule(data=st.data(), weight=WEIGHTS)
    def change_only_the_weight(self, data, weight):
        node_id = data.draw(st.sampled_from(self.reference.ids))
        signal = self.signal(weight, self.reference.parent_of(node_id), exclusive=False)
        self.both("update", node_id, signal)

    @precondition(lambda self: any(n >= 0 for n in self.reference.ids))
    @rule(data=st.data(), call=st.sampled_from(["activate", "activate", "deactivate"]))
    def gain_or_lose_data(self, data, call):
        streams = [n for n in self.reference.ids if n >= 0]
        self.both(call, data.draw(st.sampled_from(streams)))

    @precondition(lambda self: len(self.reference.ids) > 3)
    @rule(data=st.data())
    def close(self, data):
        self.gone.append(data.draw(st.sampled_from(self.reference.ids)))
        self.both("close", self.gone[-1])

    @rule(n_bytes=st.sampled_from([1400, 1400, 1, 0, 20_000]), n_turns=st.integers(1, 12))
    def serve(self, n_bytes, n_turns):
        for _ in range(n_turns):
            picked = self.reference.pick()
            assert self.tree.pick() == picked
            if picked is not None:
                self.both("charge", picked, n_bytes)

    @precondition(lambda self: self.reference.sending)
    @rule(data=st.data(), n_bytes=st.integers(0, 1400))
    def charge_another_than_the_one_picked(self, data, n_bytes):
        self.both("charge", data.draw(st.sampled_from(self.reference.sending)), n_bytes)

    @rule(node_id=NODES)
    def be_refused(self, node_id):
        """What is refused changes nothing: the invariant still holds."""
        is_open = node_id in self.reference.ids
        call = getattr(self.tree, "update" if is_open else "open")
        unknown_weight = 0 if self.weights is Weights.SHARES else 256
        with pytest.raises(ValueError, match="itself"):
            call(node_id, H2Priority(depends_on=node_id))
        with pytest.raises(ValueError, match="weight must be"):
            call(node_id, H2Priority(weight=unknown_weight, exclusive=True))
        if is_open:
            with pytest.raises(ValueError, match="open already"):
                self.tree.open(node_id, H2Priority(exclusive=True))

    @invariant()
    def both_pick_the_same(self):
        if hasattr(self, "tree"):
            expected = self.reference.pick()
            assert self.tree.pick() == expected
            assert self.tree.pick() == expected


TreeMachine.TestCase.settings = settings(law(150), stateful_step_count=40)
TestTree = TreeMachine.TestCase

"""The shape of the tree beside a slow reference, with every option and every discipline.

Who of several siblings goes first is not looked at here, only that it is someone who may.
"""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from h3sim.schedulers import Orphans, Queueing, TreeScheduler, UnknownParent
from h3sim.signals import H2Priority
from tests.effort import states
from tests.stateful.reference_shape import ReferenceShape

NODES = st.sampled_from([*range(0, 28, 4), -1, -2])
PARENTS = st.one_of(st.none(), NODES)
WEIGHTS = st.one_of(st.sampled_from([1, 16, 256]), st.integers(1, 256))

# The orphan placeholder has tests of its own.
KNOWN_TO_THE_REFERENCE = [one for one in UnknownParent if one is not UnknownParent.ORPHANS]


class TreeOptionsMachine(RuleBasedStateMachine):
    """Nodes from a small pool: opened, moved, closed, named before and after they are there."""

    make_scheduler = TreeScheduler

    @initialize(
        queueing=st.sampled_from(Queueing),
        orphans=st.sampled_from(Orphans),
        unknown_parent=st.sampled_from(KNOWN_TO_THE_REFERENCE),
        retain=st.sampled_from([0, 0, 1, 3]),
    )
    def start(self, queueing: Any, orphans: Any, unknown_parent: Any, retain: Any) -> None:
        options = {"orphans": orphans, "unknown_parent": unknown_parent, "retain": retain}
        self.tree = self.make_scheduler(queueing=queueing, **options)
        self.reference = ReferenceShape(**options)

    @rule(node=NODES, weight=WEIGHTS, parent=PARENTS, exclusive=st.booleans(), again=st.booleans())
    def insert(self, node: Any, weight: int, parent: Any, exclusive: Any, again: Any) -> None:
        """Open what is not open; what is in the tree may also be told its place before that."""
        if node == parent:
            return
        signal = H2Priority(weight=weight, depends_on=parent, exclusive=exclusive)
        is_open = node in self.reference.opened
        call = "update" if is_open or (again and node in self.reference.ids) else "open"
        for target in (self.tree, self.reference):
            getattr(target, call)(node, signal)

    @precondition(lambda self: any(n >= 0 for n in self.reference.opened))
    @rule(data=st.data(), has_data=st.sampled_from([True, True, False]))
    def gain_or_lose_data(self, data: Any, has_data: bool) -> None:
        streams = [node for node in self.reference.opened if node >= 0]
        stream_id = data.draw(st.sampled_from(streams))
        sending = [node for node in self.reference.sending if node != stream_id]
        self.reference.sending = sending + [stream_id] * has_data
        (self.tree.activate if has_data else self.tree.deactivate)(stream_id)

    @precondition(lambda self: len(self.reference.opened) > 2)
    @rule(data=st.data())
    def close(self, data: Any) -> None:
        node = data.draw(st.sampled_from(self.reference.opened))
        for target in (self.tree, self.reference):
            target.close(node)

    @rule(n_bytes=st.sampled_from([1400, 1, 0, 16_384]), n_turns=st.integers(1, 9))
    def serve(self, n_bytes: int, n_turns: int) -> None:
        for _ in range(n_turns):
            picked = self.picked()
            if picked is not None:
                self.tree.charge(picked, n_bytes)

    @rule()
    def go_on_with_a_copy(self) -> None:
        """A pickled tree is the same tree: it picks the same from now on."""
        copied = pickle.loads(pickle.dumps(self.tree))
        assert str(copied) == str(self.tree)
        for _ in range(3):
            assert copied.pick() == self.picked()
            if copied.pick() is not None:
                self.tree.charge(copied.pick(), 1400)
                copied.charge(copied.pick(), 1400)
        self.tree = copied

    def picked(self) -> Any:
        """Return who is picked; it must be one that may send, if there is one."""
        picked = self.tree.pick()
        assert picked == self.tree.pick()
        may_send = self.reference.may_send()
        assert picked in may_send if may_send else picked is None
        return picked

    @invariant()
    def both_have_the_same_shape(self) -> None:
        if not hasattr(self, "tree"):
            return
        self.picked()
        graph = self.tree.to_networkx()
        reference = self.reference
        for node in [None, *reference.ids]:
            children = graph.succ["root" if node is None else node]
            assert sorted(children, key=lambda n: graph.nodes[n]["position"]) == (
                reference.children(node)
            )
        message = {node: graph.nodes[node] for node in graph if node != "root"}
        assert {node: it["weight"] for node, it in message.items()} == {
            node: reference.weights[node] for node in reference.ids
        }
        for flag, nodes in (
            ("active", reference.sending),
            ("closed", reference.closed),
            ("idle", reference.implied),
        ):
            assert sorted(node for node, it in message.items() if it[flag]) == sorted(nodes)


TreeOptionsMachine.TestCase.settings = states(60, usual=30)
TestTreeOptions = TreeOptionsMachine.TestCase

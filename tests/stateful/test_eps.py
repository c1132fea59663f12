"""The EPS scheduler beside a slow reference, through its public methods only."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from h3sim.conformance import ReferenceEps
from h3sim.schedulers import EpsScheduler, Mixed, Quantum
from h3sim.signals import Eps, H2Priority
from tests.effort import states

STREAMS = st.sampled_from(range(0, 32, 4))
# Few urgencies, so that streams meet in them.
WANTED = st.one_of(
    st.builds(Eps, urgency=st.sampled_from([3, 0, 7]), incremental=st.booleans()),
    st.builds(Eps, incremental=st.booleans()),
    st.builds(H2Priority, weight=st.integers(0, 256), exclusive=st.booleans()),
)
TURNS = st.one_of(
    st.builds(Quantum, packets=st.integers(1, 3)),
    st.builds(Quantum, size_bytes=st.sampled_from([800, 2800, 3000])),
)


class EpsMachine(RuleBasedStateMachine):
    """Streams from a small pool that change their minds and are served."""

    make_scheduler = EpsScheduler

    @initialize(mixed=st.sampled_from(Mixed), turn=TURNS, signals=st.lists(WANTED, max_size=5))
    def start(self, mixed: Any, turn: Any, signals: Any) -> None:
        self.eps, self.reference = (
            self.make_scheduler(mixed=mixed, turn=turn),
            ReferenceEps(mixed=mixed, turn=turn),
        )
        for number, signal in enumerate(signals):
            self.both("open", 4 * number, signal)
            self.both("activate", 4 * number)

    def both(self, call: Any, *arguments: Any) -> None:
        """Do the same to the scheduler and to the reference."""
        for target in (self.eps, self.reference):
            getattr(target, call)(*arguments)

    @rule(stream_id=STREAMS, requested=WANTED)
    def open_or_update(self, stream_id: int, requested: Any) -> None:
        self.both("update" if stream_id in self.reference.ids else "open", stream_id, requested)

    @rule(stream_id=STREAMS, requested=WANTED)
    def open_with_data(self, stream_id: int, requested: Any) -> None:
        if stream_id not in self.reference.ids:
            self.both("open", stream_id, requested)
            self.both("activate", stream_id)

    @precondition(lambda self: self.reference.ids)
    @rule(data=st.data(), call=st.sampled_from(["activate", "activate", "deactivate"]))
    def gain_or_lose_data(self, data: Any, call: Any) -> None:
        self.both(call, data.draw(st.sampled_from(self.reference.ids)))

    @precondition(lambda self: len(self.reference.ids) > 3)
    @rule(data=st.data())
    def close(self, data: Any) -> None:
        self.both("close", data.draw(st.sampled_from(self.reference.ids)))

    @rule(n_bytes=st.sampled_from([1400, 1, 0, 5000]), n_turns=st.integers(1, 9))
    def serve(self, n_bytes: int, n_turns: int) -> None:
        for _ in range(n_turns):
            picked = self.reference.pick()
            assert self.eps.pick() == picked
            if picked is not None:
                self.both("charge", picked, n_bytes)

    @precondition(lambda self: self.reference.sending)
    @rule(data=st.data(), n_bytes=st.integers(0, 1400))
    def charge_another_than_the_one_picked(self, data: Any, n_bytes: int) -> None:
        self.both("charge", data.draw(st.sampled_from(self.reference.sending)), n_bytes)

    @invariant()
    def both_pick_the_same(self) -> None:
        if hasattr(self, "eps"):
            expected = self.reference.pick()
            assert self.eps.pick() == expected
            assert self.eps.pick() == expected


EpsMachine.TestCase.settings = states(100, usual=40)
TestEps = EpsMachine.TestCase

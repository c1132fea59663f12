"""The bucket scheduler beside a slow reference, through its public methods only."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from h3sim.schedulers import BucketScheduler
from h3sim.signals import BucketPriority, H2Priority
from tests.property.strategies import law
from tests.stateful.reference_buckets import ReferenceBuckets

STREAMS = st.sampled_from(range(0, 32, 4))
# Few buckets, so that streams meet in them.
PLACES = st.one_of(
    st.builds(BucketPriority, bucket=st.sampled_from([31, 63, 0]), level=st.integers(1, 3)),
    st.builds(BucketPriority, bucket=st.just(31), level=st.integers(1, 2)),
    st.builds(H2Priority, weight=st.integers(0, 256), exclusive=st.booleans()),
)


class BucketMachine(RuleBasedStateMachine):
    """Streams from a small pool that move between buckets and are served."""

    make = BucketScheduler

    @initialize()
    def start(self):
        self.buckets, self.reference = self.make(), ReferenceBuckets()

    def both(self, call, *arguments):
        """Do the same to the scheduler and to the reference."""
        for target in (self.buckets, self.reference):
            getattr(target, call)(*arguments)

    @rule(stream_id=STREAMS, place=PLACES)
    def open_or_update(self, stream_id, place):
        self.both("update" if stream_id in self.reference.ids else "open", stream_id, place)

    @rule(stream_id=STREAMS, place=PLACES)
    def open_with_data(self, stream_id, place):
        if stream_id not in self.reference.ids:
            self.both("open", stream_id, place)
            self.both("activate", stream_id)

    @precondition(lambda self: self.reference.ids)
    @rule(data=st.data(), call=st.sampled_from(["activate", "activate", "deactivate"]))
    def gain_or_lose_data(self, data, call):
        self.both(call, data.draw(st.sampled_from(self.reference.ids)))

    @precondition(lambda self: len(self.reference.ids) > 3)
    @rule(data=st.data())
    def close(self, data):
        self.both("close", data.draw(st.sampled_from(self.reference.ids)))

    @rule(n_bytes=st.sampled_from([1400, 1, 0]), n_turns=st.integers(1, 9))
    def serve(self, n_bytes, n_turns):
        for _ in range(n_turns):
            picked = self.reference.pick()
            assert self.buckets.pick() == picked
            if picked is not None:
                self.both("charge", picked, n_bytes)

    @precondition(lambda self: self.reference.sending)
    @rule(data=st.data(), n_bytes=st.integers(0, 1400))
    def charge_another_than_the_one_picked(self, data, n_bytes):
        self.both("charge", data.draw(st.sampled_from(self.reference.sending)), n_bytes)

    @invariant()
    def both_pick_the_same(self):
        if hasattr(self, "buckets"):
            expected = self.reference.pick()
            assert self.buckets.pick() == expected
            assert self.buckets.pick() == expected


BucketMachine.TestCase.settings = settings(law(150), stateful_step_count=40)
TestBuckets = BucketMachine.TestCase

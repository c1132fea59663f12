"""The bucket scheduler beside a slow reference, through its public methods only."""

from __future__ import annotations

from hypothesis import strategies as st

from h3sim.conformance import ReferenceBuckets, SchedulerMachine, signals
from h3sim.schedulers import BucketScheduler
from h3sim.signals import BucketPriority, H2Priority
from tests.effort import states

CROWDED = st.builds(BucketPriority, bucket=st.just(31), level=st.integers(1, 2))
UNKNOWN = st.builds(H2Priority, weight=st.integers(0, 256), exclusive=st.booleans())


class BucketMachine(SchedulerMachine):
    """Streams that move between buckets and are served."""

    make_scheduler = BucketScheduler
    make_reference = ReferenceBuckets
    signals = st.one_of(signals(BucketPriority), CROWDED, UNKNOWN)


BucketMachine.TestCase.settings = states(100, usual=40)
TestBuckets = BucketMachine.TestCase

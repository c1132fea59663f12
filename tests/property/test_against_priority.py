"""The tree beside that of the package `priority` (python-hyper), frame by frame.

`priority` counts whole levels: a frame costs 256 / weight, and the remainder is carried. At weights
that divide 256 nothing is left over, and both must choose the same stream for every frame. At other
weights a level is cut where ours is exact; then each stream has its share within one frame.

A stream of `priority` begins at the level that was served last, so ours joins without a turn's
delay (`turn_bytes=0`). Where `priority` does not do what RFC 7540 says, the last tests say so.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import priority
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3sim.schedulers import Orphans, TreeScheduler, UnknownParent
from h3sim.signals import H2Priority
from tests.effort import law

STREAMS = range(1, 17, 2)
DIVISORS = st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128, 256])
ANY_WEIGHT = st.one_of(DIVISORS, st.integers(1, 256))
UNKNOWN = 100_001


class Both:
    """The same tree twice, and how many frames each stream has left in either."""

    def __init__(self) -> None:
        self.ours = TreeScheduler(turn_bytes=0, unknown_parent=UnknownParent.CREATE)
        self.theirs = priority.PriorityTree()
        self.known: list[Any] = []
        self.sending: dict[Any, Any] = {}
        self.unknown = UNKNOWN

    def insert(self, stream_id: int, parent: Any, weight: int, exclusive: Any) -> None:
        """Insert or move a stream in both; parents that no one knows are used once."""
        if parent == UNKNOWN:
            parent = self.unknown = self.unknown + 2
        else:
            parent = self.possible(parent, stream_id)
        expected = H2Priority(weight=weight, depends_on=parent, exclusive=exclusive)
        if stream_id in self.known:
            self.ours.update(stream_id, expected)
            self.theirs.reprioritize(stream_id, parent, weight, exclusive)
        else:
            self.known.append(stream_id)
            self.ours.open(stream_id, expected)
            self.theirs.insert_stream(stream_id, parent, weight, exclusive)

    def possible(self, parent: Any, stream_id: int) -> Any:
        """Return the parent if both can move the stream below it, else None."""
        is_below = parent in self.known and self.is_below(parent, stream_id)
        return parent if parent in self.known and not is_below else None

    def is_below(self, stream_id: int, other: Any) -> bool:
        """Return whether a stream is *other* or depends on it: there `priority` is wrong."""
        above = {child: parent for parent, child in self.ours.to_networkx().edges}
        while stream_id in above and stream_id != other:
            stream_id = above[stream_id]  # type: ignore[assignment]
        return stream_id == other  # type: ignore[no-any-return]

    def parent_of(self, stream_id: int) -> Any:
        parent = next(iter(self.ours.to_networkx().pred[stream_id]))
        return None if parent == "root" else parent

    def block(self, stream_id: int) -> None:
        self.ours.deactivate(stream_id)
        self.theirs.block(stream_id)
        self.sending.pop(stream_id, None)

    def unblock(self, stream_id: int, n_frames: int) -> None:
        self.ours.activate(stream_id)
        self.theirs.unblock(stream_id)
        self.sending[stream_id] = n_frames

    def send(self) -> Any:
        """Send a frame of the same stream in both, if there is one, and remove it once it is done.

        Return who is done.
        """
        stream_id = self.ours.pick()
        if stream_id is None:
            return set()
        assert self.theirs.next() == stream_id
        self.ours.charge(stream_id, 1)
        self.sending[stream_id] -= 1
        if self.sending[stream_id]:
            return set()
        self.known.remove(stream_id)
        self.ours.close(stream_id)
        self.theirs.remove_stream(stream_id)
        return {stream_id}


def frames_of_ours(tree: Any, sizes: Any) -> Any:
    """Let the tree send all of it, a stream that is done being blocked; return who sent."""
    left, order = dict(sizes), []
    while (stream_id := tree.pick()) is not None:
        order.append(stream_id)
        tree.charge(stream_id, 1)
        left[stream_id] -= 1
        if not left[stream_id]:
            tree.deactivate(stream_id)
    return order


def frames_of_theirs(tree: Any, sizes: Any) -> Any:
    """Do the same with a tree of `priority`."""
    left, order = dict(sizes), []
    for _ in range(sum(sizes.values())):
        order.append(tree.next())
        left[order[-1]] -= 1
        if not left[order[-1]]:
            tree.block(order[-1])
    with pytest.raises(priority.DeadlockError):
        tree.next()
    return order


@st.composite
def trees(draw: Any, weights: Any) -> Any:
    """Return a tree after random insertions, moves, blocks and unblocks."""
    both = Both()
    parents = st.sampled_from([None, None, UNKNOWN, *STREAMS])
    steps = st.tuples(
        st.sampled_from(STREAMS), parents, weights, st.booleans(), st.integers(-8, 30)
    )
    for stream_id, parent, weight, exclusive, n_frames in draw(st.lists(steps, max_size=25)):
        both.insert(stream_id, parent, weight, exclusive)
        if n_frames > 0:
            both.unblock(stream_id, n_frames)
        else:
            both.block(stream_id)
    return both


@law(150)
@given(trees(DIVISORS))
def test_every_frame_goes_to_the_same_stream_where_weights_divide_256(both: Any) -> None:
    ours = frames_of_ours(both.ours, both.sending)
    assert ours == frames_of_theirs(both.theirs, both.sending)


@law(150)
@given(trees(ANY_WEIGHT))
def test_shares_agree_within_one_frame_at_any_weights(both: Any) -> None:
    ours = frames_of_ours(both.ours, both.sending)
    theirs = frames_of_theirs(both.theirs, both.sending)
    ahead: Counter[Any] = Counter()
    for one, other in zip(ours, theirs, strict=True):
        ahead[one] += 1
        ahead[other] -= 1
        assert all(-1 <= frames <= 1 for frames in ahead.values())
    # So they complete in the same order, unless they do so in one round.
    last = {stream_id: insert for insert, stream_id in enumerate(ours)}
    for first, later in combinations(finished(theirs), 2):
        assert last[first] < last[later] + len(last)


def finished(order: Any) -> Any:
    """Return the streams by their last frame."""
    return list(dict.fromkeys(reversed(order)))[::-1]


EVENTS = st.tuples(
    st.sampled_from(STREAMS),
    st.sampled_from([None, *STREAMS]),
    DIVISORS,
    st.booleans(),
    st.integers(1, 15),
)


@law(150)
@given(st.lists(EVENTS, max_size=25))
def test_streams_come_move_and_go_while_others_send(events: Any) -> None:
    # Nobody is ever blocked here: see the last two tests for what `priority` does then.
    both, done, inserted = Both(), set(), set()
    for stream_id, parent, weight, exclusive, n_frames in events:
        is_new = stream_id not in both.known
        # Under the same parent ours keeps its turn, and theirs begins anew.
        if is_new and stream_id not in done:
            both.insert(stream_id, parent, weight, exclusive)
            both.unblock(stream_id, n_frames)
            inserted.add(stream_id)
        elif not is_new and both.possible(parent, stream_id) != both.parent_of(stream_id):
            both.insert(stream_id, parent, weight, exclusive)
        for _ in range(n_frames):
            done |= both.send()
    while both.known:
        done |= both.send()
    assert done == inserted


class TestWherePriorityIsWrong:
    """What the package does against RFC 7540; each of these fails once it is mended there."""

    def both(self, **options: Any) -> Any:
        """Return A (1) with child B (3), whose child is C (5), in ours and in theirs."""
        both = Both()
        both.ours = TreeScheduler(turn_bytes=0, **options)
        for stream_id, parent in ((1, None), (3, 1), (5, 3)):
            both.insert(stream_id, parent, 16, exclusive=False)
            both.unblock(stream_id, 1)
        return both

    def test_a_move_below_ones_own_dependent_corrupts_its_tree(self) -> None:
        # § 5.3.3: B takes the place of A, and A goes below B, beside C. In `priority` C is made a
        # child of A too, without leaving B, and stays behind when it is removed.
        both = self.both()
        both.ours.update(1, H2Priority(depends_on=3))
        both.theirs.reprioritize(1, depends_on=3)
        for stream_id in (3, 5):
            both.ours.close(stream_id)
            both.theirs.remove_stream(stream_id)
        both.block(1)
        assert both.ours.pick() is None
        assert both.theirs.next() == 5

    def test_weights_are_not_shared_out_when_a_stream_is_removed(self) -> None:
        # § 5.3.4's example: once A has gone, C gets one third beside B, and not one half.
        ours = TreeScheduler(turn_bytes=0, orphans=Orphans.SHARE)
        theirs = priority.PriorityTree()
        for stream_id, parent in ((1, None), (3, None), (5, 1), (7, 1)):
            ours.open(stream_id, H2Priority(depends_on=parent))
            theirs.insert_stream(stream_id, parent)
        theirs.block(7)
        for stream_id in (3, 5):
            ours.activate(stream_id)
        ours.close(1)
        theirs.remove_stream(1)
        served: Counter[Any] = Counter()
        for _ in range(30):
            served["ours"] += ours.pick() == 5
            ours.charge(ours.pick(), 1)  # type: ignore[arg-type]
            served["theirs"] += theirs.next() == 5
        assert served == {"ours": 10, "theirs": 15}

    def test_a_valid_tree_deeper_than_100_is_called_a_loop(self) -> None:
        both = Both()
        for stream_id in range(1, 105):
            both.insert(stream_id, stream_id - 1 or None, 16, exclusive=False)
        both.ours.open(1000, H2Priority())
        both.theirs.insert_stream(1000)
        both.ours.update(1000, H2Priority(depends_on=104))
        assert both.parent_of(1000) == 104
        with pytest.raises(priority.PriorityLoop):
            both.theirs.reprioritize(1000, depends_on=104)

    def test_a_deep_tree_overflows_the_stack(self) -> None:
        n_streams = 1100
        both = Both()
        both.theirs = priority.PriorityTree(maximum_streams=n_streams + 1)
        for stream_id in range(1, n_streams + 1):
            both.insert(stream_id, None, 16, exclusive=True)
            both.block(stream_id)
        both.unblock(1, 1)
        assert both.ours.pick() == 1
        with pytest.raises(RecursionError):
            both.theirs.next()

    def test_a_blocked_stream_saves_up_what_it_did_not_send(self) -> None:
        # § 5.3.2: siblings share by weight. 3, of weight 256, was blocked for 40 frames of 1, of
        # weight 128. In theirs it has only moved on by half of that, and sends 40 alone.
        both = Both()
        for stream_id, weight in ((1, 128), (3, 256)):
            both.insert(stream_id, None, weight, exclusive=False)
            both.unblock(stream_id, 1)
        both.block(3)
        for _ in range(40):
            assert both.theirs.next() == both.ours.pick() == 1
            both.ours.charge(1, 1)
        both.unblock(3, 1)
        assert [both.theirs.next() for _ in range(40)] == [3] * 40
        assert frames_of_ours(both.ours, {1: 2, 3: 4}) == [3, 3, 1, 3, 3, 1]

    def test_a_blocked_stream_pays_as_if_it_had_sent(self) -> None:
        # 1 is blocked from the first frame on. In ours it comes back at once, at the time served
        # last; in theirs it has to wait its turn, for a frame that it never sent.
        both = Both()
        for stream_id, weight in ((1, 1), (3, 256)):
            both.insert(stream_id, None, weight, exclusive=False)
            both.unblock(stream_id, 1)
        both.block(1)
        assert [both.theirs.next() for _ in range(2)] == [3, 3]
        for _ in range(2):
            both.ours.charge(both.ours.pick(), 1)  # type: ignore[arg-type]
        both.unblock(1, 1)
        assert both.ours.pick() == 1
        assert [both.theirs.next() for _ in range(200)] == [3] * 200

"""Laws of the disciplines: shares, closed forms of each, and that nothing ever raises."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3sim.schedulers import Orphans, Queueing, TreeScheduler, UnknownParent, Weights
from h3sim.signals import H2Priority
from tests.effort import law

WEIGHTS = st.one_of(st.integers(1, 256), st.sampled_from([1, 2, 16, 32, 255, 256]))
MAX_TURN_BYTES = 1400


def bound(queueing: Any, one: Any, other: Any) -> Any:
    """Return by how much bytes / weight (in a calendar, turns / weight) of two siblings may differ.

    A turn of each, for the start and the end, and what the discipline rounds away.
    """
    turn = 1 if queueing is Queueing.H2O else MAX_TURN_BYTES
    complete = Fraction(turn, one.weight) + Fraction(turn, other.weight)
    turns = one.turns + other.turns
    match queueing:
        case Queueing.EXACT:
            return complete
        case Queueing.NGHTTP2:
            # Each is behind by less than a cycle, 1/256 byte of weight 1.
            return complete + Fraction(2, 256)
        case Queueing.H2O:
            # Less than a slot each, and half of 1/65536 a turn in the table.
            return complete + Fraction(2, 63) + Fraction(turns, 2 * 65_536 * 63)
        case Queueing.ATS:
            # Less than a point a turn, and the ids with which they begin.
            return complete + Fraction(turns + abs(one.id - other.id), 256)


class Share:
    """What a node and all below it got."""

    def __init__(self, node_id: int, parent: Any, weight: int) -> None:
        self.id, self.parent, self.weight = node_id, parent, weight
        self.n_bytes = self.turns = 0


@st.composite
def leafy_trees(draw: Any) -> list[Any]:
    """Return up to eight nodes, each below one before it or below the root."""
    n_nodes = draw(st.integers(2, 8))
    return [
        Share(4 * n, draw(st.sampled_from([None, None, *range(0, 4 * n, 4)])), draw(WEIGHTS))
        for n in range(n_nodes)
    ]


@law(60)
@given(
    st.sampled_from(Queueing),
    leafy_trees(),
    st.lists(st.integers(1, MAX_TURN_BYTES), min_size=1, max_size=9),
)
def test_siblings_that_always_have_data_share_by_weight(
    queueing: Any, shares: Any, sizes: Any
) -> None:
    tree = TreeScheduler(queueing=queueing, turn_bytes=MAX_TURN_BYTES)
    for share in shares:
        tree.open(share.id, H2Priority(weight=share.weight, depends_on=share.parent))
    by_id = {share.id: share for share in shares}
    for share in shares:
        if all(other.parent != share.id for other in shares):
            tree.activate(share.id)
    for turn, n_bytes in enumerate(itertools.islice(itertools.cycle(sizes), 300)):
        node = tree.pick()
        tree.charge(node, n_bytes)  # type: ignore[arg-type]
        while node is not None:
            by_id[node].n_bytes += n_bytes
            by_id[node].turns += 1
            node = by_id[node].parent
        if turn % 5 == 4:
            check_shares(queueing, shares)


def check_shares(queueing: Any, shares: Any) -> None:
    for one, other in itertools.combinations(shares, 2):
        if one.parent == other.parent:
            got = [
                Fraction(s.turns if queueing is Queueing.H2O else s.n_bytes, s.weight)
                for s in (one, other)
            ]
            assert abs(got[0] - got[1]) <= bound(queueing, one, other)


class Flat:
    """Streams under the root, and what they paid since they joined, as a discipline counts it."""

    def __init__(self, weights: Any) -> None:
        self.weights = weights
        self.active: list[Any] = []

    def pick(self) -> Any:
        return min(self.active, key=self.turn, default=None)  # type: ignore[attr-defined]

    def activate(self, n: Any) -> None:
        if n not in self.active:
            self.active.append(n)
            self.join(n)  # type: ignore[attr-defined]

    def deactivate(self, n: Any) -> None:
        if n in self.active:
            self.active.remove(n)


class FlatCycles(Flat):
    """nghttp2: the cycle at which it joined + bytes since then * 256 / weight, rounded once."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights)
        self.paid: dict[Any, Any] = {}
        self.joined: dict[Any, Any] = {}
        self.listed: dict[Any, Any] = {}
        self.last, self.listings = 0, itertools.count()

    def turn(self, n: Any) -> Any:
        return self.joined[n] + self.paid[n] * 256 // self.weights[n], self.listed[n]

    def join(self, n: Any) -> None:
        self.joined[n], self.paid[n], self.listed[n] = self.last, 0, next(self.listings)

    def charge(self, n: Any, n_bytes: int) -> None:
        self.last = self.turn(n)[0]
        self.paid[n] += n_bytes
        self.listed[n] = next(self.listings)


class FlatPoints(Flat):
    """ATS: the id + all bytes ever, each turn cut on its own."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights)
        self.points = dict(enumerate(range(len(weights))))

    def turn(self, n: Any) -> Any:
        return self.points[n], n

    def join(self, n: Any) -> None:
        pass

    def charge(self, n: Any, n_bytes: int) -> None:
        self.points[n] += int(n_bytes * 256 / self.weights[n])


class Ring(Flat):
    """h2o: 64 lists in a ring, and the slot that was served last."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights)
        self.slots: list[Any] = [[] for _ in range(64)]
        self.at = 0
        self.part = [Fraction(0)] * len(weights)
        self.last: Any = None
        self.part_before = Fraction(0)

    def pick(self) -> Any:
        for slot in (*self.slots[self.at :], *self.slots[: self.at]):
            if slot:
                return slot[0]
        return None

    def join(self, n: Any) -> None:
        # The table of offsets holds 63 / weight, rounded to 1/65536.
        step = Fraction(int(Fraction(63 * 65_536, self.weights[n]) + Fraction(1, 2)), 65_536)
        self.last, self.part_before = n, self.part[n]
        complete, self.part[n] = divmod(step + self.part[n], 1)
        self.slots[(self.at + complete) % 64].append(n)

    def deactivate(self, n: Any) -> None:
        if self.last == n:
            # h2o lists a stream again after its turn, if it has something left.
            self.part[n] = self.part_before
            self.last = None
        super().deactivate(n)
        for slot in self.slots:
            if n in slot:
                slot.remove(n)

    def charge(self, n: Any, n_bytes: int) -> None:
        self.at = next(position for position, slot in enumerate(self.slots) if n in slot)
        self.slots[self.at].remove(n)
        self.join(n)


STEPS = st.tuples(
    st.sampled_from(["activate", "deactivate", "serve", "serve"]),
    st.integers(0, 3),
    st.sampled_from([1400, 1400, 1, 0, 16_384]),
)
N_TURNS = 15


@pytest.mark.parametrize(
    ("queueing", "reference"),
    [(Queueing.NGHTTP2, FlatCycles), (Queueing.H2O, Ring), (Queueing.ATS, FlatPoints)],
)
def test_a_flat_tree_follows_the_closed_form(queueing: Any, reference: Any) -> None:
    @law(80)
    @given(st.lists(WEIGHTS, min_size=4, max_size=4), st.lists(STEPS, max_size=20))
    def check(weights: Any, script: Any) -> None:
        tree, flat = TreeScheduler(queueing=queueing), reference(weights)
        for n, weight in enumerate(weights):
            tree.open(n, H2Priority(weight=weight))
            tree.activate(n)
            flat.activate(n)
        for call, n, n_bytes in [("serve", 0, 1), *script]:
            if call != "serve":
                getattr(tree, call)(n)
                getattr(flat, call)(n)
                continue
            for _ in range(N_TURNS):
                picked = flat.pick()
                assert tree.pick() == picked
                if picked is not None:
                    tree.charge(picked, n_bytes)
                    flat.charge(picked, n_bytes)

    check()


OF_SERVERS = [one for one in UnknownParent if one is not UnknownParent.ORPHANS]
OPTIONS = [
    *itertools.product([Weights.SHARES], Queueing, Orphans, OF_SERVERS),
    *itertools.product([Weights.SHARES], [Queueing.EXACT], Orphans, [UnknownParent.ORPHANS]),
    *itertools.product([Weights.ZERO], [Queueing.EXACT], [Orphans.KEEP], UnknownParent),
]


@pytest.mark.parametrize(
    ("weights", "queueing", "orphans", "unknown_parent"),
    OPTIONS,
    ids=lambda option: option.value,
)
def test_200_streams_with_random_updates_never_raise(
    weights: Any, queueing: Any, orphans: Any, unknown_parent: Any
) -> None:
    rng = random.Random(7540)
    retain = rng.choice([0, 5])
    tree = TreeScheduler(
        weights=weights,
        queueing=queueing,
        orphans=orphans,
        unknown_parent=unknown_parent,
        retain=retain,
    )
    low, high = weights.limits
    open_ids: list[Any] = []
    active: set[Any] = set()

    def signal(but: Any) -> Any:
        parent = rng.choice(
            [None, *(n for n in (*open_ids[-20:], *rng.sample(ids, 5)) if n != but)]
        )
        weight = rng.choice([low, high, rng.randint(low, high)])
        return H2Priority(weight=weight, depends_on=parent, exclusive=rng.random() < 0.2)

    ids = list(range(0, 800, 4))
    for stream_id in ids:
        tree.open(stream_id, signal(stream_id))
        open_ids.append(stream_id)
        for _ in range(5):
            other = rng.choice(open_ids)
            match rng.randrange(6):
                case 0 | 1:
                    tree.update(other, signal(other))
                case 2 | 3:
                    tree.activate(other)
                    active.add(other)
                case 4:
                    tree.deactivate(other)
                    active.discard(other)
                case 5 if len(open_ids) > 1:
                    tree.close(other)
                    open_ids.remove(other)
                    active.discard(other)
            picked = tree.pick()
            assert picked in active if active else picked is None
            if picked is not None:
                tree.charge(picked, rng.choice([1400, 1, 0, 16_384]))
    for stream_id in open_ids:
        tree.close(stream_id)
    # What is left is what is retained, its parents where those are created, the orphans' node.
    assert tree.pick() is None
    n_fixed = 1 + (unknown_parent is UnknownParent.ORPHANS)
    assert len(str(tree).splitlines()) <= n_fixed + 2 * retain

"""Schedulers that are broken on purpose, each in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from h3sim.schedulers import (
    BucketScheduler,
    EpsScheduler,
    FifoScheduler,
    Mixed,
    Orphans,
    Quantum,
    RoundRobinScheduler,
    TreeScheduler,
    Weights,
)
from h3sim.schedulers.tree.shape import DependencyTree
from h3sim.signals import Eps, H2Priority


class EqualShares(TreeScheduler):
    """Ignores weights."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, signal)
        self._queueing.reweigh(self._nodes[stream_id], 16)

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, signal)
        self._queueing.reweigh(self._nodes[stream_id], 16)


class StaleAfterUpdate(TreeScheduler):
    """Holds on to the first thing it was told."""

    def update(self, stream_id: int, signal: Any) -> None:
        self._tree._check_priority(stream_id, signal)


class ForgetfulTree(TreeScheduler):
    """Loses the children of a node that closes."""

    def close(self, stream_id: int) -> None:
        node = self._nodes[stream_id]
        for child in list(node.children.values()):
            child.has_data = False
            self._queueing.unlist_if_idle(child)
        super().close(stream_id)


class FreePlaceholders(TreeScheduler):
    """Charges a stream, and nothing to the placeholders above it."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, signal)
        self._make_free(stream_id)

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, signal)
        self._make_free(stream_id)

    def _make_free(self, stream_id: int) -> None:
        node = self._nodes[stream_id]
        if node.is_placeholder:
            node.state.cost_per_byte = 0


class BackwardTies(TreeScheduler):
    """Lets the higher stream id go first among equals."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, signal)
        node = self._nodes[stream_id]
        node.tie_breaker = -node.tie_breaker
        if node.entry is not None:
            self._queueing.unlist(node)
            self._queueing.enlist(node)


class _Unpruned(DependencyTree):
    def _prune(self, node: Any) -> None:
        pass


class IdleForever(TreeScheduler):
    """Keeps what was there for others only when the others have gone."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        kept = self._tree
        self._tree = _Unpruned(
            self._queueing,
            weights=Weights.SHARES,
            orphans=kept._orphans,
            unknown_parent=kept._unknown_parent,
            retain=kept._max_retained,
        )
        self._nodes, self._root = self._tree.nodes, self._tree.root


class SharesNothingOut(TreeScheduler):
    """Leaves orphans their weights, whatever was asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._tree._orphans = Orphans.KEEP


class ForgetsAStream(RoundRobinScheduler):
    """Never notices that stream 4 has data."""

    def activate(self, stream_id: int) -> None:
        if stream_id != 4:
            super().activate(stream_id)


class TakesTwoTurns(RoundRobinScheduler):
    """Sends what it has picked twice before it charges it."""

    def __init__(self) -> None:
        super().__init__()
        self._is_second = False

    def charge(self, stream_id: int, n_bytes: int) -> None:
        if self._is_second:
            super().charge(stream_id, n_bytes)
        self._is_second = not self._is_second

    def deactivate(self, stream_id: int) -> None:
        self._is_second = False
        super().deactivate(stream_id)


class NeverCharges(RoundRobinScheduler):
    """Forgets what it has sent, and so picks the same stream for ever."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        pass


class ImpurePick(RoundRobinScheduler):
    """Takes the turn when it is asked whose it is."""

    def pick(self) -> Any:
        picked = super().pick()
        if picked is not None:
            super().charge(picked, 0)
        return picked

    def charge(self, stream_id: int, n_bytes: int) -> None:
        pass


class Listed:
    """What the mutants below share: the streams that have data, in the order they got it."""

    def __init__(self) -> None:
        self._active: list[Any] = []
        self._turns = 0

    def open(self, stream_id: int, signal: Any) -> None:
        pass

    def update(self, stream_id: int, signal: Any) -> None:
        pass

    def activate(self, stream_id: int) -> None:
        if stream_id not in self._active:
            self._active.append(stream_id)

    def deactivate(self, stream_id: int) -> None:
        if stream_id in self._active:
            self._active.remove(stream_id)

    def close(self, stream_id: int) -> None:
        self.deactivate(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._turns += 1


class HighestFirst(Listed):
    """First in, first out, upside down."""

    def pick(self) -> Any:
        return max(self._active, default=None)


class StarvesTheHighest(Listed):
    """Goes around all but the highest id, which has to wait for them."""

    def pick(self) -> Any:
        if not self._active:
            return None
        fed = sorted(self._active)[:-1] or self._active
        return fed[self._turns % len(fed)]


class SetOrdered(Listed):
    """Leaves ties to the order of a set, which another process has otherwise."""

    def pick(self) -> Any:
        names = {f"stream {stream_id}" for stream_id in self._active}
        return next((int(name.split()[1]) for name in names), None)


class Lazy(FifoScheduler):
    """Sends nothing at its third turn, until another response comes."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = 0

    def pick(self) -> Any:
        return None if self._turns == 2 else super().pick()

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._turns += 1

    def activate(self, stream_id: int) -> None:
        if self._turns == 2:
            self._turns += 1
        super().activate(stream_id)


class Overtaken:
    """Gives every third turn to whoever came last, whatever its class."""

    def __init__(self, scheduler: Any) -> None:
        self._strict, self._latest = scheduler, HighestFirst()
        self._turns = 0

    def open(self, stream_id: int, signal: Any) -> None:
        self._strict.open(stream_id, signal)

    def update(self, stream_id: int, signal: Any) -> None:
        self._strict.update(stream_id, signal)

    def activate(self, stream_id: int) -> None:
        self._strict.activate(stream_id)
        self._latest.activate(stream_id)

    def deactivate(self, stream_id: int) -> None:
        self._strict.deactivate(stream_id)
        self._latest.deactivate(stream_id)

    def close(self, stream_id: int) -> None:
        self._strict.close(stream_id)
        self._latest.close(stream_id)

    def pick(self) -> Any:
        return (self._latest if self._turns % 3 == 2 else self._strict).pick()

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._turns += 1
        self._strict.charge(stream_id, n_bytes)
        self._latest.charge(stream_id, n_bytes)


class OvertakenBuckets(Overtaken):
    """Buckets in which every third turn goes to whoever came last."""

    def __init__(self) -> None:
        super().__init__(BucketScheduler())


class OneLevel(BucketScheduler):
    """Keeps the buckets and forgets the levels within them."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, _shared(signal))

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, _shared(signal))


def _shared(signal: Any) -> Any:
    return signal if isinstance(signal, H2Priority) else replace(signal, level=1)


class OneUrgency(EpsScheduler):
    """Looks at the incremental flag alone."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, self._of(signal))

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, self._of(signal))

    def _of(self, signal: Any) -> Any:
        return replace(signal, urgency=3) if isinstance(signal, Eps) else signal


class LateUpdate(EpsScheduler):
    """Uses what it is told when the stream next gets data, and not at the next pick."""

    def update(self, stream_id: int, signal: Any) -> None:
        self.open(stream_id, signal)


class ShortTurns(EpsScheduler):
    """Gives one packet, whatever a turn is."""

    def __init__(self, *, mixed: Any, turn: Any) -> None:
        super().__init__(mixed=mixed, turn=Quantum())


class OneRule(EpsScheduler):
    """Sends what is not incremental first, whatever was chosen."""

    def __init__(self, *, mixed: Any, turn: Any) -> None:
        super().__init__(mixed=Mixed.NON_INCREMENTAL_FIRST, turn=turn)

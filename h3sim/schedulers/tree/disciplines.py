"""Fair queueing as servers do it, each from its description and not from its code.

They agree in the long run: siblings that always have data share by weight. They differ in where a
child joins, in how they round, in what a turn costs, and in who goes first among equals.
"""

from __future__ import annotations

import math
from heapq import heapreplace
from typing import TYPE_CHECKING

from h3sim.schedulers.tree.options import Queueing, Weights
from h3sim.schedulers.tree.queueing import FairQueueing, relist, settle

if TYPE_CHECKING:
    from h3sim.schedulers.tree.node import Node

__all__ = ["AtsPoints", "ExactTime", "H2oCalendar", "Nghttp2Cycles", "queueing_of"]

_MAX_WEIGHT = 256
_UNIT = math.lcm(*range(1, _MAX_WEIGHT + 1))
_COST_PER_BYTE = (0, *(_MAX_WEIGHT * _UNIT // weight for weight in range(1, _MAX_WEIGHT + 1)))
_BEFORE_ALL = -1
_AFTER_ALL = math.inf

_FIXED_TIMES: dict[Weights, dict[int, float]] = {
    Weights.SHARES: {},
    Weights.ZERO: {255: _BEFORE_ALL, 0: _AFTER_ALL},
    Weights.ZERO_LAST: {0: _AFTER_ALL},
}
"""The weights that have a place and no share."""

_SLOT = 65_536
_SLOTS_AT_WEIGHT_1 = 63
_SLOTS_A_TURN = (
    0,
    *((2 * _SLOTS_AT_WEIGHT_1 * _SLOT + w) // (2 * w) for w in range(1, _MAX_WEIGHT + 1)),
)
"""What a turn costs by weight, in parts of a slot, rounded to the nearest."""


class ExactTime(FairQueueing):
    """Virtual time without rounding: bytes * 256 / weight, in units of 1/lcm(1..256).

    So equal shares tie exactly. Ties fall to the lower id, and to streams before placeholders.
    """

    def __init__(self, *, turn_bytes: int, weights: Weights) -> None:
        super().__init__(turn_bytes=turn_bytes)
        self._fixed_times = _FIXED_TIMES[weights]

    def joined(self, node: Node, parent: Node) -> tuple[float, int]:
        """Start one turn behind the child that was served last."""
        time = node.fixed_time
        if time is None:
            time = parent.last + self.turn_bytes * node.cost_per_byte
        return time, node.tie

    def reweigh(self, node: Node, weight: int) -> None:
        """Let the weight count from the next turn on, and a place before or behind all at once."""
        before = node.fixed_time
        node.weight = weight
        node.cost_per_byte = _COST_PER_BYTE[weight]
        node.fixed_time = self._fixed_times.get(weight)
        if node.fixed_time != before and node.entry is not None:
            self.unlist(node)
            self.enlist(node)

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes*, but to a placeholder a whole turn whatever was sent below it.

        The loop of the base class, written out: the schemes of Marx 2019 live in it.
        """
        while node.parent is not None and node.entry is not None:
            parent, entry = node.parent, node.entry
            time = node.fixed_time
            if time is None:
                charged = self.turn_bytes if node.is_placeholder else n_bytes
                parent.last = entry[0]
                time = entry[0] + charged * node.cost_per_byte
            node.entry = moved = (time, node.tie, node)
            if parent.heap[0] is entry:
                heapreplace(parent.heap, moved)
                if parent.stale:
                    settle(parent)
            else:
                relist(parent, entry, moved)
            node = parent


class Nghttp2Cycles(FairQueueing):
    """Whole cycles, (bytes * 256 + remainder) / weight a turn, and the remainder carried on.

    Equal cycles fall to whoever was listed first.
    """

    def joined(self, node: Node, parent: Node) -> tuple[float, int]:
        """Start at the cycle served last, or behind it by a turn that is not paid for yet."""
        parent.n_listed += 1
        return self._next(node, parent.last, node.n_bytes), parent.n_listed

    def served(self, node: Node, parent: Node, time: float, n_bytes: int) -> tuple[float, int]:
        """Go on from the cycle at which it was served."""
        parent.last = time
        parent.n_listed += 1
        return self._next(node, time, n_bytes), parent.n_listed

    def reweigh(self, node: Node, weight: int) -> None:
        """Let the last turn cost what it costs at the new weight, but never go back in time."""
        before, node.weight = node.weight, weight
        entry, parent = node.entry, node.parent
        if entry is None or parent is None or weight == before:
            return
        paid = node.n_bytes * _MAX_WEIGHT
        # What it had carried into its last turn; the remainder is what was left of both.
        due = paid + (node.carry - paid) % before
        cycles, node.carry = divmod(due, weight)
        time = max(entry[0] - due // before + cycles, parent.last)
        node.entry = moved = (time, entry[1], node)
        relist(parent, entry, moved)
        settle(parent)

    def forget(self, node: Node) -> None:
        """Drop what it carried and its last turn, and set the clock of its own children back."""
        node.n_bytes = node.carry = 0
        node.last = 0

    @staticmethod
    def _next(node: Node, start: float, n_bytes: int) -> float:
        node.n_bytes = n_bytes
        cycles, node.carry = divmod(n_bytes * _MAX_WEIGHT + node.carry, node.weight)
        return start + cycles


class H2oCalendar(FairQueueing):
    """Slots: whoever stands in the lowest goes, first in first out in each.

    A turn moves a child on by 63 / weight slots, whatever it carried; parts of a slot, counted in
    1/65536, are carried on. So none is ever more than 63 slots ahead of the one served last, and 64
    slots in a ring name the same places as the numbers without end that are counted here.
    """

    def joined(self, node: Node, parent: Node) -> tuple[float, int]:
        """Start one turn behind the slot that was served last."""
        parent.n_listed += 1
        slots, node.carry = divmod(_SLOTS_A_TURN[node.weight] + node.carry, _SLOT)
        return parent.last + slots, parent.n_listed

    def served(self, node: Node, parent: Node, time: float, n_bytes: int) -> tuple[float, int]:
        """Join again: a turn is a turn."""
        parent.last = time
        return self.joined(node, parent)

    def reweigh(self, node: Node, weight: int) -> None:
        """Join again if the weight is another."""
        before, node.weight = node.weight, weight
        if node.entry is not None and weight != before:
            self.unlist(node)
            self.enlist(node)


class AtsPoints(FairQueueing):
    """Points: a turn costs bytes * 256 / weight of them, cut to whole ones; the fewest go first.

    A stream begins with its id, a placeholder with its number. Equal points fall to the lower id.
    """

    def joined(self, node: Node, parent: Node) -> tuple[float, int]:
        """Come back with the points of then: who was away goes before those who went on."""
        return node.point, node.tie

    def served(self, node: Node, parent: Node, time: float, n_bytes: int) -> tuple[float, int]:
        """Add to its points."""
        node.point += n_bytes * _MAX_WEIGHT // node.weight
        return node.point, node.tie


def queueing_of(queueing: Queueing, *, turn_bytes: int, weights: Weights) -> FairQueueing:
    """Return the discipline of that name.

    Raises:
        ValueError: if it has no meaning for zero weights.
    """
    if queueing is Queueing.EXACT:
        return ExactTime(turn_bytes=turn_bytes, weights=weights)
    if weights is not Weights.SHARES:
        raise ValueError(f"zero weights need exact queueing, not {queueing.value!r}")
    made = {Queueing.NGHTTP2: Nghttp2Cycles, Queueing.H2O: H2oCalendar, Queueing.ATS: AtsPoints}
    return made[queueing](turn_bytes=turn_bytes)

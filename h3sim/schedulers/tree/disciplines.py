"""Queueing disciplines of the tree: a heap per node, and fair queueing as servers do it.

A discipline says three things: where a child joins, what a turn costs it, and what a new weight
changes. Everything else is the same for all, so that `pick` is the same for all.

They agree in the long run: siblings that always have data share by weight. They differ in where a
child joins, in how they round, in what a turn costs, and in who goes first among equals.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final

from h3sim._mypyc import mypyc_attr
from h3sim.schedulers.tree.options import Queueing, Weights
from h3sim.signals import MAX_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Container

    from h3sim.schedulers.tree.node import Entry, Node, Time


_SLACK: Final = 16
"""So many entries may be out of date before a heap is made anew: few children never pay for it."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class FairQueueing:
    """The heaps of a tree. *turn_bytes* is what a turn is expected to carry."""

    def __init__(self, *, turn_bytes: int) -> None:
        self.turn_bytes = turn_bytes

    # What a discipline says

    def joined(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Return the virtual time and the tie at which the node joins its siblings."""
        raise NotImplementedError

    def served(self, node: Node, parent: Node, time: Time, n_bytes: int) -> tuple[Time, int]:
        """Return the node's next time and tie; it, or something below it, had a turn at *time*."""
        raise NotImplementedError

    def reweigh(self, node: Node, weight: int) -> None:
        """Give the node a weight, whether it is listed or not."""
        node.weight = weight

    def forget(self, node: Node) -> None:
        """Make the node, which is not listed now, begin anew when it joins again."""

    # What all do alike

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes* to the node and to what is above it."""
        # A stream may be charged that is not listed: its lost bytes go while it has no new ones.
        while node.parent is not None and node.entry is not None:
            parent, entry = node.parent, node.entry
            time, tie = self.served(node, parent, entry[0], n_bytes)
            moved: Entry = (time, tie, node)
            node.entry = moved
            relist(parent, entry, moved)
            node = parent

    def wake(self, node: Node) -> None:
        """List the node, and each parent that was not listed before."""
        # Above a node that is listed all are, so this goes up only as far as something changes.
        while node.parent is not None and node.entry is None:
            self.enlist(node)
            node = node.parent

    def sleep(self, node: Node) -> None:
        """Take the node off its parent's list, and so on up, where nothing is left to send."""
        while node.parent is not None and node.entry is not None:
            if node.has_data or node.heap:
                return
            self.unlist(node)
            self.forget(node)
            node = node.parent

    def rest(self, node: Node) -> None:
        """Take a stream off its parent's list that has just sent the last of what it had."""
        self.sleep(node)

    def defer(self, root: Node, blocked: dict[int, None]) -> None:
        """Take those off their lists that are blocked and whose turn has come.

        Each turns the clocks above it on to its own time, though it sends nothing: nghttp2 notes
        who is next before it looks at the window (nghttp2_stream_next_outbound_item).
        """
        node = root
        # From the root again after each: whoever left may have taken the groups above along.
        while blocked and node.heap:
            node = node.heap[0][2]
            if not node.has_data:
                continue
            if node.id not in blocked:
                return
            del blocked[node.id]
            above = node
            while above.parent is not None and above.entry is not None:
                above.parent.last = above.entry[0]
                above = above.parent
            node.has_data = False
            self.sleep(node)
            node = root

    def enlist(self, node: Node) -> None:
        """Put the node on its parent's list."""
        parent = known(node.parent)
        time, tie = self.joined(node, parent)
        entry: Entry = (time, tie, node)
        node.entry = entry
        heappush(parent.heap, entry)

    def unlist(self, node: Node) -> None:
        """Take the node off its parent's list."""
        parent = known(node.parent)
        was_first = parent.heap[0] is node.entry
        # An entry inside the heap is only disowned: heapq takes nothing out of the middle.
        node.entry = None
        if was_first:
            heappop(parent.heap)
            settle(parent)
            return
        parent.stale += 1
        # Once half are out of date a new heap costs no more than the changes that made them so.
        if 2 * parent.stale > len(parent.heap) + _SLACK:
            parent.heap = [entry for entry in parent.heap if entry[2].entry is entry]
            heapify(parent.heap)
            parent.stale = 0


def relist(parent: Node, entry: Entry, moved: Entry) -> None:
    """Replace *entry* by *moved* in the parent's heap."""
    heap = parent.heap
    # Nearly always, for a turn is taken by the first: one sift in the place of a pop and a push.
    if heap[0] is entry:
        heapreplace(heap, moved)
        if parent.stale:
            settle(parent)
    else:
        heappush(heap, moved)
        parent.stale += 1


def settle(parent: Node) -> None:
    """Take stale entries off the top, so that the first one is always alive."""
    heap = parent.heap
    while heap:
        first = heap[0]
        node: Node = first[2]
        if node.entry is first:
            return
        heappop(heap)
        parent.stale -= 1


def first_unblocked(root: Node, blocked: Container[int]) -> int | None:
    """Return the stream whose turn it is once those that are blocked have left, or None."""
    # Sorted copies: a heap can be read in order only by emptying it, and asking changes nothing.
    # This runs only while a stream is blocked by flow control.
    waiting = [iter(sorted(_listed(root)))]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
            continue
        node: Node = entry[2]
        if node.has_data and node.id not in blocked:
            return node.id
        # A blocked stream makes no progress, so what depends on it may (RFC 7540 § 5.3.1).
        waiting.append(iter(sorted(_listed(node))))
    return None


def _listed(parent: Node) -> list[Entry]:
    return [entry for entry in parent.heap if entry[2].entry is entry]


def known(parent: Node | None) -> Node:
    """Return the parent of a node that is not the root."""
    assert parent is not None, "every node but the root has a parent"  # noqa: S101
    return parent


_UNIT: Final = math.lcm(*range(1, MAX_WEIGHT + 1))
"""What a byte costs is a whole number of these at every weight from 1 to 256."""
_COST_PER_BYTE: Final = (0, *(MAX_WEIGHT * _UNIT // weight for weight in range(1, MAX_WEIGHT + 1)))
_BEFORE_ALL: Final = -1
_AFTER_ALL: Final = math.inf
_NO_TURN: Final = -1
"""What a node's last turn took that has had none since it was last alone; one may take 0 bytes."""
_FRONT: Final = -2
_WAITING: Final = -1
"""Ties at an infinite time: before those of weight 0, whose ties are their ids."""

_FIXED_TIMES: dict[Weights, dict[int, Time]] = {
    Weights.SHARES: {},
    Weights.ZERO: {255: _BEFORE_ALL, 0: _AFTER_ALL},
    Weights.ZERO_LAST: {0: _AFTER_ALL},
    Weights.QUICKER_ZERO: {255: _BEFORE_ALL, 0: _AFTER_ALL},
}
"""The weights that have a place and no share."""

_SLOT: Final = 65_536
_SLOTS_AT_WEIGHT_1: Final = 63
_SLOTS_A_TURN: Final = (
    0,
    *((2 * _SLOTS_AT_WEIGHT_1 * _SLOT + w) // (2 * w) for w in range(1, MAX_WEIGHT + 1)),
)
"""What a turn costs by weight, in parts of a slot, rounded to the nearest."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class ExactTime(FairQueueing):
    """Virtual time without rounding: bytes * 256 / weight, in units of 1/lcm(1..256).

    So equal shares tie exactly. Ties fall to the lower id, and to streams before placeholders.
    """

    def __init__(self, *, turn_bytes: int, weights: Weights) -> None:
        super().__init__(turn_bytes=turn_bytes)
        self._fixed_times = _FIXED_TIMES[weights]

    def joined(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start one turn behind the child that was served last."""
        # What `charge` remembers of a turn alone in the list holds for that list only.
        node.n_bytes = _NO_TURN
        time = node.fixed_time
        if time is None:
            # Not at `parent.last`: a stream that comes and goes would be first each time it came,
            # and get more than its share of those that stay.
            time = parent.last + self.turn_bytes * node.cost_per_byte
        return time, node.tie

    def reweigh(self, node: Node, weight: int) -> None:
        """Count the weight from the next turn on, and a rank before or behind all at once."""
        before = node.fixed_time
        # The same bytes cost another time from now on.
        node.n_bytes = _NO_TURN
        node.weight = weight
        node.cost_per_byte = _COST_PER_BYTE[weight]
        node.fixed_time = self._fixed_times.get(weight)
        # A share needs no new entry: its cost counts with the next turn. A rank decides about this
        # one.
        if node.fixed_time != before and node.entry is not None:
            self.unlist(node)
            self.enlist(node)

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes*, but to a placeholder a whole turn whatever was sent below it.

        The loop of the base class, written out: the schemes of Marx 2019 live in it.
        """
        turn_bytes = self.turn_bytes
        parent, entry = node.parent, node.entry
        while parent is not None and entry is not None:
            # One that has a rank instead of a share stands where it stood.
            if node.fixed_time is None:
                charged = turn_bytes if node.is_placeholder else n_bytes
                heap = parent.heap
                if len(heap) == 1:
                    # Nothing but differences of siblings' times counts, so the time of one that is
                    # alone begins at 0 with each turn: in a chain most turns change nothing.
                    # The entry is then the one that would be made: the same time from 0, the same
                    # tie.
                    if node.n_bytes != charged or parent.last:
                        node.n_bytes = charged
                        parent.last = 0
                        moved: Entry = (charged * node.cost_per_byte, node.tie, node)
                        node.entry = moved
                        heap[0] = moved
                else:
                    # This time does not count from 0, so it must not be taken for the one of a turn
                    # alone.
                    node.n_bytes = _NO_TURN
                    parent.last = time = entry[0]
                    moved = (time + charged * node.cost_per_byte, node.tie, node)
                    node.entry = moved
                    # Lost bytes may go outside of a stream's turn: then its entry lies somewhere in
                    # the heap.
                    if heap[0] is not entry:
                        relist(parent, entry, moved)
                    else:
                        heapreplace(heap, moved)
                        # Tested here, for the call would cost as much as the move.
                        if parent.stale:
                            settle(parent)
            node = parent
            parent, entry = node.parent, node.entry


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class QuickerZeroTime(ExactTime):
    """Exact time until a child of weight 0 was served; from then on no time tells siblings apart.

    Quicker divides by the weight, so a turn at weight 0 ends at an infinite time, and whatever
    joins or is served behind it has that time too. Its binary heap then orders by nothing but its
    own moves: who is served is taken off the front, the last entry comes to the front in its
    place, and who goes on joins at the end. So the first and the last take turns, and those
    between them wait.
    """

    def __init__(self, *, turn_bytes: int) -> None:
        super().__init__(turn_bytes=turn_bytes, weights=Weights.QUICKER_ZERO)

    def joined(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Join at the end of the line, once there is one."""
        line = parent.line
        if line is None or node.fixed_time is not None:
            return super().joined(node, parent)
        line.append(node.id)
        return _AFTER_ALL, _FRONT if len(line) == 1 else _WAITING

    def unlist(self, node: Node) -> None:
        """Leave the line; the last takes the place of the first."""
        super().unlist(node)
        parent = known(node.parent)
        line = parent.line
        if line is None or node.id not in line:
            return
        if line[0] == node.id:
            line[0] = line[-1]
            line.pop()
            self._lead(parent, line)
        else:
            line.remove(node.id)

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge a turn by its bytes, or let the first and the last of a line change places."""
        while node.parent is not None and node.entry is not None:
            parent = node.parent
            line = parent.line
            if node.fixed_time == _AFTER_ALL:
                # Quicker divides by the weight: bytes / 0 is infinity, and so are all sums with it.
                self._end_time(parent)
            elif node.fixed_time is None and line is not None:
                # Lost bytes may go outside of a stream's turn: that moves nobody.
                if line[0] == node.id:
                    line[0], line[-1] = line[-1], node.id
                    self._restand(parent, node, _WAITING)
                    self._lead(parent, line)
            elif node.fixed_time is None:
                charged = self.turn_bytes if node.is_placeholder else n_bytes
                parent.last = node.entry[0]
                entry = node.entry
                moved: Entry = (entry[0] + charged * node.cost_per_byte, node.tie, node)
                node.entry = moved
                relist(parent, entry, moved)
            node = parent

    def _end_time(self, parent: Node) -> None:
        """Take time as infinite from now on; whoever has a share and data stands as it did."""
        if parent.line is not None:
            return
        # Ties are unique among siblings, so this order is one only, however the heap lay.
        alive = sorted(entry for entry in parent.heap if entry[2].entry is entry)
        shared = [node for _, _, node in alive if node.fixed_time is None]
        for node in shared:
            self._restand(parent, node, _WAITING)
        parent.line = line = [node.id for node in shared]
        self._lead(parent, line)

    def _lead(self, parent: Node, line: list[int]) -> None:
        if line:
            self._restand(parent, parent.children[line[0]], _FRONT)

    @staticmethod
    def _restand(parent: Node, node: Node, tie: int) -> None:
        entry = node.entry
        moved: Entry = (_AFTER_ALL, tie, node)
        node.entry = moved
        relist(parent, entry, moved)


class Nghttp2Cycles(FairQueueing):
    """Whole cycles, (bytes * 256 + remainder) / weight a turn, and the remainder carried on.

    Equal cycles fall to whoever was listed first.
    """

    def joined(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start at the cycle served last, or behind it by a turn that is not paid for yet."""
        parent.n_listed += 1
        cycles, node.carry = divmod(node.n_bytes * MAX_WEIGHT + node.carry, node.weight)
        return parent.last + cycles, parent.n_listed

    def charge(self, node: Node, n_bytes: int) -> None:
        """Charge *n_bytes* to the node and all above it, which go on from where they were served.

        The loop of the base class, written out: the browsers' trees are run by nghttp2's rules.
        """
        parent, entry = node.parent, node.entry
        while parent is not None and entry is not None:
            # Also where it was not the first: nghttp2 takes the cycle of whoever it served for the
            # last one.
            time = parent.last = entry[0]
            # A number for every listing: equal cycles go to whoever has waited longest.
            number = parent.n_listed = parent.n_listed + 1
            node.n_bytes = n_bytes
            due = n_bytes * MAX_WEIGHT + node.carry
            node.carry = due % node.weight
            moved: Entry = (time + due // node.weight, number, node)
            node.entry = moved
            heap = parent.heap
            if heap[0] is not entry:
                relist(parent, entry, moved)
            else:
                heapreplace(heap, moved)
                if parent.stale:
                    settle(parent)
            node = parent
            parent, entry = node.parent, node.entry

    def reweigh(self, node: Node, weight: int) -> None:
        """Charge the last turn at the new weight, but never go back in time."""
        before, node.weight = node.weight, weight
        entry, parent = node.entry, node.parent
        if entry is None or parent is None or weight == before:
            return
        # As nghttp2_stream_change_weight: the last turn is taken back, and charged anew.
        paid = node.n_bytes * MAX_WEIGHT
        # What it had carried into its last turn; the remainder is what was left of both.
        due = paid + (node.carry - paid) % before
        cycles, node.carry = divmod(due, weight)
        # A heavier stream may not go before what has been served since its last turn.
        time = max(entry[0] - due // before + cycles, parent.last)
        moved: Entry = (time, entry[1], node)
        node.entry = moved
        relist(parent, entry, moved)

    def forget(self, node: Node) -> None:
        """Drop what it carried and its last turn, and set the clock of its own children back."""
        node.n_bytes = node.carry = 0
        node.last = 0


class H2oCalendar(FairQueueing):
    """Slots: whoever stands in the lowest goes, first in first out in each.

    A turn moves a child on by 63 / weight slots, whatever it carried; parts of a slot, counted in
    1/65536, are carried on. So none is ever more than 63 slots ahead of the one served last, and 64
    slots in a ring name the same places as the numbers without end that are counted here.
    """

    def joined(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Start one turn behind the slot that was served last."""
        parent.n_listed += 1
        # Not bytes here: what it carried before this turn was priced, for `rest` to go back to.
        node.n_bytes = node.carry
        slots, node.carry = divmod(_SLOTS_A_TURN[node.weight] + node.carry, _SLOT)
        return parent.last + slots, parent.n_listed

    def served(self, node: Node, parent: Node, time: Time, n_bytes: int) -> tuple[Time, int]:
        """Join again: a turn is a turn."""
        parent.last = time
        return self.joined(node, parent)

    def rest(self, node: Node) -> None:
        """Leave as if the last turn had not been priced: h2o lists a stream again after its turn.

        One that has nothing left then is not listed, and carries what it carried before.
        """
        parent, entry = node.parent, node.entry
        # The highest number is its own: it was listed by the turn that has just ended, and nobody
        # since.
        if parent is not None and entry is not None and entry[1] == parent.n_listed:
            carry = node.n_bytes
            self.sleep(node)
            # Where something below it still sends it stays listed, and the price stands.
            if node.entry is None:
                node.carry = carry
            return
        self.sleep(node)

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

    def joined(self, node: Node, parent: Node) -> tuple[Time, int]:
        """Come back with the points of then: who was away goes before those who went on."""
        return node.point, node.tie

    def served(self, node: Node, parent: Node, time: Time, n_bytes: int) -> tuple[Time, int]:
        """Add to its points."""
        # Cut by itself in every turn, nothing carried on, as the server's integers do: of many
        # small frames a heavy stream pays less than its share.
        node.point += n_bytes * MAX_WEIGHT // node.weight
        return node.point, node.tie


def queueing_of(queueing: Queueing, *, turn_bytes: int, weights: Weights) -> FairQueueing:
    """Return the discipline of that name.

    Raises:
        ValueError: if it has no meaning for zero weights.
    """
    if queueing is Queueing.EXACT and weights is Weights.QUICKER_ZERO:
        return QuickerZeroTime(turn_bytes=turn_bytes)
    if queueing is Queueing.EXACT:
        return ExactTime(turn_bytes=turn_bytes, weights=weights)
    if weights is not Weights.SHARES:
        raise ValueError(f"zero weights need exact queueing, not {queueing.value!r}")
    made = {Queueing.NGHTTP2: Nghttp2Cycles, Queueing.H2O: H2oCalendar, Queueing.ATS: AtsPoints}
    return made[queueing](turn_bytes=turn_bytes)

"""The two habits of the code of Marx 2019, beside a slow and literal account of each."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.helpers import replay

TICK_MS, RETENTION_MS = 10, 500
KINDS = {
    "dfifo": [("document", {}), ("script", {}), ("image", {})],
    "zeroweight-simple": [
        ("stylesheet", {}),
        ("script", {}),
        ("font", {}),
        ("image", {"above_the_fold": True}),
        ("image", {}),
        ("other", {}),
    ],
}
WEIGHTS = (254, 24, 16, 8, 1, 0)


def histories(scheme: Any) -> Any:
    """Return lists of (gap in ticks, number of the kind, packets), the first at once."""
    sizes = st.sampled_from([1, 2, 3, 25])  # what is short leaves the tree while others are there
    step = st.tuples(st.integers(0, 40), st.integers(0, len(KINDS[scheme]) - 1), sizes)  # type: ignore[arg-type]
    return st.lists(step, min_size=1, max_size=15).map(timed)


def timed(steps: Any) -> Any:
    """Return the steps with the instants of their requests, in milliseconds."""
    at_ms, rows = 0, []
    for number, (gap, kind, n_packets) in enumerate(steps):
        at_ms += TICK_MS * gap if number else 0
        rows.append((at_ms, kind, n_packets))
    return rows


def order_of(rows: Any, scheme: Any) -> Any:
    steps = [(at_ms, KINDS[scheme][k][0], n, KINDS[scheme][k][1]) for at_ms, k, n in rows]
    return replay(steps, scheme).trace.order


class Chain:
    """One list of streams, and the last of each class; who leaves hands that on to who is above."""

    def __init__(self) -> None:
        self.chain: list[Any] = []
        self.tails: dict[Any, Any] = {}
        self.left: dict[Any, Any] = {}

    def open(self, stream_id: int, kind: Any, n_packets: int) -> None:
        tail = next((self.tails[k] for k in range(kind, -1, -1) if k in self.tails), None)
        self.chain.insert(0 if tail is None else self.chain.index(tail) + 1, stream_id)
        self.tails[kind] = stream_id
        self.left[stream_id] = n_packets

    def send(self) -> Any:
        stream_id = next((s for s in self.chain if self.left[s]), None)
        if stream_id is not None:
            self.left[stream_id] -= 1
        return stream_id

    def close(self, stream_id: int) -> None:
        index = self.chain.index(stream_id)
        for kind in [k for k, tail in self.tails.items() if tail == stream_id]:
            del self.tails[kind]
            if index:
                self.tails[kind] = self.chain[index - 1]
        self.chain.remove(stream_id)


class Heap:
    """A binary heap of virtual times as floats, in which a turn at weight 0 costs infinity."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self.last = 0.0
        self.zeros: list[Any] = []
        self.roots: list[Any] = []
        self.left: dict[Any, Any] = {}
        self.weight: dict[Any, Any] = {}

    def open(self, stream_id: int, kind: Any, n_packets: int) -> None:
        self.weight[stream_id] = weight = WEIGHTS[kind] if stream_id else 255
        self.left[stream_id] = n_packets
        if weight == 255:
            self.roots.append(stream_id)
        elif not weight:
            self.zeros.append(stream_id)
        else:
            self.push(stream_id)

    def send(self) -> Any:
        if self.roots:
            stream_id = self.roots[0]
        elif self.entries:
            self.last, stream_id = self.pop()
        elif self.zeros:
            stream_id, self.last = self.zeros[0], float("inf")
        else:
            return None
        self.left[stream_id] -= 1
        if not self.left[stream_id]:
            for line in (self.roots, self.zeros):
                if stream_id in line:
                    line.remove(stream_id)
        elif 0 < self.weight[stream_id] < 255:
            self.push(stream_id)
        return stream_id

    def close(self, stream_id: int) -> None:
        pass

    def push(self, stream_id: int) -> None:
        entries, position = self.entries, len(self.entries)
        # In parts that make every share exact, as the scheduler has them; ties go by the id.
        time = self.last + 1400 * 256 * 6096 // self.weight[stream_id]
        entries.append((time, stream_id))
        while position and before(entries[position], entries[(position - 1) // 2]):
            above = (position - 1) // 2
            entries[position], entries[above] = entries[above], entries[position]
            position = above

    def pop(self) -> Any:
        entries = self.entries
        first, last = entries[0], entries.pop()
        if entries:
            entries[0] = last
            self.sink()
        return first

    def sink(self) -> None:
        entries, position = self.entries, 0
        while True:
            least = position
            for below in (2 * position + 1, 2 * position + 2):
                if below < len(entries) and before(entries[below], entries[least]):
                    least = below
            if least == position:
                return
            entries[position], entries[least] = entries[least], entries[position]
            position = least


def before(one: Any, other: Any) -> Any:
    """Compare times; finite ones that are equal go by the id, infinite ones not at all."""
    return one < other if one[0] < float("inf") else False


def literal_order(rows: Any, model: Any) -> Any:
    """Return who sends at each tick; requests come before what leaves, and that before a tick."""
    waiting = [(at_ms, 4 * n, kind, size) for n, (at_ms, kind, size) in enumerate(rows)]
    leaving: list[Any] = []
    order: list[Any] = []
    now_ms = 0
    total = sum(size for _, _, size in rows)
    while len(order) < total:
        now_ms += TICK_MS
        while (waiting and waiting[0][0] <= now_ms) or (leaving and leaving[0][0] <= now_ms):
            if waiting and (not leaving or waiting[0][0] <= leaving[0][0]):
                model.open(*waiting.pop(0)[1:])
            else:
                model.close(leaving.pop(0)[1])
        stream_id = model.send()
        if stream_id is not None:
            order.append(stream_id)
            if not model.left[stream_id]:
                leaving.append((now_ms + RETENTION_MS, stream_id))
    return order


# A script leaves while a document is there that came after it; the next script then goes before
# the document that came in between.
@example(rows=[(0, 1, 1), (300, 0, 1), (520, 0, 25), (560, 1, 2)])
@given(rows=histories("dfifo"))
def test_dfifos_chain_is_that_of_a_list_whose_tails_hand_on_to_who_is_above(rows: Any) -> None:
    assert order_of(rows, "dfifo") == literal_order(rows, Chain())


@given(rows=histories("zeroweight-simple"))
def test_simple_zero_weights_are_a_binary_heap_of_times_that_become_infinite(rows: Any) -> None:
    assert order_of(rows, "zeroweight-simple") == literal_order(rows, Heap())

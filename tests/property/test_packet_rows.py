"""Laws of the table of packets: columns and rows are one thing, packed or not."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.trace import (
    Delivery,
    PacketRows,
    RowRecorder,
    SteadyRecorder,
    Trace,
    packets,
)
from tests.effort import law

NUMBERS = st.integers(0, 2**62)
TIMES = st.none() | NUMBERS
ROWS = st.lists(st.tuples(NUMBERS, TIMES, NUMBERS, NUMBERS, NUMBERS, NUMBERS, TIMES), max_size=8)
LOADS: dict[str, dict[str, Any]] = {
    # Of so many packets that some are packed while others are sent.
    "a constant rate": {"packet_bytes": 100, "rtt_ms": 30},
    "packets that overtake each other": {"packet_bytes": 100, "reorder": "4:1-3", "rtt_ms": 30},
    "QUIC with loss": {"network": "sander-2mbps-100ms-2pct", "scheme": "p+"},
    "TCP with loss": {"network": "sander-2mbps-100ms-2pct", "transport": "tcp", "scheme": "p+"},
}


def check_both_ways(rows: PacketRows, expected: list[Any]) -> None:
    """Check that a table says the same by rows, by columns, by index and by slice."""
    assert list(rows) == expected
    assert [rows[index] for index in range(len(rows))] == expected
    assert list(zip(*rows.columns, strict=True)) == expected
    assert [list(column) for column in rows.columns] == [
        [row[position] for row in expected] for position in range(7)
    ]
    assert list(rows[1:-1]) == expected[1:-1]
    assert list(reversed(rows)) == expected[::-1]
    assert rows == PacketRows.of(expected)
    assert hash(rows) == hash(PacketRows.of(expected))
    came = [row[1] for row in expected]
    assert rows.is_in_order == (
        None not in came and came == sorted(came) and came == [row[6] for row in expected]
    )


@law(100)
@given(ROWS)
def test_a_table_says_the_same_by_rows_and_by_columns(rows: list[Any]) -> None:
    check_both_ways(PacketRows.of(rows), rows)


@law(100)
@given(ROWS, st.sets(st.integers(0, 8)))
def test_rows_are_what_was_taken_down_whenever_they_are_packed(
    rows: list[Any], packed_after: set[int]
) -> None:
    recorder = RowRecorder()
    for number, row in enumerate(rows, 1):
        recorder.pending.append(row[:6])
        recorder.delivered_at_ns.append(None)
        if number in packed_after:
            recorder.pack()
    assert recorder.n_packets == len(rows)
    for number, row in enumerate(rows):
        recorder.delivered_at_ns[number] = row[6]
    check_both_ways(recorder.rows(), rows)


@law(100)
@given(
    st.lists(st.tuples(st.integers(0, 2**60), st.tuples(NUMBERS, NUMBERS, NUMBERS)), max_size=8),
    st.sets(st.integers(0, 8)),
    st.integers(0, 2**60),
)
def test_packets_that_keep_their_distance_are_rows_as_well(
    sent: list[Any], packed_after: set[int], delay_ns: int
) -> None:
    sent.sort()
    times = [at_ns for at_ns, _ in sent]
    recorder = SteadyRecorder(delay_ns, has_distinct_deliveries=len(set(times)) == len(times))
    for number, (at_ns, chunk) in enumerate(sent, 1):
        recorder.sent_at_ns.append(at_ns)
        recorder.chunks.append(chunk)
        if number in packed_after:
            recorder.pack()
    came = [at_ns + delay_ns for at_ns, _ in sent]
    check_both_ways(
        recorder.rows(),
        [(at_ns, came[n], *chunk, n, came[n]) for n, (at_ns, chunk) in enumerate(sent)],
    )


@law(50)
@given(ROWS)
def test_the_digest_is_that_of_plain_tuples(rows: list[Any]) -> None:
    trace = Trace(
        delivery=Delivery.STREAM, requests=(), signals=(), packet_rows=PacketRows.of(rows)
    )
    plain = repr(("stream", (), (), tuple(rows)))
    assert trace.digest() == hashlib.sha256(plain.encode()).hexdigest()


@pytest.mark.parametrize("options", LOADS.values(), ids=LOADS)
def test_a_load_that_is_packed_is_the_same_load(
    options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"scheme": "rr", **options}
    loose = h3sim.simulate("davies-meenan", **options)
    monkeypatch.setattr(packets, "_MAX_PENDING", 20)
    packed = h3sim.simulate("davies-meenan", **options)
    assert "array" in repr(packed.trace.packet_rows.columns.sent_at_ns)
    assert "array" not in repr(loose.trace.packet_rows.columns.sent_at_ns)
    assert packed.trace == loose.trace
    assert packed.trace.digest() == loose.trace.digest()
    assert packed.to_dict(order=True) == loose.to_dict(order=True)

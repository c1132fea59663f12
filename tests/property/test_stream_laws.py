"""Laws of what is left to send of a stream, and of priorities, against sets and dicts."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from h3sim.http.signal_receiver import StreamPriorities
from h3sim.http.stream_sender import OutgoingStream
from h3sim.signals import Eps
from tests.effort import law

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "lose", "ack", "ack", "again", "limit"]),
        st.integers(0, 12),
        st.integers(0, 6),
    ),
    max_size=25,
)


@law(150)
@given(st.integers(0, 12), STEPS)
def test_each_byte_of_a_stream_is_new_or_out_or_acknowledged_or_waits_to_go_again(
    size: int, steps: list[tuple[str, int, int]]
) -> None:
    """A byte that was lost waits once, whatever else is said of it; what arrived is not lost."""
    stream = OutgoingStream(size, 4)
    n_given, limit, has_ended = 0, 4, False
    acked: set[int] = set()
    lost: set[int] = set()
    for what, at, n_bytes in steps:
        span = set(range(at, min(at + n_bytes, n_given)))
        first, length = min(span, default=0), len(span)
        if what == "send" and stream.has_new():
            n_given = stream.next = min(n_given + n_bytes, limit, size)
            has_ended = stream.has_ended = n_given == size
        elif what == "lose" and span:
            stream.lose(first, length)
            lost |= span - acked
        elif what == "ack" and span:
            acked |= span
            assert stream.ack(first, length) == (has_ended and len(acked) == size)
        elif what == "again" and stream.lost:
            begin, took = stream.take_lost(max(1, n_bytes))
            assert begin == min(lost)
            assert 0 < took <= max(1, n_bytes)
            lost -= {*range(begin, begin + took)}
        elif what == "limit":
            limit += n_bytes
            stream.raise_limit(limit)
        assert stream.has_new() == (not has_ended and (n_given < limit or n_given == size))
        assert stream.next_span() == (stream.lost[0] if lost else (n_given, size))
        assert {byte for a, b in stream.lost for byte in range(a, b)} == lost
        assert stream.lost == sorted(stream.lost)
        assert sum(b - a for a, b in stream.lost) == len(lost)
        complete = {*range(n_given)} - acked - lost
        assert {b for a, z in stream.missing(0, n_given) for b in range(a, z)} == complete


def test_the_end_of_an_empty_stream_that_was_lost_goes_again() -> None:
    stream = OutgoingStream(0, 100)
    assert stream.has_new()
    stream.has_ended = True
    stream.lose(0, 0)
    assert stream.has_new()
    stream.has_ended = True
    assert stream.ack(0, 0)
    # Of a stream with bytes an empty frame is nothing to send again.
    full = OutgoingStream(5, 100)
    full.next, full.has_ended = 5, True
    full.lose(5, 0)
    assert not full.has_new()


WORDS = st.lists(
    st.tuples(
        st.sampled_from(["open", "update", "update", "close", "origin"]),
        st.integers(0, 5),
        st.builds(Eps, urgency=st.integers(0, 2), incremental=st.booleans()),
    ),
    max_size=25,
)


@law(150, usual=80)
@given(WORDS)
def test_the_latest_word_of_a_stream_counts_and_two_are_kept_of_those_to_come(
    words: list[tuple[str, int, Eps]],
) -> None:
    """RFC 9218 § 7: kept until the request comes, the latest one; the oldest is dropped first."""
    priorities = StreamPriorities(max_buffered=2)
    now: dict[int, Eps] = {}
    kept: dict[int, Eps] = {}
    closed: set[int] = set()
    for what, number, requested in words:
        stream_id = 4 * number
        found: Any = []
        expected: list[tuple[int, Eps]] = []
        if what == "open" and stream_id not in now and stream_id not in closed:
            now[stream_id] = kept.pop(stream_id, requested)
            found, expected = priorities.open(stream_id, requested), [(stream_id, now[stream_id])]
        elif what == "update":
            found = priorities.update(stream_id, requested)
            if stream_id in now:
                expected = [(stream_id, requested)] if now[stream_id] != requested else []
                now[stream_id] = requested
            elif stream_id not in closed:
                kept.pop(stream_id, None)
                kept[stream_id] = requested
                kept = dict([*kept.items()][-2:])
        elif what == "close" and stream_id in now:
            priorities.on_closed(stream_id)
            del now[stream_id]
            closed.add(stream_id)
        elif what == "origin":
            found = priorities.on_response(stream_id, f"u={requested.urgency}")
            if stream_id in now:
                merged = Eps(urgency=requested.urgency, incremental=now[stream_id].incremental)
                expected = [(stream_id, merged)] if merged != now[stream_id] else []
                now[stream_id] = merged
        assert found == expected
        assert priorities.buffered == tuple(kept)

"""Calls that are made once so many bytes of a stream were given out, worked out by hand."""

from __future__ import annotations

from h3sim.http.send_buffer import ByteThresholds
from h3sim.schedulers import FifoScheduler
from h3sim.signals import H2Priority


def marked(*marks: tuple[int, int, str]) -> tuple[ByteThresholds, list[str]]:
    """Return two streams with (stream, bytes, name) as marks, and the names called so far."""
    called: list[str] = []
    made = ByteThresholds().around(FifoScheduler())
    for stream_id in (0, 4):
        made.open(stream_id, H2Priority())
        made.activate(stream_id)
    for stream_id, n_bytes, name in marks:
        made.watch(stream_id, n_bytes, lambda name=name: called.append(name))  # type: ignore[misc]
    return made, called


def test_marks_are_called_in_the_order_of_their_bytes_and_equal_ones_as_they_were_made() -> None:
    made, called = marked((0, 3000, "c"), (0, 1000, "a"), (0, 3000, "d"), (0, 2000, "b"))
    made.charge(0, 5000)
    assert called == ["a", "b", "c", "d"]


def test_a_mark_is_called_once_by_the_packet_that_reaches_it() -> None:
    made, called = marked((0, 1000, "at 1000"), (0, 1001, "at 1001"))
    made.charge(0, 999)
    assert called == []
    made.charge(0, 1)
    assert called == ["at 1000"]
    made.charge(0, 1)
    made.charge(0, 1400)
    assert called == ["at 1000", "at 1001"]


def test_a_closed_stream_is_forgotten_by_the_scheduler() -> None:
    made, _ = marked()
    assert made.pick() == 0
    made.close(0)
    assert made.pick() == 4


def test_each_stream_has_marks_of_its_own_and_a_closed_one_none() -> None:
    made, called = marked((0, 1000, "first"), (4, 1000, "second"))
    made.charge(4, 1400)
    assert called == ["second"]
    made.close(0)
    made.open(0, H2Priority())
    made.charge(0, 1400)
    assert called == ["second"]


def test_what_a_mark_changes_finds_the_turn_paid_for() -> None:
    class Noting(FifoScheduler):
        n_bytes = 0

        def charge(self, stream_id: int, n_bytes: int) -> None:
            self.n_bytes += n_bytes
            super().charge(stream_id, n_bytes)

    scheduler, seen = Noting(), []
    made = ByteThresholds().around(scheduler)
    made.open(0, H2Priority())
    made.activate(0)
    made.watch(0, 1000, lambda: seen.append(scheduler.n_bytes))
    made.charge(0, 1400)
    assert seen == [1400]

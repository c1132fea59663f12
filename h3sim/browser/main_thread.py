"""The main thread of a page: one computation at a time, and the record of all that was done."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from h3sim.trace import Activity, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["MainThread", "MainThreadRecord", "Task"]


class MainThreadRecord:
    """The activities so far.

    >>> record = MainThreadRecord()
    >>> download = record.begin(Work.DOWNLOAD, 0, 5, after=None)
    >>> record.end(download, 9)
    >>> record.latest([download, None])
    0
    >>> record.activities()[0].ended_at_ns
    9
    """

    def __init__(self) -> None:
        self._rows: list[Activity] = []

    def __len__(self) -> int:
        return len(self._rows)

    def begin(self, work: Work, resource: int | None, now_ns: int, *, after: int | None) -> int:
        """Note that something began; return its index. Without `end`, it ends at once."""
        self._rows.append(Activity(work, resource, now_ns, now_ns, after))
        return len(self._rows) - 1

    def end(self, index: int, now_ns: int) -> None:
        """Note that it ended."""
        self._rows[index] = self._rows[index]._replace(ended_at_ns=now_ns)

    def ended_at_ns(self, index: int) -> int:
        """Return when it ended."""
        return self._rows[index].ended_at_ns

    def latest(self, indices: Iterable[int | None]) -> int | None:
        """Return the one that ended last; of equals, the last one."""
        found: int | None = None
        for index in indices:
            if index is not None and (
                # The later row of equals: it began after the other, and was waited for last.
                found is None or self.ended_at_ns(index) >= self.ended_at_ns(found)
            ):
                found = index
        return found

    def activities(self) -> tuple[Activity, ...]:
        """Return them as they began."""
        return tuple(self._rows)


class Task(NamedTuple):
    """A computation that is ready: what it is, what let it begin, and what follows from it."""

    work: Work
    resource: int
    cost_ns: int
    after: int | None
    ready_at_ns: int
    when_done: Callable[[int, int], None]
    """Called with its index among the activities, and the time."""


class MainThread:
    """Runs tasks one at a time, in the order in which they became ready.

    >>> record, done = MainThreadRecord(), []
    >>> thread = MainThread(record)
    >>> for resource in (1, 2):
    ...     note = lambda index, now_ns: done.append(now_ns)
    ...     thread.add(Task(Work.EXECUTE, resource, 10, None, 0, note))
    >>> thread.start_next(0), thread.busy_until_ns, thread.finish(10)
    (True, 10, True)
    >>> thread.start_next(10), thread.finish(20), done
    (True, True, [10, 20])
    """

    def __init__(self, record: MainThreadRecord) -> None:
        self._record = record
        self._queue: deque[Task] = deque()
        self._running: tuple[Task, int] | None = None
        self._last: int | None = None
        self.busy_until_ns = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs."""
        return self._running is None

    @property
    def has_tasks(self) -> bool:
        """Whether something runs or is ready to."""
        return self._running is not None or bool(self._queue)

    def add(self, task: Task) -> None:
        """Queue a task, to run when its turn comes."""
        self._queue.append(task)

    def start_next(self, now_ns: int) -> bool:
        """Begin the next task, if the thread is idle and there is one; return whether it did."""
        if self._running is not None or not self._queue:
            return False
        self.start(self._queue.popleft(), now_ns)
        return True

    def start(self, task: Task, now_ns: int) -> None:
        """Begin this task now; the thread must be idle."""
        # What was ready before now has waited for the thread.
        after = (
            task.after
            if task.ready_at_ns == now_ns
            else self._record.latest((task.after, self._last))
        )
        index = self._record.begin(task.work, task.resource, now_ns, after=after)
        self.busy_until_ns = now_ns + task.cost_ns
        self._running = task, index

    def finish(self, now_ns: int) -> bool:
        """End what is over by now; return whether something was."""
        if self._running is None or self.busy_until_ns > now_ns:
            return False
        (task, index), self._running = self._running, None
        self._record.end(index, now_ns)
        self._last = index
        task.when_done(index, now_ns)
        return True

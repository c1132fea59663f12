"""The seam of studies: what a driver runs, how each cell is known again, and what a worker does.

Rows travel and are stored as JSON text, so that they are the same bytes whoever made them.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from h3sim.errors import H3SimError, Terminated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

__all__ = ["Cells", "Done", "StudyKeys", "StudyWork", "run_batch"]

_KEPT = 4
"""So many studies a worker remembers."""
_known: OrderedDict[str, StudyWork] = OrderedDict()


class StudyKeys(Protocol):
    """By what cells are known again, in this study and in others."""

    def key(self, index: int) -> bytes:
        """Return the key of the cell at *index*: equal for cells that come to the same."""

    def token(self) -> str:
        """Return what tells this study from others: all that its cells are made of, in order."""


class Cells(Protocol):
    """What a driver runs: cells in an order, each of them independent of the others."""

    @property
    def name(self) -> str:
        """What lists call the study."""

    @property
    def model(self) -> str:
        """What h3sim runs the cells, for lists and for forgetting those of others."""

    @property
    def has_resources(self) -> bool:
        """Whether rows of its parts (the resources of a load) are kept of each cell as well."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns in which the cells differ, slowest first."""

    def __len__(self) -> int: ...

    def keys(self) -> StudyKeys:
        """Return by what cells are known again."""

    def work(self) -> StudyWork:
        """Return what a worker needs to know."""

    @property
    def figures(self) -> Collection[str]:
        """The columns of figures that each row must have."""

    def columns(self, index: int) -> Mapping[str, Any]:
        """Return what the row of the cell at *index* must have in some of its columns."""

    def told(self, index: int) -> str:
        """Return what an error calls the cell at *index*."""


class Done(NamedTuple):
    """What came of a cell: its row and, if asked for, its resources, as JSON; or an error."""

    cell: int
    row: str | None
    resources: str | None
    error: str | None
    seconds: float


class TimedOutError(H3SimError):
    """A cell took longer than it may."""


@dataclass(kw_only=True)
class StudyWork(ABC):
    """All that a worker needs to know of a study, once."""

    timeout_s: float | None = None

    @abstractmethod
    def row(self, index: int) -> tuple[str, str | None]:
        """Return the row of the cell at *index*, and its resources if they are kept, as JSON."""

    def run(self, index: int) -> Done:
        """Return what comes of the cell at *index*; what goes wrong in it is part of that."""
        began = time.perf_counter()
        row = resources = error = None
        try:
            with _at_most(self.timeout_s):
                row, resources = self.row(index)
        # A request to end is no failure of the cell: kept as one, it would not run again.
        except Terminated:
            raise
        except (Exception, SystemExit) as caught:  # noqa: BLE001 - plug-ins may raise anything
            error = f"{type(caught).__name__}: {caught}"
        return Done(index, row, resources, error, time.perf_counter() - began)


def run_batch(token: str, indices: Sequence[int], payload: bytes | None) -> list[Done] | None:
    """Return what comes of the cells at *indices* of the study that goes by *token*.

    A worker that does not know the study returns None; it learns it from *payload*, once.
    """
    work = _known.get(token)
    if work is None:
        if payload is None:
            return None
        work = pickle.loads(payload)  # noqa: S301 - from our own driver
        _known[token] = work
        # A pool may serve many studies: their pages would fill the worker's memory.
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return [work.run(index) for index in indices]


@contextlib.contextmanager
def _at_most(seconds: float | None) -> Iterator[None]:
    """Stop what runs in here after so many *seconds*, where the system can: in a main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not is_main or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise TimedOutError(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        # The timer before the handler: an alarm in between would meet the old one.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

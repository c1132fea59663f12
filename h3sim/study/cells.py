"""What a worker does: loads the cells of a study that it is asked for, and returns their rows.

Rows travel and are stored as JSON text, so that they are the same bytes whoever made them.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import signal
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import engine
from h3sim._version import __version__
from h3sim.errors import H3SimError, NothingToMeasureError
from h3sim.study.config import LoadConfig
from h3sim.study.run import engine_arguments, with_retransmission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from h3sim.results import Load, Which
    from h3sim.study.design import Cell, Design

__all__ = ["Done", "Work", "row_of", "run_batch"]

_KEPT = 4
"""So many studies a worker remembers."""
_known: OrderedDict[str, Work] = OrderedDict()


class Done(NamedTuple):
    """What came of a cell: its row and, if asked for, its resources, as JSON; or an error."""

    cell: int
    row: str | None
    resources: str | None
    error: str | None
    seconds: float


class TimedOutError(H3SimError):
    """A load took longer than it may."""


@dataclass(kw_only=True)
class Work:
    """All that a worker needs to know of a study, once."""

    design: Design
    has_resources: bool = False
    timeout_s: float | None = None
    stand_in: Callable[[Cell], dict[str, Any]] | None = None
    """Takes the place of loading, for tests of the machinery."""
    _resolved: tuple[int, dict[str, Any] | Exception] | None = field(default=None, repr=False)

    def run(self, index: int) -> Done:
        """Return what comes of the cell at *index*; what goes wrong in it is part of that."""
        began = time.perf_counter()
        row = resources = error = None
        try:
            with _at_most(self.timeout_s):
                row, resources = self._row(index)
        except (Exception, SystemExit) as caught:  # noqa: BLE001 - plug-ins may raise anything
            error = f"{type(caught).__name__}: {caught}"
        return Done(index, row, resources, error, time.perf_counter() - began)

    def _row(self, index: int) -> tuple[str, str | None]:
        if self.stand_in is not None:
            return json.dumps(self.stand_in(self.design[index])), None
        page, setting, scheme, seed = self.design.places(index)
        arguments = self._arguments(setting)
        load = engine.simulate(
            self.design.pages[page],
            scheme=with_retransmission(self.design.schemes[scheme], arguments["setting"]),
            seed=self.design.seeds[seed],
            **arguments["engine"],
        )
        row = row_of(load) | {"network": arguments["network"]}
        rows = [timing._asdict() for timing in load.timings] if self.has_resources else None
        text = None if rows is None else json.dumps(rows, allow_nan=False)
        return json.dumps(row, allow_nan=False), text

    def _arguments(self, place: int) -> dict[str, Any]:
        """Return how the engine is called with the setting at *place*; neighbours share one."""
        if self._resolved is None or self._resolved[0] != place:
            try:
                setting = LoadConfig(**self.design.settings[place])
                named = setting.network
                found: dict[str, Any] | Exception = {
                    "setting": setting,
                    "engine": engine_arguments(setting),
                    "network": getattr(named, "name", str(named)),
                }
            except Exception as caught:  # noqa: BLE001 - told of each cell that has it
                found = caught
            self._resolved = (place, found)
        known = self._resolved[1]
        if isinstance(known, Exception):
            raise known
        return known


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
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return [work.run(index) for index in indices]


def row_of(load: Load) -> dict[str, Any]:
    """Return the row of *load*: what it was run with, column by column, and its figures."""
    both: tuple[Which, ...] = ("all", "atf")
    return {
        "page": load.page.name,
        "page_digest": load.page.digest,
        "scheme": load.scheme.name,
        **load.configuration,
        "version": __version__,
        **{f"byte_index_{which}_ms": load.byte_index_or_none(which) for which in both},
        **{
            f"byte_index_exact_{which}_ms": load.byte_index_or_none(which, sample_ms=None)
            for which in both
        },
        **{f"object_index_{which}_ms": _object_index(load, which) for which in both},
        **{name: getattr(load, name) for name in _MILESTONES},
        **{f"hol_{name}": value for name, value in load.hol._asdict().items() if name != _STACKS},
        **{f"packets_{name}": value for name, value in load.packets._asdict().items()},
    }


_STACKS = "stack_histogram"
_MILESTONES = (
    *("page_load_ms", "first_paint_ms", "largest_paint_ms", "speed_index_ms"),
    *("dom_content_loaded_ms", "load_event_ms"),
)


def _object_index(load: Load, which: Which) -> float | None:
    try:
        return load.object_index(which)
    except NothingToMeasureError:
        return None


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
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

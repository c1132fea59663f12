"""What each call of a scheduler costs as streams become many.

Bytecode instructions and comparisons of ids are counted, no time is measured: the same on every
machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from h3sim.conformance.contract_checks import CountedId, operations_of
from h3sim.schedulers import StrictScheduler
from h3sim.schemes import SchedulerKind
from h3sim.signals import BucketPriority, Eps, H2Priority, Rank, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal

FEW, MANY = 500, 4000
"""A logarithm grows by a third from one to the other, a look at all streams eightfold."""
MOST = 2

SIGNALS: dict[SchedulerKind, Signal] = {
    SchedulerKind.BUCKETS: BucketPriority(bucket=31, level=1),
    SchedulerKind.EPS: Eps(incremental=True),
    SchedulerKind.RANKS: Rank(value=1),
    SchedulerKind.STRICT: StrictPriority(),
}
CALLS: dict[str, Callable[[Scheduler, int, Signal], object]] = {
    "open": lambda scheduler, n, signal: scheduler.open(CountedId(4 * n), signal),
    "update": lambda scheduler, n, signal: scheduler.update(CountedId(4 * n - 4), signal),
    "activate": lambda scheduler, n, signal: scheduler.activate(CountedId(4 * n)),
    "deactivate": lambda scheduler, n, signal: scheduler.deactivate(CountedId(2 * n)),
    "close": lambda scheduler, n, signal: scheduler.close(CountedId(2 * n)),
    "pick": lambda scheduler, n, signal: scheduler.pick(),
    "charge": lambda scheduler, n, signal: scheduler.charge(scheduler.pick() or 0, 1400),
}


def costs(mechanism: SchedulerKind, n_streams: int) -> dict[str, int]:
    """Return what each call costs among so many active streams, in the order of `CALLS`."""
    scheduler = mechanism.make(turn_bytes=1400)
    signal = SIGNALS.get(mechanism, H2Priority())
    for number in range(n_streams):
        scheduler.open(CountedId(4 * number), signal)
        scheduler.activate(CountedId(4 * number))
    return {
        name: operations_of(lambda call=call: call(scheduler, n_streams, signal))  # type: ignore[misc]
        for name, call in CALLS.items()
    }


# nginx walks through its queue of frames, too, wherever the tree has changed.
@pytest.mark.parametrize(
    "mechanism", [each for each in SchedulerKind if each is not SchedulerKind.NGINX_QUEUE]
)
def test_no_call_looks_at_all_streams(mechanism: SchedulerKind) -> None:
    few, many = costs(mechanism, FEW), costs(mechanism, MANY)
    assert {name: n for name, n in many.items() if n > MOST * few[name] + 20} == {}


def test_a_placeholder_that_goes_costs_what_is_below_it_and_no_more() -> None:
    """Swett's: whoever stands elsewhere is not looked at."""

    def cost_of_closing(n_elsewhere: int) -> int:
        scheduler = StrictScheduler()
        scheduler.open(-1, StrictPriority(strict=9))
        scheduler.open(CountedId(0), StrictPriority(depends_on=-1))
        for number in range(1, n_elsewhere):
            scheduler.open(CountedId(4 * number), StrictPriority())
        return operations_of(lambda: scheduler.close(-1))

    assert cost_of_closing(MANY) <= MOST * cost_of_closing(FEW)

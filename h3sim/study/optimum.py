"""The best schedule there is for a small page: an exact one, beside the bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from h3sim.errors import NothingToMeasureError, needing_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.metrics.parts import Part

__all__ = ["Optimum", "least_total"]

_NOTHING = 1e-6
"""The solver is exact to about as much."""


@dataclass(frozen=True)
class Optimum:
    """The least sum of weights times ends, and which part each tick goes to in a schedule of it.

    `order` begins with tick 1; None stands for a tick at which nothing can be sent.
    """

    total: int
    order: tuple[int | None, ...]


def least_total(parts: Sequence[Part], *, limit_s: float = 60.0) -> Optimum:
    """Return the least sum, over *parts*, of weight times the tick of the last packet.

    It is a mixed integer program over instants (Sousa and Wolsey 1992), solved by HiGHS: x says
    how much of a part is sent at a tick, y (0 or 1) whether all of it has been. It grows with parts
    times ticks, and takes seconds for ten responses of a few packets.

    Raises:
        MissingExtraError: if scipy is not installed.
        NothingToMeasureError: if no optimum is proven within *limit_s* seconds.

    >>> from h3sim.metrics.parts import Part
    >>> large = Part(after=None, lag_ticks=1, first_tick=1, n_packets=3, weight=3)
    >>> small = Part(after=None, lag_ticks=1, first_tick=1, n_packets=1, weight=2)
    >>> least_total([large, small])
    Optimum(total=14, order=(1, 0, 0, 0))
    """
    program = _Program(parts)
    solution = program.solve(limit_s)
    return Optimum(program.total(solution), program.order(solution))


class _Program:
    """The program: variables x[part, tick] stand first, then y[part, tick]; ticks begin with 1."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._n_ticks = _horizon(parts)
        self._n = len(parts) * self._n_ticks

    def solve(self, limit_s: float) -> Any:
        with needing_extra("scipy", "study"):
            from scipy import optimize
        import numpy as np

        cost = np.zeros(2 * self._n)
        for index, part in enumerate(self._parts):
            # A part that ends at tick C is not yet sent at C of the instants 0, 1, ..., C - 1.
            for tick in self._ticks():
                cost[self._y(index, tick)] = -part.weight
        found = optimize.milp(
            cost,
            # Packets are whole, so x may be declared whole as well. With x continuous HiGHS solves
            # for it again once y is known, and tells that on stdout whatever it is asked to log.
            integrality=np.ones_like(cost),
            bounds=optimize.Bounds(0, self._upper()),
            constraints=self._constraints(),
            options={"time_limit": limit_s, "mip_rel_gap": 0.0},  # HiGHS is content with 1e-4 else
        )
        if found.status != 0:
            message = f"no optimum of {len(self._parts)} parts was proven: {found.message}"
            raise NothingToMeasureError(message)
        return found.x

    def total(self, solution: Any) -> int:
        """Return the sum of weights times ends."""
        # From whole ticks: the solver's own objective is a float, and off by its tolerance.
        return sum(part.weight * self._end(index, solution) for index, part in self._each())

    def order(self, solution: Any) -> tuple[int | None, ...]:
        """Return a schedule in which each part ends no later: the nearest end goes first."""
        ends = [self._end(index, solution) for index, _ in self._each()]
        left = [part.n_packets for part in self._parts]
        sent_at: dict[int, int] = {}
        order: list[int | None] = []
        while any(left):
            tick = len(order) + 1
            ready = [i for i, _ in self._each() if left[i] and self._may_be_sent(i, tick, sent_at)]
            # If any order keeps all these ends, the one by nearest end does (Horn 1974): the solver
            # may have put packets anywhere before them, this fills the ticks from the front.
            chosen = min(ready, key=lambda i: (ends[i], i), default=None)
            order.append(chosen)
            if chosen is not None:
                left[chosen] -= 1
                if not left[chosen]:
                    sent_at[chosen] = tick
        return tuple(order)

    def _each(self) -> enumerate[Part]:
        return enumerate(self._parts)

    def _may_be_sent(self, index: int, tick: int, sent_at: dict[int, int]) -> bool:
        part = self._parts[index]
        if part.after is None:
            return tick >= part.first_tick
        return part.after in sent_at and tick >= sent_at[part.after] + part.lag_ticks

    def _end(self, index: int, solution: Any) -> int:
        """Return the tick of the last packet of a part; y is 1 only where that is of use."""
        return max(tick for tick in self._ticks() if solution[self._x(index, tick)] > _NOTHING)

    def _ticks(self) -> range:
        return range(1, self._n_ticks + 1)

    def _x(self, index: int, tick: int) -> int:
        return index * self._n_ticks + tick - 1

    def _y(self, index: int, tick: int) -> int:
        return self._n + self._x(index, tick)

    def _upper(self) -> Any:
        import numpy as np

        upper = np.ones(2 * self._n)
        for index, part in self._each():
            for tick in range(1, min(part.first_tick, self._n_ticks + 1)):
                upper[self._x(index, tick)] = upper[self._y(index, tick)] = 0
        return upper

    def _constraints(self) -> Any:
        """Return the rows: a packet a tick, all packets of each, and nothing before its time."""
        import numpy as np
        from scipy import optimize, sparse

        ticks = self._ticks()
        rows: list[tuple[dict[int, float], float, float]] = [
            ({self._x(i, tick): 1 for i, _ in self._each()}, 0, 1) for tick in ticks
        ]
        for index, part in self._each():
            n = part.n_packets
            rows.append(({self._x(index, tick): 1 for tick in ticks}, n, n))
            sent: dict[int, float] = {}
            for tick in ticks:
                sent[self._x(index, tick)] = -1
                # A copy, as *sent* grows on: all is sent once n packets have been by this tick.
                rows.append(({**sent, self._y(index, tick): n}, -np.inf, 0))
                if part.after is not None:
                    rows.append(self._behind(index, part, tick))
        matrix = sparse.lil_matrix((len(rows), 2 * self._n))
        for number, (row, _, _) in enumerate(rows):
            for column, value in row.items():
                matrix[number, column] = value
        return optimize.LinearConstraint(
            matrix.tocsr(), [low for _, low, _ in rows], [high for _, _, high in rows]
        )

    def _behind(self, index: int, part: Part, tick: int) -> tuple[dict[int, float], float, float]:
        """Return the row by which a part is sent only *lag_ticks* after what it waits for."""
        row: dict[int, float] = {self._x(index, tick): 1}
        if part.after is not None and tick > part.lag_ticks:
            row[self._y(part.after, tick - part.lag_ticks)] = -1
        return row, -float("inf"), 0


def _horizon(parts: Sequence[Part]) -> int:
    """Return a tick by which all is sent if no tick is left unused that could be used."""
    latest = 0
    for part in parts:
        latest = max(latest, part.first_tick + part.n_packets - 1)
    # `first_tick` counts the lags of what it waits for. So on a path that is never left idle a part
    # ends later than that only by ticks in which others are sent, and there are no more than all
    # packets.
    return latest + sum(part.n_packets for part in parts)

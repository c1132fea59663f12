"""The comparison in few lines: by kind of link and by stack."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from tabulate import tabulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from validation.comparing import Compared

__all__ = ["STACKS", "deviations", "summary"]

STACKS = {
    "h2o-q-reno": "quicly",
    "aioq-reno": "aioquic",
    "h2-h2o": "HTTP/2, h2o",
    "h2-nghttpd": "HTTP/2, nghttpd",
}
_HEADERS = ("settings", "stack", "how many", "total", "mean", "to fifo", "HOL", "HOL rr/fifo")
_FACTOR = 2


def summary(medians: Sequence[Compared], replayed: Sequence[Compared]) -> str:
    """Return a table of deviations, each the median and the largest over settings.

    total and mean in per cent; to fifo and HOL rr/fifo as differences of ratios; HOL as in how many
    settings the simulated bytes are within a factor of 2 of the measured ones, of those with some.
    """
    groups: dict[str, list[Compared]] = {
        "no drop": [row for row in medians if row.setting.queue_bytes is not None],
        "one BDP": [r for r in medians if r.setting.queue_bytes is None and not r.setting.loss],
        "loss, 30 seeds": [row for row in medians if row.setting.loss],
        "loss, replayed": list(replayed),
    }
    lines = []
    for name, rows in groups.items():
        for label, stack in STACKS.items():
            own = [row for row in rows if row.setting.label == label]
            if own:
                lines.append((name, stack, len(own), *_cells(own)))
    return tabulate(lines, _HEADERS, tablefmt="github", disable_numparse=True)


def deviations(rows: Sequence[Compared]) -> tuple[str, str]:
    """Return the median and the largest deviation of total time, and of mean completion."""
    return (
        _both((abs(row.total - 1) for row in rows), _percent),
        _both((abs(row.mean - 1) for row in rows), _percent),
    )


def _cells(rows: Sequence[Compared]) -> tuple[str, ...]:
    blocked = [row.hol_bytes for row in rows if row.hol_bytes[1]]
    near = sum(
        measured <= _FACTOR * simulated <= _FACTOR**2 * measured for simulated, measured in blocked
    )
    return (
        *deviations(rows),
        _both((abs(a - b) for a, b in _known(row.mean_to_fifo for row in rows)), _plain),
        f"{near} of {len(blocked)}" if blocked else "",
        _both(
            (
                abs(a - b)
                for a, b in _known(r.hol_to_fifo for r in rows if r.setting.scheme == "rr")
            ),
            _plain,
        ),
    )


def _known(pairs: Iterable[tuple[float, float] | None]) -> list[tuple[float, float]]:
    return [pair for pair in pairs if pair is not None]


def _both(values: Iterable[float], shown: Callable[[float], str]) -> str:
    """Return the median and the largest of *values*."""
    known = list(values)
    return f"{shown(statistics.median(known))}, {shown(max(known))}" if known else ""


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _plain(value: float) -> str:
    return f"{value:.2f}"

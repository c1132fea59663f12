"""Comparison of mechanisms with chance as the explanation of the order of streams in a log.

Most picks of a log repeat the stream of the packet before, and any mechanism with a long enough
quantum explains these for nothing. A mechanism is therefore compared with two servers that have
none:

- one repeats the last stream with a fixed probability, and else picks any other that is ready;
- one changes the stream just where the log does, and then picks any that is ready.

The shortest description of the log counts (minimum description length, Rissanen 1978): minus the
logarithm of its likelihood, and half the logarithm of the number of picks for each parameter that
was fitted (Schwarz 1978). The mechanism gets a mixture: its pick is sent with the probability
`1 - e`, and the pick of such a server with `e`, which is fitted; so may be its quantum. Which of
the mechanisms that were tried it is, costs the logarithm of their number.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.identification.send_order import StepKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.identification.send_order import SendOrder

_SHARES_OF_CHANCE = (*(0.5**power for power in range(1, 11)), 0.65, 0.75, 0.85, 0.95)
"""The values of `e` that are tried, besides 1."""


class ContestedPick(NamedTuple):
    """A choice of a server between streams with new bytes."""

    choice: int
    """Its index among all choices of the order."""
    is_change: bool
    """True if it is of another stream than the packet before."""
    can_repeat: bool
    """True if the stream of the packet before had more to send."""
    n_others: int
    """The number of other streams that were ready, the one that was sent included."""


def contested_picks(order: SendOrder) -> list[ContestedPick]:
    """Return the choices of an order; those of bytes that are sent again are left out."""
    found: list[ContestedPick] = []
    active: set[int] = set()
    ready: set[int] = set()
    last: int | None = None
    n_choices = 0
    for step in order.steps:
        stream_id = step.stream_id
        match step.kind:
            case StepKind.ACTIVATE:
                active.add(stream_id)
            case StepKind.DEACTIVATE:
                active.discard(stream_id)
            case StepKind.READY:
                ready.add(stream_id)
            case StepKind.SENT:
                if step.is_choice:
                    n_others = len(((active & ready) | {stream_id}) - {last})
                    is_change = stream_id != last
                    found.append(ContestedPick(n_choices, is_change, last in active, n_others))
                last = stream_id
            case StepKind.RESENT:
                last = stream_id
        n_choices += step.is_choice
    return found


def share_saved(
    picks: Sequence[ContestedPick], hits: Sequence[bool], *, n_tried: int = 1, n_fitted: int = 0
) -> float:
    """Return the share of the code length of chance that a mechanism saves, in the worse case.

    That is McFadden's adjusted share (1974): 1 if the mechanism costs nothing, 0 or less if chance
    describes the log as well. *n_tried* mechanisms were tried, and this one has *n_fitted*
    parameters that were fitted besides `e`. A long quantum explains all picks that repeat a stream,
    and saves nothing:

    >>> picks = [ContestedPick(n, n % 9 == 0, True, 4) for n in range(90)]
    >>> share_saved(picks, [not pick.is_change for pick in picks], n_fitted=1) < 0
    True
    >>> round(share_saved(picks, [True] * 90), 2)
    0.92
    """
    n_could = sum(pick.can_repeat for pick in picks)
    n_repeats = sum(pick.can_repeat and not pick.is_change for pick in picks)
    # Krichevsky and Trofimov's estimate, which is never 0 or 1.
    repeats = (n_repeats + 0.5) / (n_could + 1)
    over_repeating = [(hits[pick.choice], _chance(pick, repeats)) for pick in picks]
    over_changes = [(hits[pick.choice], 1 / pick.n_others) for pick in picks if pick.is_change]
    return min(
        _share(outcomes, n_tried=n_tried, n_parameters=1 + n_fitted)
        for outcomes in (over_repeating, over_changes)
    )


def _chance(pick: ContestedPick, repeats: float) -> float:
    """Return how likely a pick is if the last stream is repeated with that probability."""
    if not pick.can_repeat:
        return 1 / pick.n_others
    return (1 - repeats) / pick.n_others if pick.is_change else repeats


def _share(outcomes: Sequence[tuple[bool, float]], *, n_tried: int, n_parameters: int) -> float:
    """Return the share of the code length of chance that the best mixture saves."""
    counts = Counter(outcomes)
    by_chance = -sum(n * math.log(chance) for (_, chance), n in counts.items())
    if by_chance <= 0:
        return 0.0
    gain = max(
        sum(n * math.log(hit * (1 - share) / chance + share) for (hit, chance), n in counts.items())
        for share in _SHARES_OF_CHANCE
    )
    cost = math.log(n_tried) + n_parameters * math.log(len(outcomes)) / 2
    return (gain - cost) / by_chance

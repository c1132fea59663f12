"""Comparison of mechanisms with chance as the explanation of the order of streams in a log.

Most picks of a log repeat the stream of the packet before, and any mechanism with a long enough
quantum explains these for nothing. A mechanism is therefore compared with two servers that have
none:

- one repeats the last stream with a fixed probability, and else picks any other that is ready;
- one changes the stream just where the log does, and then picks any that is ready.

The mechanism gets the likelihood of a mixture: its pick is sent with the probability `1 - e`, and
the pick of such a server with `e`. With `e = 1` it is that server, so the gain is never negative;
it must exceed the cost of the parameters that were fitted.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.identification.send_order import StepKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


class ChanceGains(NamedTuple):
    """Gains in log-likelihood of a mechanism over the two servers that have none, in nats."""

    over_repeating: float
    over_random_changes: float


def gains_over_chance(picks: Sequence[ContestedPick], hits: Sequence[bool]) -> ChanceGains:
    """Return the gains of a mechanism that explains the *hits* among all choices of an order.

    A mechanism with a long quantum explains all picks that repeat a stream, and gains nothing:

    >>> picks = [ContestedPick(n, n % 9 == 0, True, 4) for n in range(90)]
    >>> [round(gain) for gain in gains_over_chance(picks, [not pick.is_change for pick in picks])]
    [0, 0]
    >>> [round(gain) for gain in gains_over_chance(picks, [True] * 90)]
    [45, 14]
    """
    n_could = sum(pick.can_repeat for pick in picks)
    n_repeats = sum(pick.can_repeat and not pick.is_change for pick in picks)
    # Krichevsky and Trofimov's estimate, which is never 0 or 1.
    repeats = (n_repeats + 0.5) / (n_could + 1)
    changes = [pick for pick in picks if pick.is_change]
    return ChanceGains(
        over_repeating=_gain((hits[pick.choice], _chance(pick, repeats)) for pick in picks),
        over_random_changes=_gain((hits[pick.choice], 1 / pick.n_others) for pick in changes),
    )


def _chance(pick: ContestedPick, repeats: float) -> float:
    """Return how likely a pick is if the last stream is repeated with that probability."""
    if not pick.can_repeat:
        return 1 / pick.n_others
    return (1 - repeats) / pick.n_others if pick.is_change else repeats


def _gain(outcomes: Iterable[tuple[bool, float]]) -> float:
    """Return by how much the best mixture is more likely than chance alone, in nats."""
    counts = Counter(outcomes)
    gains = (
        sum(n * math.log(hit * (1 - share) / chance + share) for (hit, chance), n in counts.items())
        for share in _SHARES_OF_CHANCE
    )
    return max(0.0, *gains)

"""What a scheduler may claim beyond the contract: one value for each claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from h3sim.conformance.laws import Law

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from h3sim.schedulers import Scheduler

__all__ = [
    "Claim",
    "FreesMemory",
    "NoStarvation",
    "SameAs",
    "StrictOrder",
    "WeightedShares",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is claimed; *law* is what it is held to."""

    law: ClassVar[Law]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictOrder(Claim):
    """No stream is picked while one of a lower rank is active.

    *rank(stream_id, signal)* is what streams are compared by, anything that has an order; None
    leaves a stream out. *signals* are those that the order is claimed for, if not all. A turn of
    several packets, *packets_per_turn*, need not be broken off for a stream of a lower rank.
    *follows_updates* says whether the rank is that of the last signal, or of the first.

    >>> StrictOrder(rank=lambda stream_id, signal: stream_id).law
    <Law.STRICT_ORDER: 'strict-order'>
    """

    law: ClassVar[Law] = Law.STRICT_ORDER
    rank: Callable[[int, Any], Any]
    signals: SearchStrategy[Any] | None = None
    packets_per_turn: int = 1
    follows_updates: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedShares(Claim):
    """Streams that are active together have turns by *weight(signal)*, a whole number.

    Over any time in which i and j are both active, their n_i and n_j packets of equal size keep

        |n_i / w_i - n_j / w_j| <= packets_per_turn * (1 / w_i + 1 / w_j)

    as self-clocked fair queueing does (Golestani 1994). With *tolerance*, 0.05 say, that share of
    what each has had comes on top, for schedulers that round. *signals* are those among which
    shares are claimed: siblings in a tree, incremental streams of one urgency.

    >>> WeightedShares(weight=lambda signal: 1).packets_per_turn
    1
    """

    law: ClassVar[Law] = Law.WEIGHTED_SHARES
    weight: Callable[[Any], int]
    signals: SearchStrategy[Any] | None = None
    packets_per_turn: int = 1
    tolerance: float = 0.0
    follows_updates: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStarvation(Claim):
    """An active stream has its turn within *rounds* turns for each stream that is active.

    Round robin keeps 2: those who join in a round may have a turn before it. Fair queueing needs
    about twice the ratio of the weights. *signals* are those that it is claimed for, if not all.
    """

    law: ClassVar[Law] = Law.NO_STARVATION
    rounds: int
    signals: SearchStrategy[Any] | None = None
    packets_per_turn: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SameAs(Claim):
    """After every event the pick is that of the scheduler that *reference* makes."""

    law: ClassVar[Law] = Law.SAME_AS
    reference: Callable[[], Scheduler]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreesMemory(Claim):
    """What is closed is forgotten, but for the last *keeps* streams.

    Every scheduler is held to 0; one that remembers closed streams for a while says how many.
    """

    law: ClassVar[Law] = Law.FREES_MEMORY
    keeps: int = 0

"""Loss: which of the packets that a bottleneck let through never arrive.

A loss process is asked once per packet and takes exactly one random number for it, whatever the
packet is. So the fate of the n-th packet depends on n and the seed, and on nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from h3sim.transport.link_profile import LinkProfile

__all__ = ["GilbertElliottLoss", "ListedLoss", "Loss", "RandomLoss", "make_loss"]


class Loss(Protocol):
    """Decides packet by packet."""

    def is_lost(self) -> bool:
        """Return whether the next packet is lost."""


class RandomLoss:
    """Each packet is lost with the same probability, whatever became of the others."""

    __slots__ = ("draw", "probability")

    def __init__(self, probability: float, source: random.Random) -> None:
        self.probability = probability
        self.draw = source.random
        """The number below which the probability has to be for a packet to arrive."""

    def is_lost(self) -> bool:
        """Return whether the next packet is lost."""
        return self.draw() < self.probability


class GilbertElliottLoss:
    """Losses come in bursts, of geometric length with mean *burst*; *loss* of all are lost.

    The chain is good or bad; all that is sent while it is bad is lost, and nothing else. As in
    Linux netem (`loss gemodel p r`), the state that a packet meets decides about it, then the
    state may change, and the chain starts good. With stationary loss L = p / (p + r) and mean
    burst B = 1 / r: r = 1 / B, p = L * r / (1 - L).

    >>> import random
    >>> chain = GilbertElliottLoss(loss=0.02, burst=5, source=random.Random(0))
    >>> round(100 * chain.to_bad, 7), chain.to_good
    (0.4081633, 0.2)
    """

    __slots__ = ("_draw", "_is_bad", "to_bad", "to_good")

    def __init__(self, *, loss: float, burst: float, source: random.Random) -> None:
        self.to_good = 1 / burst
        self.to_bad = loss * self.to_good / (1 - loss)
        self._draw = source.random
        self._is_bad = False

    def is_lost(self) -> bool:
        """Return whether the next packet is lost."""
        was_bad = self._is_bad
        if self._draw() < (self.to_good if was_bad else self.to_bad):
            self._is_bad = not was_bad
        return was_bad


class ListedLoss:
    """The packets of a list are lost, counted from 0 as they come here.

    >>> loss = ListedLoss([0, 2])
    >>> [loss.is_lost() for _ in range(4)]
    [True, False, True, False]
    """

    __slots__ = ("_lost", "_next")

    def __init__(self, numbers: Iterable[int]) -> None:
        self._lost = frozenset(numbers)
        self._next = 0

    def is_lost(self) -> bool:
        """Return whether the next packet is lost."""
        number = self._next
        self._next = number + 1
        return number in self._lost


def make_loss(profile: LinkProfile, streams: Callable[[str], random.Random]) -> Loss | None:
    """Return the loss process of *profile*, or None if nothing is ever lost."""
    if profile.loss_list:
        return ListedLoss(profile.loss_list)
    if profile.loss == 0:
        return None
    if profile.loss_burst is None:
        return RandomLoss(profile.loss, streams("loss"))
    return GilbertElliottLoss(loss=profile.loss, burst=profile.loss_burst, source=streams("loss"))

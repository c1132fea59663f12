"""Jitter as Marx 2019 § 5.2 made it: every nth packet is held while others overtake it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from h3sim.transport.network import Jitter

__all__ = ["HoldEveryNth"]


class HoldEveryNth:
    """Says for how long each data packet is held.

    A packet that k others shall overtake is held for k and a half send intervals: it arrives
    between the k-th packet behind it and the next. So it arrives even if nothing is sent any more,
    as in the original, whose timer ran for 20 to 25 ms at an interval of 10 ms.

    >>> import random
    >>> from h3sim.transport.network import Jitter
    >>> jitter = Jitter(every=4, min_overtaken=2, max_overtaken=2)
    >>> hold = HoldEveryNth(jitter, interval_ns=10, source=random.Random(0))
    >>> [hold.next_hold_ns() for _ in range(8)]
    [0, 0, 0, 25, 0, 0, 0, 25]
    """

    def __init__(self, jitter: Jitter, *, interval_ns: int, source: random.Random) -> None:
        self._jitter = jitter
        self._interval_ns = interval_ns
        self._source = source
        self._sent = 0

    def next_hold_ns(self) -> int:
        """Return for how long the packet that is sent now is held."""
        self._sent += 1
        if self._sent % self._jitter.every:
            return 0
        overtaken = self._source.randint(self._jitter.min_overtaken, self._jitter.max_overtaken)
        return overtaken * self._interval_ns + self._interval_ns // 2 if overtaken else 0

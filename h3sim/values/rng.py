"""Named random streams: one seed gives as many independent streams as there are purposes.

A stream is named by what it is used for ("jitter"), never by the scheme, so that all schemes of a
comparison share common random numbers and can be compared in pairs.

>>> substream(1, "jitter").random() == substream(1, "jitter").random()
True
>>> substream(1, "jitter").random() == substream(1, "loss.down").random()
False
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

__all__ = ["substream"]


def substream(seed: int, purpose: str) -> random.Random:
    """Return the random stream of *seed* for *purpose*, the same in every process.

    `random.Random` hashes a string seed with SHA-512, which does not depend on the process.
    """
    import random  # on use: a load at a constant rate needs no random numbers

    return random.Random(f"h3sim/{seed}/{purpose}")  # noqa: S311 - a simulation, not a secret

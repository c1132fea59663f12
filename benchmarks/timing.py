"""How long calls take, so that they can be compared on a machine that is not idle."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def least_seconds(calls: Sequence[Callable[[], object]], *, rounds: int) -> list[float]:
    """Return the least CPU time of each call over *rounds* rounds in which each is made once."""
    best = [float("inf")] * len(calls)
    gc.disable()
    try:
        for _ in range(rounds):
            for index, call in enumerate(calls):
                begin = time.process_time()
                call()
                best[index] = min(best[index], time.process_time() - begin)
            gc.collect()
    finally:
        gc.enable()
    return best

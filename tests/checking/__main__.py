"""Checks so many random faulty loads, from a seed on: `python -m tests.checking 10000 0`.

It fails if any rule is broken, and prints the load's seed: `python -m tests.checking 1 SEED`
plays it again.
"""

from __future__ import annotations

import sys
from collections import Counter

from h3sim.errors import StalledError
from tests.checking.drawing import checked, digest_of, drawn, ended
from tests.checking.rules import violations
from tests.checking.twin import GIVEN_UP, Twin, twin

_REPORT_EVERY = 500
_SHOWN = 3


def main(count: int, first_seed: int) -> int:
    """Check *count* loads; return 1 if any breaks a rule."""
    n_bad = 0
    seen: Counter[str] = Counter()
    with twin() as other:
        for n, seed in enumerate(range(first_seed, first_seed + count), 1):
            found = _found(seed, other, seen)
            if found:
                n_bad += 1
                print(drawn(seed), *found[:_SHOWN], sep="\n    ", flush=True)
                if len(found) > _SHOWN:
                    print(f"    and {len(found) - _SHOWN} more")
            if n % _REPORT_EVERY == 0 or n == count:
                print(f"{n:,} loads ({_text(seen)}): {n_bad} break a rule", flush=True)
    return int(n_bad > 0)


def _found(seed: int, other: Twin, seen: Counter[str]) -> list[str]:
    """Return what one load breaks."""
    load_drawn = drawn(seed)
    other.ask(seed)
    stalls, load = "", None
    try:
        load = ended(load_drawn)
    except StalledError as stalled:
        stalls = f"stalls: {stalled}"
    theirs = other.answer()
    if stalls:
        return [stalls]
    if load is None:
        seen["given up after a simulated hour"] += 1
        return [] if theirs == GIVEN_UP else [f"twin: {theirs}, given up here"]
    trace = load.trace
    seen["packets"] += len(trace.wire)
    seen["lost or dropped"] += sum(row.arrived_at_ns is None for row in trace.wire)
    found = violations(checked(load_drawn, load))
    if digest_of(load) != theirs:
        found.append("twin: another digest with another PYTHONHASHSEED")
    return found


def _text(seen: Counter[str]) -> str:
    return ", ".join(f"{n:,} {what}" for what, n in seen.items())


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*numbers) if len(numbers) == 2 else main(numbers[0] if numbers else 10_000, 0))

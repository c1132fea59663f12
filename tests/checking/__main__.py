"""`python -m tests.checking [LOADS [SEED]]`: check so many random faulty loads.

Without a seed it goes on where the run before ended (`build/checking`), so that ten thousand may
come in pieces; `--write` puts what was checked so far into its generated page. It fails if any rule
is broken, and prints the load's seed: `python -m tests.checking 1 SEED` plays it again.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.trace import Delivery
from h3sim.values.errors import StalledError
from tests.checking.drawing import checked, digest_of, drawn, ended
from tests.checking.rules import LATE, delays, violations
from tests.checking.twin import GIVEN_UP, Twin, twin
from tools.documented import put

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEPT = Path("build/checking/counts.json")
_LOADS, _BROKEN = "loads", "break a rule"
_OVER_TCP = "over TCP"
_TABLES = (
    (_LOADS, "packets", "lost or dropped", "given up", _BROKEN),
    (_OVER_TCP, *LATE),
)
"""What is said of all loads, and how many of those over TCP deliver something late, by what for."""
_REPORT_EVERY = 500
_SHOWN = 3


def counts() -> Counter[str]:
    """Return what was checked so far, from seed 0 on."""
    return Counter(json.loads(_KEPT.read_text("utf-8")) if _KEPT.exists() else {})


def table(seen: Counter[str], names: Sequence[str]) -> str:
    """Return what was checked, as Markdown.

    >>> print(table(Counter({"loads": 2000, "packets": 9}), ("loads", "packets")))
    | loads | packets |
    |--:|--:|
    | 2,000 | 9 |
    """
    cells = (names, ["--:"] * len(names), [f"{seen[name]:,}" for name in names])
    head, line, row = (" | ".join(each) for each in cells)
    return f"| {head} |\n|{line.replace(' ', '')}|\n| {row} |"


def main(count: int, first_seed: int | None) -> int:
    """Check *count* loads; return 1 if any breaks a rule."""
    known = counts()
    if first_seed is not None:
        return int(_checked(count, first_seed)[_BROKEN] > 0)
    seen = _checked(count, known[_LOADS])
    _KEPT.parent.mkdir(parents=True, exist_ok=True)
    _KEPT.write_text(json.dumps(known + seen), "utf-8")
    return int(seen[_BROKEN] > 0)


def _checked(count: int, first_seed: int) -> Counter[str]:
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
    return seen + Counter({_LOADS: count, _BROKEN: n_bad})


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
        seen["given up"] += 1
        return [] if theirs == GIVEN_UP else [f"twin: {theirs}, given up here"]
    trace = load.trace
    seen["packets"] += len(trace.wire)
    seen["lost or dropped"] += sum(row.arrived_at_ns is None for row in trace.wire)
    if trace.delivery is Delivery.CONNECTION:
        seen.update((_OVER_TCP, *delays(trace)))
    found = violations(checked(load_drawn, load))
    if digest_of(load) != theirs:
        found.append("twin: another digest with another PYTHONHASHSEED")
    return found


def _text(seen: Counter[str]) -> str:
    return ", ".join(f"{n:,} {what}" for what, n in seen.items())


if __name__ == "__main__":
    if "--write" in sys.argv:
        known_counts = counts()
        tables = "\n\n".join(table(known_counts, names) for names in _TABLES)
        put("python -m tests.checking --write", tables)
        sys.exit(0)
    numbers = [int(each) for each in sys.argv[1:]]
    sys.exit(main(numbers[0] if numbers else 10_000, numbers[1] if len(numbers) > 1 else None))

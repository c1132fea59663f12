"""`python -m tools.mutation [--seconds N] [--seed N] [PART...]`: see who notices mistakes.

Mutants come in an order that the seed alone decides, so what has been run at any moment is a sample
of all, and the next run goes on after it. *PART* keeps those whose file and function contain it;
`--survivors` tries again what survived, with the tests as they are now; `--cold` loads modules for
each mutant, which notices what goes wrong on import (seconds each); `--as-recorded` asks only
tests of which it is known already what they reach; `--table` only prints; `--costs` prints how long
each file of tests took, and how many mutants it was the first to notice.

Tests that were written for what survived say nothing of the rest. So `--sample` draws anew with its
seed, from each package in turn (or from *PART*), tries each once and never again, and keeps the
results apart; `--write` writes the table of that sample into docs/generated/mutants.md.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.documented import put
from tools.mutation import children
from tools.mutation.operators import Mutant, code_with, mutants_of
from tools.mutation.reach import RECORDED, Reach, record, sources
from tools.mutation.report import costs, in_turns, rows_of, table
from tools.mutation.store import KILLED, SURVIVED, TIMED_OUT, UNREACHED, Equivalents, Result, Store
from tools.mutation.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOLDER = Path("build/mutants")
_EQUIVALENTS = Path(__file__).with_name("equivalents.txt")
_BATCHES = (0.1, 1.0, 5.0)
"""Tests are loaded in batches of so many seconds: most mutants fall to the first."""
_SLOWER, _START_SECONDS = 5.0, 20.0
"""A mutant may take that many times as long as the tests did, and so long to load them."""
_WARM_SLOWER, _WARM_SECONDS = 2.0, 4.0
_LISTED_SECONDS = 1.0
"""Seconds of tests for a mutant that is listed as equivalent: none notices it, unless all do."""


def _order(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """Return the mutants shuffled by seed: where one stands depends on nothing but itself."""
    return sorted(
        mutants, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()
    )


def _batches(tests: Sequence[str], reach: Reach, most_seconds: float) -> list[list[str]]:
    """Return the tests in batches, up to that many seconds of them.

    Recorded numbers are asked last, and always: they are few, and see what laws leave open.
    """
    limits = [*_BATCHES, most_seconds]
    batches: list[list[str]] = [[] for _ in limits]
    total = 0.0
    for test in tests:
        if not test.startswith(RECORDED):
            total += reach.seconds[test]
            index = next((i for i, limit in enumerate(limits) if total <= limit), None)
            if index is not None:
                batches[index].append(test)
    batches.append([test for test in tests if test.startswith(RECORDED)])
    return [batch for batch in batches if batch]


def _tried(mutant: Mutant, source: str, batches: list[list[str]]) -> dict[str, Any]:
    """Make the mistake in this process and run the batches until a test fails."""
    children.install(mutant.file, code_with(mutant, source))
    for batch in batches:
        failed = children.run_tests(batch).failed
        if failed:
            return {"failed": failed}
    return {"failed": ""}


class _Trial:
    """Tries mutants, each on the tests that reach it."""

    def __init__(
        self, reach: Reach, most_seconds: float, warm: Warm | None, listed: Equivalents
    ) -> None:
        self._reach = reach
        self._most = most_seconds
        self._warm = warm
        self._listed = listed
        self._fails_anyway: dict[str, bool] = {}
        self._noticed: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def learn(self, mutant: Mutant, test: str) -> None:
        """Note who noticed a mutant: the next of its function is shown to that test first."""
        if not test.startswith(RECORDED):
            self._noticed[mutant.file, mutant.function][test] += 1

    def result(self, mutant: Mutant, source: str) -> Result:
        """Return what the tests say of it."""
        began = time.monotonic()
        tests = self._reach.tests_of(mutant)
        first = [test for test, _ in self._noticed[mutant.file, mutant.function].most_common(3)]
        tests.sort(key=lambda test: first.index(test) if test in first else len(first))
        outcome, test = (UNREACHED, "") if not tests else self._outcome(mutant, source, tests)
        seconds = round(time.monotonic() - began, 2)
        return Result(
            key=mutant.key,
            text=mutant.text,
            outcome=outcome,
            test=test,
            seconds=seconds,
            shown=str(mutant),
        )

    def _outcome(self, mutant: Mutant, source: str, tests: list[str]) -> tuple[str, str]:
        is_listed = self._listed.reason(mutant) is not None
        most_seconds = min(self._most, _LISTED_SECONDS) if is_listed else self._most
        batches = _batches(tests, self._reach, most_seconds)
        planned = sum(self._reach.seconds[test] for batch in batches for test in batch)
        found: Any = {}
        if self._warm is not None and not mutant.is_at_import:
            # Nothing is loaded there any more, and no tracer slows the tests as it did once.
            limit = _WARM_SECONDS + _WARM_SLOWER * planned
            found = self._warm.tried(mutant, [t for batch in batches for t in batch], limit)
            if found == {"failed": ""} and not is_listed:
                # Modules were loaded without the mistake there, and functions may run as they are.
                found = {}
        if found == {}:
            limit = _START_SECONDS + _SLOWER * planned
            found = children.in_child(
                lambda: _tried(mutant, source, batches), cpu_seconds=limit, wall_seconds=20 * limit
            )
        if found is None:
            return TIMED_OUT, ""
        if not found["failed"]:
            return SURVIVED, ""
        if self._is_to_blame(found["failed"]):
            # Among other tests, in another order: it says nothing about the mutant.
            left = [test for test in tests if not found["failed"].startswith(test)]
            return self._outcome(mutant, source, left) if left else (SURVIVED, "")
        return KILLED, found["failed"]

    def _is_to_blame(self, test: str) -> bool:
        """Whether a test fails alone where there is no mistake; each is asked once."""
        if test not in self._fails_anyway:
            known = test in self._reach.seconds
            limit = _START_SECONDS + _SLOWER * self._reach.seconds.get(test, 0.0)
            if known and self._warm is not None:
                found = self._warm.tried(None, [test], limit)
            else:
                found = known and children.in_child(
                    lambda: {"failed": children.run_tests([test]).failed},
                    cpu_seconds=limit,
                    wall_seconds=20 * limit,
                )
            self._fails_anyway[test] = known and (not found or bool(found["failed"]))
        return self._fails_anyway[test]


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutation")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--seconds", type=float, default=3600.0, help="then it ends")
    parser.add_argument("--each", type=float, default=20.0, help="seconds of tests for a mutant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--cold", action="store_true", help="load all modules for each mutant")
    parser.add_argument("--as-recorded", action="store_true", help="record no more tests first")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--sample", action="store_true", help="packages in turn, each tried once")
    parser.add_argument("--write", action="store_true", help="write that of a sample")
    parser.add_argument("--costs", action="store_true")
    options = parser.parse_args(given)
    options.sample |= options.write
    if options.sample and options.survivors:
        parser.error("nothing of a sample is tried again")
    if options.write and options.parts:
        parser.error("the table that is written is of all parts")
    return options


def _run(
    options: argparse.Namespace,
    mutants: list[Mutant],
    store: Store,
    tried: Store,
    listed: Equivalents,
) -> None:
    children.prepare()
    if not options.as_recorded:
        record(_FOLDER / "reach")
    reach = Reach(_FOLDER / "reach")
    warm = Warm(reach.files)
    reach.keep(warm.collected)
    trial = _Trial(reach, options.each, None if options.cold else warm, listed)
    texts = dict(sources())
    for mutant in mutants:
        if (known := tried.of(mutant)) is not None and known.test:
            trial.learn(mutant, known.test)
    # Loading all tests takes as long as it takes, and none of the time for mutants.
    until = time.monotonic() + options.seconds
    for mutant in mutants:
        known = store.of(mutant)
        if known is not None and not (options.survivors and not known.is_noticed):
            continue
        if known is None and options.survivors:
            continue
        if time.monotonic() > until:
            break
        if Path(mutant.file).read_text("utf-8") != texts[mutant.file]:
            # A mutant that cannot be made any more would seem to be noticed.
            print(f"{mutant.file} has changed meanwhile: begin again")
            break
        result = trial.result(mutant, texts[mutant.file])
        store.add(result)
        if result.test:
            trial.learn(mutant, result.test)
        if not result.is_noticed:
            print(f"{result.outcome}: {mutant}", flush=True)
    warm.close()


def main(given: Sequence[str]) -> int:
    """Try mutants until the time is over, print what survived and the score."""
    options = _arguments(given)
    _FOLDER.mkdir(parents=True, exist_ok=True)
    every = [mutant for file, text in sources() for mutant in mutants_of(file, text)]
    tried, listed = Store(_FOLDER / "results.jsonl"), Equivalents(_EQUIVALENTS)
    store = Store(_FOLDER / f"sample-{options.seed}.jsonl") if options.sample else tried
    chosen = [m for m in every if all(part in f"{m.file} {m.function}" for part in options.parts)]
    if options.costs:
        noticed = [result.test for m in every if (result := store.of(m)) is not None]
        print(costs(Reach(_FOLDER / "reach").seconds, noticed))
        return 0
    if not options.table and not options.write:
        order = _order(chosen, options.seed)
        _run(options, in_turns(order) if options.sample else order, store, tried, listed)
    known = [(mutant, result) for mutant in chosen if (result := store.of(mutant)) is not None]
    equivalent = set()
    for mutant, result in known:
        is_listed = listed.reason(mutant) is not None
        if is_listed and not result.is_noticed:
            equivalent.add(mutant.key)
        elif is_listed:
            print(f"noticed, though it is listed as equivalent, by {result.test}: {mutant}")
        elif not result.is_noticed:
            print(f"{result.outcome}: {mutant}")
    scores = table(rows_of(chosen, known, equivalent))
    print(scores)
    if options.write:
        reported = (
            f"Seed {options.seed}; each was tried once, with the tests as they were then.\n\n"
        )
        put("python -m tools.mutation --write", f"{reported}{scores}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

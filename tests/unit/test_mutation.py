"""The tool that makes mistakes (`make mutants`): which, in which order, and what it knows again."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.effort import HANG_S
from tools.mutation.__main__ import _order, main
from tools.mutation.operators import Mutant, code_with, mutants_of
from tools.mutation.report import in_turns, of_strata, rows_of, wilson
from tools.mutation.store import KILLED, SURVIVED, Equivalents, Result, Store, change_of

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCE = '''
"""A module."""

LIMIT: int = 3


class Queue:
    """What waits."""

    def push(self, size: int) -> bool:
        """Take in *size* bytes."""
        assert size >= 0
        if size > LIMIT and not self.full:
            raise ValueError(f"{size + 1} bytes")
        self.used += size
        self.note(min(size, 7))
        return True
'''


def changes(source: str) -> list[str]:
    return [change_of(mutant) for mutant in mutants_of("a.py", source)]


def a_mutant(change: str) -> Mutant:
    return next(mutant for mutant in mutants_of("a.py", SOURCE) if change_of(mutant) == change)


def test_rules_are_broken_and_messages_types_and_docstrings_are_not() -> None:
    assert changes(SOURCE) == [
        "3 -> 4",
        "size > LIMIT and (not self.full) -> size > LIMIT or not self.full",
        "size > LIMIT and (not self.full) -> not self.full",
        "size > LIMIT and (not self.full) -> size > LIMIT",
        "size > LIMIT -> size >= LIMIT",
        "not self.full -> self.full",
        "self.used += size -> self.used -= size",
        "self.used += size -> pass",
        "self.note(min(size, 7)) -> pass",
        "min(size, 7) -> max(size, 7)",
        "7 -> 8",
        "True -> False",
    ]


@pytest.mark.parametrize("mutant", mutants_of("a.py", SOURCE), ids=change_of)
def test_each_changes_one_expression_of_the_module(mutant: Mutant) -> None:
    tree = code_with(mutant, SOURCE)
    compile(tree, "a.py", "exec")
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    after = ast.unparse(tree).splitlines()
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_a_mutant_is_known_again_when_what_stands_above_moves() -> None:
    moved = mutants_of("a.py", f"ZERO = ()\n\n{SOURCE}")
    assert [mutant.key for mutant in moved] == [m.key for m in mutants_of("a.py", SOURCE)]
    assert moved[0].line == mutants_of("a.py", SOURCE)[0].line + 2


def test_the_order_of_a_mutant_depends_on_the_seed_and_no_other_mutant() -> None:
    every = mutants_of("a.py", SOURCE)
    some = [mutant for mutant in _order(every, 1) if mutant in every[::2]]
    assert _order(every[::2], 1) == some
    assert _order(every, 1) != _order(every, 2)


def test_a_result_counts_until_its_function_changes(tmp_path: Path) -> None:
    mutant = a_mutant("7 -> 8")
    store = Store(tmp_path / "results.jsonl")
    assert store.of(mutant) is None
    result = Result(
        key=mutant.key, text=mutant.text, outcome=SURVIVED, test="", seconds=1.0, shown="x"
    )
    store.add(result)
    store.add(replace(result, outcome=KILLED, test="t"))
    again = Store(tmp_path / "results.jsonl")
    assert again.of(mutant).outcome == KILLED
    assert again.of(replace(mutant, text="other")) is None


def test_listed_mutants_are_left_out_of_the_score(tmp_path: Path) -> None:
    path = tmp_path / "equivalents.txt"
    path.write_text(
        "# said\n\nNobody sees it,\nfor a reason.\n  a.py | Queue.push | 7 -> 8\n", "utf-8"
    )
    listed = Equivalents(path)
    assert listed.reason(a_mutant("7 -> 8")) == "Nobody sees it, for a reason."
    assert listed.reason(a_mutant("3 -> 4")) is None
    mutants = [replace(m, file="h3sim/page/a.py") for m in mutants_of("a.py", SOURCE)]
    results = [
        Result(key=m.key, text=m.text, outcome=what, test="", seconds=0, shown="")
        for m, what in zip(mutants, [SURVIVED, SURVIVED, KILLED], strict=False)
    ]
    rows = rows_of(mutants, list(zip(mutants, results, strict=False)), {mutants[0].key})
    assert rows[0] == ["page", "12", "2", "1", "0", "0", "1", "50.0 %", "9.5 to 90.5 %"]


def test_what_is_listed_as_equivalent_is_in_the_code() -> None:
    listed = Equivalents(CHECKOUT / "tools/mutation/equivalents.txt")
    files = {file for file, _, _ in listed.reasons}
    there = {
        (mutant.file, mutant.function, change_of(mutant))
        for file in files
        for mutant in mutants_of(file, (CHECKOUT / file).read_text("utf-8"))
    }
    assert [each for each in listed.reasons if each not in there] == []
    assert all(len(reason) > 20 for reason in listed.reasons.values())


def test_the_interval_is_wilsons() -> None:
    # Newcombe 1998, Table I: 81 of 263.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_a_sample_takes_each_package_in_turn_and_weighs_it_by_its_size() -> None:
    page, http = (
        [replace(m, file=f"h3sim/{name}/a.py") for m in mutants_of("a.py", SOURCE)[:n]]
        for name, n in (("page", 4), ("http", 2))
    )
    assert in_turns([*page, *http]) == [http[0], page[0], http[1], *page[1:]]
    # 1 of 2 of the four, 1 of 1 of the two: (4 * 0.5 + 2 * 1) / 6. Of http nothing survived.
    drawn = [page[0], page[1], http[0]]
    outcomes = [KILLED, SURVIVED, KILLED]
    results = [
        Result(key=m.key, text=m.text, outcome=what, test="", seconds=0, shown="")
        for m, what in zip(drawn, outcomes, strict=True)
    ]
    rows = rows_of([*page, *http], list(zip(drawn, results, strict=True)), set())
    assert [(row[0], row[1], row[2], row[-2]) for row in rows] == [
        ("http", "2", "1", "100.0 %"),
        ("page", "4", "2", "50.0 %"),
        ("all", "6", "3", "66.7 %"),
    ]


def test_the_interval_of_one_stratum_is_its_own_and_undrawn_strata_have_none() -> None:
    low, high = wilson(81, 263)
    assert of_strata([(900, 81, 263), (50, 0, 0)]) == pytest.approx((81 / 263, low, high))


def test_nothing_of_a_sample_is_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--sample", "--survivors"])
    with pytest.raises(SystemExit, match="2"):
        main(["--write", "page"])
    messages = capsys.readouterr().err
    assert "nothing of a sample is tried again" in messages
    assert "the table that is written is of all parts" in messages


_SEEN = """
from tools.mutation import children
from tools.mutation.operators import code_with, mutants_of
children.prepare()
text = open("h3sim/values/units.py").read()
for wanted in (None, "1000000"):
    def work():
        if wanted:
            mutants = mutants_of("h3sim/values/units.py", text)
            mutant = next(m for m in mutants if m.before == wanted)
            children.install("h3sim/values/units.py", code_with(mutant, text))
        return children.run_tests(["h3sim/values/units.py"]).failed
    print(children.in_child(work, cpu_seconds=60, wall_seconds=300))
print(children.in_child(lambda: [None for _ in iter(int, 1)], cpu_seconds=1, wall_seconds=300))
"""


def test_an_error_is_there_in_a_child_alone_and_one_without_end_is_ended() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SEEN],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    complete, mistaken, endless = done.stdout.splitlines()
    assert (complete, endless) == ("", "None")
    assert mistaken.startswith("h3sim/values/units.py::")


_WARM = """
from tools.mutation import children
from tools.mutation.operators import mutants_of
from tools.mutation.warm import Warm
children.prepare()
text = open("h3sim/values/units.py").read()
warm = Warm(["h3sim/values/units.py"])
tests = sorted(warm.collected)
found = [warm.tried(None, tests, 60)]
for mutant in mutants_of("h3sim/values/units.py", text):
    if mutant.function == "to_ms" or mutant.is_at_import:
        found.append(warm.tried(mutant, tests, 60))
print(found[0], all(each == {} or each["failed"] for each in found[1:]), {} in found)
print(any(each.get("failed", "").startswith("h3sim/values/units.py::") for each in found))
print(warm.tried(None, ["h3sim/values/units.py::gone"], 60), warm.tried(None, tests, 60))
warm.close()
"""


def test_a_process_that_has_collected_tests_tries_one_error_after_the_other() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WARM],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    # What runs on import cannot be tried there, and says so; a mistake is gone with its fork.
    assert done.stdout.splitlines() == [
        "{'failed': ''} True True",
        "True",
        "{} {'failed': ''}",
    ]

"""Flips single bits of a store and of saved files and says what becomes of their answers.

`python -m tests.flipping 5000` (`make flip-bits`) does it so often to each; the tests 200 times.
`--write` puts the table into its generated page. The answer is the true one, or a refusal; that of
a store may have fewer rows, which the next run makes again: never another one.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.export import read_load
from h3sim.load import simulate
from h3sim.schema.files import DIGEST
from h3sim.study import Store, StoreError, load_study, read_results
from h3sim.study.store import repair_store
from h3sim.values.errors import InputError
from tests import standins
from tests.helpers import page_of
from tools.documented import put
from tools.formats import study_schemas

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SAVED", "Flips", "flip_often", "flip_saved", "made_store", "study"]

N_SEEDS = 4
"""Two schemes: the store has 8 cells."""


def study(stand_in: Any = standins.measured, **axes: Any) -> Any:
    """Return a study of loads that have numbers without being run."""
    page = page_of({"id": "/", "kind": "document", "bytes": 2800})
    made = load_study(page, schemes=["rr", "fifo"], seeds=N_SEEDS, name="flipped", **axes)
    return standins.standing_in(made, stand_in)


def made_store(folder: Path) -> Path:
    """Return the path of a store of two studies: 8 cells of one, and 4 of them by another name."""
    path = folder / "made.db"
    first = study().with_seeds(2)
    first.name = "first"
    with Store(path) as store:
        list(first.run(store=store, executor="serial"))
        list(study().run(store=store, executor="serial"))
    return path


def _read(path: Path) -> Any:
    results = read_results(path)
    return results.axes, list(results), results.errors


def _listed(path: Path) -> Any:
    with Store(path, may_write=False) as store:
        return store.studies(), store.counts()


def _run(path: Path) -> Any:
    with Store(path) as store:
        results = study().run(store=store, executor="serial")
        return results.axes, list(results), results.errors


def _saved_rows(path: Path) -> None:
    study().run(executor="serial").save(path)


def _saved_load(path: Path) -> None:
    load = simulate(page_of({"id": "/", "kind": "document", "bytes": 2800}), seed=3)
    path.write_text(json.dumps(load.to_dict()), "utf-8")


def _read_saved_load(path: Path) -> Any:
    saved = read_load(path)
    # A digest whose key was hit is an unknown key: what it covers is still the truth.
    document = {key: value for key, value in saved.document.items() if key in _KEYS_OF_LOADS}
    return document, saved.page, saved.scheme, saved.config


_KEYS_OF_LOADS = frozenset(study_schemas()["h3sim-load/2"]["properties"]) - {DIGEST}
SAVED: dict[str, tuple[str, Callable[[Path], None], Callable[[Path], Any]]] = {
    "saved rows": ("rows.jsonl", _saved_rows, _read),
    "saved load": ("load.json", _saved_load, _read_saved_load),
}
"""By name: the file, what writes it, and what reads its answer."""


def _is_fewer(rows: list[Any], all_rows: list[Any]) -> bool:
    """Return whether *rows* are some of *all_rows*, in their order."""
    rest = iter(all_rows)
    return len(rows) < len(all_rows) and all(row in rest for row in rows)


def _is_listed_fewer(found: Any, true: Any) -> bool:
    """Return whether a list has only studies and models that are there, with no more cells."""
    studies, models = ({one[0]: one[1:] for one in map(_parts, part)} for part in true)
    return all(
        (known := parts.get(one[0])) is not None
        and one[1] == known[0]
        and all(n <= most for n, most in zip(one[2], known[1], strict=True))
        for part, parts in zip(found, (studies, models), strict=True)
        for one in map(_parts, part)
    )


def _parts(one: Any) -> Any:
    """Return what names a line of a list, what must stay, and what may get less."""
    if isinstance(one, tuple):
        return one[0], None, one[1:]
    return one.id, (one.name, one.n, one.axes), (one.done, one.failed)


class Flips:
    """What became of the answers: how often each *outcome* came, and what was *wrong*."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.wrong: list[str] = []

    def try_one(self, path: Path, number: int, true: dict[str, Any]) -> None:
        """Read the store at *path*, list it, and run its study again, after a repair if need be."""
        steps = {"read": _read, "list": _listed}
        for step, answer in steps.items():
            self._note(step, self._outcome(number, step, answer, path, true[step]))
        outcome = self._outcome(number, "run", _run, path, true["read"])
        self._note("run", outcome)
        if outcome == "refused":
            self._note("repair", self._repaired(path, number, true["read"]))

    def try_saved(self, path: Path, number: int, name: str, true: Any) -> None:
        """Read the saved file at *path*."""
        self._note(name, self._outcome(number, name, SAVED[name][2], path, true))

    def _repaired(self, path: Path, number: int, true: Any) -> str:
        try:
            repair_store(str(path))
        except StoreError:
            return "refused"
        return self._outcome(number, "repair", _run, path, true)

    def _outcome(self, number: int, step: str, answer: Any, path: Path, true: Any) -> str:
        try:
            found = answer(path)
        except (InputError, StoreError):
            return "refused"
        except Exception as error:  # noqa: BLE001 - told
            self.wrong.append(f"{number}, {step}: {type(error).__name__}: {error}")
            return "wrong"
        if found == true:
            return "true"
        if step == "list":
            is_fewer = _is_listed_fewer(found, true)
        else:  # a run makes what was lost again
            is_fewer = step == "read" and found[0] == true[0] and _is_fewer(found[1], true[1])
        if is_fewer:
            return "fewer"
        self.wrong.append(f"{number}, {step}: another answer")
        return "wrong"

    def _note(self, step: str, outcome: str) -> None:
        self.outcomes[step, outcome] += 1


def flip_often(n: int, folder: Path, *, seed: int = 0) -> Flips:
    """Flip one bit of a store, *n* times, each time of the sound one."""
    source = random.Random(seed)
    made = made_store(folder)
    sound = made.read_bytes()
    true = {"read": _read(made), "list": _listed(made)}
    flips = Flips()
    path = folder / "flipped.db"
    for _ in range(n):
        bit = source.randrange(8 * len(sound))
        for ending in ("-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        path.write_bytes(_flipped(sound, bit))
        flips.try_one(path, bit, true)
    return flips


def flip_saved(n: int, folder: Path, *, seed: int = 0) -> Flips:
    """Flip one bit of each saved file, *n* times, each time of the sound one."""
    source, flips = random.Random(seed), Flips()
    for name, (file_name, save, read) in SAVED.items():
        path = folder / file_name
        save(path)
        sound, true = path.read_bytes(), read(path)
        for _ in range(n):
            bit = source.randrange(8 * len(sound))
            path.write_bytes(_flipped(sound, bit))
            flips.try_saved(path, bit, name, true)
    return flips


def _flipped(sound: bytes, bit: int) -> bytes:
    data = bytearray(sound)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def main(n: int, *, writes: bool = False) -> int:
    """Flip so often; print what became of the answers as a table, or write it into a document."""
    with tempfile.TemporaryDirectory() as folder:
        flips, saved = flip_often(n, Path(folder)), flip_saved(n, Path(folder))
    flips.outcomes += saved.outcomes
    flips.wrong += saved.wrong
    outcomes = ("true", "fewer", "refused", "wrong")
    lines = [f"| {n:,} flips | {' | '.join(outcomes)} |", f"|---|{'--:|' * len(outcomes)}"]
    for step in ("read", "list", "run", "repair", *SAVED):
        counts = (f"{flips.outcomes[step, outcome]:,}" for outcome in outcomes)
        lines.append(f"| {step} | {' | '.join(counts)} |")
    print(*lines, *flips.wrong, sep="\n")
    if writes:
        put("python -m tests.flipping 5000 --write", "\n".join(lines))
    return bool(flips.wrong)


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each != "--write"]
    sys.exit(main(*(numbers or [5000]), writes="--write" in sys.argv))

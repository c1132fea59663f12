"""Laws of schedulers, ranges and processes: the counterpart of `laws`, which reads whole loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.property.runs import scheduler_made_by

ROOT = Path(__file__).parents[2]
HASH_SEEDS = ("0", "1", "4242")


class Twice:
    """A scheduler that is asked everything twice, and keeps a record of it."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._picked = None
        self.update = scheduler.update
        self.open = scheduler.open
        self.activate = scheduler.activate
        self.deactivate = scheduler.deactivate
        self.close = scheduler.close

    def pick(self) -> Any:
        """Pick, and see that picking again changes nothing."""
        self._picked = self._scheduler.pick()
        for _ in range(2):
            assert self._scheduler.pick() == self._picked, "pick changes what is picked"
        return self._picked

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge, if that is who was picked, and only once for each pick."""
        assert stream_id == self._picked, f"{stream_id} charged, {self._picked} picked"
        self._picked = None  # type: ignore[unreachable]
        self._scheduler.charge(stream_id, n_bytes)


def check_pick_is_pure(case: Any, make: Any) -> None:
    """Asking the schedulers of *make* twice changes nothing, and each pick is charged once."""
    with scheduler_made_by(lambda *mechanism: Twice(make(*mechanism))):
        watched = case.run()
    with scheduler_made_by(make):
        assert watched.trace.digest() == case.run().trace.digest()


def check_ranges_are_sets(ranges: Any, additions: Any) -> None:
    """Spans say what a set of numbers says, after each of *additions*."""
    model: set[Any] = set()
    for start, stop in additions:
        new = set(range(start, stop)) - model
        assert ranges.add(start, stop) == len(new)
        model |= new
        spans = ranges.spans()
        assert spans == sorted(spans)
        assert {byte for a, b in spans for byte in range(a, b)} == model
        assert all(stop < start for (_, stop), (start, _) in pairwise(spans))
        assert ranges.end == max(model, default=-1) + 1
        assert ranges.contiguous == next(n for n in range(len(model) + 1) if n not in model)


def check_every_process_agrees(function: Any) -> Any:
    """*function*, as "module:name", returns equal text whatever seed its process hashes with."""
    module, name = function.split(":")
    program = f"import json; from {module} import {name}; print(json.dumps({name}()))"
    message = {}
    for seed in HASH_SEEDS:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        message[seed] = json.loads(done.stdout)
    assert len({json.dumps(answer) for answer in message.values()}) == 1, message
    return message[HASH_SEEDS[0]]

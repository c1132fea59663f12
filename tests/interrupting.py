"""Kills sweeps at random moments and says whether anything finished was lost.

`python -m tests.interrupting 200` (`make interrupt-sweeps`) does it so often; the tests ten times.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from h3sim.study import Store, load_study
from tests import standins
from tests.effort import HANG_S
from tests.helpers import page_of

__all__ = ["SEEDS", "ended", "interrupt", "is_alive", "study"]

SEEDS = 400
_LATEST_S = 2.5
_SCRIPT = """
import sys
from tests import standins
from tests.interrupting import study
if __name__ == "__main__":
    study(standins.waiting).run(
        store=sys.argv[1], executor="processes", workers=2, progress=False
    )
"""


def study(stand_in: Any = standins.reported, seeds: Any = SEEDS) -> Any:
    """Return a study of loads that only say which they are."""
    page = page_of({"id": "/", "kind": "document", "bytes": 2800})
    made = load_study(page, schemes=["rr", "fifo"], seeds=seeds)
    return standins.standing_in(made, stand_in)


def driver_of(store: Path) -> subprocess.Popen[bytes]:
    """Start a sweep on *store* in a session of its own."""
    script = store.with_name("run.py")
    script.write_text(_SCRIPT, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(script), str(store)],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def interrupt(store: Path, sent: signal.Signals, after_s: float, *, a_worker: bool = False) -> None:
    """Start a sweep, and send a signal to it or to one of its processes after a while."""
    driver = driver_of(store)
    time.sleep(after_s)
    target = (_children(driver.pid) or [driver.pid])[-1] if a_worker else driver.pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(target, sent)
    if a_worker:  # it goes on without; end it, too
        time.sleep(after_s / 4)
        driver.kill()
    driver.wait(timeout=HANG_S)


def ended(group: int) -> bool:
    """Return whether all processes of the session are gone, or are soon."""
    deadline = time.monotonic() + HANG_S
    while is_alive(group):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_alive(group: int) -> bool:
    """Return whether a process of the session is still there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _children(parent: int) -> list[int]:
    """Return the processes of the session of *parent* (Linux), the youngest last."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == parent and int(entry.name) != parent:
                found.append(int(entry.name))
    return sorted(found)


def kill_often(n: int, *, seed: int = 0) -> list[str]:
    """Kill sweeps on one store *n* times, and return what was lost or wrong: nothing should be."""
    source = random.Random(seed)
    expected = list(study().run(executor="serial"))
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "study.db"
        known = 0
        for number in range(n):
            after_s, a_worker = source.uniform(0, _LATEST_S), source.random() < 0.5
            interrupt(store, signal.SIGKILL, after_s, a_worker=a_worker)
            if not store.exists():
                continue
            try:
                with Store(store, may_write=False) as kept:
                    wrong += [f"{number}: {line}" for line in kept.verify()]
                    done = sum(stored.done for stored in kept.studies())
            except Exception as error:  # noqa: BLE001 - told
                wrong.append(f"{number}: {error}")
                continue
            if done < known:
                wrong.append(f"{number}: knew {known}, knows {done}")
            known = done
            if known == len(expected):
                known = 0
                store.unlink()
        rest = study().run(store=store, executor="serial", retry_failed=True)
        if list(rest) != expected:
            wrong.append("the rows differ")
    return wrong


if __name__ == "__main__":
    found = kill_often(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    print("\n".join(found) or "nothing was lost")
    sys.exit(bool(found))

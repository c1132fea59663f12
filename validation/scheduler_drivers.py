"""Drivers in several languages under the suite: `python -m validation.scheduler_drivers`.

Builds those of `h3sim conform --init` whose toolchain is installed, holds each to the laws and the
claims of a server that sends non-incremental responses first, and measures events per second.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from h3sim.conformance import (
    BrokenLawError,
    Candidate,
    NeitherFlagStarves,
    NonIncrementalFirst,
    OneByOneInUrgency,
    ReferenceEps,
    RoundRobinInUrgency,
    SameAs,
    UrgencyOrder,
    check_scheduler,
    signals,
)
from h3sim.conformance.starting import skeleton_folder
from h3sim.schedulers import DriverScheduler, close_drivers
from h3sim.signals import Eps

_SHIPPED = Path(__file__).parent / "drivers" / "shipped.py"
_SKELETONS = skeleton_folder()
_BUILT = Path(__file__).parents[1] / "build" / "drivers"
_CLAIMS = (
    *(UrgencyOrder(), OneByOneInUrgency(), RoundRobinInUrgency(), NonIncrementalFirst()),
    *(NeitherFlagStarves(incremental=False), SameAs(reference=ReferenceEps)),
)
_STREAMS, _ROUNDS = 20, 2000


class Driver(NamedTuple):
    """A driver's *source*, the toolchain that it needs, and the commands to build and run it."""

    source: str
    toolchain: str
    build: tuple[str, ...]
    run: tuple[str, ...]


def drivers() -> list[Driver]:
    """Return the drivers, whether their toolchain is installed or not."""
    c, go, rust = (str(_BUILT / name) for name in ("eps-c", "eps-go", "eps-rust"))
    source = {name: str(_SKELETONS / name) for name in ("eps.c", "eps.go", "eps.rs", "eps.js")}
    python = (sys.executable, str(_SHIPPED))
    return [
        Driver("shipped.py", sys.executable, (), python),
        Driver("eps.c", "gcc", ("gcc", "-O2", "-o", c, source["eps.c"]), (c,)),
        Driver("eps.go", "go", ("go", "build", "-o", go, source["eps.go"]), (go,)),
        Driver("eps.rs", "rustc", ("rustc", "-O", "-o", rust, source["eps.rs"]), (rust,)),
        Driver("eps.js", "node", (), ("node", source["eps.js"])),
    ]


def events_per_second(command: tuple[str, ...]) -> float:
    """Return how many events a driver takes in: an update, a charge and a pick for each packet."""
    scheduler = DriverScheduler(command)
    for number in range(_STREAMS):
        scheduler.open(4 * number, Eps(incremental=True))
        scheduler.activate(4 * number)
    scheduler.pick()
    began = time.perf_counter()
    for number in range(_ROUNDS):
        scheduler.update(4 * (number % _STREAMS), Eps(incremental=True, urgency=number % 8))
        picked = scheduler.pick()
        assert picked is not None, "streams are active"  # noqa: S101
        scheduler.charge(picked, 1400)
    return 3 * _ROUNDS / (time.perf_counter() - began)


def main() -> int:
    """Print a row per driver; return 1 if any law is broken."""
    _BUILT.mkdir(parents=True, exist_ok=True)
    code = 0
    print("driver      laws kept   events/s")
    for driver in drivers():
        if shutil.which(driver.toolchain) is None:
            print(f"{driver.source:10}  left out: {driver.toolchain} is not installed")
            continue
        if driver.build:
            subprocess.run(driver.build, check=True)  # noqa: S603 - a compiler of this machine
        candidate = Candidate(
            factory=DriverScheduler(driver.run), claims=_CLAIMS, signals=signals(Eps)
        )
        try:
            kept = str(len(check_scheduler(candidate).passed))
        except BrokenLawError as broken:
            code, kept = 1, f"broken: {broken}"
        # The best of three: others run on this machine, too.
        fastest = max(events_per_second(driver.run) for _ in range(3))
        print(f"{driver.source:10}  {kept:9}   {fastest:8,.0f}", flush=True)
        close_drivers()
    return code


if __name__ == "__main__":
    sys.exit(main())

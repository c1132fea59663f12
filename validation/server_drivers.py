"""Schedulers of deployed servers: `python -m validation.server_drivers`.

Builds drivers around the real code of Go modules, crates, npm and Debian packages, as far as they
install here. Each is led through random workloads beside the scheduler of h3sim that stands for it,
frame by frame, and held to the laws and to every ready claim.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

from h3sim.conformance import (
    BrokenLawError,
    Candidate,
    check_scheduler,
    signals,
    suggest_claims,
)
from h3sim.conformance.named_claims import CLAIMS
from h3sim.schedulers import (
    ByteListEpsScheduler,
    DriverScheduler,
    EpsScheduler,
    Mixed,
    Quantum,
    RingEpsScheduler,
    RoundRobinScheduler,
    close_drivers,
)
from h3sim.schedulers.driver import SIGNAL_TYPES
from validation.server_models import FramesTakeTurns
from validation.server_workloads import FRAME_BYTES, Outcome, compare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.schedulers import Scheduler

__all__ = ["DRIVERS", "SERVERS_GO", "ServerDriver", "build", "main", "outcomes"]

_HERE = Path(__file__).parent / "drivers" / "servers"
_BUILT = Path(__file__).parents[1] / "build" / "drivers"
SERVERS_GO = str(_BUILT / "servers-go")
"""The program with Go's servers."""
_SEEDS = range(30)
_SMALL_BYTES = 100
_LEFT_OUT = ("weights-by", "waits-by", "first-in", "no-starvation", "equal-turns", "same-as")
"""Claims that no EPS server makes, and the references, which stand for h3sim's schedulers."""


class ServerDriver(NamedTuple):
    """A driver of real code, and what stands for it here."""

    name: str
    """What is scheduled, with its version."""
    recipe: str
    """What `build` makes it with."""
    run: tuple[str, ...]
    model: Callable[[], Scheduler] | None
    signals: str = "eps"
    smallest_bytes: int = FRAME_BYTES
    updates_stalled: bool = True
    is_suggested: bool = True
    """Whether the claims are tried on it, too."""


def _go(name: str) -> tuple[str, ...]:
    return (SERVERS_GO, name)


_QUIC_GO = partial(EpsScheduler, mixed=Mixed.HALVES_INCREMENTAL_FIRST)
_NGHTTP3 = partial(EpsScheduler, mixed=Mixed.SHARED_LIST, turn=Quantum(size_bytes=800))
_RETRY = (str(_BUILT / "nghttp3"), "--retry")
_NGHTTP2 = (str(_BUILT / "nghttp2"),)
_NEW_NGHTTP2 = (str(_BUILT / "nghttp2-crate"),)
_CERTIFICATE = _BUILT / "certificate"
_QUICHE = (str(_BUILT / "quiche"), str(_CERTIFICATE))
DRIVERS = (
    ServerDriver("quic-go 0.65.0", "go", _go("quic-go"), _QUIC_GO),
    ServerDriver("x/net 0.62.0, RFC 9218", "go", _go("x-net-rfc9218"), RingEpsScheduler),
    ServerDriver("x/net 0.62.0, RFC 7540", "go", _go("x-net-rfc7540"), None, "h2"),
    ServerDriver("nghttp3 0.8.0", "nghttp3", _RETRY, _NGHTTP3),
    ServerDriver(
        f"nghttp3 0.8.0, frames from {_SMALL_BYTES} bytes",
        *("nghttp3", _RETRY, _NGHTTP3, "eps", _SMALL_BYTES, True, False),
    ),
    ServerDriver(
        "nghttp3 0.8.0, no update while stalled",
        *("nghttp3", _RETRY, _NGHTTP3, "eps", FRAME_BYTES, False, False),
    ),
    ServerDriver("nghttp3 0.8.0, without retry", "nghttp3", (_RETRY[0],), None),
    ServerDriver("nghttp2 1.52.0, RFC 9218", "nghttp2", _NGHTTP2, ByteListEpsScheduler),
    ServerDriver("nghttp2 1.68.1", "nghttp2-crate", _NEW_NGHTTP2, ByteListEpsScheduler),
    ServerDriver(
        "nghttp2 1.68.1, without SETTINGS",
        *("nghttp2-crate", (*_NEW_NGHTTP2, "--silent"), ByteListEpsScheduler, "eps"),
        is_suggested=False,
    ),
    ServerDriver("quiche 0.30.0", "quiche", _QUICHE, EpsScheduler),
    ServerDriver(
        "hyper h2 0.4.20, HEADERS take turns",
        *("hyper-h2", (str(_BUILT / "hyper-h2"),), FramesTakeTurns, "eps"),
        is_suggested=False,
    ),
    ServerDriver(
        "hyper h2 0.4.20, they take none",
        *("hyper-h2", (str(_BUILT / "hyper-h2"),), RoundRobinScheduler, "eps"),
        is_suggested=False,
    ),
)
"""Every driver, whether it can be built here or not."""


def _build_go() -> None:
    """Build with copies of the modules, to which a file is added that exports their schedulers."""
    folder = _BUILT / "servers"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum", "main.go", "serve.go", "serve3.go"):
        shutil.copyfile(_HERE / name, folder / name)
    _run("go", "mod", "vendor", folder=folder)
    vendored = folder / "vendor"
    shutil.copyfile(_HERE / "x_net.go", vendored / "golang.org/x/net/http2/h3sim.go")
    shutil.copyfile(_HERE / "quic_go.go", vendored / "github.com/quic-go/quic-go/h3sim.go")
    _run("go", "build", "-mod=vendor", "-tags=h3sim", "-o", SERVERS_GO, ".", folder=folder)


def _build_c(library: str) -> None:
    source, output = str(_HERE / f"{library}.c"), str(_BUILT / library)
    _run("gcc", "-O2", "-w", "-o", output, source, f"-l{library}", folder=_HERE)


def _build_rust(feature: str) -> Path:
    """Build the package with a feature, in a folder of its own; return that of its crates."""
    target = _BUILT / f"rust-{feature}"
    cargo = ("cargo", "build", "--quiet", "--release", "--features", feature)
    _run(*cargo, "--target-dir", str(target), folder=_HERE / "rust")
    release = target / "release"
    shutil.copy(release / "h3sim-servers", _BUILT / feature)
    return release / "build"


def _build_nghttp2_crate() -> None:
    """Build the driver in C with the library that the crate libnghttp2-sys is made of."""
    libraries = _build_rust("nghttp2-crate").glob("libnghttp2-sys-*/out/i/lib/libnghttp2.a")
    library = max(libraries, key=lambda path: path.stat().st_mtime)
    source, output = str(_HERE / "nghttp2.c"), str(_BUILT / "nghttp2-crate")
    include = f"-I{library.parents[1] / 'include'}"
    _run("gcc", "-O2", "-w", include, "-o", output, source, str(library), folder=_HERE)


def _build_quiche() -> None:
    _CERTIFICATE.mkdir(exist_ok=True)
    _run(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"),
        *("-keyout", "key.pem", "-out", "certificate.pem"),
        folder=_CERTIFICATE,
    )
    _build_rust("quiche")


_RECIPES: dict[str, Callable[[], object]] = {
    "go": _build_go,
    "nghttp3": partial(_build_c, "nghttp3"),
    "nghttp2": partial(_build_c, "nghttp2"),
    "nghttp2-crate": _build_nghttp2_crate,
    "quiche": _build_quiche,
    "hyper-h2": partial(_build_rust, "hyper-h2"),
}
_NEEDS = {
    "go": "Go 1.26",
    "nghttp3": "gcc and libnghttp3-dev",
    "nghttp2": "gcc and libnghttp2-dev",
    "nghttp2-crate": "Cargo and gcc",
    "quiche": "Cargo, cmake, openssl and libclang-dev",
    "hyper-h2": "Cargo",
}
"""What each recipe needs, by the names of Debian's packages where there are any."""


def _run(*command: str, folder: Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)  # noqa: S603


def build(recipe: str) -> str:
    """Build drivers; return why that is not possible here, or an empty text."""
    _BUILT.mkdir(parents=True, exist_ok=True)
    try:
        _RECIPES[recipe]()
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    except subprocess.CalledProcessError as error:
        message = str(error.stderr).strip().splitlines() or [f"exit code {error.returncode}"]
        return f"{error.cmd[0]}: {message[0]}"
    return ""


def outcomes(driver: ServerDriver, seeds: Sequence[int] = _SEEDS) -> list[Outcome]:
    """Return what comes of the workloads, with a process for each."""
    assert driver.model is not None, "nothing stands for it"  # noqa: S101
    found = []
    for seed in seeds:
        real = DriverScheduler(driver.run)
        found.append(
            compare(
                *(real, driver.model(), seed),
                signals=driver.signals,
                smallest_bytes=driver.smallest_bytes,
                updates_stalled=driver.updates_stalled,
            )
        )
        real.release()
    close_drivers()
    return found


def _row(driver: ServerDriver) -> list[object]:
    found = outcomes(driver)
    frames, same = sum(each.frames for each in found), sum(each.same for each in found)
    n_identical = sum(each.frames == each.same for each in found)
    return [driver.name, frames, same, f"{n_identical} of {len(found)}"]


def _verdict(driver: ServerDriver) -> str:
    """Return what the suite says: the laws, then the claims, each broken one with its history."""
    real = DriverScheduler(driver.run)
    candidate = Candidate(factory=real, claims=(), signals=signals(SIGNAL_TYPES[driver.signals]))
    try:
        kept = len(check_scheduler(candidate).passed)
    except BrokenLawError as broken:
        close_drivers()
        return f"{driver.name}: broken without any claim\n{broken}"
    names = [name for name in CLAIMS[driver.signals] if not name.startswith(_LEFT_OUT)]
    suggested = suggest_claims(real, signals=driver.signals, names=names)
    close_drivers()
    return f"{driver.name}: {kept} laws kept without claims\n{suggested}"


def main() -> int:
    """Print the comparison and the suite's verdicts; return 1 if a model differs unexpectedly."""
    reasons = {recipe: build(recipe) for recipe in _RECIPES}
    for recipe, reason in reasons.items():
        if reason:
            print(f"left out {recipe}, which needs {_NEEDS[recipe]}: {reason}")
    there = [driver for driver in DRIVERS if not reasons[driver.recipe]]
    rows = [_row(driver) for driver in there if driver.model is not None]
    print(tabulate(rows, ("server", "frames", "same", "identical workloads"), "github"), "\n")
    for driver in there:
        if driver.is_suggested:
            print(_verdict(driver), "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Controllers of real stacks under the suite: `python -m validation.controller_drivers` (minutes).

Builds those of quic-go (Go) and quinn (Cargo) with drivers for `h3sim-controller/1`, and holds each
to the laws and to the cases of the document that it follows.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

from h3sim.conformance.controller_driver import ControllerDriver
from h3sim.conformance.controllers import check_controller

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main"]

_HERE = Path(__file__).parent / "drivers" / "controllers"
_BUILT = Path(__file__).parents[1] / "build" / "drivers" / "controllers"


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_BUILT)  # noqa: S603
    return done.stdout


def _build_quic_go() -> str:
    """Build with a copy of the module, to which a file is added that exports their constructor."""
    _run("go", "mod", "vendor")
    package = _BUILT / "vendor" / "github.com/quic-go/quic-go/internal/congestion"
    shutil.copyfile(_HERE / "quic_go.go", package / "h3sim.go")
    _run("go", "build", "-mod=vendor", "-o", "quic-go", "main.go")
    return str(_BUILT / "quic-go")


def _build_quinn() -> str:
    """Build with a copy of the controllers' source."""
    packages = json.loads(_run("cargo", "metadata", "--format-version=1"))["packages"]
    manifest = next(each["manifest_path"] for each in packages if each["name"] == "quinn-proto")
    source, copied = Path(manifest).parent / "src", _BUILT / "src" / "congestion"
    shutil.copytree(source / "congestion", copied, dirs_exist_ok=True)
    shutil.copyfile(source / "congestion.rs", copied / "mod.rs")
    _run("cargo", "build", "--quiet", "--release")
    return str(_BUILT / "target" / "release" / "h3sim-quinn")


_STACKS: dict[str, tuple[Callable[[], str], dict[str, str | None]]] = {
    "quic-go 0.65": (_build_quic_go, {"cubic": "cubic", "reno": None}),
    "quinn 0.11.19": (_build_quinn, {"cubic": "cubic", "newreno": "newreno", "bbr": None}),
}
"""Of each stack its build, and its controllers with the documents that they follow."""


def main(argv: list[str]) -> int:
    """Print what does not hold for each controller; return 1 if none could be built.

    Arguments pick stacks whose names contain one of them.
    """
    shutil.copytree(_HERE, _BUILT, dirs_exist_ok=True)
    n_built = 0
    for stack, (build, controllers) in _STACKS.items():
        if argv and not any(part in stack for part in argv):
            continue
        try:
            program = build()
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            said = str(getattr(error, "stderr", "") or error).strip().splitlines()
            print(f"left out {stack}: {said[0]}")
            continue
        n_built += 1
        for name, follows in controllers.items():
            driver = ControllerDriver((program, name), timeout_s=30)
            report = check_controller(driver, follows=follows, name=f"{stack}, {name}")
            n_held = len(report.cases) - len(report.broken)
            print(f"{report.controller}: {n_held} of {len(report.cases)} hold")
            if report.broken:
                rows = [case[:3] for case in report.broken]
                print(tabulate(rows, ("does not hold", "expected", "seen"), disable_numparse=True))
            print(flush=True)
    return 0 if n_built else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

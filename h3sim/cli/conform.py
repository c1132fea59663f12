"""`h3sim conform`: hold a scheduler in another process, in any language, to the laws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.cli.command import FAILED, Argument, Command
from h3sim.errors import needing_extra
from h3sim.schedulers.driver import SIGNAL_TYPES, DriverScheduler
from h3sim.schema.values import Number

if TYPE_CHECKING:
    import argparse

_EPILOG = """\
examples:
  h3sim conform -- ./driver
  h3sim conform --claim urgency-order --claim one-by-one-in-urgency -- ./driver --verbose
  h3sim conform --suggest -- node driver.js

The driver reads requests from its standard input, one JSON object per line, and answers two of them
(docs/conformance-protocol.md). exit codes: 0 all laws are kept, 1 a law is broken or the driver
fails, 2 bad usage or bad input
"""


def _claim(name: str, options: argparse.Namespace) -> Any:
    return _conformance().claim_named(name, signals=options.signals)


def _driver(words: list[str], options: argparse.Namespace) -> DriverScheduler:
    return DriverScheduler(words, timeout_s=options.timeout)


def _conformance() -> Any:
    with needing_extra("hypothesis", "testing"):
        from h3sim import conformance
    return conformance


def _conform(options: argparse.Namespace) -> int:
    conformance = _conformance()
    from h3sim.conformance.runner import use_profile

    driver = options.driver
    name = driver.start().get("name")
    candidate = conformance.Candidate(
        factory=driver,
        claims=tuple(options.claim or ()),
        signals=conformance.signals(SIGNAL_TYPES[options.signals]),
        name=name if isinstance(name, str) else Path(driver.command[0]).name,
    )
    with use_profile(options.profile, seed=options.seed):
        if options.suggest:
            print(conformance.suggest_claims(candidate, signals=options.signals))
            return 0
        try:
            print(conformance.check_scheduler(candidate))
        except conformance.BrokenLawError as broken:
            print(f"{candidate.label}\n  broken   {broken}")
            return FAILED
    return 0


COMMANDS = {
    "conform": Command(
        "Check a scheduler that runs in another process, in any language.",
        _conform,
        (
            Argument(
                "--signals TYPE",
                "type of the signals that it gets",
                default="eps",
                choices=tuple(SIGNAL_TYPES),
            ),
            Argument(
                "--claim NAME",
                "a ready claim to check; may be repeated (docs/testing-schedulers.md lists them)",
                action="append",
                many="words",
                read=_claim,
            ),
            Argument("--suggest", "try every ready claim, and list those that hold"),
            Argument(
                "--profile NAME",
                "15, 30 or 1,000 histories per law",
                default="default",
                choices=("quick", "default", "thorough"),
            ),
            Argument("--seed N", "random seed of the histories (default: fixed)", type=int),
            Argument(
                "--timeout S",
                "seconds until a driver that does not answer counts as hung",
                Number(low=0, is_above=True),
                default=5.0,
            ),
            Argument(
                "COMMAND",
                "the driver and its arguments, after --",
                dest="driver",
                nargs="+",
                read=_driver,
            ),
        ),
        _EPILOG,
    )
}

"""`h3sim conform`: hold a scheduler in another process, in any language, to the laws."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli.parsing import FAILED, ErrorList, Parser, RawHelp
from h3sim.errors import needing_extra
from h3sim.schedulers.driver import SIGNAL_TYPES, DriverScheduler

if TYPE_CHECKING:
    import argparse

_PROFILES = ("quick", "default", "thorough")
_EPILOG = """\
examples:
  h3sim conform -- ./driver
  h3sim conform --claim urgency-order --claim one-by-one-in-urgency -- ./driver --verbose
  h3sim conform --suggest -- node driver.js

The driver reads requests from its standard input, one JSON object per line, and answers two of them
(docs/conformance-protocol.md). exit codes: 0 all laws are kept, 1 a law is broken or the driver
fails, 2 bad usage or bad input
"""


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "conform",
        help=summary,
        description="Check a scheduler that runs in another process, in any language.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "driver", metavar="COMMAND", nargs="+", help="the driver and its arguments, after --"
    )
    parser.add_argument(
        "--signals",
        choices=tuple(SIGNAL_TYPES),
        default="eps",
        help="type of the signals that it gets (default: %(default)s)",
    )
    parser.add_argument(
        "--claim",
        metavar="NAME",
        action="append",
        default=[],
        help="a ready claim to check; may be repeated (docs/testing-schedulers.md lists them)",
    )
    parser.add_argument(
        "--suggest", action="store_true", help="try every ready claim, and list those that hold"
    )
    parser.add_argument(
        "--profile",
        choices=_PROFILES,
        default="default",
        help="15, 30 or 1,000 histories per law (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="random seed of the histories (default: fixed)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=5.0,
        metavar="S",
        help="seconds until a driver that does not answer counts as hung (default: %(default)g)",
    )
    parser.set_defaults(command=_conform)


def _conform(options: argparse.Namespace) -> int:
    with needing_extra("hypothesis", "testing"):
        from h3sim import conformance
        from h3sim.conformance.runner import use_profile
    errors = ErrorList()
    claims = [
        errors.collect(partial(conformance.claim_named, name, signals=options.signals))
        for name in options.claim
    ]
    driver = errors.collect(lambda: DriverScheduler(options.driver, timeout_s=options.timeout))
    if errors.lines or driver is None:
        return errors.tell("conform")
    name = driver.start().get("name")
    candidate = conformance.Candidate(
        factory=driver,
        claims=tuple(claim for claim in claims if claim is not None),
        signals=conformance.signals(SIGNAL_TYPES[options.signals]),
        name=name if isinstance(name, str) else Path(options.driver[0]).name,
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

"""The command `h3sim conform`: the laws of schedulers, for drivers in any language."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from h3sim.cli import common
from h3sim.cli.command import FAILED, Argument, Options, command
from h3sim.cli.conform_reports import annotations_of, json_of, junit_of, outcomes_of, sarif_of
from h3sim.schedulers.driver import SIGNAL_TYPES, DriverScheduler
from h3sim.schema import write_atomically
from h3sim.schema.values import Number
from h3sim.values.errors import InputError, needing_extra

if TYPE_CHECKING:
    from h3sim.conformance import ConformanceReport, VectorReport

_LANGUAGES = ("python", "go", "rust", "c", "javascript")
"""Names of `h3sim.conformance.starting`, repeated here so that it is imported only if needed."""


def _conformance() -> Any:
    """Return the package `h3sim.conformance`, or ask for the library that it needs."""
    with needing_extra("hypothesis", "testing"):
        from h3sim import conformance
    return conformance


def _read_claim(text: str, options: Options) -> Any:
    """Return the claim of a name, with settings as in `byte-shares:quantum_bytes=1400`."""
    name, _, settings = text.partition(":")
    claim = _conformance().claim_named(name, signals=options.signals)
    known = [each.name for each in fields(claim) if isinstance(getattr(claim, each.name), int)]
    values = {}
    for setting in filter(None, settings.split(",")):
        key, _, value = setting.partition("=")
        if key not in known or not value.isdigit():
            message = f"{setting} is no setting of {name}: use {', '.join(known)} and a number"
            raise InputError.at("--claim", message)
        values[key] = int(value)
    return replace(claim, **values)


def _read_skip(text: str, options: Options) -> tuple[Any, str]:
    name, _, reason = text.partition("=")
    if options.vectors:
        return name, reason or "skipped"
    laws = {law.value: law for law in _conformance().Law}
    if name not in laws or not reason:
        message = f"must be LAW=REASON with one of {', '.join(laws)}, is {text}"
        raise InputError.at("--skip", message)
    return laws[name], reason


def _read_driver(words: list[str], options: Options) -> Any:
    if options.controller is not None:
        return words
    if options.init is not None:
        if words:
            message = "goes not with --init, which writes a driver: leave it out"
            raise InputError.at("COMMAND", message)
        return None
    return DriverScheduler(words, timeout_s=options.timeout)


@command(
    "conform",
    Argument(
        "--init LANGUAGE",
        "write a driver to start with, a container file and a workflow for GitHub, and stop",
        choices=_LANGUAGES,
    ),
    Argument(
        "--signals TYPE",
        "type of the signals that it gets",
        default="eps",
        choices=tuple(SIGNAL_TYPES),
    ),
    Argument(
        "--claim NAME",
        "a ready claim to check, as byte-shares:quantum_bytes=1400; may be repeated"
        " (docs/testing-schedulers.md lists them)",
        action="append",
        many="words",
        read=_read_claim,
    ),
    Argument("--suggest", "try every ready claim, and list those that hold"),
    Argument(
        "--vectors",
        "run the priority vectors (docs/priority-vectors.md) instead of laws and claims",
    ),
    Argument(
        "--skip LAW=REASON",
        "do not check a law, or with --vectors a file or case, for a reason that the report"
        " repeats; may be repeated",
        action="append",
        many="words",
        read=_read_skip,
    ),
    Argument(
        "--profile NAME",
        "15, 30 or 1,000 histories per law",
        default="default",
        choices=("quick", "default", "thorough"),
    ),
    Argument("--seed N", "random seed of the histories (default: fixed)", type=int),
    common.JSON("print h3sim-conformance-report/1 instead"),
    Argument(
        "--controller MODULE:CLASS",
        "check a congestion controller instead, or with `process` that of COMMAND",
    ),
    Argument(
        "--follows DOCUMENT",
        "also check the cases of RFC 9002, RFC 9438 or BBR's draft, with --controller",
        choices=("newreno", "cubic", "bbr"),
        needs="--controller",
    ),
    Argument("--junit FILE", "write the report as JUnit XML, too", output=(".xml",)),
    Argument(
        "--sarif FILE",
        "write what is broken as SARIF 2.1.0, too, for code scanning",
        output=(".sarif", ".json"),
    ),
    Argument(
        "--failures FOLDER",
        "write the history of each broken law there, as lines that a driver reads",
        read=lambda text, _: Path(text),
    ),
    Argument(
        "--replay FILE",
        "play such a history instead, and say whether the law is still broken; may be repeated",
        action="append",
        many="words",
        read=lambda text, _: Path(text),
    ),
    Argument("--annotate", "print broken laws as annotations of GitHub, too"),
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
        nargs="*",
        read=_read_driver,
    ),
)
def _run_conformance(options: Options) -> int:
    """Check a scheduler that runs in another process, in any language.

    Examples:
      h3sim conform --init go
      h3sim conform -- ./driver
      h3sim conform --claim urgency-order --claim one-by-one-in-urgency -- ./driver --verbose
      h3sim conform --suggest -- node driver.js
      h3sim conform --failures failures -- ./driver
      h3sim conform --replay failures/updates-at-once.jsonl -- ./driver
      h3sim conform --vectors -- ./driver
      h3sim conform --controller mine:Controller --follows cubic
      h3sim conform --controller process --follows newreno -- ./driver

    The driver reads requests from its standard input, one JSON object per line, and answers two of
    them (docs/conformance-protocol.md). exit codes: 0 all laws are kept, 1 a law is broken or the
    driver fails, 2 bad usage or bad input
    """
    conformance = _conformance()
    if options.controller is not None:
        return _run_on_controller(options)
    from h3sim.conformance.runner import use_profile

    if options.init is not None:
        from h3sim.conformance.starting import start

        print(*start(options.init, Path()), sep="\n")
        return 0
    _refuse_needless(options)
    driver = options.driver
    if not driver:
        raise InputError.at("COMMAND", "is missing: the driver and its arguments, after --")
    if options.replay:
        return _replay(options)
    if options.vectors:
        from h3sim.conformance.priority_vectors import check_vectors

        return _show(check_vectors(driver, skip=dict(options.skip or ())), options)
    name = driver.start().get("name")
    candidate = conformance.Candidate(
        factory=driver,
        claims=tuple(options.claim or ()),
        signals=conformance.signals(SIGNAL_TYPES[options.signals]),
        skip=dict(options.skip or ()),
        name=name if isinstance(name, str) else Path(driver.command[0]).name,
    )
    if options.failures and options.failures.exists() and not options.failures.is_dir():
        raise InputError.at("--failures", f"{str(options.failures)!r} is no folder")
    with use_profile(options.profile, seed=options.seed):
        if options.suggest:
            try:
                # A driver that fails keeps no claim.
                conformance.check_law(candidate, conformance.Law.NEVER_RAISES)
                print(conformance.suggest_claims(candidate, signals=options.signals))
            except conformance.BrokenLawError as broken:
                print(f"{candidate.label}\n  broken   {broken}")
                return FAILED
            return 0
        report = conformance.report_on(candidate)
    if options.failures:
        from h3sim.conformance.replay import write_failures

        write_failures(report, options.failures)
    return _show(report, options)


def _refuse_needless(options: Options) -> None:
    """Refuse options that would change nothing."""
    reports = ("failures", "json", "junit", "sarif", "annotate")
    for mode, others in (
        ("replay", ("claim", "skip", "suggest", "vectors", *reports)),
        ("suggest", ("claim", "vectors", *reports)),
        ("vectors", ("claim", "failures")),
    ):
        needless = [f"--{each}" for each in others if getattr(options, each)]
        if getattr(options, mode) and needless:
            raise InputError.at(f"--{mode}", f"goes not with {', '.join(needless)}")


def _show(report: ConformanceReport | VectorReport, options: Options) -> int:
    """Print and write a report in the forms that were requested; return the exit code."""
    scheduler, outcomes = report.scheduler, outcomes_of(report)
    print(json_of(scheduler, outcomes) if options.json else report)
    if options.junit:
        write_atomically(options.junit, junit_of(scheduler, outcomes), key="--junit")
    if options.sarif:
        words = [Path(word) for word in options.driver.command]
        own = [word for word in words if not word.is_absolute() and word.is_file()] or words
        text = sarif_of(outcomes, file=own[0].as_posix())
        write_atomically(options.sarif, text, key="--sarif")
    if options.annotate:
        print(*annotations_of(outcomes), sep="\n", end="")
    return FAILED if report.broken else 0


def _replay(options: Options) -> int:
    """Print for each history that was written whether its law is still broken."""
    from h3sim.conformance.replay import still_broken

    command, timeout_s = options.driver.command, options.timeout
    found = {path: still_broken(path, command, timeout_s=timeout_s) for path in options.replay}
    for path, broken in found.items():
        print(f"{path}: {broken or 'kept'}")
    return FAILED if any(found.values()) else 0


def _run_on_controller(options: Options) -> int:
    """Print the laws and cases of a congestion controller."""
    from h3sim.conformance.controller_driver import ControllerDriver
    from h3sim.conformance.controllers import check_controller

    factory: Any
    if options.controller == "process":
        if not options.driver:
            raise InputError.at("COMMAND", "is missing: the driver and its arguments, after --")
        factory = ControllerDriver(options.driver, timeout_s=options.timeout)
        factory.start()
        report = check_controller(
            factory, follows=options.follows, name=Path(options.driver[0]).name
        )
    else:
        factory = _read_factory(options.controller)
        report = check_controller(factory, follows=options.follows)
    print(report)
    return FAILED if report.broken else 0


def _read_factory(text: str) -> Any:
    """Return the class or function that MODULE:CLASS names."""
    sys.path.insert(0, "")  # as `python -m` does
    try:
        factory = resolve_name(text)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError.at("--controller", f"{text}: {error}") from error
    finally:
        sys.path.remove("")
    if not callable(factory):
        raise InputError.at("--controller", f"{text} is no class or function")
    return factory

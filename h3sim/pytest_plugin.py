"""The pytest plugin: how long `h3sim.conformance` looks, and the fixture `check_scheduler`.

It is loaded wherever h3sim is installed, so it imports nothing before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from h3sim.conformance import ConformanceReport


_USUAL = "default"
_PROFILES = ("quick", _USUAL, "thorough")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--h3sim-profile`."""
    parser.getgroup("h3sim").addoption(
        "--h3sim-profile",
        choices=_PROFILES,
        default=_USUAL,
        help="how long h3sim.conformance looks for a history that breaks a law: 15, 30 or 1,000 "
        "examples each; 'thorough' looks at others in every run",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the suite look as long as was asked for, and where Hypothesis's options say."""
    profile = config.getoption("--h3sim-profile")
    seed = config.getoption("--hypothesis-seed", default=None)
    if profile != _USUAL or seed is not None:
        from h3sim.conformance.runner import set_profile

        set_profile(profile, seed=seed, keeps_failures=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the history that breaks a law to the report, as a test that can be pasted."""
    del item
    report = yield
    # By its method: the package of the error is not imported unless it is used.
    as_test = None if call.excinfo is None else getattr(call.excinfo.value, "as_test", None)
    text = as_test() if as_test is not None else ""
    if text:
        report.sections.append(("h3sim: the history as a test", text))
    return report


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say the profile where it is not the usual one."""
    profile = config.getoption("--h3sim-profile")
    return None if profile == _USUAL else f"h3sim profile: {profile}"


@pytest.fixture
def check_scheduler(request: pytest.FixtureRequest) -> Callable[..., ConformanceReport]:
    """Return `h3sim.conformance.check_scheduler`; its report stands with the output of the test.

    `pytest -rA` shows it for tests that pass: what was kept, and what was skipped and why.
    """

    def check(factory: Any, **options: Any) -> ConformanceReport:
        from h3sim import conformance

        report = conformance.check_scheduler(factory, **options)
        request.node.add_report_section("call", "h3sim", str(report))
        return report

    return check

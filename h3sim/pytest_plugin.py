"""The pytest plug-in: an option for the effort of `h3sim.conformance`, and `check_scheduler`.

pytest loads it wherever h3sim is installed, so it imports nothing before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from h3sim.conformance import ConformanceReport


_DEFAULT_PROFILE = "default"
_PROFILES = ("quick", _DEFAULT_PROFILE, "thorough")
"""Names of `h3sim.conformance.runner`, repeated here so that it is imported only if needed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--h3sim-profile`."""
    parser.getgroup("h3sim").addoption(
        "--h3sim-profile",
        choices=_PROFILES,
        default=_DEFAULT_PROFILE,
        help="how long h3sim.conformance looks for a history that breaks a law: 15, 30 or 1,000 "
        "histories each; 'thorough' looks at others in every run",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Apply the profile, and Hypothesis's own options, to the conformance suite."""
    profile = config.getoption("--h3sim-profile")
    seed = config.getoption("--hypothesis-seed", default=None)
    other = config.getoption("--hypothesis-profile", default=None)
    if profile != _DEFAULT_PROFILE or seed is not None or other is not None:
        from hypothesis import settings

        from h3sim.conformance.runner import set_profile

        n_histories = settings.get_profile(other).max_examples if other is not None else None
        set_profile(profile, seed=seed, n_histories=n_histories)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the call sequence that breaks a law to the report, as a test that can be pasted."""
    del item  # a parameter of the hook
    report = yield
    # Recognized by its method: to check the error's type, its package would have to be imported.
    as_test = None if call.excinfo is None else getattr(call.excinfo.value, "as_test", None)
    text = as_test() if as_test is not None else ""
    if text:
        report.sections.append(("h3sim: the history as a test", text))
    return report


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a line with the profile unless it is the default."""
    profile = config.getoption("--h3sim-profile")
    return None if profile == _DEFAULT_PROFILE else f"h3sim profile: {profile}"


@pytest.fixture
def check_scheduler(request: pytest.FixtureRequest) -> Callable[..., ConformanceReport]:
    """Return `h3sim.conformance.check_scheduler`, whose report is added to the test's output.

    `pytest -rA` also shows it for passing tests: the laws that hold, and those skipped and why.
    """

    def check(factory: Any, **options: Any) -> ConformanceReport:
        from h3sim import conformance

        report = conformance.check_scheduler(factory, **options)
        request.node.add_report_section("call", "h3sim", str(report))
        return report

    return check

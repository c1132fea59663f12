"""What all tests share: how long Hypothesis looks, at which cases, and how wide terminals are."""

from __future__ import annotations

import gc
import os
import random
import signal
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO

import pytest
from hypothesis import Phase, settings
from hypothesis.internal.conjecture import providers

from tests.effort import IS_THOROUGH, PROFILE

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None, print_blob=True)
# A mistake that was found is not made small: `make mutants` asks only whether.
settings.register_profile(
    "mutants",
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile(PROFILE)
if not IS_THOROUGH:
    # Hypothesis tries numbers and texts of the project's modules that happen to be imported, so
    # that examples depend on which tests a worker ran before. Fixed examples are fixed.
    providers._get_local_constants = lambda: providers._local_constants
os.environ["COLUMNS"] = "100"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So does a shell with what it starts in the background; tests send Ctrl-C to themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What workers load lives to the end: scanning it again and again took a tenth of the time.
# The process that only hands out tests does not collect them, so nothing would enable it again.
if "PYTEST_XDIST_WORKER" in os.environ:
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from here on, seldom, and without what was loaded."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose a seed for a thorough run, and hand it on to Hypothesis and to all workers."""
    if IS_THOROUGH and config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say how to see the same again."""
    if not IS_THOROUGH:
        return None
    seed = config.getoption("--hypothesis-seed")
    return f"thorough: HYPOTHESIS_PROFILE=thorough pytest --hypothesis-seed={seed} looks again"


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have matplotlib lay out and paint nothing, where only what is said beside figures counts."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    def savefig(figure: Figure, file: BinaryIO, **options: object) -> None:
        file.write(b"<svg></svg>")

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)
    monkeypatch.setattr(Figure, "savefig", savefig)


@pytest.fixture(scope="module")
def fewer_histories() -> Iterator[None]:
    """Check laws on the histories of the "quick" profile by default; not in a thorough run."""
    from h3sim.conformance.runner import use_profile  # lazy: most tests do not need it

    with nullcontext() if IS_THOROUGH else use_profile("quick"):
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a Chromium where none starts, and say why."""
    if item.get_closest_marker("chromium") is not None:
        reason = _why_no_chromium()
        if reason is not None:
            pytest.skip(reason)


@cache
def _why_no_chromium() -> str | None:
    """Return why no browser can be spoken to here, None where one can."""
    # On use: nearly all tests go without.
    from h3sim.importers.chromium import ChromiumError, find_chromium
    from h3sim.importers.chromium.browser import running_chromium

    if find_spec("websocket") is None:
        return "no websocket-client is installed"
    try:
        # One that is installed may not start: without a sandbox, or what it links to.
        with running_chromium(find_chromium(), local_only=True):
            return None
    except ChromiumError as error:
        return str(error)

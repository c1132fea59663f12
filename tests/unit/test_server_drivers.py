"""The workloads that hold models of servers to their real code, and a driver of such code."""

from __future__ import annotations

import pytest

from h3sim.conformance import BrokenLawError, Candidate, Law, check_law, signals
from h3sim.schedulers import DriverScheduler, EpsScheduler, Mixed, close_drivers
from h3sim.signals import Eps
from validation import server_drivers
from validation.server_drivers import DRIVERS, build, outcomes
from validation.server_workloads import compare


def test_schedulers_that_differ_are_distinguished() -> None:
    rings = compare(EpsScheduler(), EpsScheduler(), 3)
    assert rings.same == rings.frames > 100
    other = compare(EpsScheduler(), EpsScheduler(mixed=Mixed.HALVES), 3)
    assert other.same < other.frames
    assert other.first_difference is not None


def test_a_workload_has_what_servers_meet() -> None:
    calls: list[str] = []

    class Noted(EpsScheduler):
        def update(self, stream_id: int, signal: object) -> None:
            calls.append("update")
            super().update(stream_id, signal)  # type: ignore[arg-type]

        def deactivate(self, stream_id: int) -> None:
            calls.append("deactivate")
            super().deactivate(stream_id)

    n_streams = 0

    class Counted(Noted):
        def open(self, stream_id: int, signal: object) -> None:
            nonlocal n_streams
            n_streams += 1
            super().open(stream_id, signal)  # type: ignore[arg-type]

    for seed in range(5):
        compare(Counted(), EpsScheduler(), seed)
    assert calls.count("update") > 20
    # Once at the end of each, within its close as well; more are stalls.
    assert calls.count("deactivate") > 2 * n_streams + 10


@pytest.fixture
def nghttp3() -> None:
    reason = build("nghttp3")
    if reason:
        pytest.skip(reason)


@pytest.mark.usefixtures("nghttp3")
def test_nghttp3_picks_as_its_model_does() -> None:
    (driver,) = (driver for driver in DRIVERS if driver.name.endswith("no update while stalled"))
    assert all(each.same == each.frames for each in outcomes(driver, range(3)))


@pytest.mark.usefixtures("nghttp3")
def test_nghttp3_picks_a_blocked_stream_after_an_update() -> None:
    (driver,) = (driver for driver in DRIVERS if driver.name.endswith("without retry"))
    candidate = Candidate(factory=DriverScheduler(driver.run), signals=signals(Eps))
    with pytest.raises(BrokenLawError, match="which has no data") as caught:
        check_law(candidate, Law.PICKS_ONLY_READY)
    assert any(line.startswith("update(") for line in caught.value.history)
    assert caught.value.scheduler.startswith("DriverScheduler(")
    close_drivers()


def test_nghttp2_picks_as_its_model_does() -> None:
    reason = build("nghttp2")
    if reason:
        pytest.skip(reason)
    (driver,) = (driver for driver in DRIVERS if driver.recipe == "nghttp2")
    assert all(each.same == each.frames > 0 for each in outcomes(driver, range(3)))


def test_what_is_missing_is_reported_with_what_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert server_drivers.main() == 0
    left_out = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("left out")
    ]
    assert len(left_out) == len({driver.recipe for driver in DRIVERS})
    assert any("quiche, which needs Cargo, cmake" in line for line in left_out)

"""Congestion controllers of users: correct ones keep every law, and planted bugs are found."""

from __future__ import annotations

import random
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from h3sim.cli import main
from h3sim.conformance.controller_driver import ControllerDriver
from h3sim.conformance.controllers import DOCUMENTS, check_controller
from h3sim.transport.congestion import (
    BbrController,
    CongestionController,
    ControllerSettings,
    CubicController,
    NewRenoController,
    controller_names,
    make_controller,
)
from h3sim.values.errors import SchedulerError

if TYPE_CHECKING:
    from pathlib import Path


def sizes(packets: Any) -> int:
    return sum(packet.size_bytes for packet in packets)


class Reno(NewRenoController):
    """A base that planted bugs may change."""


class IgnoresLosses(Reno):
    def on_lost(self, *_event: Any) -> None:
        pass


class ReducesForEachLoss(Reno):
    def on_lost(self, *event: Any) -> None:
        self._recovery_start_ns = None
        super().on_lost(*event)


class ClosesItsWindow(Reno):
    def _reduce(self) -> None:
        super()._reduce()
        self.congestion_window = 0


class CountsAcks(Reno):
    def on_acked(self, packets: Any, *event: Any) -> None:
        super().on_acked(packets[:1], *event)


class GrowsUnused(Reno):
    def on_acked(self, *event: Any) -> None:
        packets, now_ns, rtt, in_flight, _ = event
        super().on_acked(packets, now_ns, rtt, in_flight, False)


class GrowsInRecovery(Reno):
    def on_acked(self, *event: Any) -> None:
        start_ns, self._recovery_start_ns = self._recovery_start_ns, None
        super().on_acked(*event)
        self._recovery_start_ns = start_ns


class SurvivesPersistentCongestion(Reno):
    def on_persistent_congestion(self, now_ns: int) -> None:
        pass


class StartsTooFast(Reno):
    def on_acked(self, packets: Any, *event: Any) -> None:
        super().on_acked(packets, *event)
        if self.ssthresh is None:
            self.congestion_window += sizes(packets)


class NeverGrows(Reno):
    def on_acked(self, *_event: Any) -> None:
        pass


class SharesState(Reno):
    shared: ClassVar[dict[str, int]] = {"losses": 0}

    def on_lost(self, *event: Any) -> None:
        super().on_lost(*event)
        self.shared["losses"] += 1
        self.congestion_window += 100 * self.shared["losses"]


class RollsDice(Reno):
    def on_lost(self, *event: Any) -> None:
        super().on_lost(*event)
        self.congestion_window += random.randrange(10_000)


class UndoesTwice(Reno):
    def on_spurious_loss(self, now_ns: int) -> None:
        super().on_spurious_loss(now_ns)
        self.congestion_window *= 2


class UndoesDownwards(Reno):
    def on_spurious_loss(self, now_ns: int) -> None:
        self.congestion_window //= 2


class AssumesSmallPackets(Reno):
    def on_persistent_congestion(self, now_ns: int) -> None:
        super().on_persistent_congestion(now_ns)
        self.congestion_window = 2 * 1200


class SetsFractions(Reno):
    def on_acked(self, *event: Any) -> None:
        super().on_acked(*event)
        self.congestion_window = self.congestion_window + 0.5  # type: ignore[assignment]


class IgnoresMarks(Reno):
    def on_congestion_experienced(self, sent_at_ns: int, now_ns: int) -> None:
        pass

    def on_lost(self, *event: Any) -> None:
        super().on_congestion_experienced(event[0][-1].sent_at_ns, event[1])


class HeedsEachMark(Reno):
    def on_congestion_experienced(self, sent_at_ns: int, now_ns: int) -> None:
        self._reduce()

    def on_lost(self, *event: Any) -> None:
        super().on_congestion_experienced(event[0][-1].sent_at_ns, event[1])


class EarnsInSilence(Reno):
    seen_ns = 0

    def on_sent(self, packet: Any, bytes_in_flight: int) -> None:
        if packet.sent_at_ns - self.seen_ns > 10**9:
            self.congestion_window *= 3
        self.seen_ns = packet.sent_at_ns


class StopsForGood(Reno):
    def on_persistent_congestion(self, now_ns: int) -> None:
        super().on_persistent_congestion(now_ns)
        self.stuck = True

    def on_acked(self, *event: Any) -> None:
        if not hasattr(self, "stuck"):
            super().on_acked(*event)


class PacesAtNothing(Reno):
    def pacing_rate_bps(self, rtt: Any) -> int | None:
        return 0


class RaisesForLateAcks(Reno):
    def on_acked(self, packets: Any, *event: Any) -> None:
        if len(packets) > 50:
            raise IndexError("too many packets")
        super().on_acked(packets, *event)


class QuartersRate(Reno):
    def pacing_rate_bps(self, rtt: Any) -> int | None:
        return int(self.congestion_window * 8 * 10**9 // (4 * rtt.smoothed_rtt_ns)) or 1


class HalvesCubic(CubicController):
    def _reduce(self) -> None:
        super()._reduce()
        self.ssthresh = self.congestion_window = int(self._window_prior / 2)


class ForgetsPlateau(CubicController):
    def _reduce(self) -> None:
        super()._reduce()
        self._w_max = 0.0


class YieldsNothing(CubicController):
    def _reduce(self) -> None:
        before = float(self.congestion_window)
        super()._reduce()
        self._w_max = before


class IsUnfriendly(CubicController):
    def _avoid_congestion(self, *event: Any) -> None:
        self._alpha_bytes = self._w_est = 0.0
        super()._avoid_congestion(*event)


class NeverProbesRtt(BbrController):
    def _check_probe_rtt(self, *_event: Any) -> Any:
        return None


class ForgetsIdle(BbrController):
    def _restart_from_idle(self, *_event: Any) -> Any:
        return None


BUGS: tuple[tuple[type[CongestionController], str, str], ...] = (
    (IgnoresLosses, "newreno", "once per round trip"),
    (ReducesForEachLoss, "newreno", "once per round trip"),
    (ClosesItsWindow, "newreno", "comes back"),
    (CountsAcks, "newreno", "counts bytes"),
    (GrowsUnused, "newreno", "unused window"),
    (GrowsInRecovery, "newreno", "sent before a loss"),
    (SurvivesPersistentCongestion, "newreno", "persistent congestion"),
    (StartsTooFast, "newreno", "slow start doubles"),
    (NeverGrows, "newreno", "is used"),
    (SharesState, "newreno", "share no state"),
    (RollsDice, "newreno", "equal histories"),
    (UndoesTwice, "newreno", "an undone loss"),
    (UndoesDownwards, "newreno", "an undone loss"),
    (AssumesSmallPackets, "newreno", "large packets"),
    (SetsFractions, "newreno", "path"),
    (IgnoresMarks, "newreno", "a mark reduces"),
    (HeedsEachMark, "newreno", "a mark reduces"),
    (EarnsInSilence, "newreno", "silence"),
    (StopsForGood, "newreno", "comes back"),
    (PacesAtNothing, "newreno", "path"),
    (RaisesForLateAcks, "newreno", "recovery"),
    (QuartersRate, "newreno", "slow start"),
    (HalvesCubic, "cubic", "after a loss"),
    (ForgetsPlateau, "cubic", "70 to 110"),
    (YieldsNothing, "cubic", "56 to 78"),
    (IsUnfriendly, "cubic", "short round trip"),
    (NeverProbesRtt, "bbr", "PROBE_RTT"),
    (ForgetsIdle, "bbr", "idle"),
)


@pytest.mark.parametrize(("bug", "follows", "law"), BUGS, ids=[bug.__name__ for bug, *_ in BUGS])
def test_a_planted_bug_breaks_the_law_that_it_is_about(
    bug: type[CongestionController], follows: str, law: str
) -> None:
    broken = check_controller(bug, follows=follows).broken
    assert any(law in case.title for case in broken), broken


@pytest.mark.parametrize(("kind", "follows"), [(Reno, "newreno"), (CubicController, "cubic")])
def test_a_correct_controller_keeps_all(kind: type[CongestionController], follows: str) -> None:
    report = check_controller(kind, follows=follows, name="own")
    assert report.broken == ()


@pytest.mark.parametrize("name", sorted({*controller_names()} - {"constant"}))
def test_each_shipped_controller_keeps_the_laws_of_all(name: str) -> None:
    # `constant` is no congestion control.
    assert check_controller(partial(make_controller, name), name="own").broken == ()


DRIVER = """
import json, sys
for line in sys.stdin:
    e = json.loads(line); op = e.pop("op")
    if op == "hello": print(json.dumps({"protocol": e["protocol"]}), flush=True)
    elif op == "new":
        size, window = e["max_datagram_bytes"], e["initial_window_bytes"]
        ssthresh, start, sent, credit, undo = None, -1, {}, 0, None
    elif op == "sent": sent[e["number"]] = (e["at_ns"], e["bytes"])
    elif op == "acked":
        for n in e["numbers"]:
            at, b = sent.pop(n)
            if e["unused"] or at <= start: continue
            if ssthresh is None or window < ssthresh: window += b
            else:
                grown, credit = divmod(credit + size * b, window); window += grown
    elif op in ("lost", "marked"):
        at = max(sent.pop(n)[0] for n in e["numbers"]) if op == "lost" else e["sent_at_ns"]
        if at > start:
            undo = (window, ssthresh, start) if op == "lost" else None
            start = e["at_ns"]; ssthresh = window // 2; window = max(ssthresh, 2 * size); credit = 0
    elif op == "timer": window, start = 2 * size, -1
    elif op == "spurious":
        if undo and undo[0] > window: window, ssthresh, start = undo
        undo = None
    elif op == "state":
        state = {"window": window, "ssthresh": ssthresh, "rate_bps": None}
        print(json.dumps(state), flush=True)
"""


def test_a_controller_in_another_process_is_held_to_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = tmp_path / "reno.py"
    driver.write_text(DRIVER, "utf-8")
    words = ["conform", "--controller", "process", "--follows", "newreno", "--"]
    assert main([*words, sys.executable, str(driver)]) == 0
    assert "18 of 18 hold" in capsys.readouterr().out
    driver.write_text(DRIVER.replace("window // 2", "window"), "utf-8")
    assert main([*words, sys.executable, str(driver)]) == 1
    assert "15 of 18" in capsys.readouterr().out


@pytest.mark.parametrize("window", ['"large"', "None", "True", "1.5", "[window]"])
def test_a_window_that_is_no_whole_number_is_an_invalid_answer(window: str) -> None:
    script = DRIVER.replace('{"window": window,', f'{{"window": {window},')
    start = ControllerDriver([sys.executable, "-c", script])
    with pytest.raises(SchedulerError, match="answers state with"):
        start(ControllerSettings(max_datagram_bytes=1200))


def test_a_controller_is_found_by_its_module_and_class(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["conform", "--controller"]
    assert main([*words, "h3sim.transport.congestion:NewRenoController"]) == 0
    assert "9 of 9 hold" in capsys.readouterr().out
    for wrong in (
        "nowhere:Controller",
        "h3sim.transport.congestion:Nothing",
        "h3sim:no.x",
    ):
        assert main([*words, wrong]) == 2
    assert main([*words, "process"]) == 2
    assert main([*words, "process", "--", "no-such-command"]) == 2


def test_a_controller_without_variables_of_the_draft_breaks_the_cases_that_read_them() -> None:
    report = check_controller(NewRenoController, follows="bbr")
    seen = [case.seen for case in report.broken]
    assert any("has no attribute max_bandwidth_bps" in each for each in seen)


@pytest.mark.parametrize("error", [ValueError("ours"), AttributeError("ours")], ids=repr)
def test_an_error_of_a_case_is_not_that_of_the_controller(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def case(_make: Any) -> Any:
        raise error

    monkeypatch.setitem(DOCUMENTS, "newreno", (case,))
    with pytest.raises(type(error), match="ours"):
        check_controller(NewRenoController, follows="newreno")

"""Controllers by name, plug-ins among them, and their settings."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import h3sim
from h3sim.cli import main
from h3sim.transport.congestion import (
    CongestionController,
    ConstantRateController,
    ControllerSettings,
    NewRenoController,
    controller_names,
    make_controller,
    registry,
)
from h3sim.transport.congestion.registry import CheckedController
from h3sim.transport.rtt import RttEstimator
from h3sim.values.errors import ControllerError, InputError, UnknownNameError
from h3sim.values.plugins import NO_PLUGINS_VARIABLE
from h3sim.values.versions import build
from tests.helpers import unworded

if TYPE_CHECKING:
    from collections.abc import Iterator

BUILT_IN = tuple(sorted(registry.BUILT_IN))
SETTINGS = ControllerSettings(max_datagram_bytes=1200, rate_bps=1_000_000)
HERE = "tests.unit.test_congestion_registry"


def fixed(settings: Any) -> Any:
    """A plug-in."""
    return ConstantRateController(settings)


class LookAlike:
    """Has what a controller has, and is none."""

    def __init__(self, settings: Any) -> None:
        self.congestion_window, self.ssthresh = settings.initial_congestion_window, None


class Mine(NewRenoController):
    """A plug-in that does as told when first something is acknowledged."""

    then: Any = None

    def on_acked(self, *reported: Any) -> None:
        super().on_acked(*reported)
        if self.then is not None:
            self.then()


class Bare(CongestionController):
    """Sets nothing."""

    def __init__(self, settings: Any) -> None:
        pass


class Counts(ConstantRateController):
    """Counts with numbers of numpy."""

    def on_persistent_congestion(self, now_ns: int) -> None:
        self.congestion_window, self.ssthresh = np.int64(9000), np.int32(7000)  # type: ignore[assignment]


class Paces(NewRenoController):
    """Paces at a rate that cannot be."""

    rate: Any = 0

    def pacing_rate_bps(self, rtt: Any) -> Any:
        return self.rate


def mine(settings: Any) -> Any:
    return Mine(settings)


def wrong(name: str) -> Any:
    """What makes a controller that does what *name* says."""

    def make(settings: Any) -> Any:
        made: Any = Mine(settings)
        value = WRONG[name][0]
        if name in ("stands_still", "paces", "races"):
            made = Paces(settings)
            made.rate = value
            return made

        def then() -> None:
            if name == "raises":
                raise KeyError("boom")
            if name == "leaves":
                raise SystemExit("bye")
            setattr(made, "ssthresh" if name == "has_a_threshold" else "congestion_window", value)

        made.then = then
        return made

    return make


def __getattr__(name: str) -> Any:
    """Return what makes a controller that is wrong, for an entry point."""
    if name not in WRONG:
        raise AttributeError(name)
    return wrong(name)


def counts(settings: Any) -> Any:
    return Counts(settings)


def takes_nothing() -> Any:
    return None


def cannot_be_made(settings: Any) -> Any:
    raise SystemExit(3)


NOT_A_FACTORY = "a word"
PAGE = "davies-meenan"
LINKS: dict[str, Any] = {"rate_mbps": 5, "rtt_ms": 20, "loss": 0.01}


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv(NO_PLUGINS_VARIABLE, raising=False)
    registry.REGISTRY.forget()
    yield
    registry.REGISTRY.forget()


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs plug-ins: names, and what makes them."""

    def install(**values: Any) -> None:
        found = importlib.metadata.EntryPoints(
            importlib.metadata.EntryPoint(name, value, registry.ENTRY_POINT_GROUP)
            for name, value in values.items()
        )
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda **by: found.select(**by))

    return install


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_controller_keeps_the_contract(name: str) -> None:
    assert isinstance(make_controller(name, SETTINGS), CongestionController)


def test_the_names_are_listed_in_alphabetical_order(plug_in: Any) -> None:
    plug_in(fixed=f"{HERE}:fixed")
    assert controller_names() == tuple(sorted((*BUILT_IN, "fixed")))


def test_an_unknown_name_is_reported_with_those_that_are_spelt_alike(plug_in: Any) -> None:
    plug_in(rena=f"{HERE}:fixed")
    with pytest.raises(UnknownNameError) as caught:
        make_controller("reno", SETTINGS)
    assert caught.value.kind == "controller"
    assert caught.value.known == tuple(sorted((*BUILT_IN, "rena")))
    assert "rena" in caught.value.nearest


def test_a_plug_in_is_made_by_its_name(plug_in: Any) -> None:
    plug_in(fixed=f"{HERE}:fixed")
    made = make_controller("fixed", SETTINGS)
    assert isinstance(made, CheckedController)
    assert isinstance(made.controller, ConstantRateController)
    assert made.pacing_rate_bps(RttEstimator(initial_ns=1)) == SETTINGS.rate_bps


def test_a_plug_in_computes_what_it_would_if_it_came_with_h3sim(plug_in: Any) -> None:
    plug_in(mine=f"{HERE}:mine")
    for transport in ("quic", "tcp"):
        mine, newreno = (
            h3sim.simulate(PAGE, scheme="fifo", cc=cc, transport=transport, **LINKS).trace
            for cc in ("mine", "newreno")
        )
        assert mine == newreno


WRONG = {
    "raises": (None, r"on_acked\(\) raised KeyError: 'boom'"),
    "leaves": (None, r"on_acked\(\) raised SystemExit: bye"),
    "closes": (
        0,
        r"sets congestion_window to 0 in on_acked\(\); it must be a whole number of bytes"
        r", at least 1,\d+ \(a packet\)",
    ),
    "shrinks": (1279, "sets congestion_window to 1279 in"),
    "divides": (
        7e4,
        r"sets congestion_window to 70000.0 in on_acked\(\); it must be a whole number",
    ),
    "loses_count": (float("nan"), "sets congestion_window to nan in"),
    "forgets": (None, "sets congestion_window to None in"),
    "grows": (10**5000, "sets congestion_window to a huge number in"),
    "races": (1 << 64, r"pacing_rate_bps\(\) returns a huge number; it must be None, or a"),
    "has_a_threshold": ("x", r"sets ssthresh to 'x' in on_acked\(\); it must be None, or a whole"),
    "stands_still": (
        0,
        r"pacing_rate_bps\(\) returns 0; it must be None, or a whole number of bit/s",
    ),
    "paces": (2.5e6, r"pacing_rate_bps\(\) returns 2500000.0; it must be None, or a whole"),
}


OF_WRONG_TYPE = ("divides", "loses_count", "forgets", "has_a_threshold")
"""These a compiled base class refuses as they are set."""


@pytest.mark.parametrize("transport", ["quic", "tcp"])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_a_plug_in_does_wrong_in_a_load_is_a_sentence_with_its_name(
    plug_in: Any, wrong: Any, transport: Any
) -> None:
    plug_in(**{wrong: f"{HERE}:{wrong}"})
    message = WRONG[wrong][1]
    if build() == "compiled" and wrong in OF_WRONG_TYPE:
        message = r"on_acked\(\) raised TypeError: int (or None )?object expected; got "
    with pytest.raises(ControllerError, match=f"^the controller '{wrong}' {message}"):
        h3sim.simulate(PAGE, scheme="fifo", cc=wrong, transport=transport, **LINKS)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("takes_nothing", "making one raised TypeError: "),
        ("cannot_be_made", "making one raised SystemExit: 3"),
        ("alike", "makes a LookAlike, which derives from no CongestionController"),
    ],
)
def test_a_plug_in_that_cannot_be_made_is_an_error_in_what_was_given(
    plug_in: Any, name: Any, what: Any
) -> None:
    plug_in(**{name: f"{HERE}:{'LookAlike' if name == 'alike' else name}"})
    with pytest.raises(InputError) as caught:
        h3sim.simulate(PAGE, scheme="fifo", cc=name, **LINKS)
    assert str(caught.value).startswith(f"congestion control: {name}: {what}")


def test_a_plug_in_without_a_window_is_reported(plug_in: Any) -> None:
    plug_in(bare=f"{HERE}:Bare")
    with pytest.raises(ControllerError, match="'bare' has no congestion_window when it is made"):
        make_controller("bare", SETTINGS)


def test_a_plug_in_reports_what_the_settings_lack_itself(plug_in: Any) -> None:
    plug_in(fixed=f"{HERE}:fixed")
    with pytest.raises(InputError, match=r"^congestion control: rate_bps: is missing"):
        make_controller("fixed", ControllerSettings(max_datagram_bytes=1200))


def test_on_the_command_line_that_is_one_line_and_exit_code_1(
    plug_in: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    plug_in(raises=f"{HERE}:raises")
    options = ["--cc", "raises", "--rate-mbps", "5", "--rtt-ms", "20"]
    assert main(["run", PAGE, "--scheme", "fifo", *options]) == 1
    assert capsys.readouterr().err == (
        "h3sim: the controller 'raises' on_acked() raised KeyError: 'boom'\n"
    )


def test_integers_of_any_type_are_taken_over(plug_in: Any) -> None:
    plug_in(counts=f"{HERE}:counts")
    made = make_controller("counts", SETTINGS)
    if build() == "compiled":
        with pytest.raises(ControllerError, match=r"'counts' .* int object expected"):
            made.on_persistent_congestion(0)
        return
    made.on_persistent_congestion(0)
    assert (type(made.congestion_window), made.congestion_window) == (int, 9000)
    assert (type(made.ssthresh), made.ssthresh) == (int, 7000)


def test_a_plug_in_that_makes_no_controller_is_refused_by_name(plug_in: Any) -> None:
    plug_in(alike=f"{HERE}:LookAlike")
    with pytest.raises(InputError, match="alike: makes a LookAlike, which derives from no"):
        make_controller("alike", SETTINGS)


def test_plug_ins_are_left_out_on_demand(plug_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(fixed=f"{HERE}:fixed")
    monkeypatch.setenv(NO_PLUGINS_VARIABLE, "1")
    assert controller_names() == BUILT_IN
    with pytest.raises(UnknownNameError):
        make_controller("fixed", SETTINGS)


def test_plug_ins_are_not_looked_for_where_the_name_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(**_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(importlib.metadata, "entry_points", fail)
    assert make_controller("newreno", SETTINGS).congestion_window == 12_000


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:it", "ModuleNotFoundError"),
        (f"{HERE}:no_such_name", "AttributeError"),
        (f"{HERE}:NOT_A_FACTORY", "it cannot be called"),
    ],
)
def test_a_broken_plug_in_is_warned_about_by_name_and_left_out(
    plug_in: Any, value: Any, reason: Any
) -> None:
    plug_in(broken=value, fixed=f"{HERE}:fixed")
    with pytest.warns(RuntimeWarning, match=f"'broken'.*{reason}"):
        names = controller_names()
    assert names == tuple(sorted((*BUILT_IN, "fixed")))


def test_a_plug_in_cannot_take_the_name_of_a_built_in_controller(plug_in: Any) -> None:
    plug_in(cubic=f"{HERE}:fixed")
    with pytest.warns(RuntimeWarning, match="'cubic'.*the name is taken"):
        names = controller_names()
    assert names == BUILT_IN
    assert not isinstance(make_controller("cubic", SETTINGS), ConstantRateController)


def test_a_constant_rate_needs_a_rate() -> None:
    with pytest.raises(InputError, match="rate_bps: is missing"):
        make_controller("constant", ControllerSettings(max_datagram_bytes=1200))


def test_every_error_in_the_settings_is_reported() -> None:
    with pytest.raises(InputError) as caught:
        ControllerSettings(max_datagram_bytes=0, initial_window_bytes=-1, beta=1, rate_bps=0)
    assert unworded(caught.value.lines()) == unworded(
        [
            "congestion control: max_datagram_bytes: must be at least 1, is 0",
            "congestion control: rate_bps: must be at least 1, is 0",
            "congestion control: initial_window_bytes: must be 1 to 1,073,741,824, is -1",
            "congestion control: beta: must be above 0 and below 1, is 1",
        ]
    )

"""Controllers by name, plug-ins among them, and their settings."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.errors import InputError, UnknownNameError
from h3sim.transport.congestion import (
    CongestionController,
    ConstantRateController,
    ControllerSettings,
    controller_names,
    make_controller,
    registry,
)

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


NOT_A_FACTORY = "a word"


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv(registry.NO_PLUGINS_VARIABLE, raising=False)
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


def test_an_unknown_name_is_told_with_those_that_are_spelt_alike(plug_in: Any) -> None:
    plug_in(rena=f"{HERE}:fixed")
    with pytest.raises(UnknownNameError) as caught:
        make_controller("reno", SETTINGS)
    assert caught.value.kind == "controller"
    assert caught.value.known == tuple(sorted((*BUILT_IN, "rena")))
    assert "rena" in caught.value.nearest


def test_a_plug_in_is_made_by_its_name(plug_in: Any) -> None:
    plug_in(fixed=f"{HERE}:fixed")
    assert isinstance(make_controller("fixed", SETTINGS), ConstantRateController)


def test_a_plug_in_that_makes_no_controller_is_refused_by_name(plug_in: Any) -> None:
    plug_in(alike=f"{HERE}:LookAlike")
    with pytest.raises(InputError, match="alike: makes a LookAlike, which derives from no"):
        make_controller("alike", SETTINGS)


def test_plug_ins_are_left_out_on_demand(plug_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(fixed=f"{HERE}:fixed")
    monkeypatch.setenv(registry.NO_PLUGINS_VARIABLE, "1")
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


def test_every_mistake_in_the_settings_is_told() -> None:
    with pytest.raises(InputError) as caught:
        ControllerSettings(max_datagram_bytes=0, initial_window_bytes=-1, beta=1, rate_bps=0)
    assert caught.value.lines() == [
        "congestion control: max_datagram_bytes: must be at least 1, is 0",
        "congestion control: rate_bps: must be at least 1, is 0",
        "congestion control: initial_window_bytes: must be 1 (a packet) to 1,073,741,824, is -1",
        "congestion control: beta: must be above 0 and below 1, is 1",
    ]

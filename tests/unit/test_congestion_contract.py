"""What each controller asks of a transport, and what a plug-in hears and may set."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from h3sim.transport.congestion import (
    CongestionController,
    ControllerSettings,
    controller_names,
    make_controller,
    registry,
)
from h3sim.transport.congestion.loss_based import cube_root, cube_root_ns
from h3sim.transport.congestion.registry import CheckedController, controller_named
from h3sim.transport.rtt import RttEstimator
from h3sim.values.errors import ControllerError, InputError, UnknownNameError
from h3sim.values.units import ms
from tests.unit.congestion_sender import Sender, Sent, after_loss

SETTINGS = ControllerSettings(max_datagram_bytes=1200, rate_bps=1_000_000)


def test_each_controller_asks_for_what_it_reads_and_no_more() -> None:
    """Delivery rates, every loss over TCP, and marks."""
    asked = {
        name: (made.reads_delivery, made.reads_losses, made.responds_to_ecn)
        for name in sorted(registry.BUILT_IN)
        for made in [make_controller(name, SETTINGS)]
    }
    assert asked == {
        "bbr": (True, True, False),
        "bbr1": (True, False, False),
        "constant": (False, False, False),
        "cubic": (False, False, True),
        "cubic-aioquic": (False, False, False),
        "cubic-linux": (False, False, True),
        "cubic-quicly": (False, False, False),
        "newreno": (False, False, True),
        "reno-aioquic": (False, False, False),
        "reno-quicly": (False, False, False),
    }
    # A plug-in may read what it likes.
    base = CongestionController
    assert (base.reads_delivery, base.reads_losses, base.responds_to_ecn) == (True, False, False)


class Listens(CongestionController):
    """Notes all that it is told."""

    def __init__(self, settings: ControllerSettings) -> None:
        self.congestion_window, self.ssthresh = settings.max_datagram_bytes, None
        self.heard: list[tuple[Any, ...]] = []

    def on_sent(self, *event: Any) -> None:
        self.heard.append(("sent", *event))

    def on_acked(self, *event: Any) -> None:
        self.heard.append(("acked", *event))

    def on_lost(self, *event: Any) -> None:
        self.heard.append(("lost", *event))

    def on_congestion_experienced(self, *event: Any) -> None:
        self.heard.append(("marked", *event))

    def on_persistent_congestion(self, *event: Any) -> None:
        self.heard.append(("persistent", *event))

    def pacing_rate_bps(self, rtt: Any) -> Any:
        self.heard.append(("rate", rtt))
        return 1


class Marked(Listens):
    """Responds to marks, too."""

    responds_to_ecn = True


def checked(kind: type[Listens], name: str = "own") -> tuple[Any, Any]:
    """Return the proxy of a plug-in, and the plug-in."""
    made: Any = make_controller(name, SETTINGS, kind)
    assert isinstance(made, CheckedController)
    return made, made.controller


def test_a_plug_in_hears_every_event() -> None:
    made, own = checked(Listens)
    packet, rtt = Sent(0, 0), RttEstimator(initial_ns=1)
    made.on_sent(packet, 1000)
    made.on_acked([packet], 5, rtt, 1000, True)
    made.on_lost([packet], 6, 1000, 1)
    made.on_congestion_experienced(0, 7)
    made.on_persistent_congestion(8)
    assert made.pacing_rate_bps(rtt) == 1
    assert own.heard == [
        ("sent", packet, 1000),
        ("acked", [packet], 5, rtt, 1000, True),
        ("lost", [packet], 6, 1000, 1),
        ("marked", 0, 7),
        ("persistent", 8),
        ("rate", rtt),
    ]


@pytest.mark.parametrize(("kind", "responds"), [(Listens, False), (Marked, True)])
def test_the_proxy_of_a_plug_in_responds_to_marks_if_the_plug_in_does(
    kind: type[Listens], responds: bool
) -> None:
    made, _ = checked(kind)
    assert made.responds_to_ecn is responds
    assert registry.responds_to_ecn("own", kind) is responds
    # A function does not tell.
    assert registry.responds_to_ecn("own", lambda settings: kind(settings)) is True


@pytest.mark.parametrize(
    ("attribute", "taken", "refused"),
    [
        ("congestion_window", [1200, 2**64 - 1], [1199, 2**64, None, 1200.5]),
        ("ssthresh", [None, 0, 2**64 - 1], [-1, 2**64, "none"]),
    ],
)
def test_a_window_is_a_packet_at_least_and_a_threshold_not_negative(
    attribute: str, taken: list[Any], refused: list[Any]
) -> None:
    for value in taken:
        made, own = checked(Listens)
        setattr(own, attribute, value)
        made.on_persistent_congestion(0)
        assert getattr(made, attribute) == value
    for value in refused:
        made, own = checked(Listens)
        setattr(own, attribute, value)
        with pytest.raises(ControllerError, match=f"'own' sets {attribute} to .* in on_persist"):
            made.on_persistent_congestion(0)


@pytest.mark.parametrize(
    ("rate", "is_taken"),
    [(None, True), (0, False), (1, True), (2**64 - 1, True), (2**64, False), (1.5, False)],
)
def test_a_rate_is_none_or_a_bit_per_second_at_least(
    rate: Any, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listens, "pacing_rate_bps", lambda self, rtt: rate)
    made, _ = checked(Listens)
    if is_taken:
        assert made.pacing_rate_bps(RttEstimator(initial_ns=1)) == rate
    else:
        with pytest.raises(ControllerError, match=r"pacing_rate_bps\(\) returns"):
            made.pacing_rate_bps(RttEstimator(initial_ns=1))


def cubic(settings: ControllerSettings) -> CongestionController:
    return Listens(settings)


def test_a_factory_goes_by_its_own_name() -> None:
    assert controller_named("newreno") == ("newreno", None)
    assert controller_named(Listens) == ("Listens", Listens)
    made = partial(Listens)
    assert controller_named(made) == ("Listens", made)
    nameless = lambda settings: Listens(settings)  # noqa: E731 - it has no name
    assert controller_named(nameless) == ("function", nameless)
    with pytest.raises(UnknownNameError):
        controller_named("newrino")
    wrong: Any = 5
    with pytest.raises(InputError, match="must be a name, or a class or function"):
        controller_named(wrong)
    with pytest.raises(InputError, match="'cubic' is the name of a built-in controller"):
        controller_named(cubic)
    assert controller_names() == tuple(sorted(controller_names()))


# Numbers that controllers are computed with


def test_a_cube_root_is_cut_to_whole_numbers_and_of_nothing_is_nothing() -> None:
    for root in (1, 2, 3, 10, 12_345, 10**9, 2**40 + 1):
        cube = root**3
        assert [cube_root(cube - 1), cube_root(cube), cube_root(cube + 1)] == [root - 1, root, root]
    assert [cube_root_ns(value) for value in (-1.0, 0.0, 1e-27, 1.0)] == [0, 0, 1, 10**9]


# quicly


def test_quiclys_reno_grows_with_the_last_byte_of_a_window() -> None:
    sender = after_loss("reno-quicly", 10_000)
    assert sender.window == 7000
    for n in range(6):
        assert sender.exchange(at_ms=200 + n) == 7000
    sender.send(at_ms=210, size=999)
    assert sender.ack(sender.next_number - 1, at_ms=211) == 7000
    sender.send(at_ms=212, size=1)
    assert sender.ack(sender.next_number - 1, at_ms=213) == 8000


@pytest.mark.parametrize(("window", "plateau"), [(69_999, 59_499), (70_000, 70_000)])
def test_quiclys_cubic_lowers_its_plateau_if_a_window_is_below_the_one_before(
    window: int, plateau: int
) -> None:
    """RFC 8312 § 4.6: 0.85 times the window."""
    sender = after_loss("cubic-quicly", 70_000)
    sender.controller.congestion_window = window
    sender.send(at_ms=300)
    sender.lose(sender.next_number - 1, at_ms=400)
    assert sender.controller._w_max == plateau


def test_quiclys_estimate_of_reno_counts_a_round_trip_of_no_time_as_a_nanosecond() -> None:
    sender = after_loss("cubic-quicly", 100_000)
    sender.rtt.smoothed_rtt_ns = 0
    sender.send(at_ms=100.0001)
    # 100 ns are 100 round trips, with 3 * 0.3 / 1.7 packets each.
    assert sender.ack(1, at_ms=100.0001) == int(70_000 + 100 * 1000 * (0.9 / 1.7))


# Linux


def test_linux_reduces_once_per_round_trip_for_marks() -> None:
    sender = Sender("cubic-linux", window=100_000)
    sender.controller.on_congestion_experienced(ms(50), ms(100))
    assert sender.window == 70_000
    sender.controller.on_congestion_experienced(ms(100), ms(150))  # sent before the reduction
    assert sender.window == 70_000
    sender.controller.on_congestion_experienced(ms(100) + 1, ms(200))
    assert sender.window == 49_000
    at_once = Sender("cubic-linux", window=100_000)
    at_once.controller.on_congestion_experienced(0, 0)
    assert at_once.window == 70_000


@pytest.mark.parametrize("name", ["cubic-quicly", "cubic"])
def test_time_without_anything_in_flight_does_not_advance_the_curve(name: str) -> None:
    """RFC 9438 § 5.8: a pause of a minute changes nothing."""
    windows = []
    for pause_ms in (0, 100, 60_000):
        sender = after_loss(name, 19_000)
        sender.exchange(at_ms=200)
        sender.others_bytes = 1000 if pause_ms == 0 else 0
        sender.exchange(at_ms=200 + pause_ms)
        sender.others_bytes = 1000
        windows.append([sender.exchange(at_ms=200 + pause_ms + 20 * n) for n in range(200)])
    assert windows[0] == windows[1] == windows[2]
    assert windows[0][-1] > windows[0][0]

"""Laws that any congestion controller can be held to, and cases of the document that it follows.

A law puts new controllers on paths and looks only at their windows and pacing rates. Some laws are
those of all controllers; others hold for what follows a document (`DOCUMENTS`).

>>> from h3sim.transport.congestion import NewRenoController
>>> report = check_controller(NewRenoController, follows="newreno")
>>> report.broken
()
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from h3sim.conformance.controller_cases import (
    BBR_CASES,
    Case,
    convergence,
    curve,
    friendly,
    near,
    reduction,
)
from h3sim.conformance.controller_paths import BDP, RATE_BPS, SIZE, Rounds, SimulatedPath
from h3sim.transport.congestion import CongestionController, make_controller
from h3sim.values import rng
from h3sim.values.errors import ControllerError, H3SimError
from h3sim.values.table import Table
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.conformance.controller_paths import Factory

    Check = Callable[[Factory], Case]

__all__ = ["DOCUMENTS", "ControllerReport", "check_controller"]


class ControllerReport(NamedTuple):
    """The cases of a controller, each with what was expected and seen."""

    controller: str
    cases: tuple[Case, ...]

    @property
    def broken(self) -> tuple[Case, ...]:
        """The cases that do not hold."""
        return tuple(case for case in self.cases if not case.holds)

    def __str__(self) -> str:
        rows = [(*case[:3], "yes" if case.holds else "no") for case in self.cases]
        table = Table(["law or case", "expected", "seen", "holds"], rows)
        n_held = len(self.cases) - len(self.broken)
        return f"{self.controller}: {n_held} of {len(self.cases)} hold\n{table}"


def check_controller(
    factory: Factory, *, follows: str | None = None, name: str | None = None
) -> ControllerReport:
    """Return how a controller fares; *factory* takes `ControllerSettings` and makes one.

    *follows* is a document of `DOCUMENTS`, whose cases are checked as well. A controller that
    raises, or sets an invalid window or rate, breaks the law in which it does.
    """
    label = name or str(getattr(factory, "__name__", type(factory).__name__))
    make = partial(make_controller, label, factory=factory)
    checks = (*_LAWS, *(DOCUMENTS[follows] if follows else ()))
    return ControllerReport(label, tuple(_checked(check, make) for check in checks))


def _checked(check: Check, make: Factory) -> Case:
    try:
        return check(make)
    except H3SimError as error:
        title = str(getattr(check, "keywords", {}).get("title", "")) or _title_of(check)
        return Case(title, "an answer", str(error).partition("\n")[0], False)


def _title_of(check: Check) -> str:
    """Return a title made of the name of a function."""
    inner = getattr(check, "func", check)
    inner = check.args[0] if isinstance(check, partial) and check.args else inner  # a BBR case
    return str(getattr(inner, "__name__", "case")).strip("_").replace("_", " ")


# Laws of all controllers


def _fills_the_path(make: Factory) -> Case:
    path = SimulatedPath(make)
    path.queue_bytes = 2 * BDP
    path.run(5)
    before = path.delivered_bytes
    path.run(5)
    return _uses("a path without losses is used", path.delivered_bytes - before, 5, 0.8)


def _comes_back(make: Factory) -> Case:
    path = SimulatedPath(make)
    path.queue_bytes = 2 * BDP
    lots = rng.substream(1, "losses")
    path.run(2)
    path.loses = lambda _: lots.random() < 0.4
    path.run(3)
    path.controller.on_persistent_congestion(path.now_ns)
    path.loses = lambda _: False
    path.run(12)
    before = path.delivered_bytes
    path.run(4)
    return _uses("it comes back after heavy losses", path.delivered_bytes - before, 4, 0.5)


def _yields(make: Factory) -> Case:
    path = SimulatedPath(make, rate_bps=RATE_BPS)
    path.queue_bytes = BDP
    path.run(4)
    path.rate_bps = RATE_BPS // 10
    path.run(10)
    lost, sent = path.lost, path.next_number
    path.run(10)
    share = (path.lost - lost) / max(1, path.next_number - sent)
    title = "it yields to a path of a tenth of the rate"
    return Case(title, "less than 20 % lost", f"{100 * share:.1f} % lost", share < 0.2)


def _begins_slowly(make: Factory) -> Case:
    path = SimulatedPath(make)
    before = path.controller.congestion_window
    worst = 0.0
    path.until(lambda: path.round >= 6)
    for window in path.windows[:6]:
        worst = max(worst, (window - 2 * SIZE) / before)
        before = window
    is_right = worst <= 2.05 and path.windows[5] >= 4 * 10 * SIZE
    seen = f"at most {worst:.2f}, {path.windows[5] // SIZE} packets after 6 round trips"
    return Case("slow start doubles a window per round trip", "at most 2, and 40", seen, is_right)


def _is_deterministic(make: Factory) -> Case:
    return Case("equal histories give equal windows", "equal", *_compared(make, n_beside=0))


def _stands_alone(make: Factory) -> Case:
    return Case("controllers share no state", "as alone", *_compared(make, n_beside=1))


def _compared(make: Factory, *, n_beside: int) -> tuple[str, bool]:
    """Return whether two runs agree, the second of them beside others."""
    alone = list(_lossy_windows(make))
    others = [_lossy_windows(make) for _ in range(n_beside)]
    for other in others:
        for _ in zip(range(5), other, strict=False):  # ahead by a few round trips
            pass
    beside = []
    for window in _lossy_windows(make):
        beside.append(window)
        for other in others:
            next(other, None)
    differing = [n for n, pair in enumerate(zip(alone, beside, strict=True)) if len({*pair}) > 1]
    seen = f"differ from round trip {differing[0]} on" if differing else "equal"
    return seen, not differing


def _lossy_windows(make: Factory) -> Iterator[int]:
    """Yield the window after each round trip of a path with losses."""
    path = SimulatedPath(make)
    path.queue_bytes = BDP
    path.loses = lambda number: number % 211 == 100
    for n in range(40):
        path.until(partial(_is_at, path, n))
        yield path.controller.congestion_window


def _is_at(path: SimulatedPath, n_rounds: int) -> bool:
    return path.round > n_rounds


def _earns_nothing_idle(make: Factory) -> Case:
    path = SimulatedPath(make)
    path.queue_bytes = 2 * BDP
    path.run(4)
    path.app_bps = RATE_BPS // 20
    path.run(1)
    before = max(path.windows)
    path.pause(30)
    path.until(lambda: path.round > len(path.windows) - 1, 0.1)
    ratio = path.controller.congestion_window / before
    return Case("silence earns no window", "at most 1.2", f"{ratio:.2f}", ratio <= 1.2)


def _takes_large_packets(make: Factory) -> Case:
    size = 9000
    from h3sim.transport.congestion import ControllerSettings  # beside its checks

    controller = make(ControllerSettings(max_datagram_bytes=size, rate_bps=RATE_BPS))
    controller.on_persistent_congestion(ms(1))
    window = controller.congestion_window
    seen = f"{window / size:.2f} packets"
    return Case("a window holds a packet of 9000 bytes", "at least 1", seen, window >= size)


def _undoes_at_most(make: Factory) -> Case:
    rounds = Rounds(make)
    before = rounds.segments
    rounds.lose()
    reduced = rounds.segments
    rounds.controller.on_spurious_loss(rounds.now_ns)
    seen = f"{before:.1f} > {reduced:.1f} > {rounds.segments:.1f} packets"
    is_right = min(before, reduced) <= rounds.segments <= max(before, reduced)
    return Case("an undone loss gives back what it took", "at most that", seen, is_right)


def _uses(title: str, n_bytes: int, seconds: float, least: float) -> Case:
    used = n_bytes * 8 / seconds / RATE_BPS
    return Case(title, f"at least {100 * least:.0f} %", f"{100 * used:.1f} %", used >= least)


_LAWS: Final[tuple[Check, ...]] = (
    *(_fills_the_path, _comes_back, _yields, _begins_slowly, _is_deterministic, _stands_alone),
    *(_earns_nothing_idle, _takes_large_packets, _undoes_at_most),
)


# Laws of RFC 9002 § 7, which CUBIC keeps as well (RFC 9438 § 4)


def _once_per_round_trip(make: Factory) -> Case:
    rounds = Rounds(make)
    packets = rounds.send(10)
    rounds.now_ns += ms(50)
    controller, n_bytes = rounds.controller, rounds.controller.congestion_window
    controller.on_lost(packets[:2], rounds.now_ns, n_bytes, rounds.number)
    once = rounds.segments
    rounds.now_ns += ms(1)
    controller.on_lost(packets[5:6], rounds.now_ns, n_bytes, rounds.number)
    seen = f"{once:.1f}, then {rounds.segments:.1f} packets"
    is_right = rounds.segments == once < 100
    return Case("a window is reduced once per round trip", "once", seen, is_right)


def _holds_in_recovery(make: Factory) -> Case:
    rounds = Rounds(make)
    packets = rounds.send(100)
    rounds.now_ns += rounds.rtt_ns
    n_bytes = SIZE * len(packets)
    rounds.controller.on_lost(packets[:1], rounds.now_ns, n_bytes, rounds.number)
    reduced = rounds.segments
    acked = packets[1:]
    rounds.controller.on_acked(acked, rounds.now_ns + 1, rounds.rtt, n_bytes - SIZE, False)
    seen = f"{reduced:.1f}, then {rounds.segments:.1f} packets"
    is_right = rounds.segments <= reduced + 0.001
    return Case("packets sent before a loss earn nothing", "no growth", seen, is_right)


def _holds_if_unused(make: Factory) -> Case:
    rounds = Rounds(make)
    packets = rounds.send(50)
    rounds.now_ns += rounds.rtt_ns
    rounds.controller.on_acked(packets, rounds.now_ns, rounds.rtt, SIZE * 50, True)
    seen = f"{rounds.segments:.1f} of 100 packets"
    return Case("an unused window does not grow", "100", seen, rounds.segments == 100)


def _counts_bytes(make: Factory) -> Case:
    grown = []
    for every in (1, 10):
        rounds = Rounds(make)
        packets = rounds.send(100)
        rounds.now_ns += rounds.rtt_ns
        for n in range(0, 100, every):
            acked, n_bytes = packets[n : n + every], SIZE * (100 - n)
            rounds.controller.on_acked(acked, rounds.now_ns, rounds.rtt, n_bytes, False)
        grown.append(rounds.segments)
    seen = f"{grown[0]:.1f} and {grown[1]:.1f} packets"
    is_right = abs(grown[0] - grown[1]) <= 1
    return Case("growth counts bytes, not ACKs", "the same for 1 and 10", seen, is_right)


def _collapses(make: Factory) -> Case:
    rounds = Rounds(make)
    rounds.lose()
    rounds.controller.on_persistent_congestion(rounds.now_ns)
    seen = f"{rounds.segments:.1f} packets"
    is_right = rounds.segments <= 2
    return Case("persistent congestion leaves the minimum", "2 packets", seen, is_right)


def _heeds_marks(make: Factory) -> Case:
    rounds = Rounds(make)
    title = "a mark reduces the window once"
    if not rounds.controller.responds_to_ecn:
        return Case(title, "if it responds to marks", "it does not", True)
    rounds.send(10)
    rounds.now_ns += ms(100)
    rounds.controller.on_congestion_experienced(ms(50), rounds.now_ns)
    once = rounds.segments
    rounds.controller.on_congestion_experienced(ms(60), rounds.now_ns + 1)
    seen = f"{once:.1f}, then {rounds.segments:.1f} packets"
    return Case(title, "once", seen, rounds.segments == once < 100)


def _doubles(make: Factory) -> Case:
    rounds = Rounds(make, segments=10)
    rounds.round()
    return near("slow start from 10 packets", 20, rounds.segments, within=0)


_OF_LOSSES: Final[tuple[Check, ...]] = (
    *(_once_per_round_trip, _holds_in_recovery, _holds_if_unused, _counts_bytes),
    *(_collapses, _heeds_marks, _doubles),
)


def _halves(make: Factory) -> Case:
    rounds = Rounds(make)
    rounds.lose()
    return near("newreno: window after a loss at 100 packets", 50, rounds.segments, within=0.001)


def _grows_by_one(make: Factory) -> Case:
    rounds = Rounds(make)
    rounds.lose()
    rounds.round()
    before = rounds.segments
    for _ in range(10):
        rounds.round()
    seen = (rounds.segments - before) / 10
    return near("newreno: packets per round trip", 1, seen, within=0.05)


def _bbr(case: Callable[..., Case], make: Factory) -> Case:
    try:
        return case(partial(SimulatedPath, make))
    except AttributeError as error:
        # The variables of the draft are read from the controller; other errors are our own.
        if not isinstance(error.obj, CongestionController):
            raise
        message = f"has no attribute {error.name}, which the case reads"
        raise ControllerError(type(error.obj).__name__, message) from error


def _cubic(case: Callable[..., Case], make: Factory, *values: float) -> Case:
    return case(make, "cubic", *values)


def _converges(make: Factory) -> Case:
    return convergence(make, "cubic", 3.107)


DOCUMENTS: Final[dict[str, tuple[Check, ...]]] = {
    "newreno": (*_OF_LOSSES, _halves, _grows_by_one),
    "cubic": (
        *_OF_LOSSES,
        *(partial(_cubic, case) for case in (reduction, curve, friendly)),
        _converges,
    ),
    "bbr": tuple(partial(_bbr, case) for case in BBR_CASES),
}
"""The checks of RFC 9002, RFC 9438, and draft-ietf-ccwg-bbr-06, by the controller's name."""

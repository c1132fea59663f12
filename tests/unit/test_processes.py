"""SimPy processes beside a load, worked out by hand."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest
import simpy

import h3sim
from h3sim.engine import environment
from h3sim.schedulers import FifoScheduler
from h3sim.transport import LinkProfile, Network
from h3sim.values.errors import InputError, NetworkError, StalledError
from h3sim.values.units import mbps, ms
from h3sim.values.versions import build
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from h3sim.engine import LoadEnvironment

PAGE = page_of({"id": "/", "kind": "document", "bytes": 600})
LINKS = Network(
    name="x",
    rtt_ns=ms(20),
    down=LinkProfile(rate_bps=mbps(1), burst_bytes=0, queue_bytes=100_000),
    up=LinkProfile(),
)


def finished_ms(page: Any = PAGE, network: Any = LINKS, **options: Any) -> float:
    load = h3sim.simulate(page, scheme="fifo", network=network, handshake=False, **options)
    return load.page_load_ms


def test_cross_traffic_is_waited_for() -> None:
    # The request comes at 10 ms. From 5 to 15 ms the link sends 1250 bytes of somebody else.
    def other(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(ms(5))
        assert env.down.send(1250) == ms(5 + 10 + 10)

    assert finished_ms(processes=[other]) == pytest.approx(finished_ms() + 5, abs=1e-9)


def test_a_foreign_packet_may_have_one_byte_and_not_none() -> None:
    def small(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(0)
        assert env.down.send(1) == 8_000 + ms(10)
        with pytest.raises(NetworkError, match="is 0"):
            env.down.send(0)

    finished_ms(processes=[small])


def test_a_rate_holds_for_what_is_sent_from_then_on() -> None:
    def half(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(ms(9))
        env.down.set_rate(mbps(0.5))

    # Of the time since the request came at 10 ms, 10 are the way back and the rest is sending.
    sending_ms = finished_ms() - 20
    assert finished_ms(processes=[half]) == pytest.approx(20 + 2 * sending_ms, abs=1e-6)


def test_what_waits_leaves_when_it_was_going_to() -> None:
    seen: list[int | None] = []

    def busy(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        seen.append(env.down.send(1250))
        yield env.timeout(ms(1))
        env.down.set_rate(mbps(10))
        seen.append(env.down.send(1250))

    finished_ms(processes=[busy])
    assert seen == [ms(10 + 10), ms(10 + 1 + 10)]


def test_all_is_lost_and_counted_while_a_link_is_gone() -> None:
    counts: list[tuple[int, int]] = []

    def gone(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        env.down.set_loss(0.999999)
        yield env.timeout(ms(50))
        counts.append((env.down.offered, env.down.loss_drops))
        env.down.set_loss(0)

    assert finished_ms(processes=[gone]) > 50
    assert counts[0][0] == counts[0][1] > 0


def test_a_process_goes_on_behind_the_load_at_the_same_instant() -> None:
    sent: list[int] = []

    def watch(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(ms(10))  # when the request comes, which is answered at once
        sent.append(env.down.offered)

    finished_ms(processes=[watch])
    assert sent == [1]


def test_a_process_that_never_ends_does_not_keep_a_load_from_it() -> None:
    ticks: list[int] = []

    def clock(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        while True:
            ticks.append(env.now)  # type: ignore[arg-type]
            yield env.timeout(ms(1))

    assert finished_ms(network="marx-2019", processes=[clock]) == 10.0
    assert ticks == [ms(n) for n in range(10)]


class Idle(FifoScheduler):
    """Never sends."""

    def pick(self) -> None:
        return None


def test_a_load_that_cannot_end_is_given_up_whatever_goes_on_next_to_it() -> None:
    def clock(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        while True:
            yield env.timeout(ms(60_000))

    with pytest.raises(StalledError, match="3600"):
        h3sim.simulate(PAGE, scheduler=Idle, network="marx-2019", processes=[clock])


def test_a_scheduler_is_suspected_only_if_it_is_custom() -> None:
    def gone(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        env.down.set_loss(0.999999)
        yield env.timeout(ms(4_000_000))

    with pytest.raises(StalledError) as caught:
        finished_ms(processes=[gone])
    assert "scheduler" not in str(caught.value)
    with pytest.raises(StalledError, match=r"does the scheduler .*Idle.* pick none"):
        h3sim.simulate(PAGE, scheduler=Idle, network=LINKS)


@pytest.mark.skipif(build() == "compiled", reason="no part of it can be replaced")
def test_a_process_that_goes_round_without_time_is_given_up(monkeypatch: Any) -> None:
    monkeypatch.setattr(environment, "_MAX_PROCESS_EVENTS", 1000)

    def spin(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        while True:
            yield env.timeout(0)

    with pytest.raises(StalledError, match=r"1,000 events.*: the processes beside it had them all"):
        finished_ms(processes=[spin])


@pytest.mark.parametrize("value", [5, None, ms(5), "x"])
def test_what_a_process_yields_that_is_no_event_is_reported_with_its_name(value: Any) -> None:
    def hasty(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(1)
        yield value

    with pytest.raises(InputError) as caught:
        finished_ms(processes=[hasty])
    requested = "it must yield events, such as env.timeout(ms(5))"
    assert str(caught.value) == f"processes: hasty yields {value!r}; {requested}"


@pytest.mark.parametrize("delay", [1.5, float("nan"), float("inf")])
def test_a_delay_that_is_no_integer_is_refused_as_one(delay: Any) -> None:
    def clock(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(delay)

    with pytest.raises(ValueError, match=rf"a delay is whole nanoseconds .*, not {delay!r}"):
        finished_ms(processes=[clock])


def test_a_process_may_sleep_for_longer_than_a_float_can_express() -> None:
    def sleeper(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(10**400)

    assert finished_ms(processes=[sleeper]) == finished_ms()


def test_processes_are_resumed_as_simpy_does_it() -> None:
    reported: list[Any] = []

    def child(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        try:
            yield env.timeout(ms(100))
        except simpy.Interrupt as interrupt:
            reported.append((env.now, interrupt.cause))
        return "done"

    def parent(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        running = env.process(child(env))
        reported.append((yield env.timeout(ms(1), value="slept")))
        running.interrupt("enough")
        reported.append((yield running))
        failing = env.event()
        failing.fail(LookupError("lost"))
        try:
            yield failing
        except LookupError as error:
            reported.append(str(error))

    finished_ms(processes=[parent])
    assert reported == ["slept", (ms(1), "enough"), "done", "lost"]


def test_what_a_process_raises_comes_out() -> None:
    def broken(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(1)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        finished_ms(processes=[broken])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda env: env.timeout(1.5), "whole nanoseconds"),
        (lambda env: env.down.set_rate(0), "rate_mbps: must be a whole number of bit/s above 0"),
        (lambda env: env.down.set_rate(1e6), "must be a whole number of bit/s above 0, is 1000000"),
        (lambda env: env.down.set_loss(1), "loss: must be 0 up to, but without, 1"),
        (lambda env: env.down.set_loss("2%"), "loss: must be 0 up to, but without, 1, is '2%'"),
        (lambda env: env.down.send(-1), "n_bytes: must be a whole number of bytes, 1 to 65,535"),
        (lambda env: env.down.send(1.5), "n_bytes: must be a whole number of bytes, 1 to 65,535"),
        (lambda env: env.down.send(65_536), "n_bytes: must be a whole number of bytes"),
        (lambda env: env.up.set_rate(1), "rate_mbps: cannot change: this link has no rate"),
    ],
)
def test_an_impossible_change_is_reported(change: Any, message: str) -> None:
    def process(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        change(env)
        yield env.timeout(1)

    with pytest.raises(ValueError, match=message):
        finished_ms(processes=[process])


def test_a_process_without_a_yield_is_reported_by_its_name() -> None:
    def forgetful(env: LoadEnvironment) -> Any:
        env.timeout(1)

    with pytest.raises(InputError, match="processes: forgetful must be a generator function"):
        finished_ms(processes=[forgetful])


def test_a_constant_rate_has_no_links_to_change() -> None:
    def process(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        env.up.set_loss(0.1)
        yield env.timeout(1)

    with pytest.raises(NetworkError, match="up: is not there: a network of a constant rate"):
        finished_ms(network="marx-2019", processes=[process])


def test_a_load_has_come_to_its_end_only_once_it_was_stopped() -> None:
    env = environment.LoadEnvironment()
    assert not env.run_load()  # nothing was left to happen
    env.after(5, environment.EventPriority.SEND, lambda value, now_ns: env.stop(), None)
    env.after(
        6, environment.EventPriority.SEND, lambda value, now_ns: pytest.fail("too late"), None
    )
    assert env.run_load()
    assert (env.now_ns, env.has_overrun) == (5, False)


class Noting(FifoScheduler):
    """Notes at each turn whether Python looks for cycles."""

    def pick(self) -> int | None:
        COLLECTING.append(gc.isenabled())
        return super().pick()


COLLECTING: list[bool] = []


def test_cycles_are_looked_for_where_a_process_may_leave_some() -> None:
    def nothing(env: LoadEnvironment) -> Generator[Any, Any, Any]:
        yield env.timeout(0)

    # A load itself leaves none, so beside no process nobody looks.
    for processes, expected in (([nothing], {True}), ([], {False})):
        COLLECTING.clear()
        h3sim.simulate(PAGE, scheduler=Noting, network=LINKS, processes=processes)
        assert set(COLLECTING) == expected

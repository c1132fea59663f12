"""What documents say of congestion controllers, as cases: BBR's draft, and RFC 9438."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from h3sim.conformance.controller_paths import BDP, RATE_BPS, SIZE, Rounds, S, SimulatedPath
from h3sim.transport.congestion.bbr_output import BbrState
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.conformance.controller_paths import Factory

    NewPath = Callable[..., SimulatedPath]

_UP, _DOWN, _CRUISE = BbrState.PROBE_BW_UP, BbrState.PROBE_BW_DOWN, BbrState.PROBE_BW_CRUISE
_REFILL, _STARTUP, _DRAIN = BbrState.PROBE_BW_REFILL, BbrState.STARTUP, BbrState.DRAIN


class Case(NamedTuple):
    """A case: what the document expects, what was seen, and whether that agrees."""

    title: str
    expected: str
    seen: str
    holds: bool


def _names(path: SimulatedPath, n_last: int) -> str:
    return " > ".join(
        str(state and state.value).removeprefix("probe_bw_")
        for _, state, _ in path.states[-n_last:]
    )


def _share(value: float, of: float = RATE_BPS) -> str:
    return f"{100 * value / of:.1f} %"


def _burst(path: SimulatedPath, every: int, n_packets: int = 10**9) -> Callable[[int], bool]:
    """Return a rule that loses each *every*-th of the next packets."""
    first = path.next_number
    return lambda number: number % every == 0 and first <= number < first + n_packets


def _startup_plateau(new: NewPath) -> Case:
    path = new().reach(_DRAIN)
    base = grown = 0
    for n, rate_bps in enumerate(path.rounds):
        if rate_bps >= 1.25 * base:
            base, grown = rate_bps, n
    n_rounds = len(path.rounds) - 1 - grown
    bandwidth = path.model.max_bandwidth_bps
    seen = f"DRAIN after {n_rounds} rounds, {_share(bandwidth)} of the rate"
    is_right = n_rounds == 3 and abs(bandwidth / RATE_BPS - 1) < 0.02
    return Case("Exiting STARTUP on bandwidth plateau", "3 rounds, within 2 %", seen, is_right)


def _startup_loss(new: NewPath) -> Case:
    path = new()
    path.app_bps = RATE_BPS * 8 // 10
    path.run(1)
    path.loses = _burst(path, 4)
    path.until(lambda: path.state is not _STARTUP, 3)
    seen = f"{_names(path, 2)}, at {_share(path.model.max_bandwidth_bps)} of the rate"
    is_right = path.state in {_DRAIN, _DOWN}
    return Case(
        "Exiting STARTUP on loss, app-limited", "drain, down if it is empty", seen, is_right
    )


def _drain_inflight(new: NewPath) -> Case:
    path = new().reach(_DRAIN)
    gain = path.model.pacing_gain
    path.until(lambda: path.state is not _DRAIN)
    most = BDP + 3 * SIZE
    seen = f"gain {gain}, left at {_share(path.in_flight, BDP)} of a BDP"
    return Case(
        "Exiting DRAIN based on inflight",
        "gain 0.5, about 1 BDP",
        seen,
        gain == 0.5 and path.state in {_DOWN, _CRUISE} and path.in_flight <= most,
    )


def _drain_time(new: NewPath) -> Case:
    path = new().reach(_DRAIN)
    path.rate_bps = int(0.4 * RATE_BPS)
    _, _, began = path.states[-1]
    path.until(lambda: path.state is not _DRAIN)
    n_rounds, flight = path.states[-1][2] - began, path.in_flight
    seen = f"{n_rounds} rounds, {_share(flight, BDP)} of a BDP in flight"
    return Case(
        "Exiting DRAIN based on time",
        "after more than 3 rounds, above 1 BDP",
        seen,
        n_rounds in {3, 4} and flight > BDP,
    )


def _up_plateau(new: NewPath) -> Case:
    path = new().reach(_UP)
    began = path.states[-1][2]
    path.until(lambda: path.state is not _UP)
    n_rounds = path.states[-1][2] - began
    seen = f"{_names(path, 2)} after {n_rounds} rounds, {path.lost} lost"
    is_right = path.state is _DOWN and n_rounds in {3, 4}
    return Case("Exiting PROBE_UP on bandwidth plateau", "3 rounds, then down", seen, is_right)


def _up_loss_limited(new: NewPath) -> Case:
    path = new().reach(_UP)
    path.app_bps = RATE_BPS * 8 // 10
    path.loses = _burst(path, 5)
    path.until(lambda: path.state is not _UP, 3)
    seen = f"{_names(path, 2)}"
    return Case("Exiting PROBE_UP on loss, app-limited", "up > down", seen, path.state is _DOWN)


def _never_limited(new: NewPath) -> Case:
    path = new()
    path.app_bps = RATE_BPS // 3
    path.run(12)
    seen = sorted({str(state and state.value) for _, state, _ in path.states})
    is_right = set(seen) <= {"startup", "probe_rtt"} and path.state is _STARTUP
    return Case("Never exiting STARTUP, app-limited, no loss", "startup", ", ".join(seen), is_right)


def _down_inflight(new: NewPath) -> Case:
    path = new().reach(_UP).reach(_DOWN)
    gain = path.model.pacing_gain
    path.until(lambda: path.state is not _DOWN)
    seen = f"gain {gain}, {_names(path, 2)} at {_share(path.in_flight, BDP)} of a BDP"
    is_right = gain == 0.9 and path.state is _CRUISE and path.in_flight <= BDP + 3 * SIZE
    return Case("Exiting PROBE_DOWN on inflight", "gain 0.9, cruise at 1 BDP", seen, is_right)


def _down_time(new: NewPath) -> Case:
    path = new().reach(_UP).reach(_DOWN)
    began_ns = path.now_ns
    path.rate_bps = int(0.85 * RATE_BPS)
    path.until(lambda: path.state is not _DOWN)
    seen = f"{_names(path, 2)} after {(path.now_ns - began_ns) / S:.1f} s"
    return Case("Exiting PROBE_DOWN after max time", "down > refill", seen, path.state is _REFILL)


def _probe_rtt(new: NewPath) -> Case:
    path = new().reach(BbrState.PROBE_RTT)
    began_ns = path.now_ns
    path.run(0.15)
    window = path.model.congestion_window
    path.until(lambda: path.state is not BbrState.PROBE_RTT)
    took_ms = (path.now_ns - began_ns) / ms(1)
    seen = f"at {began_ns / S:.1f} s, window {_share(window, BDP)}, {took_ms:.0f} ms"
    is_right = 200 <= took_ms <= 300 and window <= 0.55 * BDP and path.state is _CRUISE
    return Case(
        "Entering and exiting PROBE_RTT", "5 s, half a BDP, 200 ms and a round", seen, is_right
    )


def _skip_probe_rtt(new: NewPath) -> Case:
    path = new().run(3).pause(6)
    before = len(path.states)
    path.run(1)
    seen = _names(path, len(path.states) - before + 1)
    return Case("Skipping PROBE_RTT after idle time", "no probe_rtt", seen, "rtt" not in seen)


def _startup_aggregated(new: NewPath) -> Case:
    path = new()
    path.acks_every_ns = ms(20)
    path.until(lambda: path.state is not _STARTUP)
    found, window = path.model.max_bandwidth_bps, path.model.congestion_window
    seen = f"{_share(found)} of the rate, window {window / BDP:.1f} BDP"
    is_right = 0.9 < found / RATE_BPS < 1.25 and window > 2 * BDP
    return Case("STARTUP bandwidth with aggregation", "the rate, above 2 BDP", seen, is_right)


def _cruise_aggregated(new: NewPath) -> Case:
    path = new().reach(_CRUISE)
    path.acks_every_ns = ms(60)
    path.run(1)
    before, began_ns = path.delivered_bytes, path.now_ns
    path.run(3)
    used = (path.delivered_bytes - before) * 8 * S / (path.now_ns - began_ns)
    seen = f"{_share(used)} of the rate, window {path.model.congestion_window / BDP:.1f} BDP"
    return Case("Cruise bandwidth with aggregation", "full use", seen, used > 0.93 * RATE_BPS)


def _sub_packet(new: NewPath) -> Case:
    path = new(rate_bps=1_000_000, rtt_ns=ms(5)).run(6)
    window = path.model.congestion_window // SIZE
    before = path.delivered_bytes
    path.run(4)
    used, found = (path.delivered_bytes - before) * 2, path.model.max_bandwidth_bps
    seen = f"{window} packets, {_share(used, 1_000_000)} used, max_bw {_share(found, 1_000_000)}"
    is_right = window >= 4 and abs(found / 1_000_000 - 1) < 0.02 and used > 930_000
    return Case("Sub-packet BDPs", "at least 4 packets, the rate", seen, is_right)


def _ten_times_more(new: NewPath) -> Case:
    path = new().reach(_CRUISE)
    path.rate_bps = 10 * RATE_BPS
    began, began_ns = path.round, path.now_ns
    path.until(lambda: path.model.max_bandwidth_bps > 9 * RATE_BPS)
    n_rounds = path.round - began
    seen = f"after {n_rounds} rounds, {(path.now_ns - began_ns) / S:.1f} s"
    return Case("Increasing bandwidth 10x", "O(log BDP) rounds of a probe", seen, n_rounds < 100)


def _ten_times_less(new: NewPath) -> Case:
    path = new(rate_bps=10 * RATE_BPS)
    path.queue_bytes = 10 * BDP
    path.reach(_CRUISE)
    path.rate_bps = RATE_BPS
    began_ns, n_before = path.now_ns, len(path.states)
    path.until(lambda: path.model.bandwidth_shortterm_bps < 5 * RATE_BPS, 5)
    short_s = (path.now_ns - began_ns) / S
    path.until(lambda: path.model.max_bandwidth_bps < 1.1 * RATE_BPS, 30)
    n_cycles = sum(state is _UP for _, state, _ in path.states[n_before:])
    seen = f"short term {short_s:.1f} s, max_bw after {n_cycles} cycles"
    is_right = short_s < 2 and path.model.max_bandwidth_bps < 1.1 * RATE_BPS and n_cycles <= 3
    return Case("Decreasing bandwidth 10x", "losses at once, max_bw after 2 cycles", seen, is_right)


def _policer(new: NewPath) -> Case:
    path = new(rate_bps=10 * RATE_BPS)
    path.policer = (RATE_BPS, 2 * BDP)
    path.run(10)
    lost, sent, before = path.lost, path.next_number, path.delivered_bytes
    path.run(10)
    share = (path.lost - lost) / (path.next_number - sent)
    rate = (path.delivered_bytes - before) * 8 / 10
    seen = f"{_share(rate)} of the tokens, {100 * share:.1f} % lost"
    is_right = rate > 0.7 * RATE_BPS and share < 0.05
    return Case("Token bucket policers", "near the tokens, little loss", seen, is_right)


def _spurious(new: NewPath, *, is_timeout: bool) -> Case:
    path = new().reach(_UP)
    path.run(0.02)
    bbr = path.model
    before = (bbr.congestion_window, bbr.inflight_longterm)
    numbers = sorted(path.sent)[: len(path.sent) if is_timeout else len(path.sent) // 2]
    late = [path.sent.pop(number) for number in numbers]
    path.report(late, is_lost=True)
    if is_timeout:
        bbr.on_persistent_congestion(path.now_ns)
    reduced = (bbr.congestion_window, bbr.inflight_longterm, bbr.state)
    bbr.on_spurious_loss(path.now_ns)
    after = (bbr.congestion_window, bbr.inflight_longterm)
    kind = "RTO" if is_timeout else "fast"
    bounds = "as before" if after >= before else "lower"
    seen = f"{reduced[2].value}, then {bbr.state.value}; bounds {bounds}"
    return Case(
        f"Spurious {kind} recovery",
        "down, then refill; bounds as before",
        seen.replace("probe_bw_", ""),
        reduced[2] is _DOWN and bbr.state is _REFILL and after >= before,
    )


def _probe_rtt_in_startup(new: NewPath) -> Case:
    path = new()
    path.app_bps = RATE_BPS // 3
    path.reach(BbrState.PROBE_RTT)
    path.until(lambda: path.state is not BbrState.PROBE_RTT, 2)
    is_right = path.state is _STARTUP
    return Case("PROBE_RTT during STARTUP", "back to startup", _names(path, 3), is_right)


def _up_loss(new: NewPath) -> Case:
    path = new()
    path.queue_bytes = BDP // 4
    path.reach(_UP).reach(_DOWN).reach(_UP)
    longterm = path.model.inflight_longterm
    path.loses = _burst(path, 8)
    path.until(lambda: path.state is not _UP, 3)
    now = path.model.inflight_longterm
    seen = f"{_names(path, 2)}, bound {longterm / BDP:.2f} > {now / BDP:.2f} BDP"
    is_right = path.state is _DOWN and 0 < now <= longterm < 1 << 60
    return Case("Loss during PROBE_UP with a bound", "up > down, lower bound", seen, is_right)


def _refill_limited(new: NewPath) -> Case:
    path = new().reach(_REFILL)
    before = path.model.max_bandwidth_bps
    path.app_bps = RATE_BPS // 10
    path.until(lambda: path.state is not _REFILL, 3)
    after = path.model.max_bandwidth_bps
    seen = f"{_names(path, 2)}, max_bw {_share(after, before)} of before"
    is_right = path.state is _UP and after >= before
    return Case("App-limited during PROBE_REFILL", "up, max_bw as before", seen, is_right)


BBR_CASES: tuple[Callable[[NewPath], Case], ...] = (
    *(_startup_plateau, _startup_loss, _drain_inflight, _drain_time, _up_plateau),
    *(_up_loss_limited, _never_limited, _down_inflight, _down_time, _probe_rtt, _skip_probe_rtt),
    *(_startup_aggregated, _cruise_aggregated, _sub_packet, _ten_times_more, _ten_times_less),
    *(_policer, partial(_spurious, is_timeout=False), partial(_spurious, is_timeout=True)),
    *(_probe_rtt_in_startup, _up_loss, _refill_limited),
)
"""The example cases of the draft, in the order of its appendix."""


def near(title: str, expected: float, seen: float, *, unit: str = "", within: float = 0.05) -> Case:
    """Return the case of a number that is expected *within* a share of itself."""
    is_near = abs(seen / expected - 1) <= within
    return Case(title, f"{expected:.4g}{unit}", f"{seen:.4g}{unit}", is_near)


def reduction(make: Factory, name: str) -> Case:
    """Return the case of a reduction by 30 %, from 100 segments (RFC 9438 § 4.6)."""
    rounds = Rounds(make, beta=0.7, rtt_ms=100, segments=100)
    rounds.lose()
    return near(f"{name}: window after a loss at 100 segments", 70, rounds.segments, within=0.001)


def curve(make: Factory, name: str) -> Case:
    """Return the case of the curve after a loss (RFC 9438 § 4.2).

    K = cbrt(W_max (1 - beta) / C) is 4.217 s; 10 segments above W_max 2.924 s later.
    """
    rounds = Rounds(make, beta=0.7, rtt_ms=150, segments=100)
    rounds.lose()
    seen_s = rounds.until(110)
    return near(f"{name}: from 70 to 110 segments", 7.141, seen_s, unit=" s")


def convergence(make: Factory, name: str, k_s: float) -> Case:
    """Return the case of two losses.

    A loss at 80 segments, below the last W_max: W_max is 68, and 78 come 2.924 s after K.

    K is cbrt((68 - 56) / C), 3.107 s (RFC 9438 § 4.2), or cbrt(68 (1 - beta) / C), 3.708 s (RFC
    8312 § 4.1).
    """
    rounds = Rounds(make, beta=0.7, rtt_ms=150, segments=100)
    rounds.lose()
    rounds.until(80)
    rounds.lose()
    seen_s = rounds.until(78)
    return near(f"{name}: from 56 to 78 segments", k_s + 2.924, seen_s, unit=" s")


def friendly(make: Factory, name: str, expected: float = 0.529, n_rounds: int = 20) -> Case:
    """Return the case of growth by alpha = 3 (1 - beta) / (1 + beta) per round trip of 5 ms."""
    rounds = Rounds(make, beta=0.7, rtt_ms=5, segments=100)
    rounds.lose()
    rounds.round()
    before = rounds.segments
    for _ in range(n_rounds):
        rounds.round()
    seen = (rounds.segments - before) / n_rounds
    return near(f"{name}: segments per short round trip", expected, seen, within=0.1)


def mean_window(make: Factory, name: str, loss: float, expected: float) -> Case:
    """Return a case of RFC 9438 § 5.2, table 1: C = 0.4, 100 ms."""
    rounds = Rounds(make, beta=0.7, rtt_ms=100, segments=round(expected))
    rounds.lose()
    sent = trips = 0
    for _ in range(12):
        in_cycle, n_trips = 0, 0
        while in_cycle < 1 / loss:
            in_cycle += rounds.round()
            n_trips += 1
        rounds.lose()
        sent, trips = sent + in_cycle, trips + n_trips
    return near(f"{name}: mean window, loss {loss:g}", expected, sent / trips, within=0.1)

"""What Sander 2022 found, beside what comes out of runs: a table and a verdict for each finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tabulate import tabulate

from validation.sander_deltas import Deltas, Results
from validation.sander_drops import by_controller, by_real_server
from validation.sander_runs import PARALLEL, SCHEMES

__all__ = ["FINDINGS", "Claim", "Finding"]

_BANDWIDTHS = tuple(f"sander-{rate}mbps-100ms" for rate in (1, 2, 5, 10))
_FASTEST = "sander-50mbps-100ms"
_BASE = "sander-2mbps-100ms"
_LOSSES = (_BASE, *(f"{_BASE}-{percent}pct" for percent in (1, 2, 5)))
_ROUND_TRIPS = ("sander-2mbps-10ms-2pct", "sander-2mbps-50ms-2pct", f"{_BASE}-2pct")
_BURSTS = (f"{_BASE}-2pct", *(f"{_BASE}-2pct-burst{n}" for n in (5, 10, 15)))
_BATCHED, _RR = "sander-batched-rr", "sander-rr"
_EPS = "sander-firefox-eps"

Figure = Callable[[str, str], Deltas]


class Claim(NamedTuple):
    """One thing that a finding says, and whether it came out."""

    text: str
    holds: bool


class Finding(NamedTuple):
    """A finding: what the paper says, over which cells; what makes tables and claims of runs."""

    id: str
    paper: str
    networks: tuple[str, ...]
    tables: Callable[[Results], list[str]]
    claims: Callable[[Results], list[Claim]]

    def report(self, results: Results) -> str:
        """Return the finding as text: the paper's words, tables, claims and a verdict."""
        claims = self.claims(results)
        held = sum(claim.holds for claim in claims)
        verdict = {0: "does not come out", len(claims): "comes out"}.get(held, "partly")
        marks = [f"  {'yes' if claim.holds else 'NO ':3} {claim.text}" for claim in claims]
        head = f"{self.id}: {self.paper}"
        last = f"{self.id}: {verdict} ({held} of {len(claims)})"
        return "\n".join([head, "", *self.tables(results), *marks, last])


def _short(scheme: str) -> str:
    return scheme.removeprefix("sander-")


def _table(
    results: Results,
    title: str,
    networks: Sequence[str],
    cell: Callable[[str, str], str],
    schemes: Sequence[str] = PARALLEL,
) -> str:
    headers = [title, *(results.title(network) for network in networks)]
    rows = [[_short(scheme), *(cell(n, scheme) for n in networks)] for scheme in schemes]
    return tabulate(rows, headers, disable_numparse=True) + "\n"


def _message(deltas: Deltas) -> str:
    """A median with its sign, then how many pages have less and more by over 5 %."""
    return f"{deltas.median:+.1%} ({deltas.less}:{deltas.more})"


def _deltas(
    networks: tuple[str, ...], schemes: Sequence[str] = PARALLEL, to: str | None = None
) -> Callable[[Results], list[str]]:
    def tables(results: Results) -> list[str]:
        other = {} if to is None else {"to": to}
        return [
            _table(results, title, networks, lambda n, s, f=f: _message(f(n, s, **other)), schemes)  # type: ignore[misc]
            for title, f in (
                ("bytes blocked", results.hol),
                ("SpeedIndex", results.speed),
                ("ByteIndex", results.bytes),
            )
        ]

    return tables


def _for_all(
    text: str, holds: Callable[[str], bool], schemes: Sequence[str] = PARALLEL
) -> list[Claim]:
    return [Claim(f"{_short(scheme)}: {text}", holds(scheme)) for scheme in schemes]


def _bandwidth_claims(results: Results) -> list[Claim]:
    slow, fast = _BANDWIDTHS[0], _BANDWIDTHS[-1]
    return [
        *_for_all(
            "bytes blocked are reduced less at 10 Mbit/s than at 1 (median)",
            lambda s: results.hol(fast, s).median > results.hol(slow, s).median,
        ),
        *_for_all(
            "more pages have more bytes blocked than with chrome at 10 Mbit/s than at 1",
            lambda s: results.hol(fast, s).more > results.hol(slow, s).more,
        ),
    ]


def _loss_free_claims(results: Results) -> list[Claim]:
    at_10 = results.hol(_BANDWIDTHS[-1], _RR).equal
    at_50 = results.losses(_FASTEST, SCHEMES).without
    return [
        Claim(
            f"some 30 % of the pages without a difference at 10 Mbit/s, +-15: {at_10:.0%}",
            0.15 <= at_10 <= 0.45,
        ),
        Claim(f"more than 80 % of the loads without loss at 50 Mbit/s: {at_50:.0%}", at_50 > 0.8),
    ]


def _loss_table(results: Results) -> list[str]:
    rows = []
    for network in (*_BANDWIDTHS, _FASTEST):
        losses = results.losses(network, SCHEMES)
        rows.append(
            [
                results.title(network),
                f"{losses.without:.0%}",
                *(f"{losses.rate_at(share):.1%}" for share in (0.25, 0.5, 0.75)),
                f"{losses.rate_at(0.5, only_with=True):.1%}",
                f"{losses.mean_burst:.1f}",
                f"{losses.burst_at(0.5)}",
                f"{losses.longest}",
            ]
        )
    headers = ("cell", "no loss", "rate: 25 %", "50 %", "75 %", "50 % with loss")
    bursts = ("burst: mean", "half of losses", "longest")
    return [
        tabulate(rows, (*headers, *bursts), disable_numparse=True) + "\n",
        by_controller(results.positions),
        by_real_server(),
    ]


def _queue_claims(results: Results) -> list[Claim]:
    longest = results.losses(_BANDWIDTHS[-1], SCHEMES).longest
    claims = [
        Claim(
            f"bursts of up to 20 packets at 10 Mbit/s, within a factor of 2: {longest}",
            10 <= longest <= 40,
        )
    ]
    for network in _BANDWIDTHS:
        median = results.losses(network, SCHEMES).rate_at(0.5, only_with=True)
        text = f"{results.title(network)}: the median loss rate of loads with loss is 2 to 7 %"
        claims.append(Claim(f"{text}: {median:.1%}", 0.02 <= median <= 0.07))
    return claims


def _random_claims(results: Results) -> list[Claim]:
    def least_reduced(network: str) -> bool:
        others = (results.hol(network, s).median for s in PARALLEL if s != _EPS)
        return results.hol(network, _EPS).median > max(others)

    return [
        *_for_all(
            "bytes blocked are reduced more at 5 % than at 0 % (median)",
            lambda s: results.hol(_LOSSES[-1], s).median < results.hol(_LOSSES[0], s).median,
        ),
        *(
            Claim(f"{results.title(n)}: firefox-eps reduces bytes blocked least", least_reduced(n))
            for n in _LOSSES[1:]
        ),
    ]


def _round_trip_claims(results: Results) -> list[Claim]:
    near, far = _ROUND_TRIPS[0], _ROUND_TRIPS[-1]
    rr = results.speed(near, _RR)
    share = rr.more / len(rr.values)
    return [
        *_for_all(
            "bytes blocked are reduced more at 10 ms than at 100 (median)",
            lambda s: results.hol(near, s).median < results.hol(far, s).median,
        ),
        *_for_all(
            "more pages have a worse SpeedIndex at 10 ms than at 100",
            lambda s: results.speed(near, s).more > results.speed(far, s).more,
        ),
        Claim(
            f"rr at 10 ms is worse on some 50 % of the pages, +-15: {share:.0%}",
            0.35 <= share <= 0.65,
        ),
    ]


def _burst_claims(results: Results) -> list[Claim]:
    single, long = _BURSTS[0], _BURSTS[-1]
    agnostic, firefox = PARALLEL[:2], PARALLEL[2:]
    worse = {s: results.speed(long, s).median for s in PARALLEL}
    return [
        *_for_all(
            "bytes blocked are reduced less in bursts of 15 than one by one (median)",
            lambda s: results.hol(long, s).median > results.hol(single, s).median,
        ),
        *_for_all(
            "fewer pages have a better SpeedIndex in bursts of 15 than one by one",
            lambda s: results.speed(long, s).less < results.speed(single, s).less,
        ),
        Claim(
            "rr and wrr have a worse SpeedIndex than both of firefox's in bursts of 15 (median)",
            min(worse[s] for s in agnostic) > max(worse[s] for s in firefox),
        ),
    ]


def _batched_tables(results: Results) -> list[str]:
    networks = _BURSTS
    return [
        *_deltas(networks, (_RR, _BATCHED))(results),
        "batched-rr relative to rr:\n",
        *_deltas(networks, (_BATCHED,), to=_RR)(results),
    ]


def _batched_claims(results: Results) -> list[Claim]:
    return [
        Claim(
            f"{results.title(n)}: {what} than with rr (median)", f(n, _BATCHED, to=_RR).median < 0
        )
        for n in _BURSTS[1:]
        for what, f in (
            ("fewer bytes blocked", results.hol),
            ("a better SpeedIndex", results.speed),
        )
    ]


FINDINGS = (
    Finding(
        "sander-1",
        "without added loss, parallel schemes reduce bytes blocked less as bandwidth grows;\n"
        "at 10 Mbit/s chrome often has fewer",
        _BANDWIDTHS,
        _deltas(_BANDWIDTHS),
        _bandwidth_claims,
    ),
    Finding(
        "sander-2",
        "at 10 Mbit/s some 30 % of the sites show no difference in bytes blocked, as nothing was\n"
        "lost; at 50 Mbit/s more than 80 % of the runs lose nothing",
        (_BANDWIDTHS[-1], _FASTEST),
        lambda _: [],
        _loss_free_claims,
    ),
    Finding(
        "sander-3",
        "what the queue drops comes in bursts of up to 20 packets at 10 Mbit/s; 2 to 7 % of the\n"
        "packets are lost to it in the median",
        (*_BANDWIDTHS, _FASTEST),
        _loss_table,
        _queue_claims,
    ),
    Finding(
        "sander-7",
        "with more random loss, every parallel scheme reduces bytes blocked more; firefox-eps\n"
        "reduces them least",
        _LOSSES,
        _deltas(_LOSSES),
        _random_claims,
    ),
    Finding(
        "sander-11",
        "with a shorter round trip (2 % loss), bytes blocked are reduced more, SpeedIndex suffers\n"
        "more; rr at 10 ms is worse on some 50 % of the sites",
        _ROUND_TRIPS,
        _deltas(_ROUND_TRIPS),
        _round_trip_claims,
    ),
    Finding(
        "sander-12",
        "with 2 % loss in bursts, bytes blocked are reduced less and improvements of SpeedIndex\n"
        "vanish; rr and wrr fall behind firefox and firefox-eps",
        _BURSTS,
        _deltas(_BURSTS),
        _burst_claims,
    ),
    Finding(
        "sander-14",
        "batched round robin could help against bursts (a suggestion, not measured)",
        _BURSTS,
        _batched_tables,
        _batched_claims,
    ),
)

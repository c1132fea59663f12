"""What Sander 2022 found, beside what comes out of runs: a table and a verdict for each finding."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tabulate import tabulate

from h3sim.papers.estimates import Estimate, combined, over_groups
from h3sim.papers.findings import Claim, ClaimAnswer, Criterion, Judged, Limit, verdict_on
from validation.sander_deltas import CLEAR, Deltas, Results
from validation.sander_drops import by_controller, by_real_server
from validation.sander_runs import PARALLEL, SCHEMES

__all__ = ["FINDINGS", "Finding", "claim"]

_BANDWIDTHS = tuple(f"sander-{rate}mbps-100ms" for rate in (1, 2, 5, 10))
_FASTEST = "sander-50mbps-100ms"
_BASE = "sander-2mbps-100ms"
_LOSSES = (_BASE, *(f"{_BASE}-{percent}pct" for percent in (1, 2, 5)))
_ROUND_TRIPS = ("sander-2mbps-10ms-2pct", "sander-2mbps-50ms-2pct", f"{_BASE}-2pct")
_BURSTS = (f"{_BASE}-2pct", *(f"{_BASE}-2pct-burst{n}" for n in (5, 10, 15)))
_BATCHED, _RR = "sander-batched-rr", "sander-rr"
_EPS = "sander-firefox-eps"

Figure = Callable[[str, str], Deltas]


class Finding(NamedTuple):
    """A finding: what the paper says, over which cells; what makes tables and claims of runs."""

    id: str
    paper: str
    networks: tuple[str, ...]
    tables: Callable[[Results], list[str]]
    claims: Callable[[Results], list[Judged]]

    def report(self, results: Results) -> str:
        """Return the finding as text: the paper's words, tables, claims and a verdict."""
        claims = self.claims(results)
        answers = [claim.answer for claim in claims]
        marks = [
            f"  {_ANSWERS[answer]:9} {_result(claim)}"
            for answer, claim in zip(answers, claims, strict=True)
        ]
        head = f"{self.id}: {self.paper}"
        n_met = answers.count(ClaimAnswer.YES)
        last = f"{self.id}: {verdict_on(answers).value} ({n_met} of {len(claims)})"
        return "\n".join([head, "", *self.tables(results), *marks, last])


_ANSWERS: dict[ClaimAnswer | None, str] = {
    None: "-",
    ClaimAnswer.YES: "yes",
    ClaimAnswer.NO: "NO",
    ClaimAnswer.REVERSED: "REVERSED",
    ClaimAnswer.UNDECIDED: "undecided",
}


def claim(
    text: str,
    criterion: Criterion,
    figure: Estimate,
    limit: Estimate | float,
    *more: tuple[Criterion, float],
) -> Judged:
    """Return whether *figure* meets a criterion, by the rules of docs/generated/findings.md."""
    figures = {"s:figure": figure}
    limits = [Limit(criterion, limit if isinstance(limit, float | int) else "s:limit")]
    if not isinstance(limit, float | int):
        figures["s:limit"] = limit
    limits += (Limit(*each) for each in more)
    return Claim(statement=text, figure="s:figure", limits=tuple(limits)).judged(figures)


def _result(judged: Judged) -> str:
    """Return the claim with its figure, and with the difference that decides it."""
    decisive = "" if judged.difference is None else f"; difference {judged.difference}"
    return f"{judged.claim.statement}: {judged.figure}, {judged.expected}{decisive}"


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
    text: str,
    criterion: Criterion,
    compare: Callable[[str], tuple[Estimate, Estimate]],
    schemes: Sequence[str] = PARALLEL,
) -> list[Judged]:
    return [claim(f"{_short(scheme)}: {text}", criterion, *compare(scheme)) for scheme in schemes]


def _has_more(value: float) -> bool:
    return value > CLEAR


def _has_less(value: float) -> bool:
    return value < -CLEAR


def _bandwidth_claims(results: Results) -> list[Judged]:
    slow, fast = _BANDWIDTHS[0], _BANDWIDTHS[-1]
    return [
        *_for_all(
            "median change of bytes blocked at 10 Mbit/s, above that at 1",
            Criterion.ABOVE,
            lambda s: (results.hol(fast, s).estimate, results.hol(slow, s).estimate),
        ),
        *_for_all(
            "share of pages with more bytes blocked at 10 Mbit/s, above that at 1",
            Criterion.ABOVE,
            lambda s: (
                results.hol(fast, s).share(_has_more),
                results.hol(slow, s).share(_has_more),
            ),
        ),
    ]


def _loss_free_claims(results: Results) -> list[Judged]:
    at_50 = results.losses(_FASTEST, SCHEMES)
    return [
        claim(
            "rr at 10 Mbit/s: share of pages without a difference",
            Criterion.POINTS,
            results.hol(_BANDWIDTHS[-1], _RR).share(lambda value: value == 0),
            0.3,
        ),
        claim(
            "share of loads without loss at 50 Mbit/s",
            Criterion.AT_LEAST,
            over_groups(
                [[rate == 0 for rate in rates] for rates in at_50.by_page], statistics.fmean
            ),
            0.8,
        ),
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


def _queue_claims(results: Results) -> list[Judged]:
    longest = Estimate(results.losses(_BANDWIDTHS[-1], SCHEMES).longest)
    claims = [
        claim(
            "longest burst of any load at 10 Mbit/s",
            Criterion.AT_LEAST,
            longest,
            10,
            (Criterion.AT_MOST, 40),
        )
    ]
    for network in _BANDWIDTHS:
        of_pages = results.losses(network, SCHEMES).by_page
        with_loss = [[rate for rate in rates if rate] for rates in of_pages]
        claims.append(
            claim(
                f"{results.title(network)}: median loss rate of loads with loss",
                Criterion.AT_LEAST,
                over_groups(with_loss, statistics.median),
                0.02,
                (Criterion.AT_MOST, 0.07),
            )
        )
    return claims


def _random_claims(results: Results) -> list[Judged]:
    def smallest_reduction(network: str) -> Estimate:
        others = [results.hol(network, s).estimate for s in PARALLEL if s != _EPS]
        return combined(_largest, *others)

    return [
        *_for_all(
            "median change of bytes blocked at 5 %, below that at 0 %",
            Criterion.BELOW,
            lambda s: (results.hol(_LOSSES[-1], s).estimate, results.hol(_LOSSES[0], s).estimate),
        ),
        *(
            claim(
                f"{results.title(n)}: firefox-eps, above the smallest reduction of the others",
                Criterion.ABOVE,
                results.hol(n, _EPS).estimate,
                smallest_reduction(n),
            )
            for n in _LOSSES[1:]
        ),
    ]


def _largest(*values: float) -> float:
    return max(values)


def _smallest(*values: float) -> float:
    return min(values)


def _round_trip_claims(results: Results) -> list[Judged]:
    near, far = _ROUND_TRIPS[0], _ROUND_TRIPS[-1]
    return [
        *_for_all(
            "median change of bytes blocked at 10 ms, below that at 100",
            Criterion.BELOW,
            lambda s: (results.hol(near, s).estimate, results.hol(far, s).estimate),
        ),
        *_for_all(
            "share of pages with a worse SpeedIndex at 10 ms, above that at 100",
            Criterion.ABOVE,
            lambda s: (
                results.speed(near, s).share(_has_more),
                results.speed(far, s).share(_has_more),
            ),
        ),
        claim(
            "rr: that share at 10 ms",
            Criterion.POINTS,
            results.speed(near, _RR).share(_has_more),
            0.5,
        ),
    ]


def _burst_claims(results: Results) -> list[Judged]:
    single, long = _BURSTS[0], _BURSTS[-1]
    worse = {s: results.speed(long, s).estimate for s in PARALLEL}
    agnostic, firefox = PARALLEL[:2], PARALLEL[2:]
    return [
        *_for_all(
            "median change of bytes blocked in bursts of 15, above that one by one",
            Criterion.ABOVE,
            lambda s: (results.hol(long, s).estimate, results.hol(single, s).estimate),
        ),
        *_for_all(
            "share of pages with a better SpeedIndex in bursts of 15, below that one by one",
            Criterion.BELOW,
            lambda s: (
                results.speed(long, s).share(_has_less),
                results.speed(single, s).share(_has_less),
            ),
        ),
        claim(
            "SpeedIndex of the better of rr and wrr in bursts of 15, above the worse of firefox's",
            Criterion.ABOVE,
            combined(_smallest, *(worse[s] for s in agnostic)),
            combined(_largest, *(worse[s] for s in firefox)),
        ),
    ]


def _batched_tables(results: Results) -> list[str]:
    networks = _BURSTS
    return [
        *_deltas(networks, (_RR, _BATCHED))(results),
        "batched-rr relative to rr:\n",
        *_deltas(networks, (_BATCHED,), to=_RR)(results),
    ]


def _batched_claims(results: Results) -> list[Judged]:
    return [
        claim(
            f"{results.title(n)}: {what} relative to rr, median change",
            Criterion.BELOW,
            figure(n, _BATCHED, to=_RR).estimate,
            0,
        )
        for n in _BURSTS[1:]
        for what, figure in (("bytes blocked", results.hol), ("SpeedIndex", results.speed))
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

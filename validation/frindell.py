"""The study of Frindell 2017 again: HPACK, QPACK and QCRAM over round-trip times and losses.

His HAR of a Facebook feed, with 227 requests, is not public. These are the first 227 requests of
the list that the same company gave to the QPACK interop; it has no times, so they are spaced
evenly. In his trace nothing was evicted, so the table here is as large as that needs.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.compression import CodecSettings
from h3sim.compression.exchanges import Exchange, TimedSection
from h3sim.study.header_study import header_loads, header_study
from h3sim.units import ms
from validation.header_ratios import lists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.compression import FieldSection
    from h3sim.study.header_study import HeaderRow

__all__ = ["FINDINGS", "Sweep", "Verdict", "spacing_rows", "sweep", "transport_rows", "verdicts"]

_N_REQUESTS = 227
_RTTS_MS = (10.0, 50.0, 100.0, 200.0, 500.0)
_LOSSES = (0.0, 0.01, 0.02, 0.05, 0.1)
_RUNS = 5
_INTERVAL_MS = 10.0
_SPACINGS_MS = (2.0, 5.0, 10.0, 20.0, 50.0)
_PATHS = ((100.0, 0.02), (200.0, 0.05))
_UNLIMITED = CodecSettings(table_bytes=65536)
_SCHEMES = ("hpack", "early-qpack", "qcram", "qcram-packets")
_NEAR = 1.5
"""A number is near another within this factor."""


class Sweep(NamedTuple):
    """The rows of the sweep, by scheme, round-trip time and loss; and those of a small table."""

    rows: dict[tuple[str, float, float], HeaderRow]
    small: dict[tuple[str, float, float], HeaderRow]

    def of(self, scheme: str) -> list[HeaderRow]:
        """Return the rows of a scheme."""
        return [row for (name, _, _), row in self.rows.items() if name == scheme]


class Verdict(NamedTuple):
    """What was found in 2017, what comes out here, and whether that is the same."""

    statement: str
    then: str
    now: str
    verdict: str


def sections(interval_ms: float) -> list[TimedSection] | None:
    """Return the requests, or None where the lists are not beside the checkout."""
    found: Sequence[FieldSection] | None = lists("fb-req")
    if found is None:
        return None
    return [
        TimedSection(ms(number * interval_ms), fields)
        for number, fields in enumerate(found[:_N_REQUESTS])
    ]


def sweep() -> Sweep | None:
    """Run it all, five times each; None where the lists are not there."""
    requests = sections(_INTERVAL_MS)
    if requests is None:
        return None
    both = [
        header_study(
            requests, schemes=schemes, rtts_ms=_RTTS_MS, losses=_LOSSES, runs=_RUNS, settings=table
        )
        for schemes, table in ((_SCHEMES, _UNLIMITED), (("qcram",), CodecSettings()))
    ]
    large, small = ({(row.scheme, row.rtt_ms, row.loss): row for row in rows} for rows in both)
    return Sweep(large, small)


def verdicts(found: Sweep) -> list[Verdict]:
    """Return what comes of each statement."""
    return [finding(found) for finding in FINDINGS]


def spacing_rows() -> list[tuple[float, float, float]]:
    """Return, by spacing, HPACK's delay a request at 100 ms and 2 %, and at 200 ms and 5 %."""
    return [
        (
            spacing_ms,
            _hpack_delay_ms(spacing_ms, 100.0, 0.02),
            _hpack_delay_ms(spacing_ms, 200.0, 0.05),
        )
        for spacing_ms in _SPACINGS_MS
    ]


def transport_rows() -> list[tuple[str, str, float, float]]:
    """Return the delay a request in the model and over QUIC, by scheme and path."""
    requests = sections(_INTERVAL_MS) or []
    exchanges = [Exchange(requested_at_ns=at_ns, request=fields) for at_ns, fields in requests]
    rows = []
    for rtt_ms, loss in _PATHS:
        path: dict[str, Any] = {
            "schemes": _SCHEMES[:3],
            "rtts_ms": [rtt_ms],
            "losses": [loss],
            "runs": _RUNS,
        }
        model = header_study(requests, settings=_UNLIMITED, **path)
        quic = header_loads(exchanges, settings=_UNLIMITED, **path)
        rows += [
            (f"{rtt_ms:g} ms, {100 * loss:g} %", a.scheme, a.hol_mean_ms, b.hol_mean_ms)
            for a, b in zip(model, quic, strict=True)
        ]
    return rows


def _hpack_delay_ms(spacing_ms: float, rtt_ms: float, loss: float) -> float:
    (row,) = header_study(
        sections(spacing_ms) or [], schemes=["hpack"], rtts_ms=[rtt_ms], losses=[loss], runs=_RUNS
    )
    return row.hol_mean_ms


def _grows(found: Sweep) -> Verdict:
    rows = found.rows
    steps = [
        (rows["hpack", a, loss], rows["hpack", b, loss])
        for a, b in itertools.pairwise(_RTTS_MS)
        for loss in _LOSSES[1:]
    ] + [
        (rows["hpack", rtt, a], rows["hpack", rtt, b])
        for a, b in itertools.pairwise(_LOSSES)
        for rtt in _RTTS_MS
    ]
    up = sum(before.hol_mean_ms < after.hol_mean_ms for before, after in steps)
    return Verdict(
        "HPACK's HOL delay grows with RTT and with loss",
        "always",
        f"in {up} of {len(steps)} steps",
        _said(up == len(steps)),
    )


def _delay_at(rtt_ms: float, loss: float, then_ms: float) -> Callable[[Sweep], Verdict]:
    def finding(found: Sweep) -> Verdict:
        now_ms = found.rows["hpack", rtt_ms, loss].hol_mean_ms
        return Verdict(
            f"HPACK, {rtt_ms:g} ms and {100 * loss:g} %: HOL delay a request",
            f"{then_ms:.0f} ms",
            f"{now_ms:.0f} ms",
            _said(then_ms / _NEAR <= now_ms <= then_ms * _NEAR),
        )

    return finding


def _hpack_longest(found: Sweep) -> Verdict:
    longest_ms = found.rows["hpack", 200.0, 0.05].hol_max_ms
    near = 497 / _NEAR <= longest_ms <= 497 * _NEAR
    return Verdict(
        "HPACK, 200 ms and 5 %: the longest", "497 ms", f"{longest_ms:.0f} ms", _said(near)
    )


def _qcram_none(found: Sweep) -> Verdict:
    quiet = sum(row.runs_without_hol for row in found.of("qcram"))
    of = sum(row.runs for row in found.of("qcram"))
    held = max(row.held_compressed_bytes for row in found.of("qcram"))
    return Verdict(
        "QCRAM without HOL delay, and bytes held",
        "all runs, 0",
        f"{quiet} of {of} runs, {held}",
        _said(quiet == of and held == 0),
    )


def _qcram_small(found: Sweep) -> Verdict:
    quiet = sum(row.runs_without_hol for row in found.small.values())
    of = sum(row.runs for row in found.small.values())
    return Verdict(
        "the same with a table of 4096, which evicts here",
        "evictions would matter",
        f"{quiet} of {of} runs",
        _said(quiet < of),
    )


def _qpack_quiet(found: Sweep) -> Verdict:
    quiet = sum(row.runs_without_hol for row in found.of("early-qpack"))
    of = sum(row.runs for row in found.of("early-qpack"))
    return Verdict(
        "QPACK without HOL delay",
        "80 % of runs",
        f"{100 * quiet / of:.0f} %",
        _said(quiet > of / 2),
    )


def _qpack_delay(found: Sweep) -> Verdict:
    rows = found.of("early-qpack")
    mean_ms = sum(row.hol_mean_ms for row in rows) / len(rows)
    longest_ms = max(row.hol_mean_ms for row in rows)
    return Verdict(
        "QPACK's HOL delay a request: mean of all cells, worst cell",
        "8, 242 ms",
        f"{mean_ms:.1f}, {longest_ms:.0f} ms",
        _said(mean_ms <= 8 * _NEAR),
    )


def _qpack_below_hpack(found: Sweep) -> Verdict:
    pairs = zip(found.of("early-qpack"), found.of("hpack"), strict=True)
    below = sum(qpack.hol_mean_ms <= hpack.hol_mean_ms for qpack, hpack in pairs)
    return Verdict(
        "QPACK waits no longer than HPACK",
        "drastically less",
        f"in {below} of {len(found.of('hpack'))} cells",
        _said(below == len(found.of("hpack"))),
    )


def _qcram_bytes(found: Sweep) -> Verdict:
    pairs = zip(found.of("qcram"), found.of("hpack"), strict=True)
    more = [
        100 * (qcram.ratio / hpack.ratio - 1) for qcram, hpack in pairs if qcram.rtt_ms in (50, 100)
    ]
    return Verdict(
        "QCRAM sends more than HPACK at 50 and 100 ms",
        "up to 15 %",
        f"{min(more):.0f} to {max(more):.0f} %",
        _said(max(more) <= 15 * _NEAR),
    )


def _qcram_saved(found: Sweep) -> Verdict:
    saved = [row.saved_percent for row in found.of("qcram") if row.rtt_ms > 200]
    mean = sum(saved) / len(saved)
    return Verdict(
        "QCRAM above 200 ms saves", "84 % or so", f"{mean:.0f} %", _said(abs(mean - 84) <= 5)
    )


def _qpack_ratio(found: Sweep) -> Verdict:
    pairs = zip(found.of("early-qpack"), found.of("hpack"), strict=True)
    apart = max(abs(qpack.ratio - hpack.ratio) * 100 for qpack, hpack in pairs)
    return Verdict(
        "QPACK's ratio is HPACK's", "equal", f"within {apart:.1f} points", _said(apart <= 2)
    )


def _qpack_buffer(found: Sweep) -> Verdict:
    rows = found.of("early-qpack")
    small = sum(row.held_decompressed_bytes < 1000 for row in rows)
    calm = [row for row in rows if row.rtt_ms <= 200]
    most = max(row.held_decompressed_bytes for row in calm)
    in_two_steps = max(row.held_compressed_bytes for row in calm)
    return Verdict(
        "QPACK holds less than 1 kB, decompressed",
        "usually",
        f"in {small} of {len(rows)} cells; up to 200 ms at most {most:,},"
        f" in two steps {in_two_steps:,}",
        _said(small > len(rows) / 2),
    )


def _packets(found: Sweep) -> Verdict:
    pairs = zip(found.of("qcram-packets"), found.of("qcram"), strict=True)
    apart = max(abs(packets.ratio - plain.ratio) * 100 for packets, plain in pairs)
    return Verdict(
        "what coordination with packets saves",
        "nothing drastic",
        f"at most {apart:.1f} points",
        _said(apart <= 2),
    )


def _said(is_same: bool) -> str:
    return "same" if is_same else "differs"


FINDINGS: tuple[Callable[[Sweep], Verdict], ...] = (
    _grows,
    _delay_at(100.0, 0.02, 40.0),
    _delay_at(200.0, 0.05, 100.0),
    _hpack_longest,
    _qcram_none,
    _qcram_small,
    _qpack_quiet,
    _qpack_delay,
    _qpack_below_hpack,
    _qcram_bytes,
    _qcram_saved,
    _qpack_ratio,
    _qpack_buffer,
    _packets,
)

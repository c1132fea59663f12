"""The study of Frindell 2017 again: HPACK, QPACK and QCRAM over round-trip times and losses.

His HAR of a Facebook feed, with 227 requests, is not public. These are the first 227 requests of
the list that the same company gave to the QPACK interop; it has no times, so they are spaced
evenly. In his trace nothing was evicted, so the table here is as large as that needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.compression import CodecSettings
from h3sim.compression.exchanges import Exchange, TimedSection
from h3sim.findings import judge, list_findings, load_experiment
from h3sim.findings.headers import header_figures
from h3sim.study.header_study import header_loads, header_study
from h3sim.units import ms
from validation.header_ratios import lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.compression import FieldSection
    from h3sim.findings import Judgement

__all__ = ["judgements", "spacing_rows", "transport_rows"]

_N_REQUESTS = 227
_RUNS = 5
_INTERVAL_MS = 10.0
_SPACINGS_MS = (2.0, 5.0, 10.0, 20.0, 50.0)
_PATHS = ((100.0, 0.02), (200.0, 0.05))
_UNLIMITED = CodecSettings(table_bytes=65536)
_SCHEMES = ("hpack", "early-qpack", "qcram")


def sections(interval_ms: float) -> list[TimedSection] | None:
    """Return the requests, or None where the lists are not beside the checkout."""
    found: Sequence[FieldSection] | None = lists("fb-req")
    if found is None:
        return None
    return [
        TimedSection(ms(number * interval_ms), fields)
        for number, fields in enumerate(found[:_N_REQUESTS])
    ]


def judgements() -> list[Judgement] | None:
    """Return what comes of the findings over these requests; None where there are no lists."""
    found: Sequence[FieldSection] | None = lists("fb-req")
    if found is None:
        return None
    experiment = load_experiment("frindell-2017")
    figures = header_figures(experiment.headers().run(found[:_N_REQUESTS]), experiment.paper)
    named = {f"{experiment.name}:{name}": figure for name, figure in figures.items()}
    return [judge(f, named) for f in list_findings() if f.study == experiment.name]


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
            "schemes": _SCHEMES,
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

"""The study of Frindell 2017 again: HPACK, QPACK and QCRAM over round-trip times and losses.

His HAR of a Facebook feed, with 227 requests, is not public. These are the first 227 requests of
the list that the same company gave to the QPACK interop; it has no times, so they are spaced
evenly. In his trace nothing was evicted, so the table here is as large as that needs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim.headers import CodecSettings, HeaderCompression
from h3sim.headers.base import HeaderLists, TimedSection
from h3sim.papers import judge, list_findings, load_experiment
from h3sim.papers.estimates import Loads
from h3sim.papers.experiments import HeaderExperiment, header_figures
from h3sim.study import sweep
from h3sim.study.header_study import header_rows
from h3sim.values.units import ms
from validation.header_ratios import lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.headers import FieldSection
    from h3sim.papers import Judgement
    from h3sim.study.header_study import HeaderRow

__all__ = ["judgements", "spacing_rows", "transport_rows"]

_N_REQUESTS = 227
_RUNS = 5
_JUDGED_RUNS = 50
"""Runs of each path by which findings are judged."""
_INTERVAL_MS = 10.0
_SPACINGS_MS = (2.0, 5.0, 10.0, 20.0, 50.0)
_PATHS = ((100.0, 0.02), (200.0, 0.05))
_UNLIMITED = [
    HeaderCompression(codec=codec, settings=CodecSettings(table_bytes=65536))
    for codec in ("hpack", "early-qpack", "qcram")
]


def spaced(interval_ms: float) -> HeaderLists | None:
    """Return the requests, or None where the published lists are not here."""
    found: Sequence[FieldSection] | None = lists("fb-req")
    if found is None:
        return None
    return HeaderLists.of(
        TimedSection(ms(number * interval_ms), fields)
        for number, fields in enumerate(found[:_N_REQUESTS])
    )


def judgements() -> list[Judgement] | None:
    """Return what comes of the findings over these requests; None where there are no lists."""
    requests, experiment = spaced(_INTERVAL_MS), load_experiment("frindell-2017")
    if requests is None:
        return None
    file = experiment.file
    if not isinstance(file, HeaderExperiment):
        raise TypeError("the study of Frindell 2017 compresses headers")
    results = replace(file, runs=_JUDGED_RUNS).study([requests]).run(progress=False)
    figures = header_figures(Loads(results), experiment.paper)
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
    requests = spaced(_INTERVAL_MS)
    if requests is None:
        return []
    rows = []
    for rtt_ms, loss in _PATHS:
        model = _rows(requests, header_compression=_UNLIMITED, rtt_ms=rtt_ms, loss=loss)
        over = {"network": "4g", "handshake": False}
        quic = _rows(requests, header_compression=_UNLIMITED, rtt_ms=rtt_ms, loss=loss, **over)
        rows += [
            (f"{rtt_ms:g} ms, {100 * loss:g} %", a.scheme, a.hol_mean_ms, b.hol_mean_ms)
            for a, b in zip(model, quic, strict=True)
        ]
    return rows


def _hpack_delay_ms(spacing_ms: float, rtt_ms: float, loss: float) -> float:
    requests = spaced(spacing_ms)
    if requests is None:
        return float("nan")
    (row,) = _rows(requests, header_compression="hpack", rtt_ms=rtt_ms, loss=loss)
    return row.hol_mean_ms


def _rows(requests: HeaderLists, **study: Any) -> list[HeaderRow]:
    results = sweep(requests, schemes="rr", seeds=_RUNS, resources=True, progress=False, **study)
    return header_rows(results, results.resources())

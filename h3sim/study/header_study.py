"""Header compression schemes over round-trip times and losses, several runs each."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from h3sim.study.header_delays import DelayModel, simulate_headers
from h3sim.study.header_loads import DEFAULT_NETWORK, carry_headers
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.compression import CodecSettings
    from h3sim.compression.exchanges import Exchange, TimedSection
    from h3sim.compression.header_run import HeaderRun

__all__ = [
    "FORMAT",
    "HeaderRow",
    "header_loads",
    "header_study",
    "nearest_rank",
    "rows_to_dict",
    "summarized",
]

FORMAT = "h3sim-headers/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRow:
    """The figures of one scheme over one path, over all runs.

    HOL delay is the time from a section's arrival to its decoding. `hol_total_ms` is that of a run
    in all, `blocked` how many of its sections waited, both as means over runs; the other delays are
    over the sections of all runs. `ratio` is bytes sent over bytes uncompressed; the bytes held are
    the most in any run.
    """

    scheme: str
    rtt_ms: float
    loss: float
    runs: int
    sections: int
    hol_total_ms: float
    hol_mean_ms: float
    hol_p95_ms: float
    hol_max_ms: float
    blocked: float
    runs_without_hol: int
    ratio: float
    saved_percent: float
    held_compressed_bytes: int
    held_decompressed_bytes: int
    packets: float
    lost: float


def header_study(
    sections: Sequence[TimedSection],
    *,
    schemes: Sequence[str],
    rtts_ms: Sequence[float],
    losses: Sequence[float],
    runs: int = 5,
    settings: CodecSettings | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[HeaderRow]:
    """Return a row for each scheme, round-trip time and loss, in this order.

    All schemes of a cell meet the same accidents; run n has the seed *seed* + n. *progress* is told
    how many rows there are, of how many.
    """
    cells = list(itertools.product(schemes, rtts_ms, losses))
    rows = []
    for number, (scheme, rtt_ms, loss) in enumerate(cells, start=1):
        model = DelayModel(rtt_ns=ms(rtt_ms), loss=loss)
        done = [
            simulate_headers(sections, scheme, model, settings=settings, seed=seed + run)
            for run in range(runs)
        ]
        rows.append(summarized(scheme, rtt_ms, loss, done))
        if progress is not None:
            progress(number, len(cells))
    return rows


def header_loads(
    exchanges: Sequence[Exchange],
    *,
    schemes: Sequence[str],
    rtts_ms: Sequence[float],
    losses: Sequence[float],
    of_responses: bool = False,
    network: str = DEFAULT_NETWORK,
    runs: int = 5,
    settings: CodecSettings,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[HeaderRow]:
    """Return the rows of `header_study` for lists that go over QUIC, next to response bodies.

    Packets are those of the whole connection down, with the bodies.
    """
    cells = list(itertools.product(schemes, rtts_ms, losses))
    rows = []
    for number, (scheme, rtt_ms, loss) in enumerate(cells, start=1):
        done = [
            carry_headers(
                exchanges,
                scheme,
                rtt_ms=rtt_ms,
                loss=loss,
                network=network,
                settings=settings,
                seed=seed + run,
            )[of_responses]
            for run in range(runs)
        ]
        rows.append(summarized(scheme, rtt_ms, loss, done))
        if progress is not None:
            progress(number, len(cells))
    return rows


def summarized(scheme: str, rtt_ms: float, loss: float, runs: Sequence[HeaderRun]) -> HeaderRow:
    """Return the figures of the runs of one cell."""
    by_run = [[section.hol_ns for section in run.sections] for run in runs]
    delays_ns = sorted(itertools.chain.from_iterable(by_run))
    n_bytes = sum(run.n_bytes for run in runs)
    ratio = n_bytes / max(1, sum(run.uncompressed_bytes for run in runs))
    return HeaderRow(
        scheme=scheme,
        rtt_ms=rtt_ms,
        loss=loss,
        runs=len(runs),
        sections=len(by_run[0]),
        hol_total_ms=to_ms(sum(delays_ns)) / len(runs),
        hol_mean_ms=to_ms(sum(delays_ns)) / max(1, len(delays_ns)),
        hol_p95_ms=to_ms(nearest_rank(delays_ns, 0.95)),
        hol_max_ms=to_ms(max(delays_ns, default=0)),
        blocked=sum(delay > 0 for delay in delays_ns) / len(runs),
        runs_without_hol=sum(not any(delays) for delays in by_run),
        ratio=ratio,
        saved_percent=100 * (1 - ratio),
        held_compressed_bytes=max(run.max_held.compressed for run in runs),
        held_decompressed_bytes=max(run.max_held.decompressed for run in runs),
        packets=sum(run.n_packets for run in runs) / len(runs),
        lost=sum(run.n_lost for run in runs) / len(runs),
    )


def nearest_rank(ascending: Sequence[int], share: float) -> int:
    """Return the least value that at least *share* of the values do not exceed; 0 of none.

    >>> nearest_rank([1, 2, 3, 4], 0.5), nearest_rank([1, 2, 3, 4], 0.95), nearest_rank([], 0.5)
    (2, 4, 0)
    """
    if not ascending:
        return 0
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)]


def rows_to_dict(
    rows: Sequence[HeaderRow],
    *,
    source: str,
    settings: CodecSettings,
    seed: int,
    network: str | None = None,
) -> dict[str, Any]:
    """Return the rows as a document, with what they follow from; *network* None is the model."""
    return {
        "format": FORMAT,
        "source": source,
        "network": network,
        "table_bytes": settings.table_bytes,
        "blocked_streams": settings.blocked_streams,
        "seed": seed,
        "rows": [asdict(row) for row in rows],
    }

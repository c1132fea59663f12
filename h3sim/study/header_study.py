"""Header compression schemes over round-trip times and losses, several runs each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from h3sim._version import __version__
from h3sim.catalog import load_network
from h3sim.compression import CodecSettings
from h3sim.documents.values import Choice
from h3sim.documents.written import (
    COUNT,
    NUMBER,
    TEXT,
    TEXT_OR_NONE,
    VERSION,
    Key,
    WrittenFormat,
    rows_of,
)
from h3sim.study.driver import run_cells
from h3sim.study.header_cells import HeaderCells, HeaderFigures, OverModel, OverQuic
from h3sim.study.header_loads import DEFAULT_NETWORK
from h3sim.units import to_ms

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.compression.exchanges import Exchange, TimedSection
    from h3sim.study.driver import Progress
    from h3sim.study.rows import Counts

__all__ = [
    "HEADERS",
    "HeaderRow",
    "HeaderRows",
    "How",
    "header_loads",
    "header_study",
    "nearest_rank",
    "rows_to_dict",
    "summarized",
]


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


HEADERS = WrittenFormat(
    "h3sim-headers/1",
    "What header compression saves, and how long it blocks",
    VERSION,
    Key("source", TEXT, "what the header lists are of"),
    Key("of", Choice(("requests", "responses")), "which of them"),
    Key("interval_ms", NUMBER, "the time from list to list where the source has no times"),
    Key("network", TEXT_OR_NONE, "the network; null for the model of paths"),
    Key("table_bytes", COUNT, "the size of the dynamic table"),
    Key("blocked_streams", COUNT, "how many streams may be blocked"),
    Key("seed", COUNT, "of all that is random"),
    Key("rows", rows_of(HeaderRow), "one a scheme and path"),
)


class How(TypedDict, total=False):
    """Where cells run and what is kept of them; as `h3sim.sweep` has it."""

    store: str | Path | None
    executor: Any
    workers: int | None
    retry_failed: bool
    progress: Progress | bool | None


@dataclass(frozen=True, kw_only=True)
class HeaderRows(Sequence[HeaderRow]):
    """The rows of a study in the order of its parameters, and what became of its runs.

    A row of which a run failed is not there; *errors* say which that was, and why.
    """

    rows: tuple[HeaderRow, ...]
    counts: Counts
    errors: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]


def header_study(
    sections: Sequence[TimedSection],
    *,
    schemes: Sequence[str],
    rtts_ms: Sequence[float],
    losses: Sequence[float],
    runs: int = 5,
    settings: CodecSettings | None = None,
    seed: int = 0,
    name: str = "",
    **how: Unpack[How],
) -> HeaderRows:
    """Return a row for each scheme, round-trip time and loss, in this order.

    All schemes of a cell meet the same accidents; run n has the seed *seed* + n. Runs go where
    *how* says, and those that are finished are kept and reused: *store*, *executor*, *workers*,
    *retry_failed* and *progress* (of runs; False if not given) as in `h3sim.sweep`. *name* is what
    the store calls the lists.

    Raises:
        UnknownNameError: if there is no such scheme.
        StoreError: if the store cannot be read or written; what was finished is kept.
    """
    cells = HeaderCells(
        path=OverModel(tuple(sections)),
        schemes=tuple(schemes),
        rtts_ms=tuple(rtts_ms),
        losses=tuple(losses),
        seeds=range(seed, seed + runs),
        settings=settings or CodecSettings(),
        name=name,
    )
    return _run(cells, how)


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
    name: str = "",
    **how: Unpack[How],
) -> HeaderRows:
    """Return the rows of `header_study` for lists that go over QUIC, next to response bodies.

    Exchanges go in the order of their requests; those without a list of that direction are left
    out, as `header_study` has none of them. Packets are those of the whole connection down, with
    the bodies.
    """
    listed = [entry for entry in exchanges if (entry.response if of_responses else entry.request)]
    listed.sort(key=lambda entry: entry.requested_at_ns)
    cells = HeaderCells(
        path=OverQuic(tuple(listed), load_network(network), of_responses),
        schemes=tuple(schemes),
        rtts_ms=tuple(rtts_ms),
        losses=tuple(losses),
        seeds=range(seed, seed + runs),
        settings=settings,
        name=name,
    )
    return _run(cells, how)


def _run(cells: HeaderCells, how: How) -> HeaderRows:
    """Run what is missing, and return a row for the runs of each scheme and path."""
    how.setdefault("progress", False)
    source, counts = run_cells(cells, **how)
    kept = source()
    rows: list[HeaderRow] = []
    errors: list[str] = []
    for scheme, rtt_ms, loss in itertools.product(cells.schemes, cells.rtts_ms, cells.losses):
        runs = []
        # Seeds vary fastest in the cells: the next so many rows are this row's runs.
        for row, waited, error in itertools.islice(kept, len(cells.seeds)):
            if row is not None and waited is not None:
                runs.append(HeaderFigures.of(row, waited))
            if error is not None:
                errors.append(error)
        if len(runs) == len(cells.seeds):
            rows.append(summarized(scheme, rtt_ms, loss, runs))
    return HeaderRows(rows=tuple(rows), counts=counts, errors=tuple(errors))


def summarized(scheme: str, rtt_ms: float, loss: float, runs: Sequence[HeaderFigures]) -> HeaderRow:
    """Return the figures of all runs of one scheme over one path."""
    waits_ns = sorted(itertools.chain.from_iterable(run.hol_ns for run in runs))
    # Only lists that waited are kept; the others waited 0, so in front of them all stays sorted.
    delays_ns = [0] * (sum(run.n_sections for run in runs) - len(waits_ns)) + waits_ns
    n_bytes = sum(run.n_bytes for run in runs)
    ratio = n_bytes / max(1, sum(run.uncompressed_bytes for run in runs))
    return HeaderRow(
        scheme=scheme,
        rtt_ms=rtt_ms,
        loss=loss,
        runs=len(runs),
        sections=runs[0].n_sections,
        hol_total_ms=to_ms(sum(delays_ns)) / len(runs),
        hol_mean_ms=to_ms(sum(delays_ns)) / max(1, len(delays_ns)),
        hol_p95_ms=to_ms(nearest_rank(delays_ns, 0.95)),
        hol_max_ms=to_ms(max(delays_ns, default=0)),
        blocked=len(waits_ns) / len(runs),
        runs_without_hol=sum(not run.hol_ns for run in runs),
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
    of: str = "requests",
    interval_ms: float = 10.0,
) -> dict[str, Any]:
    """Return the rows as a document, with what they follow from; *network* None is the model."""
    lists = {"source": source, "of": of, "interval_ms": interval_ms}
    path = {"network": network, "seed": seed}
    return HEADERS.write(settings, version=__version__, **lists, **path, rows=rows)

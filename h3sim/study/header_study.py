"""Studies of header compression schemes over round-trip times, losses and seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim._version import __version__
from h3sim.headers.base import CodecSettings, HeaderLists
from h3sim.load.options import refuse
from h3sim.load.selection import resolve_schemes
from h3sim.schema.output import COUNT, NUMBER, TEXT, VERSION, OutputSchema, Property, rows_of
from h3sim.schema.values import Choice, OrNone
from h3sim.study.header_models import SETTING_COLUMNS
from h3sim.study.pairing import check_pooled, varying
from h3sim.study.subjects import resolve_subjects
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.load.run import PageLike, SchemeLike
    from h3sim.page import Page
    from h3sim.schemes import Scheme


SubjectLike: TypeAlias = "PageLike | HeaderLists"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRow:
    """Metrics of one scheme over one path, over all runs.

    HOL delay is the time from a section's arrival to its decoding. `hol_total_ms` is its sum in a
    run and `blocked` the number of sections that waited, both as means over runs; the other delays
    are over the sections of all runs. `ratio` is bytes sent over bytes uncompressed; the buffered
    bytes are the maximum over runs.
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
    evicted: float | None = None
    """Mean number of entries evicted in a run; None if the library does not report them."""


HEADERS = OutputSchema(
    "h3sim-headers/1",
    "Compression ratios and head-of-line blocking of header compression",
    VERSION,
    Property("source", TEXT, "source of the header lists"),
    Property("of", Choice(("requests", "responses")), "direction of the header lists"),
    Property("interval_ms", NUMBER, "time between lists if the source has no timestamps"),
    Property("network", OrNone(TEXT, none=None), "the network; null for the path model"),
    Property("table_bytes", COUNT, "dynamic table capacity"),
    Property("blocked_streams", COUNT, "maximum number of blocked streams"),
    Property("seed", COUNT, "random seed"),
    Property("rows", rows_of(HeaderRow), "one per scheme and path"),
)


def resolve_swept(
    pages: SubjectLike | Iterable[SubjectLike], schemes: SchemeLike | Iterable[SchemeLike]
) -> tuple[Sequence[Page | HeaderLists], Sequence[Scheme]]:
    """Return the pages or header lists of a sweep, and its schemes.

    Raises:
        InputError: if there are none, or two of one name.
        UnknownNameError: if a name is unknown.
    """
    several: Any = [pages] if isinstance(pages, HeaderLists) else pages
    if not isinstance(several, list | tuple):  # looking through an iterator would use it up
        return resolve_subjects(several, schemes)
    lists = [one for one in several if isinstance(one, HeaderLists)]
    if not lists:
        return resolve_subjects(several, schemes)
    requested = resolve_schemes(schemes)
    _check_lists(lists, several)
    return lists, requested


def _check_lists(lists: Sequence[HeaderLists], given: Sequence[object]) -> None:
    """Refuse lists of one name, of no sections, or mixed with pages."""
    names = [each.name for each in lists]
    if len(set(names)) < len(names):
        message = "two header lists have the same name: rename one, so that rows differ"
        raise InputError.at("pages", message)
    if len(lists) < len(given):
        message = "header lists and pages have different columns: sweep them separately"
        raise InputError.at("pages", message)
    empty = [each.name for each in lists if not each.sections]
    message = "{} has no header list of that direction"
    refuse(ValidationIssue(key="pages", message=message.format(name)) for name in empty)


def header_rows(
    runs: Iterable[Mapping[str, Any]], waits: Iterable[Mapping[str, Any]]
) -> list[HeaderRow]:
    """Aggregate a sweep over header lists: one row per source and setting, over all seeds.

    *runs* are the rows of the sweep, *waits* those of blocked lists (`resources=True`). A failed
    run is left out: the row of its setting has fewer `runs`.

    Raises:
        InputError: if runs differ in other settings, which no row states.

    >>> from h3sim.headers.base import HeaderLists, TimedSection
    >>> from h3sim.study import sweep
    >>> lists = HeaderLists.of([TimedSection(10**7 * n, ((b"x", b"y"),)) for n in range(20)])
    >>> study = {"header_compression": ["hpack", "static"], "loss": 0.05, "seeds": 5}
    >>> results = sweep(lists, schemes="rr", executor="serial", resources=True, **study)
    >>> rows = header_rows(results, results.resources())
    >>> [(row.scheme, row.hol_mean_ms > 0) for row in rows]
    [('hpack', True), ('static', False)]
    """
    runs = list(runs)
    check_pooled(
        runs,
        varying(runs),
        named=SETTING_COLUMNS,
        key="runs",
        remedy="aggregate them separately, with results.filter(...)",
    )
    of_setting: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for run in runs:
        of_setting.setdefault(_setting(run), []).append(run)
    waits_ns: dict[tuple[Any, ...], list[int]] = {setting: [] for setting in of_setting}
    for wait in waits:
        waits_ns[_setting(wait)].append(wait["hol_ns"])
    return [_summary(runs, sorted(waits_ns[setting])) for setting, runs in of_setting.items()]


def _setting(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in SETTING_COLUMNS)


def _summary(runs: Sequence[Mapping[str, Any]], waits_ns: list[int]) -> HeaderRow:
    """Return the metrics of all runs of one setting; *waits_ns* has only blocked lists."""
    first, n_runs = runs[0], len(runs)
    # All others waited 0 ns and come first, so the list stays sorted.
    delays_ns = [0] * (sum(run["sections"] for run in runs) - len(waits_ns)) + waits_ns
    ratio = _sum(runs, "n_bytes") / max(1, _sum(runs, "uncompressed_bytes"))
    return HeaderRow(
        scheme=first["header_compression"],
        rtt_ms=first["rtt_ms"],
        loss=first["loss"],
        runs=n_runs,
        sections=first["sections"],
        hol_total_ms=to_ms(sum(delays_ns)) / n_runs,
        hol_mean_ms=to_ms(sum(delays_ns)) / max(1, len(delays_ns)),
        hol_p95_ms=to_ms(nearest_rank(delays_ns, 0.95)),
        hol_max_ms=to_ms(max(delays_ns, default=0)),
        blocked=len(waits_ns) / n_runs,
        runs_without_hol=sum(not run["blocked"] for run in runs),
        ratio=ratio,
        saved_percent=100 * (1 - ratio),
        held_compressed_bytes=max(run["held_compressed_bytes"] for run in runs),
        held_decompressed_bytes=max(run["held_decompressed_bytes"] for run in runs),
        packets=_sum(runs, "n_packets") / n_runs,
        lost=_sum(runs, "n_lost") / n_runs,
        evicted=None if first["n_evicted"] is None else _sum(runs, "n_evicted") / n_runs,
    )


def _sum(runs: Sequence[Mapping[str, Any]], column: str) -> int:
    total: int = sum(run[column] for run in runs)
    return total


def nearest_rank(ascending: Sequence[int], share: float) -> int:
    """Return the nearest-rank percentile at *share*; 0 for no values.

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
    """Return the rows and their settings as a document; *network* None is the path model."""
    lists = {"source": source, "of": of, "interval_ms": interval_ms}
    path = {"network": network, "seed": seed}
    return HEADERS.write(settings, version=__version__, **lists, **path, rows=rows)

"""Header compression schemes over round-trip times and losses, several runs of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim._version import __version__
from h3sim.errors import InputError, ValidationIssue
from h3sim.headers.base import HeaderLists
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.output import (
    COUNT,
    NUMBER,
    TEXT,
    TEXT_OR_NONE,
    VERSION,
    OutputSchema,
    Property,
    rows_of,
)
from h3sim.schema.values import Choice
from h3sim.study.compare import resolve_subjects
from h3sim.study.header_models import OF_SETTING
from h3sim.study.run import resolve_schemes
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.headers import CodecSettings
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study.run import PageLike, SchemeLike


SubjectLike: TypeAlias = "PageLike | HeaderLists"


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


HEADERS = OutputSchema(
    "h3sim-headers/1",
    "What header compression saves, and how long it blocks",
    VERSION,
    Property("source", TEXT, "what the header lists are of"),
    Property("of", Choice(("requests", "responses")), "which of them"),
    Property("interval_ms", NUMBER, "the time from list to list where the source has no times"),
    Property("network", TEXT_OR_NONE, "the network; null for the model of paths"),
    Property("table_bytes", COUNT, "the size of the dynamic table"),
    Property("blocked_streams", COUNT, "how many streams may be blocked"),
    Property("seed", COUNT, "of all that is random"),
    Property("rows", rows_of(HeaderRow), "one a scheme and path"),
)


def resolve_swept(
    pages: SubjectLike | Iterable[SubjectLike], schemes: SchemeLike | Iterable[SchemeLike]
) -> tuple[Sequence[Page | HeaderLists], Sequence[Scheme]]:
    """Return what a sweep loads or sends, and by which schemes; header lists stand as they are.

    Raises:
        InputError: listing every mistake: names that are not known, nothing at all, a name twice.
    """
    several: Any = [pages] if isinstance(pages, HeaderLists) else pages
    if not isinstance(several, list | tuple):
        return resolve_subjects(several, schemes)
    lists = [one for one in several if isinstance(one, HeaderLists)]
    if not lists:
        return resolve_subjects(several, schemes)
    with ErrorCollector() as mistakes:
        wanted = mistakes.of("schemes", lambda: resolve_schemes(schemes))
        mistakes.of("", lambda: _check_lists(lists, several))
    return lists, wanted


def _check_lists(lists: Sequence[HeaderLists], given: Sequence[object]) -> None:
    names = [each.name for each in lists]
    if len(set(names)) < len(names):
        message = "two of the header lists have one name: rows could not tell them apart"
        raise InputError([ValidationIssue(key="pages", message=message)])
    if len(lists) < len(given):
        message = "header lists and pages have other figures: sweep each of them alone"
        raise InputError([ValidationIssue(key="pages", message=message)])
    problems = [
        ValidationIssue(key="pages", message=f"{each.name} has no header list of that direction")
        for each in lists
        if not each.sections
    ]
    if problems:
        raise InputError(problems)


def header_rows(
    runs: Iterable[Mapping[str, Any]], waits: Iterable[Mapping[str, Any]]
) -> list[HeaderRow]:
    """Return a row for each page and setting of a sweep over header lists, over all of its seeds.

    *runs* are the rows of the sweep and *waits* those of the lists that waited, which it keeps with
    `resources=True`. A run that failed is in no row: the row of its setting has fewer `runs`.

    >>> from h3sim.headers.base import HeaderLists, TimedSection
    >>> from h3sim.study import sweep
    >>> lists = HeaderLists.of([TimedSection(10**7 * n, ((b"x", b"y"),)) for n in range(20)])
    >>> study = {"header_compression": ["hpack", "static"], "loss": 0.05, "seeds": 5}
    >>> results = sweep(lists, schemes="rr", executor="serial", resources=True, **study)
    >>> rows = header_rows(results, results.resources())
    >>> [(row.scheme, row.hol_mean_ms > 0) for row in rows]
    [('hpack', True), ('static', False)]
    """
    of_setting: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for run in runs:
        of_setting.setdefault(_setting(run), []).append(run)
    waits_ns: dict[tuple[Any, ...], list[int]] = {setting: [] for setting in of_setting}
    for wait in waits:
        waits_ns[_setting(wait)].append(wait["hol_ns"])
    return [_summary(runs, sorted(waits_ns[setting])) for setting, runs in of_setting.items()]


def _setting(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in OF_SETTING)


def _summary(runs: Sequence[Mapping[str, Any]], waits_ns: list[int]) -> HeaderRow:
    """Return the figures of all runs of one setting; *waits_ns* has the lists that waited only."""
    first, n_runs = runs[0], len(runs)
    # The others waited 0, so in front of them all stays sorted.
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
    )


def _sum(runs: Sequence[Mapping[str, Any]], column: str) -> int:
    total: int = sum(run[column] for run in runs)
    return total


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

"""Optimality ratios of schemes, exact optima of small pages, and what would hasten loads."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from h3sim._version import __version__
from h3sim.browser import BrowserMode
from h3sim.load.load_config import LoadConfig
from h3sim.load.options import NETWORK_NAMES
from h3sim.load.run import PageLike, SchemeLike, resolve, resolve_scheme
from h3sim.load.selection import HalvesLike, add_schedulers
from h3sim.page.categories import PAGE_CLASSES, classes_of
from h3sim.page.transforms import with_cached
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.output import ObjectType, OutputSchema, Property, rows_of
from h3sim.schema.values import Choice, TableOf
from h3sim.study.rows import COMMON, SETTINGS, WHICH, ResultTable
from h3sim.study.runner import LoadRunner, LoadTask, read_options, shows_loads
from h3sim.study.subjects import check_names, resolve_subjects, without_marks
from h3sim.trace import Rows
from h3sim.values.errors import InputError, NothingToMeasureError, needing_extra
from h3sim.values.notebook import reporting
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.engine import LoadSpec
    from h3sim.load import Load, Which
    from h3sim.load.optimality import Given
    from h3sim.metrics.lower_bounds import Part
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study.study_keywords import StudyKeywords
    from h3sim.values.plots import OptimalityPlots


_SOLVER_TOLERANCE = 1e-6
"""Largest deviation of a solver's 0 or 1 from the exact value."""


@dataclass(frozen=True)
class Optimum:
    """Minimum of the weighted sum of completion times, with a schedule that attains it.

    `order` gives the part sent at each tick from 1; None is an idle tick.
    """

    total: int
    order: tuple[int | None, ...]


def optimal_schedule(parts: Sequence[Part], *, limit_s: float = 60.0) -> Optimum:
    """Return the minimum over schedules of the sum of weight times completion tick of *parts*.

    The time-indexed mixed integer program (Sousa and Wolsey 1992) is solved by HiGHS: x is the
    amount of a part sent at a tick, y (0 or 1) whether the part is complete. It has parts times
    ticks variables, and takes seconds for ten responses of a few packets.

    Raises:
        MissingExtraError: if scipy is not installed.
        NothingToMeasureError: if no optimum is proven within *limit_s* seconds.

    >>> from h3sim.metrics.lower_bounds import Part
    >>> large = Part(after=None, lag_ticks=1, first_tick=1, n_packets=3, weight=3)
    >>> small = Part(after=None, lag_ticks=1, first_tick=1, n_packets=1, weight=2)
    >>> optimal_schedule([large, small])
    Optimum(total=14, order=(1, 0, 0, 0))
    """
    # From whole ticks: the solver's objective is a float within its tolerance.
    ends = _completion_ticks(parts, limit_s)
    total = sum(part.weight * end for part, end in zip(parts, ends, strict=True))
    return Optimum(total, _earliest_deadline_first(parts, ends))


def _completion_ticks(parts: Sequence[Part], limit_s: float) -> list[int]:
    """Return the completion tick of each part, from 1, by the mixed integer program."""
    with needing_extra("scipy", "study"):
        from scipy import optimize
    import numpy as np

    # The columns of x[part, tick] and y[part, tick] in the program.
    n_ticks = _horizon(parts)
    n = len(parts) * n_ticks
    x = np.arange(n).reshape(len(parts), n_ticks)
    y = x + n
    cost, upper = np.zeros(2 * n), np.ones(2 * n)
    for index, part in enumerate(parts):
        # A part that completes at tick C is incomplete at the C instants 0, 1, ..., C - 1.
        cost[y[index]] = -part.weight
        # No part is sent before its first tick.
        upper[x[index, : part.first_tick - 1]] = upper[y[index, : part.first_tick - 1]] = 0
    solution = optimize.milp(
        cost,
        # Packets are whole, so x may be integer, too. With continuous x HiGHS solves again once y
        # is known, and reports that on stdout whatever its log settings.
        integrality=np.ones_like(cost),
        bounds=optimize.Bounds(0, upper),
        constraints=_constraints(parts, x, y),
        options={"time_limit": limit_s, "mip_rel_gap": 0.0},  # HiGHS stops at a gap of 1e-4 else
    )
    if solution.status != 0:
        message = f"no optimum for {len(parts)} parts was proven: {solution.message}"
        raise NothingToMeasureError(message)
    # From x, as y is 1 only where that lowers the objective.
    is_sent = solution.x[x] > _SOLVER_TOLERANCE
    return [int(np.flatnonzero(sent_of_part).max()) + 1 for sent_of_part in is_sent]


def _constraints(parts: Sequence[Part], x: Any, y: Any) -> Any:
    """Return the constraints: one packet per tick, all packets of each part, release times."""
    import numpy as np
    from scipy import optimize, sparse

    n_ticks = x.shape[1]
    # Columns, their coefficients, and the limits of the sum.
    rows: list[tuple[Any, Any, float, float]] = [(x[:, tick], 1, 0, 1) for tick in range(n_ticks)]
    for index, part in enumerate(parts):
        n = part.n_packets
        rows.append((x[index], 1, n, n))
        for tick in range(n_ticks):
            # The part is complete once n packets are sent by this tick.
            sent = x[index, : tick + 1]
            rows.append(([*sent, y[index, tick]], [-1] * len(sent) + [n], -np.inf, 0))
            if part.after is not None:
                # A part starts *lag_ticks* after its dependency.
                first = tick - part.lag_ticks
                before = [y[part.after, first]] if first >= 0 else []
                rows.append(([x[index, tick], *before], [1, *(-1 for _ in before)], -np.inf, 0))
    matrix = sparse.lil_matrix((len(rows), 2 * x.size))
    for number, (columns, coefficients, _, _) in enumerate(rows):
        matrix[number, columns] = coefficients
    return optimize.LinearConstraint(
        matrix.tocsr(), [low for *_, low, _ in rows], [high for *_, high in rows]
    )


def _earliest_deadline_first(parts: Sequence[Part], ends: Sequence[int]) -> tuple[int | None, ...]:
    """Return the earliest-deadline-first schedule with the completion ticks as deadlines."""
    left = [part.n_packets for part in parts]
    sent_at: dict[int, int] = {}
    order: list[int | None] = []

    def may_be_sent(part: Part, tick: int) -> bool:
        if part.after is None:
            return tick >= part.first_tick
        return part.after in sent_at and tick >= sent_at[part.after] + part.lag_ticks

    while any(left):
        tick = len(order) + 1
        ready = [i for i, part in enumerate(parts) if left[i] and may_be_sent(part, tick)]
        # If any order meets all deadlines, earliest deadline first does (Horn 1974). The solver
        # may place packets anywhere before them; this fills the ticks from the front.
        chosen = min(ready, key=lambda i: (ends[i], i), default=None)
        order.append(chosen)
        if chosen is not None:
            left[chosen] -= 1
            if not left[chosen]:
                sent_at[chosen] = tick
    return tuple(order)


def _horizon(parts: Sequence[Part]) -> int:
    """Return a tick by which every schedule without avoidable idle ticks is complete."""
    latest = max((part.first_tick + part.n_packets - 1 for part in parts), default=0)
    # `first_tick` includes the lags of dependencies. Without avoidable idling, a part completes
    # later than that only by ticks that send other packets, and there are no more of these than
    # packets.
    return latest + sum(part.n_packets for part in parts)


_BYTE_INDEXES: tuple[Which, ...] = ("all", "atf")
"""ByteIndexes that have a bound: over all resources, and over those above the fold."""
_CLASS_CRITERION = Predicate(
    f"one of {', '.join(PAGE_CLASSES)}", lambda value: value in PAGE_CLASSES
)
_BOUND_KIND = Predicate("'page' or 'requests'", lambda value: value in (None, "page", "requests"))


class OptimalityRow(NamedTuple):
    """Row of one load: ByteIndexes, their lower bounds and the ratios.

    *given* is the kind of bound, as for `Load.lower_bound`.
    """

    page: str
    network: str
    scheme: str
    given: Given
    byte_index_all_ms: float | None
    bound_all_ms: float | None
    optimality_ratio_all: float | None
    byte_index_atf_ms: float | None
    bound_atf_ms: float | None
    optimality_ratio_atf: float | None


class SchemeOptimalityRow(NamedTuple):
    """Summary of a scheme over a network and its pages; the mean is arithmetic."""

    network: str
    scheme: str
    which: Which
    n_pages: int
    mean: float | None
    median: float | None
    worst: float | None
    worst_page: str | None


class CategoryOptimalityRow(NamedTuple):
    """Summary over the pages of one class; *low* to *high* is the mean's 95 % interval."""

    network: str
    page_class: str
    scheme: str
    which: Which
    n_pages: int
    mean: float | None
    low: float | None
    high: float | None
    median: float | None
    worst: float | None
    worst_page: str | None


OPTIMALITY = OutputSchema(
    "h3sim-optimality/1",
    "Ratios of schemes to a lower bound that no scheme can beat",
    *COMMON,
    Property(
        "configurations",
        TableOf(SETTINGS),
        "common settings of the loads over each network, by its name",
    ),
    Property(
        "page_classes",
        TableOf(
            ObjectType(*(Property(by, Choice(names)) for by, (names, _) in PAGE_CLASSES.items()))
        ),
        "class of each page",
    ),
    Property(
        "rows",
        rows_of(OptimalityRow, given=Choice(("page", "requests"))),
        "one per load: ByteIndexes, their bounds and the ratio of both",
    ),
    Property(
        "schemes", rows_of(SchemeOptimalityRow, which=WHICH), "one per network, scheme and `which`"
    ),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Optimality(ResultTable):
    """Rows by network, page and scheme, in the order given."""

    format = OPTIMALITY
    displayed = ("schemes",)
    rows: Rows[OptimalityRow]
    configurations: dict[str, dict[str, Any]]
    """Common settings of the loads over each network, by its name, as `Load.configuration`."""
    page_classes: dict[str, dict[str, str]]
    """Class of each page, by its name and the criterion."""

    @property
    def given(self) -> Given | None:
        """Kind of the bounds; None if it differs between networks."""
        kinds = {row.given for row in self.rows}
        return kinds.pop() if len(kinds) == 1 else None

    @cached_property
    def schemes(self) -> Rows[SchemeOptimalityRow]:
        """Summary of each scheme and network over pages, for "all" and "atf" (above the fold)."""
        rows = (
            SchemeOptimalityRow(network, scheme, which, **_summarize(ratios))
            for network, scheme, which, ratios in self._groups()
        )
        return Rows(SchemeOptimalityRow, rows)

    def by_class(self, by: str = "size") -> Rows[CategoryOptimalityRow]:
        """Summarize each scheme and network by class of pages.

        Pages are classified *by* "size" (body bytes: below 500 kB, up to 1000 kB, above), number
        of "resources", or "origin" (recorded, published, synthetic). Empty classes have no row.
        Intervals are from a bootstrap over pages, cut at 1, the least possible ratio.

        Raises:
            InputError: if *by* is no such criterion.
            MissingExtraError: if scipy is not installed.
        """
        check_arguments(InputError, by=(_CLASS_CRITERION, by))
        return Rows(CategoryOptimalityRow, self._category_rows(by))

    def _category_rows(self, by: str) -> Iterator[CategoryOptimalityRow]:
        """Yield the mean ratio of each scheme over each class of pages."""
        from h3sim.study.statistics.intervals import mean_interval  # lazy: scipy is an extra

        class_names, _ = PAGE_CLASSES[by]
        for network, scheme, which, ratios in self._groups():
            for page_class in class_names:
                of_class = {
                    page: ratio
                    for page, ratio in ratios.items()
                    if self.page_classes[page][by] == page_class
                }
                if of_class:
                    ends = mean_interval([*of_class.values()])
                    low, high = (None if end is None else max(1.0, end) for end in ends)
                    yield CategoryOptimalityRow(
                        network,
                        page_class,
                        scheme,
                        which,
                        low=low,
                        high=high,
                        **_summarize(of_class),
                    )

    def _groups(self) -> Iterator[tuple[str, str, Which, dict[str, float]]]:
        """Yield the ratios by page for each network, scheme and metric."""
        for network, scheme in dict.fromkeys((row.network, row.scheme) for row in self.rows):
            rows = [row for row in self.rows if (row.network, row.scheme) == (network, scheme)]
            for which in _BYTE_INDEXES:
                ratios = ((row.page, getattr(row, f"optimality_ratio_{which}")) for row in rows)
                known = {page: ratio for page, ratio in ratios if ratio is not None}
                yield network, scheme, which, known

    @property
    def plot(self) -> OptimalityPlots:
        """Figures, by the methods of `h3sim.reporting.OptimalityPlots`: `plot.schemes()`, ..."""
        plots: OptimalityPlots = reporting().OptimalityPlots(self)
        return plots


class _Summary(TypedDict):
    """Fields that the rows of summaries have in common."""

    n_pages: int
    mean: float | None
    median: float | None
    worst: float | None
    worst_page: str | None


def _summarize(ratios: Mapping[str, float]) -> _Summary:
    """Return the summary of the ratios of pages, by their names."""
    if not ratios:
        return _Summary(n_pages=0, mean=None, median=None, worst=None, worst_page=None)
    worst_page = max(ratios, key=ratios.__getitem__)
    return _Summary(
        n_pages=len(ratios),
        mean=math.fsum(ratios.values()) / len(ratios),
        median=statistics.median(ratios.values()),
        worst=ratios[worst_page],
        worst_page=worst_page,
    )


@shows_loads
def optimality(
    pages: PageLike | Iterable[PageLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] | None = None,
    client: HalvesLike = None,
    server: HalvesLike = None,
    networks: Sequence[str] = (),
    given: Given | None = None,
    config: LoadConfig | None = None,
    **options: Unpack[StudyKeywords],
) -> Optimality:
    """Load each page with each scheme, and compare each load with a lower bound.

    The schemes are by default "marx-2019", or none beside pairs of each *client* and each *server*.
    *given* is the kind of bound, as for `Load.lower_bound`: given the "page", one bound for all
    schemes, or given the "requests", one bound for those of each load. The default is "page" where
    that is available: at a constant rate with a replaying browser. *networks*, if any, replace
    the network of the other arguments, which are fields of `LoadConfig` and override *config*, or
    of `Execution`.

    Raises:
        InputError: listing every error in the arguments.
        NothingToMeasureError: if *given* is "page" where that bound is unavailable.
        UnknownNameError: if the only error is an unknown name.
        UnknownOptionError: if there is no such argument.

    >>> rows = optimality("davies-meenan", schemes=["rr", "atf-first"]).schemes
    >>> [(row.scheme, row.which, round(row.mean, 2)) for row in rows if row.which == "atf"]
    [('rr', 'atf', 3.78), ('atf-first', 'atf', 1.0)]
    """
    check_arguments(InputError, given=(_BOUND_KIND, given), networks=(NETWORK_NAMES, networks))
    execution, base_config = read_options(optimality, options, config)
    requested = add_schedulers(
        schemes, None, None, default="marx-2019", client=client, server=server
    )
    subjects = resolve_subjects(pages, requested)
    configs = [replace(base_config, network=name) for name in dict.fromkeys(networks)]
    specs = [
        [resolve(page, subjects.schemes[0], each) for page in subjects.pages]
        for each in configs or [base_config]
    ]
    check_names(networks=[of_network[0].network for of_network in specs])
    tasks = list(_optimality_tasks(itertools.chain(*specs), subjects.schemes, given))
    with LoadRunner(execution, _measure_optimality) as runner:
        measured = runner.run(tasks)
    first_by_network: dict[str, dict[str, Any]] = {}
    for load in measured:
        first_by_network.setdefault(load["network"], load)
    first_loads = list(first_by_network.values())
    return Optimality(
        rows=Rows(OptimalityRow, _optimality_rows(tasks, measured)),
        version=__version__,
        configuration=_shared_entries([load["configuration"] for load in first_loads]),
        words=_shared_entries([load["words"] for load in first_loads])
        | without_marks(subjects.pages),
        configurations={name: load["configuration"] for name, load in first_by_network.items()},
        page_digests={page.name: page.digest for page in subjects.pages},
        page_classes={page.name: classes_of(page) for page in subjects.pages},
    )


_BOUND_OF_FIRST_SCHEME = "bound of the first scheme"
"""Quantity of a load whose bounds are those of the first scheme's load of the same page."""


def _optimality_tasks(
    specs: Iterable[LoadSpec], schemes: Sequence[Scheme], given: Given | None
) -> Iterator[LoadTask]:
    """Yield each of *specs* with each scheme, with the kind of its bounds as its quantity.

    Bounds given the page are the same for all schemes, and so they are computed once.
    """
    for spec in specs:
        kind = given or _strongest_kind(spec)
        for scheme in schemes:
            is_known = kind == "page" and scheme is not schemes[0]
            quantity = _BOUND_OF_FIRST_SCHEME if is_known else kind
            yield LoadTask(spec.with_scheme(scheme), quantity)


def _strongest_kind(spec: LoadSpec) -> Given:
    """Return the kind of the highest bounds that are available."""
    replays = spec.browser.mode is BrowserMode.REPLAY
    return "page" if spec.is_constant_rate and replays else "requests"


def _measure_optimality(load: Load, quantity: str) -> dict[str, Any]:
    """Return the ByteIndexes of a load and, unless they are known, their bounds."""
    indexes = {which: load.byte_index_or_none(which) for which in _BYTE_INDEXES}
    given: Given = "page" if quantity == "page" else "requests"
    bounds = {
        which: None if index_ms is None else load.lower_bound(which, given=given)
        for which, index_ms in indexes.items()
        if quantity != _BOUND_OF_FIRST_SCHEME
    }
    return {"network": load.network.name, "indexes": indexes, "bounds": bounds}


def _optimality_rows(
    tasks: Sequence[LoadTask], measured: Sequence[Mapping[str, Any]]
) -> Iterator[OptimalityRow]:
    """Yield the row of each load."""
    given: Given = "page"
    bounds: Mapping[Which, float | None] = {}
    for (spec, quantity), load in zip(tasks, measured, strict=True):
        if quantity != _BOUND_OF_FIRST_SCHEME:
            given, bounds = "page" if quantity == "page" else "requests", load["bounds"]
        figures: list[float | None] = []  # in the order of the row
        for which in _BYTE_INDEXES:
            index_ms, bound_ms = load["indexes"][which], bounds[which]
            ratio = index_ms / bound_ms if index_ms is not None and bound_ms else None
            figures += [index_ms, bound_ms, ratio]
        yield OptimalityRow(spec.page.name, load["network"], spec.scheme.name, given, *figures)


def _shared_entries(mappings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries that all of the mappings have in common."""
    first, *others = mappings
    return {
        key: value
        for key, value in first.items()
        if all(key in other and other[key] == value for other in others)
    }


_UNCHANGED = "as it is"
WHAT_IFS = (_UNCHANGED, "no computation", "no network", "half the RTT", "all cached")
"""Variants of each page, in order; "all cached" still fetches the document."""

_PATH_CRITERIA = ("policy", "kind", "resource", "part")
"""Criteria by which the time of the critical path is shared out."""
_NO_NETWORK: dict[str, Any] = {"network": "marx-2019", "rate_mbps": 10_000.0, "rtt_ms": 0.0}
"""Options for practically no network: 2 MB take 1.6 ms, without congestion control."""


class WhatIfRow(NamedTuple):
    """Load event of one page and variant, and its ratio to the page as it is."""

    page: str
    what: str
    load_event_ms: float
    first_paint_ms: float | None
    part: float


class PathShareRow(NamedTuple):
    """Share of the critical path due to *name*: mean and maximum over pages."""

    by: str
    name: str
    mean_ms: float
    mean_part: float
    largest_part: float


WHAT_IF = OutputSchema(
    "h3sim-what-if/1",
    "Load events without computation, network and so on",
    *COMMON,
    Property(
        "rows",
        rows_of(WhatIfRow),
        "one per page and variant: `part` is the ratio to the load event as it is",
    ),
    Property(
        "contributions",
        rows_of(PathShareRow),
        "shares of the critical path, by policy, kind, resource (of a single page) and activity",
    ),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class WhatIf(ResultTable):
    """Result table: rows by page and variant, in the order of `WHAT_IFS`."""

    format = WHAT_IF
    rows: Rows[WhatIfRow]
    contributions: Rows[PathShareRow]
    """Shares of the critical paths of the pages as they are, by policy, kind and activity.

    Of a single page, by resource, too.
    """

    def mean_part(self, what: str) -> float:
        """Return the geometric mean over pages of the ratio for variant *what*."""
        return statistics.geometric_mean(row.part for row in self.rows if row.what == what)


@shows_loads
def what_if(
    pages: PageLike | Iterable[PageLike],
    *,
    scheme: SchemeLike = "rr",
    config: LoadConfig | None = None,
    **options: Unpack[StudyKeywords],
) -> WhatIf:
    """Load each page as it is, and without computation, network and so on.

    The browser computes every load (`browser="parse"`). "No network" is 10 Gbit/s without delay.
    With "all cached" only the document is fetched, and the main thread takes as long as before. The
    other arguments are fields of `LoadConfig`, which override *config*, and of `Execution`.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.
        UnknownOptionError: if there is no such argument.

    >>> found = what_if("davies-meenan", scheme="dfifo", network="cable")
    >>> [round(row.part, 2) for row in found.rows]
    [1.0, 1.0, 0.02, 0.96, 0.07]
    """
    execution, base_config = read_options(what_if, options, config)
    resolved = resolve_scheme(scheme)
    subjects = resolve_subjects(pages, resolved).pages
    parsing = replace(base_config.browser_model, mode=BrowserMode.PARSE)
    parse_config = replace(base_config, browser=parsing)
    with LoadRunner(execution, _measure_what_if) as runner:
        measured = runner.run(
            [task for page in subjects for task in _what_if_tasks(page, resolved, parse_config)]
        )
    unchanged = measured[:: len(WHAT_IFS)]
    first, *_ = unchanged
    return WhatIf(
        rows=Rows(WhatIfRow, _what_if_rows(subjects, measured)),
        contributions=Rows(
            PathShareRow, _mean_contributions([load["contributions"] for load in unchanged])
        ),
        version=__version__,
        configuration={**first["configuration"], "scheme": resolved.name},
        words={**first["words"], "scheme": resolved.name},
        page_digests={page.name: page.digest for page in subjects},
    )


def _what_if_tasks(page: Page, scheme: Scheme, config: LoadConfig) -> Iterator[LoadTask]:
    """Yield the load of each variant of a page."""
    spec = resolve(page, scheme, config)
    # A new config: loss, a queue or a controller of *config* would require links.
    no_network = LoadConfig(browser=config.browser, **_NO_NETWORK)
    half_rtt = replace(config, rtt_ms=to_ms(spec.network.rtt_ns) / 2)
    variants = (
        spec,
        resolve(_without_computation(page), scheme, config),
        resolve(page, scheme, no_network),
        resolve(page, scheme, half_rtt),
        resolve(_with_all_cached(page), scheme, config),
    )
    yield from map(LoadTask, variants, WHAT_IFS)


def _measure_what_if(load: Load, what: str) -> dict[str, Any]:
    """Return load event and first paint and, of the page as it is, its critical path."""
    criteria = _PATH_CRITERIA if what == _UNCHANGED else ()
    return {
        "load_event_ms": load.load_event_ms or 0.0,
        "first_paint_ms": load.first_paint_ms,
        "contributions": {
            by: [(row.name, row.time_ms, row.share) for row in load.contributions(by)]
            for by in criteria
        },
    }


def _what_if_rows(
    pages: Sequence[Page], measured: Sequence[Mapping[str, Any]]
) -> Iterator[WhatIfRow]:
    """Yield the load event of each variant, relative to the unchanged page."""
    variants = itertools.product(pages, WHAT_IFS)
    unchanged_ms = 0.0
    for (page, what), load in zip(variants, measured, strict=True):
        event_ms = load["load_event_ms"]
        unchanged_ms = event_ms if what == _UNCHANGED else unchanged_ms or event_ms
        yield WhatIfRow(page.name, what, event_ms, load["first_paint_ms"], event_ms / unchanged_ms)


def _without_computation(page: Page) -> Page:
    return page.with_resources(
        replace(resource, parse_ns=0, execute_ns=0) for resource in page.resources
    )


def _with_all_cached(page: Page) -> Page:
    """Return *page* with all but the document cached; the document gets all computing time."""
    others = [resource for n, resource in enumerate(page.resources) if n not in page.roots]
    if not others:
        return page
    computing_ns = sum(resource.parse_ns + resource.execute_ns for resource in others)
    cached = with_cached(page, [resource.id for resource in others])
    root = cached.resources[cached.root]
    # Only the document is left to load, but the cached resources are still parsed and executed.
    return cached.with_resources([replace(root, execute_ns=root.execute_ns + computing_ns)])


def _mean_contributions(
    loads: Sequence[Mapping[str, Iterable[tuple[str, float, float]]]],
) -> Iterator[PathShareRow]:
    """Yield the mean time and share of the critical path, by each criterion, largest first.

    *loads* are the contributions of each load by criterion: name, time and share.
    """
    for by in _PATH_CRITERIA:
        if by == "resource" and len(loads) > 1:
            continue  # equal ids on several pages are different resources
        times_ms: dict[str, list[float]] = {}
        shares: dict[str, list[float]] = {}
        for contributions in loads:
            for name, time_ms, share in contributions[by]:
                times_ms.setdefault(name, []).append(time_ms)
                shares.setdefault(name, []).append(share)
        rows = [
            PathShareRow(
                by,
                name,
                # Loads without this name count as 0.
                mean_ms=sum(times_ms[name]) / len(loads),
                mean_part=sum(shares[name]) / len(loads),
                largest_part=max(shares[name]),
            )
            for name in times_ms
        ]
        yield from sorted(rows, key=lambda row: -row.mean_part)

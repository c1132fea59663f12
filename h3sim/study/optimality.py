"""Optimality ratios of schemes over pages and networks, and exact optima of small pages."""

from __future__ import annotations

import html
import math
import statistics
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.accessors import accessor
from h3sim.config.arguments import check_progress
from h3sim.config.load_config import LoadConfig, config_of, over_networks, with_options
from h3sim.errors import InputError, NothingToMeasureError, ValidationIssue, needing_extra
from h3sim.page.categories import PAGE_CLASSES, classes_of
from h3sim.results import in_words
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.output import ObjectType, OutputSchema, Property, rows_of
from h3sim.schema.values import Choice, TableOf
from h3sim.study.compare import check_names, resolve_subjects
from h3sim.study.run import run_config
from h3sim.study.table import COMMON, SETTINGS, WHICH, ResultTable
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.metrics.lower_bounds import Part
    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.results.load import Which
    from h3sim.results.optimality import Given
    from h3sim.schemes import Scheme
    from h3sim.study.run import PageLike, SchemeLike


_NOTHING = 1e-6
"""The solver is exact to about as much."""


@dataclass(frozen=True)
class Optimum:
    """The least sum of weights times ends, and which part each tick goes to in a schedule of it.

    `order` begins with tick 1; None stands for a tick at which nothing can be sent.
    """

    total: int
    order: tuple[int | None, ...]


def optimal_schedule(parts: Sequence[Part], *, limit_s: float = 60.0) -> Optimum:
    """Return the least sum, over *parts*, of weight times the tick of the last packet.

    It is a mixed integer program over instants (Sousa and Wolsey 1992), solved by HiGHS: x says
    how much of a part is sent at a tick, y (0 or 1) whether all of it has been. It grows with parts
    times ticks, and takes seconds for ten responses of a few packets.

    Raises:
        MissingExtraError: if scipy is not installed.
        NothingToMeasureError: if no optimum is proven within *limit_s* seconds.

    >>> from h3sim.metrics.lower_bounds import Part
    >>> large = Part(after=None, lag_ticks=1, first_tick=1, n_packets=3, weight=3)
    >>> small = Part(after=None, lag_ticks=1, first_tick=1, n_packets=1, weight=2)
    >>> optimal_schedule([large, small])
    Optimum(total=14, order=(1, 0, 0, 0))
    """
    program = _Program(parts)
    solution = program.solve(limit_s)
    return Optimum(program.total(solution), program.order(solution))


class _Program:
    """The program: variables x[part, tick] stand first, then y[part, tick]; ticks begin with 1."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._n_ticks = _horizon(parts)
        self._n = len(parts) * self._n_ticks

    def solve(self, limit_s: float) -> Any:
        with needing_extra("scipy", "study"):
            from scipy import optimize
        import numpy as np

        cost = np.zeros(2 * self._n)
        for index, part in enumerate(self._parts):
            # A part that ends at tick C is not yet sent at C of the instants 0, 1, ..., C - 1.
            for tick in self._ticks():
                cost[self._y(index, tick)] = -part.weight
        found = optimize.milp(
            cost,
            # Packets are whole, so x may be declared whole as well. With x continuous HiGHS solves
            # for it again once y is known, and tells that on stdout whatever it is asked to log.
            integrality=np.ones_like(cost),
            bounds=optimize.Bounds(0, self._upper()),
            constraints=self._constraints(),
            options={"time_limit": limit_s, "mip_rel_gap": 0.0},  # HiGHS is content with 1e-4 else
        )
        if found.status != 0:
            message = f"no optimum of {len(self._parts)} parts was proven: {found.message}"
            raise NothingToMeasureError(message)
        return found.x

    def total(self, solution: Any) -> int:
        """Return the sum of weights times ends."""
        # From whole ticks: the solver's own objective is a float, and off by its tolerance.
        return sum(part.weight * self._end(index, solution) for index, part in self._each())

    def order(self, solution: Any) -> tuple[int | None, ...]:
        """Return a schedule in which each part ends no later: the nearest end goes first."""
        ends = [self._end(index, solution) for index, _ in self._each()]
        left = [part.n_packets for part in self._parts]
        sent_at: dict[int, int] = {}
        order: list[int | None] = []
        while any(left):
            tick = len(order) + 1
            ready = [i for i, _ in self._each() if left[i] and self._may_be_sent(i, tick, sent_at)]
            # If any order keeps all these ends, the one by nearest end does (Horn 1974): the solver
            # may have put packets anywhere before them, this fills the ticks from the front.
            chosen = min(ready, key=lambda i: (ends[i], i), default=None)
            order.append(chosen)
            if chosen is not None:
                left[chosen] -= 1
                if not left[chosen]:
                    sent_at[chosen] = tick
        return tuple(order)

    def _each(self) -> enumerate[Part]:
        return enumerate(self._parts)

    def _may_be_sent(self, index: int, tick: int, sent_at: dict[int, int]) -> bool:
        part = self._parts[index]
        if part.after is None:
            return tick >= part.first_tick
        return part.after in sent_at and tick >= sent_at[part.after] + part.lag_ticks

    def _end(self, index: int, solution: Any) -> int:
        """Return the tick of the last packet of a part; y is 1 only where that is of use."""
        return max(tick for tick in self._ticks() if solution[self._x(index, tick)] > _NOTHING)

    def _ticks(self) -> range:
        return range(1, self._n_ticks + 1)

    def _x(self, index: int, tick: int) -> int:
        return index * self._n_ticks + tick - 1

    def _y(self, index: int, tick: int) -> int:
        return self._n + self._x(index, tick)

    def _upper(self) -> Any:
        import numpy as np

        upper = np.ones(2 * self._n)
        for index, part in self._each():
            for tick in range(1, min(part.first_tick, self._n_ticks + 1)):
                upper[self._x(index, tick)] = upper[self._y(index, tick)] = 0
        return upper

    def _constraints(self) -> Any:
        """Return the rows: a packet a tick, all packets of each, and nothing before its time."""
        import numpy as np
        from scipy import optimize, sparse

        ticks = self._ticks()
        rows: list[tuple[dict[int, float], float, float]] = [
            ({self._x(i, tick): 1 for i, _ in self._each()}, 0, 1) for tick in ticks
        ]
        for index, part in self._each():
            n = part.n_packets
            rows.append(({self._x(index, tick): 1 for tick in ticks}, n, n))
            sent: dict[int, float] = {}
            for tick in ticks:
                sent[self._x(index, tick)] = -1
                # A copy, as *sent* grows on: all is sent once n packets have been by this tick.
                rows.append(({**sent, self._y(index, tick): n}, -np.inf, 0))
                if part.after is not None:
                    rows.append(self._behind(index, part, tick))
        matrix = sparse.lil_matrix((len(rows), 2 * self._n))
        for number, (row, _, _) in enumerate(rows):
            for column, value in row.items():
                matrix[number, column] = value
        return optimize.LinearConstraint(
            matrix.tocsr(), [low for _, low, _ in rows], [high for _, _, high in rows]
        )

    def _behind(self, index: int, part: Part, tick: int) -> tuple[dict[int, float], float, float]:
        """Return the row by which a part is sent only *lag_ticks* after what it waits for."""
        row: dict[int, float] = {self._x(index, tick): 1}
        if part.after is not None and tick > part.lag_ticks:
            row[self._y(part.after, tick - part.lag_ticks)] = -1
        return row, -float("inf"), 0


def _horizon(parts: Sequence[Part]) -> int:
    """Return a tick by which all is sent if no tick is left unused that could be used."""
    latest = 0
    for part in parts:
        latest = max(latest, part.first_tick + part.n_packets - 1)
    # `first_tick` counts the lags of what it waits for. So on a path that is never left idle a part
    # ends later than that only by ticks in which others are sent, and there are no more than all
    # packets.
    return latest + sum(part.n_packets for part in parts)


_ARGUMENTS = ("schemes", "networks", "given", "config", "progress")
_WHICH: tuple[Which, ...] = ("all", "atf")


class OptimalityRow(NamedTuple):
    """One load: ByteIndexes, their bounds, and how many times these they are.

    *given* says what the bounds take as given, as `Load.lower_bound` has it.
    """

    page: str
    network: str
    scheme: str
    given: Given
    byte_index_all_ms: float | None
    bound_all_ms: float | None
    regret_all: float | None
    byte_index_atf_ms: float | None
    bound_atf_ms: float | None
    regret_atf: float | None


class SchemeOptimalityRow(NamedTuple):
    """A scheme over a network and the pages that have a figure; the mean is arithmetic."""

    network: str
    scheme: str
    which: Which
    n_pages: int
    mean: float | None
    median: float | None
    worst: float | None
    worst_page: str | None


class CategoryOptimalityRow(NamedTuple):
    """The same over the pages of one class; *low* to *high* is the 95 % interval of the mean."""

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


REGRET = OutputSchema(
    "h3sim-regret/1",
    "How far schemes are from what none can beat",
    *COMMON,
    Property("configurations", TableOf(SETTINGS), "the same of the loads over each network"),
    Property(
        "page_classes",
        TableOf(
            ObjectType(*(Property(by, Choice(names)) for by, (names, _) in PAGE_CLASSES.items()))
        ),
        "of each page",
    ),
    Property(
        "rows",
        rows_of(OptimalityRow, given=Choice(("page", "requests"))),
        "one a load, ByteIndexes and their bounds; a regret is the one by the other",
    ),
    Property(
        "schemes", rows_of(SchemeOptimalityRow, which=WHICH), "one a network, scheme and `which`"
    ),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Optimality(ResultTable):
    """Rows by network, page and scheme, in the order given."""

    format = REGRET
    rows: Rows[OptimalityRow]
    configurations: dict[str, dict[str, Any]]
    """What the loads over each network have in common, as `Load.configuration`, by its name."""
    page_classes: dict[str, dict[str, str]]
    """The class of each page, by its name, then by what pages are told apart."""

    @property
    def given(self) -> Given | None:
        """What the bounds take as given; None where that is not the same over all networks."""
        found = {row.given for row in self.rows}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def schemes(self) -> Rows[SchemeOptimalityRow]:
        """Each scheme over all pages of a network: "all" and "atf" (above the fold) of it."""
        rows = (
            SchemeOptimalityRow(network, scheme, which, *_summary(found))
            for network, scheme, which, found in self._groups()
        )
        return Rows(SchemeOptimalityRow, rows)

    def by_class(self, by: str = "size") -> Rows[CategoryOptimalityRow]:
        """Return each scheme over the pages of each class of a network.

        Pages are told apart *by* "size" (of their bodies: below 500 kB, up to 1000, above), by
        how many "resources" they have, or by their "origin" (recorded, written down, made up). A
        class without pages has no row. The intervals are of the bootstrap over pages, cut at 1, as
        no regret is below it.

        Raises:
            InputError: if pages are not told apart by that.
            MissingExtraError: if scipy is not installed.
        """
        _check_by(by)
        return Rows(CategoryOptimalityRow, self._by_class(by))

    def _by_class(self, by: str) -> Iterator[CategoryOptimalityRow]:
        from h3sim.study.statistics import mean_interval  # on use: scipy is an extra

        for network, scheme, which, found in self._groups():
            for page_class in PAGE_CLASSES[by][0]:
                inside = {
                    page: value
                    for page, value in found.items()
                    if self.page_classes[page][by] == page_class
                }
                if inside:
                    n_pages, mean, median, worst, worst_page = _summary(inside)
                    low, high = (_at_least_1(end) for end in mean_interval([*inside.values()]))
                    yield CategoryOptimalityRow(
                        network=network,
                        page_class=page_class,
                        scheme=scheme,
                        which=which,
                        n_pages=n_pages,
                        mean=mean,
                        low=low,
                        high=high,
                        median=median,
                        worst=worst,
                        worst_page=worst_page,
                    )

    def _groups(self) -> Iterator[tuple[str, str, Which, dict[str, float]]]:
        """Yield the regrets of each network, scheme and measure, by page."""
        for network, scheme in dict.fromkeys((row.network, row.scheme) for row in self.rows):
            here = [row for row in self.rows if (row.network, row.scheme) == (network, scheme)]
            for which in _WHICH:
                values = ((row.page, getattr(row, f"regret_{which}")) for row in here)
                found = {page: value for page, value in values if value is not None}
                yield network, scheme, which, found

    @property
    def plot(self) -> Any:
        """Figures, by the methods of `h3sim.reporting.OptimalityPlots`: `plot.schemes()`, ..."""
        return accessor("regret.plot", self)

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.told())}</p>{self.schemes._repr_html_()}"


def _at_least_1(end: float | None) -> float | None:
    return None if end is None else max(1.0, end)


def _summary(
    found: dict[str, float],
) -> tuple[int, float | None, float | None, float | None, str | None]:
    """Return how many there are, their mean, median and greatest, and which that is."""
    if not found:
        return 0, None, None, None, None
    worst_page = max(found, key=found.__getitem__)
    values = list(found.values())
    mean = math.fsum(values) / len(values)
    return len(values), mean, statistics.median(values), found[worst_page], worst_page


def _check_by(by: object) -> None:
    if by not in PAGE_CLASSES:
        message = f"must be one of {', '.join(PAGE_CLASSES)}, is {format_value(by)}"
        raise InputError([ValidationIssue(key="by", message=message)])


@with_options
def optimality(
    pages: PageLike | Iterable[PageLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] = "marx-2019",
    networks: Sequence[str] = (),
    given: Given | None = None,
    config: LoadConfig | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Optimality:
    """Load each page with each scheme, and hold each load against what none can beat.

    *given* is what `Load.lower_bound` takes as given: the "page", which holds every scheme of a
    page against one bound, or the "requests" as each load made them. Unless told otherwise it is
    the page where that can be had: at a constant rate, with a browser that replays. All of it is
    done over each of *networks*, where there are some, in place of the network of the other
    arguments; those are the ones of `LoadConfig`, and change *config* where that is given.
    *progress* is told after each load how many are done and how many there are.

    Raises:
        InputError: listing every mistake in what was given.
        NothingToMeasureError: if the page is to be given where it cannot be.
        UnknownNameError: if only a name is not known.
        UnknownOptionError: if there is no such argument.

    >>> rows = optimality("davies-meenan", schemes=["rr", "atf-first"]).schemes
    >>> [(row.scheme, row.which, round(row.mean, 2)) for row in rows if row.which == "atf"]
    [('rr', 'atf', 3.78), ('atf-first', 'atf', 1.0)]
    """
    with ErrorCollector() as mistakes:
        mistakes.of("", lambda: _check_given(given))
        mistakes.of("", lambda: check_progress(progress))
        run_with = mistakes.of(
            "", partial(config_of, options, known=_ARGUMENTS, changed=config), instead=LoadConfig()
        )
        over = mistakes.of("networks", lambda: over_networks(run_with, networks), instead=[])
        settings = over or [run_with]
        found = mistakes.of("", lambda: resolve_subjects(pages, schemes))
        mistakes.of("", lambda: check_names(networks=[one.path.network for one in settings]))
    n_loads = len(settings) * len(found.pages) * len(found.schemes)
    rows: list[OptimalityRow] = []
    first_of: dict[str, Load] = {}
    for load, bounds, used in _held(*found, settings, given):
        rows.append(_row(load, bounds, used))
        first_of.setdefault(load.network.name, load)
        if progress is not None:
            progress(len(rows), n_loads)
    return _regret(rows, first_of, found.pages)


def _regret(rows: list[OptimalityRow], first_of: dict[str, Load], pages: list[Page]) -> Optimality:
    """Return the *rows* with what was run, by the first load over each network."""
    return Optimality(
        rows=Rows(OptimalityRow, rows),
        version=__version__,
        configuration=_common([load.configuration for load in first_of.values()]),
        words=_common([in_words(load) for load in first_of.values()]),
        configurations={name: load.configuration for name, load in first_of.items()},
        page_digests={page.name: page.digest for page in pages},
        page_classes={page.name: classes_of(page) for page in pages},
    )


def _check_given(given: object) -> None:
    if given not in (None, "page", "requests"):
        message = f"must be 'page' or 'requests', is {format_value(given)}"
        raise InputError([ValidationIssue(key="given", message=message)])


Bounds = dict["Which", float | None]


def _held(
    pages: list[Page], schemes: list[Scheme], settings: list[LoadConfig], given: Given | None
) -> Iterator[tuple[Load, Bounds, Given]]:
    """Yield each load with its bounds; those of a page are found once for all schemes."""
    for config in settings:
        for page in pages:
            bounds: Bounds | None = None
            for scheme in schemes:
                load = run_config(page, scheme, config)
                used = given or _strongest(load)
                if bounds is None or used == "requests":
                    bounds = {which: _bound(load, which, used) for which in _WHICH}
                yield load, bounds, used


def _strongest(load: Load) -> Given:
    replays = load.configuration["browser"] == "replay"
    return "page" if load.network.constant_rate is not None and replays else "requests"


def _bound(load: Load, which: Which, given: Given) -> float | None:
    if load.byte_index_or_none(which) is None:
        return None
    return load.lower_bound(which, given=given)


def _row(load: Load, bounds: Bounds, given: Given) -> OptimalityRow:
    figures: list[float | None] = []
    for which in _WHICH:
        index_ms, bound_ms = load.byte_index_or_none(which), bounds[which]
        ratio = index_ms / bound_ms if index_ms is not None and bound_ms else None
        figures += [index_ms, bound_ms, ratio]
    return OptimalityRow(load.page.name, load.network.name, load.scheme.name, given, *figures)


def _common(said: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the entries of the first that all others have as well."""
    first, *others = said
    return {
        key: value
        for key, value in first.items()
        if all(key in other and other[key] == value for other in others)
    }

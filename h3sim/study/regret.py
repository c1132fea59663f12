"""How far schemes are from the best that any could do: a table over pages and networks."""

from __future__ import annotations

import html
import math
import statistics
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.documents import shown
from h3sim.documents.arguments import GatheredMistakes
from h3sim.documents.values import Choice, TableOf
from h3sim.documents.written import Key, Keys, WrittenFormat, rows_of
from h3sim.errors import InputError, Problem
from h3sim.page.classes import PAGE_CLASSES, classes_of
from h3sim.provided import provided
from h3sim.results import in_words
from h3sim.study.arguments import check_progress
from h3sim.study.compare import check_names, resolve_subjects
from h3sim.study.config import LoadConfig
from h3sim.study.options import config_of, over_networks, with_options
from h3sim.study.run import run_config
from h3sim.study.told import COMMON, SETTINGS, WHICH, Told
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.results.bounds import Given
    from h3sim.results.load import Which
    from h3sim.schemes import Scheme
    from h3sim.study.run import PageLike, SchemeLike

__all__ = ["REGRET", "ClassRegretRow", "Regret", "RegretRow", "SchemeRegretRow", "regret"]

_ARGUMENTS = ("schemes", "networks", "given", "config", "progress")
_WHICH: tuple[Which, ...] = ("all", "atf")


class RegretRow(NamedTuple):
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


class SchemeRegretRow(NamedTuple):
    """A scheme over a network and the pages that have a figure; the mean is arithmetic."""

    network: str
    scheme: str
    which: Which
    n_pages: int
    mean: float | None
    median: float | None
    worst: float | None
    worst_page: str | None


class ClassRegretRow(NamedTuple):
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


REGRET = WrittenFormat(
    "h3sim-regret/1",
    "How far schemes are from what none can beat",
    *COMMON,
    Key("configurations", TableOf(SETTINGS), "the same of the loads over each network"),
    Key(
        "page_classes",
        TableOf(Keys(*(Key(by, Choice(names)) for by, (names, _) in PAGE_CLASSES.items()))),
        "of each page",
    ),
    Key(
        "rows",
        rows_of(RegretRow, given=Choice(("page", "requests"))),
        "one a load, ByteIndexes and their bounds; a regret is the one by the other",
    ),
    Key("schemes", rows_of(SchemeRegretRow, which=WHICH), "one a network, scheme and `which`"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Regret(Told):
    """Rows by network, page and scheme, in the order given."""

    format = REGRET
    rows: Rows[RegretRow]
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
    def schemes(self) -> Rows[SchemeRegretRow]:
        """Each scheme over all pages of a network: "all" and "atf" (above the fold) of it."""
        rows = (
            SchemeRegretRow(network, scheme, which, *_summary(found))
            for network, scheme, which, found in self._groups()
        )
        return Rows(SchemeRegretRow, rows)

    def by_class(self, by: str = "size") -> Rows[ClassRegretRow]:
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
        return Rows(ClassRegretRow, self._by_class(by))

    def _by_class(self, by: str) -> Iterator[ClassRegretRow]:
        from h3sim.study.intervals import mean_interval  # on use: scipy is an extra

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
                    yield ClassRegretRow(
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
        """Figures, by the methods of `h3sim.plots.RegretPlots`: `plot.schemes()`, ..."""
        return provided("regret.plot", self)

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
        message = f"must be one of {', '.join(PAGE_CLASSES)}, is {shown(by)}"
        raise InputError([Problem(key="by", message=message)])


@with_options
def regret(
    pages: PageLike | Iterable[PageLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] = "marx-2019",
    networks: Sequence[str] = (),
    given: Given | None = None,
    config: LoadConfig | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Regret:
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

    >>> rows = regret("davies-meenan", schemes=["rr", "atf-first"]).schemes
    >>> [(row.scheme, row.which, round(row.mean, 2)) for row in rows if row.which == "atf"]
    [('rr', 'atf', 3.78), ('atf-first', 'atf', 1.0)]
    """
    with GatheredMistakes() as mistakes:
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
    rows: list[RegretRow] = []
    first_of: dict[str, Load] = {}
    for load, bounds, used in _held(*found, settings, given):
        rows.append(_row(load, bounds, used))
        first_of.setdefault(load.network.name, load)
        if progress is not None:
            progress(len(rows), n_loads)
    return _regret(rows, first_of, found.pages)


def _regret(rows: list[RegretRow], first_of: dict[str, Load], pages: list[Page]) -> Regret:
    """Return the *rows* with what was run, by the first load over each network."""
    return Regret(
        rows=Rows(RegretRow, rows),
        version=__version__,
        configuration=_common([load.configuration for load in first_of.values()]),
        words=_common([in_words(load) for load in first_of.values()]),
        configurations={name: load.configuration for name, load in first_of.items()},
        page_digests={page.name: page.digest for page in pages},
        page_classes={page.name: classes_of(page) for page in pages},
    )


def _check_given(given: object) -> None:
    if given not in (None, "page", "requests"):
        message = f"must be 'page' or 'requests', is {shown(given)}"
        raise InputError([Problem(key="given", message=message)])


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


def _row(load: Load, bounds: Bounds, given: Given) -> RegretRow:
    figures: list[float | None] = []
    for which in _WHICH:
        index_ms, bound_ms = load.byte_index_or_none(which), bounds[which]
        ratio = index_ms / bound_ms if index_ms is not None and bound_ms else None
        figures += [index_ms, bound_ms, ratio]
    return RegretRow(load.page.name, load.network.name, load.scheme.name, given, *figures)


def _common(said: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the entries of the first that all others have as well."""
    first, *others = said
    return {
        key: value
        for key, value in first.items()
        if all(key in other and other[key] == value for other in others)
    }

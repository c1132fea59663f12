"""How far schemes are from the best that any could do: a table over pages."""

from __future__ import annotations

import html
import math
import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from h3sim._version import __version__
from h3sim.documents import shown
from h3sim.documents.arguments import CALLABLE, check_arguments
from h3sim.errors import InputError, Problem
from h3sim.results import in_words
from h3sim.study.compare import CONFIG, check_names, check_some
from h3sim.study.options import LoadOptions, config_of, with_options
from h3sim.study.run import resolve_pages, resolve_schemes, run_config
from h3sim.study.told import Told
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.results.bounds import Given
    from h3sim.results.load import Which
    from h3sim.schemes import Scheme
    from h3sim.study.config import LoadConfig
    from h3sim.study.run import PageLike, SchemeLike

__all__ = ["Regret", "RegretRow", "SchemeRegretRow", "regret"]

_ARGUMENTS = ("schemes", "given", "config", "progress")
_WHICH: tuple[Which, ...] = ("all", "atf")


class RegretRow(NamedTuple):
    """One load: exact ByteIndexes, their bounds, and how many times these they are."""

    page: str
    scheme: str
    byte_index_all_ms: float | None
    bound_all_ms: float | None
    regret_all: float | None
    byte_index_atf_ms: float | None
    bound_atf_ms: float | None
    regret_atf: float | None


class SchemeRegretRow(NamedTuple):
    """A scheme over the pages that have a figure; the mean is arithmetic."""

    scheme: str
    which: Which
    n_pages: int
    mean: float | None
    median: float | None
    worst: float | None
    worst_page: str | None


@dataclass(frozen=True, kw_only=True)
class Regret(Told):
    """Rows by page and scheme, in the order given."""

    rows: Rows[RegretRow]
    given: Given

    @cached_property
    def schemes(self) -> Rows[SchemeRegretRow]:
        """Each scheme over all pages: "all" and "atf" (above the fold) of it."""
        names = dict.fromkeys(row.scheme for row in self.rows)
        rows = (self._of(scheme, which) for scheme in names for which in _WHICH)
        return Rows(SchemeRegretRow, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as a document of format `h3sim-regret/1`."""
        return {
            "format": "h3sim-regret/1",
            **self._identity(),
            "rows": [row._asdict() for row in self.rows],
            "schemes": [row._asdict() for row in self.schemes],
        }

    def _identity(self) -> dict[str, Any]:
        return {"given": self.given, **super()._identity()}

    def _of(self, scheme: str, which: Which) -> SchemeRegretRow:
        found = {
            row.page: value
            for row in self.rows
            if row.scheme == scheme
            and (value := row.regret_all if which == "all" else row.regret_atf) is not None
        }
        if not found:
            return SchemeRegretRow(scheme, which, 0, None, None, None, None)
        worst_page = max(found, key=found.__getitem__)
        values = list(found.values())
        return SchemeRegretRow(
            scheme,
            which,
            len(values),
            math.fsum(values) / len(values),
            statistics.median(values),
            found[worst_page],
            worst_page,
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.told())}</p>{self.schemes._repr_html_()}"


@with_options
def regret(
    pages: PageLike | Iterable[PageLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] = "marx-2019",
    given: Given | None = None,
    config: LoadConfig | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Unpack[LoadOptions],
) -> Regret:
    """Load each page with each scheme, and hold each load against what none can beat.

    *given* is what `Load.lower_bound` takes as given: the "page", which holds every scheme of a
    page against one bound, or the "requests" as each load made them. Unless told otherwise it is
    the page where that can be had: at a constant rate, with a browser that replays. *progress* is
    told after each load how many are done and how many there are. The other arguments are those of
    `LoadConfig`, and change *config* where that is given.

    Raises:
        InputError: listing every mistake in what was given.
        NothingToMeasureError: if the page is to be given where it cannot be.
        UnknownNameError: if a name is not known.
        UnknownOptionError: if there is no such argument.

    >>> rows = regret("davies-meenan", schemes=["rr", "atf-first"]).schemes
    >>> [(row.scheme, row.which, round(row.mean, 2)) for row in rows if row.which == "atf"]
    [('rr', 'atf', 3.78), ('atf-first', 'atf', 1.0)]
    """
    if given not in (None, "page", "requests"):
        message = f"must be 'page' or 'requests', is {shown(given)}"
        raise InputError([Problem(key="given", message=message)])
    check_arguments(
        InputError,
        config=(CONFIG, config),
        **{} if progress is None else {"progress": (CALLABLE, progress)},
    )
    run_with = config_of(options, known=_ARGUMENTS, changed=config)
    found_pages = resolve_pages(pages)
    found_schemes = list(dict.fromkeys(resolve_schemes(schemes)))
    check_some(pages=found_pages, schemes=found_schemes)
    check_names(pages=found_pages, schemes=found_schemes)
    rows: list[RegretRow] = []
    common: dict[str, Any] = {}
    for load, bounds, used in _held(found_pages, found_schemes, run_with, given):
        rows.append(_row(load, bounds))
        common = common or _common(load, used)
        if progress is not None:
            progress(len(rows), len(found_pages) * len(found_schemes))
    digests = {page.name: page.digest for page in found_pages}
    return Regret(rows=Rows(RegretRow, rows), page_digests=digests, **common)


Bounds = dict["Which", float | None]


def _held(
    pages: list[Page], schemes: list[Scheme], config: LoadConfig, given: Given | None
) -> Iterator[tuple[Load, Bounds, Given]]:
    """Yield each load with its bounds; those of a page are found once for all schemes."""
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


def _row(load: Load, bounds: Bounds) -> RegretRow:
    figures: list[float | None] = []
    for which in _WHICH:
        index_ms, bound_ms = load.byte_index_or_none(which, sample_ms=None), bounds[which]
        ratio = index_ms / bound_ms if index_ms is not None and bound_ms else None
        figures += [index_ms, bound_ms, ratio]
    return RegretRow(load.page.name, load.scheme.name, *figures)


def _common(load: Load, given: Given) -> dict[str, Any]:
    return {
        "given": given,
        "version": __version__,
        "configuration": load.configuration,
        "words": in_words(load),
    }

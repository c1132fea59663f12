"""The what-if analysis of WProf: load events without computation, network and so on."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.browser import BrowserMode
from h3sim.config.load_config import LoadConfig
from h3sim.page.transforms import with_cached
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.output import OutputSchema, Property, rows_of
from h3sim.study.compare import resolve_subjects
from h3sim.study.run import resolve_scheme
from h3sim.study.table import COMMON, ResultTable
from h3sim.study.tasks import LoadRunner, LoadTask, read_options, with_loads
from h3sim.trace import Rows
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.schemes import Scheme
    from h3sim.study.run import PageLike, SchemeLike


WHAT_IFS = ("as it is", "no computation", "no network", "half the RTT", "all cached")
"""Variants of each page, in order; "all cached" still fetches the document."""
_CRITERIA = ("policy", "kind", "part")
_AT_ONCE: dict[str, Any] = {"network": "marx-2019", "rate_mbps": 10_000.0, "rtt_ms": 0.0}
"""Practically no network: 2 MB take 1.6 ms, without congestion control."""


class WhatIfRow(NamedTuple):
    """Load event of one page and variant, and its ratio to the page as it is."""

    page: str
    what: str
    load_event_ms: float
    first_paint_ms: float
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
        "shares of the critical path, by policy, kind and activity",
    ),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class WhatIf(ResultTable):
    """Result table: rows by page and variant, in the order of `WHAT_IFS`."""

    format = WHAT_IF
    rows: Rows[WhatIfRow]
    contributions: Rows[PathShareRow]
    """Shares of the critical paths of the pages as they are, by policy, kind and activity."""

    def mean_part(self, what: str) -> float:
        """Return the geometric mean over pages of the ratio for variant *what*."""
        return statistics.geometric_mean(row.part for row in self.rows if row.what == what)


@with_loads
def what_if(
    pages: PageLike | Iterable[PageLike],
    *,
    scheme: SchemeLike = "rr",
    config: LoadConfig | None = None,
    **options: Any,
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
    with ErrorCollector() as errors:
        execution, given = errors.collect(
            "", lambda: read_options(what_if, options, config), instead=(None, None)
        )
        used = errors.collect("scheme", lambda: resolve_scheme(scheme), instead="rr")
        found = errors.collect("", lambda: resolve_subjects(pages, used).pages)
    run_with = replace(given, browser=replace(given.browser_model, mode=BrowserMode.PARSE))
    with LoadRunner(execution, _measured) as runner:
        measured = runner.run([task for page in found for task in _tasks(page, used, run_with)])
    as_they_are = measured[:: len(WHAT_IFS)]
    first = as_they_are[0]
    return WhatIf(
        rows=Rows(WhatIfRow, _rows(found, measured)),
        contributions=Rows(
            PathShareRow, _contributions([one["contributions"] for one in as_they_are])
        ),
        version=__version__,
        configuration={**first["configuration"], "scheme": used.name},
        words={**first["words"], "scheme": used.name},
        page_digests={page.name: page.digest for page in found},
    )


def _tasks(page: Page, scheme: Scheme, config: LoadConfig) -> Iterator[LoadTask]:
    rtt_ms = to_ms(config.path.network.rtt_ns)
    asked = {
        "as it is": (page, config),
        "no computation": (_without_computation(page), config),
        # From scratch: loss, a queue or a controller of *config* would require links.
        "no network": (page, LoadConfig(browser=config.browser, **_AT_ONCE)),
        "half the RTT": (page, replace(config, rtt_ms=rtt_ms / 2)),
        "all cached": (_with_all_cached(page), config),
    }
    for what in WHAT_IFS:
        changed_page, changed = asked[what]
        yield LoadTask(changed_page, scheme, changed, what)


def _measured(load: Load, what: str) -> dict[str, Any]:
    """Return load event and first paint and, of the page as it is, what they were due to."""
    criteria = _CRITERIA if what == WHAT_IFS[0] else ()
    return {
        "load_event_ms": load.load_event_ms or 0.0,
        "first_paint_ms": load.first_paint_ms or 0.0,
        "contributions": {
            by: [(row.name, row.time_ms, row.share) for row in load.contributions(by)]
            for by in criteria
        },
    }


def _rows(pages: Sequence[Page], measured: Sequence[Mapping[str, Any]]) -> Iterator[WhatIfRow]:
    cells = itertools.product(pages, WHAT_IFS)
    base_ms = 0.0
    for (page, what), one in zip(cells, measured, strict=True):
        event_ms = one["load_event_ms"]
        base_ms = event_ms if what == WHAT_IFS[0] else base_ms or event_ms
        yield WhatIfRow(page.name, what, event_ms, one["first_paint_ms"], event_ms / base_ms)


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
    warm = with_cached(page, [resource.id for resource in others])
    root = warm.resources[warm.root]
    return warm.with_resources([replace(root, execute_ns=root.execute_ns + computing_ns)])


def _contributions(
    of_loads: Sequence[Mapping[str, Iterable[tuple[str, float, float]]]],
) -> Iterator[PathShareRow]:
    n_loads = len(of_loads)
    for by in _CRITERIA:
        found: dict[str, list[tuple[float, float]]] = {}
        for of_load in of_loads:
            for name, time_ms, share in of_load[by]:
                found.setdefault(name, []).append((time_ms, share))
        means = {
            name: (sum(ms for ms, _ in values) / n_loads, sum(part for _, part in values) / n_loads)
            for name, values in found.items()
        }
        for name in sorted(means, key=lambda name: -means[name][1]):
            most = max(share for _, share in found[name])
            yield PathShareRow(by, name, *means[name], most)

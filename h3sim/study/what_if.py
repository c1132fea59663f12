"""The what-if analysis of WProf: load events without computation, network and so on."""

from __future__ import annotations

import html
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.browser import BrowserMode
from h3sim.config.arguments import check_progress
from h3sim.config.load_config import LoadConfig, config_of, with_options
from h3sim.page.transforms import with_cached
from h3sim.results import in_words
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.output import OutputSchema, Property, rows_of
from h3sim.study.compare import resolve_subjects
from h3sim.study.run import resolve_scheme, run_config
from h3sim.study.table import COMMON, ResultTable
from h3sim.trace import Rows
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.schemes import Scheme
    from h3sim.study.run import PageLike, SchemeLike


WHAT_IFS = ("as it is", "no computation", "no network", "half the RTT", "all cached")
"""Variants of each page, in order; "all cached" still fetches the document."""
_ARGUMENTS = ("scheme", "config", "progress")
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

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.told())}</p>{self.rows._repr_html_()}"


@with_options
def what_if(
    pages: PageLike | Iterable[PageLike],
    *,
    scheme: SchemeLike = "rr",
    config: LoadConfig | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> WhatIf:
    """Load each page as it is, and without computation, network and so on.

    The browser computes every load (`browser="parse"`). "No network" is 10 Gbit/s without delay.
    With "all cached" only the document is fetched, and the main thread takes as long as before. The
    other arguments are fields of `LoadConfig` and override *config*. *progress* is told after each
    load how many are done and how many there are.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.
        UnknownOptionError: if there is no such argument.

    >>> found = what_if("davies-meenan", scheme="dfifo", network="cable")
    >>> [round(row.part, 2) for row in found.rows]
    [1.0, 1.0, 0.02, 0.96, 0.07]
    """
    with ErrorCollector() as mistakes:
        mistakes.of("", lambda: check_progress(progress))
        given = mistakes.of("", lambda: config_of(options, known=_ARGUMENTS, changed=config))
        used = mistakes.of("scheme", lambda: resolve_scheme(scheme), instead="rr")
        found = mistakes.of("", lambda: resolve_subjects(pages, used).pages)
    run_with = replace(given, browser=replace(given.browser_model, mode=BrowserMode.PARSE))
    rows: list[WhatIfRow] = []
    as_they_are: list[Load] = []
    for page in found:
        for row, load in _asked(page, used, run_with):
            rows.append(row)
            if row.what == WHAT_IFS[0]:
                as_they_are.append(load)
            if progress is not None:
                progress(len(rows), len(found) * len(WHAT_IFS))
    return _told(rows, as_they_are)


def _told(rows: list[WhatIfRow], loads: list[Load]) -> WhatIf:
    """Return the result table of *rows*, described by the *loads* of the pages as they are."""
    first = loads[0]
    return WhatIf(
        rows=Rows(WhatIfRow, rows),
        contributions=Rows(PathShareRow, _contributions(loads)),
        version=__version__,
        configuration={**first.configuration, "scheme": first.scheme.name},
        words={**in_words(first), "scheme": first.scheme.name},
        page_digests={load.page.name: load.page.digest for load in loads},
    )


def _asked(page: Page, scheme: Scheme, config: LoadConfig) -> Iterator[tuple[WhatIfRow, Load]]:
    rtt_ms = to_ms(config.path.network.rtt_ns)
    asked = {
        "as it is": (page, config),
        "no computation": (_without_computation(page), config),
        # From scratch: loss, a queue or a controller of *config* would require links.
        "no network": (page, LoadConfig(browser=config.browser, **_AT_ONCE)),
        "half the RTT": (page, replace(config, rtt_ms=rtt_ms / 2)),
        "all cached": (_with_all_cached(page), config),
    }
    whole_ms = 0.0
    for what in WHAT_IFS:
        changed_page, changed = asked[what]
        load = run_config(changed_page, scheme, changed)
        event_ms, paint_ms = load.load_event_ms or 0.0, load.first_paint_ms or 0.0
        whole_ms = whole_ms or event_ms
        yield WhatIfRow(page.name, what, event_ms, paint_ms, event_ms / whole_ms), load


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


def _contributions(loads: list[Load]) -> Iterator[PathShareRow]:
    for by in ("policy", "kind", "part"):
        found: dict[str, list[tuple[float, float]]] = {}
        for load in loads:
            for row in load.contributions(by):
                found.setdefault(row.name, []).append((row.time_ms, row.share))
        n_loads = len(loads)
        means = {
            name: (sum(ms for ms, _ in values) / n_loads, sum(part for _, part in values) / n_loads)
            for name, values in found.items()
        }
        for name in sorted(means, key=lambda name: -means[name][1]):
            most = max(share for _, share in found[name])
            yield PathShareRow(by, name, *means[name], most)

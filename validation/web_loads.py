"""Loads of pages of the web over the network on which WebPageTest recorded them.

Of 40 pages of `web:2015-2019`, all that were recorded over the cable link: the ratios of computed
to recorded FCP and load event, as they are, and with the round trip (median to the servers, which
the link's adds to) and twice the CPU time of their recorder.
"""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING

import h3sim
from h3sim import catalog
from h3sim.load import LoadConfig
from h3sim.values.table import Column, Table
from h3sim.values.units import to_ms
from validation.vgprio import selected

if TYPE_CHECKING:
    from h3sim.page import Page

_N_PAGES = 40
_SETTINGS = {
    "cable": LoadConfig(network="cable", browser="parse"),
    "60 ms": LoadConfig(network="cable", browser="parse", rtt_ms=60),
    "60 ms, CPU x 2": LoadConfig(network="cable", browser="parse", rtt_ms=60, cpu_slowdown=2),
}


def ratios(page: Page, config: LoadConfig) -> tuple[float, float]:
    """Return computed to recorded FCP and load event of a page whose recording has both."""
    load, recorded = h3sim.simulate(page, scheme="chrome-h2", config=config), page.recorded_load
    fcp_ns = (recorded and recorded.fcp_ns) or 1
    load_event_ns = (recorded and recorded.load_event_ns) or 1
    return (load.fcp_ms or 0.0) / to_ms(fcp_ns), (load.load_event_ms or 0.0) / to_ms(load_event_ns)


def main() -> int:
    """Print the 10th, 50th and 90th percentile of the ratios by setting."""
    pages = [h3sim.load_page(name) for name in catalog.page_set("web:2015-2019") or ()]
    pages = [page for page in pages if page.provenance["tool"].startswith("WebPageTest")]
    names = selected([page.name for page in pages], _N_PAGES)
    pages = [page for page in pages if page.name in names]
    rows = []
    for title, config in _SETTINGS.items():
        found = [ratios(page, config) for page in pages]
        tenths = [statistics.quantiles(each, n=10) for each in zip(*found, strict=True)]
        shown = (" - ".join(f"{each[index]:.2f}" for index in (0, 4, 8)) for each in tenths)
        rows.append((title, *shown))
    heads = ("over", "FCP", "load event")
    print(Table([Column(head) for head in heads], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

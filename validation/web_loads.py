"""Loads of pages of the web over the network on which WebPageTest recorded them.

Of the pages of `web:2015-2019` that WebPageTest recorded, all over the cable link: the ratios of
computed to recorded FCP and load event, as they are, and with the round trip (median to the
servers, which the link's adds to) and twice the CPU time of their recorder. Then what round robin
changes at 2 Mbit/s, by how well the first paint is computed (second row of the first table).
"""

from __future__ import annotations

import math
import statistics
import sys
from typing import TYPE_CHECKING

import h3sim
from h3sim import catalog
from h3sim.load import LoadConfig
from h3sim.values.table import Column, Table
from h3sim.values.units import to_ms
from validation.vgprio import MEASURED, Job, Setting, changes_of, speed_indices

if TYPE_CHECKING:
    from h3sim.page import Page

_CELL = 3
_GROUPS = {"below 0.5": 0.5, "0.5 to 0.8": 0.8, "0.8 to 1.25": 1.25, "above": math.inf}
_BY = ("fcp_ms", "speed_index_ms")
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
    """Print the 10th, 50th and 90th percentile of the ratios, and the changes by their groups."""
    pages = [h3sim.load_page(name) for name in catalog.page_set("web:2015-2019") or ()]
    pages = [page for page in pages if page.provenance["tool"].startswith("WebPageTest")]
    found = {title: [ratios(page, config) for page in pages] for title, config in _SETTINGS.items()}
    rows = []
    for title, of_pages in found.items():
        tenths = [statistics.quantiles(each, n=10) for each in zip(*of_pages, strict=True)]
        shown = (" - ".join(f"{each[index]:.2f}" for index in (0, 4, 8)) for each in tenths)
        rows.append((title, *shown))
    print(Table([Column(head) for head in ("over", "FCP", "load event")], rows), end="\n\n")
    groups: dict[str, list[list[dict[str, float]]]] = {}
    for page, (ratio, _) in zip(pages, found["60 ms"], strict=True):
        title = next(title for title, most in _GROUPS.items() if ratio < most)
        loads = [speed_indices(Job(page.name, _CELL, Setting(metric=metric))) for metric in _BY]
        if all(loads):
            groups.setdefault(title, []).append(loads)
    body = []
    for title in (title for title in _GROUPS if title in groups):
        changes = [changes_of(each, "rr") for each in zip(*groups[title], strict=True)]
        shown = (f"{each.median:+.1f} ({each.lower:+.1f} to {each.upper:+.1f})" for each in changes)
        body.append((title, len(groups[title]), *shown))
    heads = ("computed to recorded FCP", "pages", "rr: FCP", "SpeedIndex")
    print(f"{MEASURED[_CELL].title}\n\n{Table([Column(head) for head in heads], body)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

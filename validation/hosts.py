"""What several hosts cost: `python -m validation.hosts [NETWORK]` (a minute).

Most shipped pages with fonts or libraries of public CDNs were recorded with those on the page's own
host, below vendor/. Here they go back: stylesheets of fonts to one host and their files to another,
as Google has them, libraries to a third. The same page is loaded over one connection, and over one
for each host, which are as far away as the page's own; a ratio above 1 is what that costs.
"""

from __future__ import annotations

import math
import sys
from statistics import fmean
from typing import TYPE_CHECKING

import h3sim
from h3sim.catalog import page_set
from h3sim.page import Kind
from h3sim.study.statistics.intervals import mean_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.page import Page, Resource

__all__ = ["SCHEMES", "cost", "main", "pages", "with_hosts"]

SCHEMES = ("fifo", "rr", "bucket-html", "chrome-h2", "firefox-h2", "chrome-eps", "firefox-eps")
NETWORK = "sander-2mbps-100ms"
_VENDOR, _FONTS = "vendor/", "vendor/@fontsource/"
_MIN_SHARE = 0.1
"""Pages of which others bring less are left out: there is nothing to lose."""


def host_of(resource: Resource) -> str:
    """Return the host that a resource of a shipped page was taken from, "" for the page's own."""
    if resource.id.startswith(_FONTS):
        return "font-files" if resource.kind is Kind.FONT else "font-styles"
    return "libraries" if resource.id.startswith(_VENDOR) else ""


def with_hosts(page: Page) -> Page:
    """Return the page with what others brought on their hosts again."""
    hosts = {resource.id: host_of(resource) for resource in page.resources}
    for id_, host in hosts.items():
        if host:
            page = page.with_(id_, host=host, name=page.name)
    return page


def pages() -> Iterator[Page]:
    """Yield the shipped pages of which other hosts brought a tenth of the bytes."""
    for name in page_set("corpus") or ():
        page = h3sim.load_page(name)
        others = sum(entry.size_bytes for entry in page.resources if host_of(entry))
        if others >= _MIN_SHARE * page.total_bytes:
            yield with_hosts(page)


def cost(page: Page, scheme: str, network: str = NETWORK) -> float:
    """Return the exact ByteIndex over the hosts' connections as a share of that over one.

    >>> 0.5 < cost(with_hosts(h3sim.load_page("agency")), "fifo") < 2
    True
    """
    one, several = (
        h3sim.simulate(page, scheme=scheme, network=network, connections=connections)
        for connections in ("single", "per-host")
    )
    return several.byte_index() / one.byte_index()


def main(network: str) -> None:
    """Print the mean over pages, with its interval, for each scheme."""
    found = list(pages())
    print(f"{len(found)} pages over {network}: ByteIndex of several connections / of one")
    for scheme in SCHEMES:
        shares = [cost(page, scheme, network) for page in found]
        logs = [math.log(share) for share in shares]
        low, high = mean_interval(logs)
        if low is None or high is None:
            continue
        mean, least, most = math.exp(fmean(logs)), min(shares), max(shares)
        between = f"{math.exp(low):.3f} to {math.exp(high):.3f}"
        print(f"{scheme:<12} {mean:.3f} ({between}), pages {least:.2f} to {most:.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else NETWORK)

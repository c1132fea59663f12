"""Shipped pages in a line each, without reading them as pages."""

from __future__ import annotations

import json
from typing import NamedTuple

from h3sim.catalog.roots import root

__all__ = ["PageSummary", "page_summaries"]

_SUFFIX = ".json"


class PageSummary(NamedTuple):
    """A shipped page in a line."""

    name: str
    n_resources: int
    total_bytes: int
    n_above_the_fold: int
    source: str


def page_summaries() -> list[PageSummary]:
    """Return the shipped pages by name, of which each was checked before it was shipped.

    So they are counted in their files as they stand: making pages of them takes ten times as long.

    >>> next(row for row in page_summaries() if row.name == "http2rulez").n_resources
    32
    """
    files = [file for file in root("corpora").iterdir() if file.name.endswith(_SUFFIX)]
    by_name = {file.name.removesuffix(_SUFFIX): file for file in files}
    return [_summary(by_name[name].read_text(encoding="utf-8")) for name in sorted(by_name)]


def _summary(text: str) -> PageSummary:
    page = json.loads(text)
    resources = page["resources"]
    return PageSummary(
        name=page["name"],
        n_resources=len(resources),
        total_bytes=sum(resource["bytes"] for resource in resources),
        n_above_the_fold=sum(resource.get("above_the_fold", False) for resource in resources),
        source=page.get("provenance", {}).get("source", ""),
    )

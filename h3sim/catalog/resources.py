"""Shipped files: their location, and an index of the shipped pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


_H3SIM_FOLDER = Path(__file__).resolve().parents[1]


def root(kind: str) -> Traversable:
    """Return the folder of *kind*, "models" or "corpora".

    It is in the installed package `h3sim/`; in a checkout it is next to that.
    """
    for folder in (_H3SIM_FOLDER / kind, _H3SIM_FOLDER.parent / kind):
        if (folder / "__init__.py").is_file():
            return folder
    # A package inside a zip file. Lazy: the import takes longer than loading a page.
    from importlib.resources import files

    return files(f"h3sim.{kind}")


_PAGE_SUFFIX = ".json"


class PageSummary(NamedTuple):
    """Summary of a shipped page for listings."""

    name: str
    n_resources: int
    total_bytes: int
    n_above_the_fold: int
    source: str


def page_summaries() -> list[PageSummary]:
    """Return summaries of the shipped pages by name, without validating them.

    They are computed from the parsed JSON: constructing the pages takes ten times as long.

    >>> next(row for row in page_summaries() if row.name == "http2rulez").n_resources
    32
    """
    files = [file for file in root("corpora").iterdir() if file.name.endswith(_PAGE_SUFFIX)]
    files.sort(key=lambda file: file.name.removesuffix(_PAGE_SUFFIX))
    pages = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    return [
        PageSummary(
            name=page["name"],
            n_resources=len(page["resources"]),
            total_bytes=sum(resource["bytes"] for resource in page["resources"]),
            n_above_the_fold=sum(r.get("above_the_fold", False) for r in page["resources"]),
            source=page.get("provenance", {}).get("source", ""),
        )
        for page in pages
    ]

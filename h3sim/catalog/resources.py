"""Shipped files: their location, and an index of the shipped pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


_PACKAGE = Path(__file__).resolve().parents[1]


def root(kind: str) -> Traversable:
    """Return the folder of *kind*, "models" or "corpora".

    If Python runs inside a checkout, its `h3sim/` hides an installed package, which has the data;
    then the folder next to it is used.
    """
    for folder in (_PACKAGE / kind, _PACKAGE.parent / kind):
        if (folder / "__init__.py").is_file():
            return folder
    # A package inside a zip file. Lazy: the import takes longer than loading a page.
    from importlib.resources import files

    return files(f"h3sim.{kind}")


_SUFFIX = ".json"


class PageSummary(NamedTuple):
    """Summary of a shipped page for listings."""

    name: str
    n_resources: int
    total_bytes: int
    n_above_the_fold: int
    source: str


def page_summaries() -> list[PageSummary]:
    """Return summaries of the shipped pages by name, without validating them.

    Values are counted in the parsed files: constructing the pages takes ten times as long.

    >>> next(row for row in page_summaries() if row.name == "http2rulez").n_resources
    32
    """
    files = [file for file in root("corpora").iterdir() if file.name.endswith(_SUFFIX)]
    files.sort(key=lambda file: file.name.removesuffix(_SUFFIX))
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

"""Names resources: by their paths, without query strings, each name once.

>>> shop = "https://shop.example/"
>>> ids_of([shop, f"{shop}a.js?v=2", f"{shop}a.js?v=1", "https://cdn.example/a.js"], shop)
['/', 'a.js (2)', 'a.js', 'cdn.example/a.js']
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from h3sim.capture.inference.urls import address

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ids_of"]

_LONGEST = 200
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff]+")


def ids_of(urls: Sequence[str], root: str) -> list[str]:
    """Return the id of each URL: its path, behind its host if that is another than the root's.

    What has the same path then is told apart by a number, in the order of the whole URLs and then
    of the list. So the order in which equal requests were made decides nothing.
    """
    parts = address(root)
    home = "" if parts is None else parts.host
    groups: dict[str, list[int]] = {}
    for index, url in enumerate(urls):
        groups.setdefault(_name(url, home), []).append(index)
    ids = [""] * len(urls)
    for name, group in groups.items():
        for number, index in enumerate(sorted(group, key=lambda index: (urls[index], index)), 1):
            ids[index] = name if number == 1 else f"{name} ({number})"
    return ids


def _name(url: str, home: str) -> str:
    parts = address(url)
    if parts is None:
        return "/"
    path = _UNSEEN.sub("", unquote(parts.path))[:_LONGEST]
    return path.lstrip("/") or "/" if parts.host == home else f"{parts.host}{path}"

"""The pages of the set `web`: facts of recorded loads, and draws of what no recording has.

A page is named SITE-YEAR. Its CPU times, what of it is seen and a few think times are not recorded:
they are drawn from the distributions of models/web.toml, by the page's name and a number. Plain
names take draw 0; "SITE-YEAR draw 3" is the same page with other draws.
"""

from __future__ import annotations

import gzip
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from h3sim.catalog.resources import root
from h3sim.page import page_from_dict
from h3sim.schema import parse_toml
from h3sim.values.errors import InputError
from h3sim.values.rng import substream

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from h3sim.page import Page

PERIODS = {"2015-2019": range(2015, 2020), "2020-2026": range(2020, 2027)}
"""Years by the names of the files, and of the sets `web:2015-2019` and `web:2020-2026`."""
RANKS = (1, 3, 6, 12, 24, 48, math.inf)
"""Numbers of an image in its page, in order of request, below which it belongs to a class."""
SET = "web"
_DRAW = " draw "
_LARGEST_SHARE, _LEAST_TEXT_SHARE = 0.8, 0.1
"""Shares of the viewport: the largest of all images, and the least of text and plain areas."""
_FONT_SHARE, _N_FONTS = 0.057, 2
"""Share of the viewport that text in web fonts covers, the median of recorded templates."""
_MIN_IMAGE_BYTES, _MIN_TEXT_BYTES = 500, 1000
"""Smaller images are pixels of trackers; smaller documents are redirects."""
_KB, _MB = 1000, 1e6
_CPU_KEYS = {"script": "js", "stylesheet": "css", "document": "html"}
_TIMES = {"js": "script_ms", "css": "style_ms", "html": "parse_ms"}


def rank_class(rank: int) -> int:
    """Return the class of the image with that number, from 0.

    >>> [rank_class(rank) for rank in (0, 1, 2, 3, 100)]
    [0, 1, 1, 2, 6]
    """
    return next(index for index, limit in enumerate(RANKS) if rank < limit)


@cache
def _lines() -> dict[str, dict[str, Any]]:
    """Return the lines of the shipped files by the names of their pages, in order of the names."""
    found: dict[str, dict[str, Any]] = {}
    for period in PERIODS:
        data = (root("corpora") / f"web-{period}.jsonl.gz").read_bytes()
        for text in gzip.decompress(data).decode("utf-8").splitlines():
            line = json.loads(text)
            found[line["page"]["name"]] = line
    return dict(sorted(found.items()))


@cache
def _distributions() -> dict[str, Any]:
    text = (root("models") / "web.toml").read_text("utf-8")
    found: dict[str, Any] = parse_toml(text, InputError, source="web.toml")
    return found


def web_names(period: str = "") -> tuple[str, ...]:
    """Return the names of the pages, by name; those of a *period* if one is given.

    >>> len(web_names()) == sum(len(web_names(period)) for period in PERIODS)
    True
    """
    years = PERIODS[period] if period else None
    return tuple(n for n in _lines() if years is None or int(n.rpartition("-")[2]) in years)


def n_requests(name: str) -> int:
    """Return the number of resources of a page."""
    return len(_lines()[name]["page"]["resources"])


def web_documents() -> Iterator[dict[str, Any]]:
    """Yield the pages as documents, by name, with draw 0."""
    yield from map(web_document, _lines())


def is_web(name: object) -> bool:
    """Return whether *name* is that of a page of the set, with or without a draw."""
    if not isinstance(name, str):
        return False
    page, _, draw = name.partition(_DRAW)
    is_page = "-" in page and page[-4:].isdecimal() and page in _lines()
    return is_page and (_DRAW not in name or draw.isdecimal())


@cache
def web_page(name: str) -> Page:
    """Return the page of that name, drawn.

    >>> one, other = web_page("apache.org-2019"), web_page("apache.org-2019 draw 1")
    >>> one.total_bytes == other.total_bytes, one.resources == other.resources
    (True, False)
    """
    page, _, draw = name.partition(_DRAW)
    return page_from_dict(web_document(page, int(draw or 0)) | {"name": name}, source=name)


def web_document(name: str, draw: int = 0) -> dict[str, Any]:
    """Return the page of that name as a document, with what is not recorded drawn."""
    line, rng = _lines()[name], substream(draw, f"web {name}")
    document: dict[str, Any] = json.loads(json.dumps(line["page"]))
    resources = document["resources"]
    _draw_cpu(resources, line.get("cpu_ms", {}), rng)
    _draw_visibility(resources, rng)
    quantiles = _distributions()["server_ms"]
    for resource in resources:
        drawn_ms = quantiles[rng.randrange(len(quantiles))]
        resource.setdefault("server_ms", drawn_ms)
    return document


def _draw_cpu(
    resources: list[dict[str, Any]], recorded_ms: dict[str, float], rng: random.Random
) -> None:
    """Set the times of parsing and running, whose sums per kind are as *recorded_ms* if known.

    A script's delay from its end to a request that it made includes its time to run.
    """
    spread = _distributions()["script_spread"]
    ran_ms: dict[str, float] = {}
    for kind, group in _CPU_KEYS.items():
        factor, exponent, sigma = _distributions()[_TIMES[group]]
        members = [each for each in resources if each["kind"] == kind]
        weights = [
            each["bytes"] / _KB * math.exp(rng.gauss(0, spread) * (group == "js"))
            for each in members
        ]
        size_kb = sum(each["bytes"] for each in members) / _KB
        drawn_ms = factor * size_kb**exponent * math.exp(rng.gauss(0, sigma))
        rate = recorded_ms.get(group, drawn_ms) / (sum(weights) or 1.0)
        for each, weight in zip(members, weights, strict=True):
            key = "execute_ms" if group == "js" else "parse_ms"
            each[key] = ran_ms[each["id"]] = round(rate * weight, 1)
    for each in resources:
        trigger = each.get("discovered")
        if isinstance(trigger, dict) and trigger["at"] == "executed" and "delay_ms" in trigger:
            run_ms = ran_ms.get(trigger["by"], 0.0) if isinstance(trigger["by"], str) else 0.0
            trigger["delay_ms"] = max(0.0, round(trigger["delay_ms"] - run_ms, 3))


def _draw_visibility(resources: list[dict[str, Any]], rng: random.Random) -> None:
    """Set what is above the fold, and its share of the viewport."""
    values = _distributions()
    median, sigma = values["viewport_per_mb"]
    images = [r for r in resources if r["kind"] == "image" and r["bytes"] >= _MIN_IMAGE_BYTES]
    shares: dict[str, float] = {}
    for rank, image in enumerate(images):
        is_seen = rng.random() < values["visible_by_rank"][rank_class(rank)]
        share = image["bytes"] / _MB * median * math.exp(rng.gauss(0, sigma))
        if image.pop("above_the_fold", is_seen):
            shares[image["id"]] = min(share, _LARGEST_SHARE)
    scale = min(1.0, _LARGEST_SHARE / (sum(shares.values()) or 1.0))
    fonts = [each["id"] for each in resources if each["kind"] == "font"][:_N_FONTS]
    shares = {id_: share * scale for id_, share in shares.items()}
    shares |= dict.fromkeys(fonts, _FONT_SHARE / max(1, len(fonts)))
    documents = [each for each in resources if each["kind"] == "document"]
    main = next((each for each in documents if each["bytes"] >= _MIN_TEXT_BYTES), documents[0])
    shares[main["id"]] = max(_LEAST_TEXT_SHARE, 1 - sum(shares.values()))
    for resource in resources:
        resource.pop("above_the_fold", None)
        if shares.get(resource["id"]):
            resource["viewport"] = max(0.0001, round(shares[resource["id"]], 4))
            resource["above_the_fold"] = True
        elif resource.get("render_blocking"):
            resource["above_the_fold"] = True

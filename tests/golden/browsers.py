"""Browsers that compute their loads, over pages that have one of everything, recorded.

The pages are drawn once and for all: elements that hints request early, imports, frames, modules,
lazy and small images, several hosts, and roots that others open. Each is loaded in each tight mode,
with and without a scanner, with limits, and with stylesheets that block the parser.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import h3sim
from h3sim.browser.above_the_fold import (
    infer_above_the_fold,
    mark_critical_path,
    needed_for_first_paint,
)
from h3sim.page import Discovery, FetchPriority, Kind, Page, PriorityChange, Resource, TriggerEvent
from h3sim.page.transforms import merge_pages
from h3sim.values.units import ms
from tests.checking.drawing import digest_of

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).with_name("browsers.json")
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "chrome 95": {"tight_mode": "chrome-95"},
    "chrome 118, phone": {"tight_mode": "chrome-118", "cpu_slowdown": 2.5},
    "safari": {"tight_mode": "safari", "commit_ms": 3},
    "no scanner": {"tight_mode": "off", "preload_scanner": False, "paint_ms": 2},
    "limits": {"max_concurrent_requests": 4, "max_concurrent_requests_per_host": 2},
    "sheets block": {"stylesheets_block_parser": True, "hidden_at_ms": 120},
}
_FLAGS: Final = (
    *("in_head", "is_async", "is_defer", "module", "other_media", "small", "in_style", "preload"),
    *("render_blocking", "after_first_image", "above_the_fold", "critical", "hero", "is_lazy"),
)
_NAMES: Final = ("r{}", "img/r{}.png", "favicon{}.ico", "pixel ({})")
_HOSTS: Final = ("", "", "cdn.example", "stats.doubleclick.net")


def compute() -> dict[str, Any]:
    """Return, by page, what is inferred of it, and what each browser comes to."""
    pages = {f"page {seed}": _page(seed, 22) for seed in range(18)}
    pages["two tabs"] = merge_pages(_page(31, 12), _page(32, 12), after_ms=60, opened="front")
    pages["redirect"] = _with_redirect(_page(33, 14))
    return {
        name: {
            "inferred": _inferred(page),
            **{
                setting: _summary(
                    h3sim.simulate(page, scheme="h3sim-1", browser="parse", rtt_ms=20, **options)
                )
                for setting, options in _SETTINGS.items()
            },
        }
        for name, page in pages.items()
    }


def _page(seed: int, n_resources: int) -> Page:
    source = random.Random(f"browsers {seed}")
    root = Resource(
        id="/",
        kind=Kind.DOCUMENT,
        size_bytes=16_000,
        header_bytes=200,
        parse_ns=ms(6),
        execute_ns=ms(1),
        host=source.choice(("", "www.example")),
    )
    resources = [root]
    # Only some pages say what blocks rendering; on others every stylesheet does.
    left_out = {flag for flag in ("render_blocking", "is_lazy") if source.random() < 0.5}
    for index in range(1, n_resources):
        resources.append(_resource(source, index, resources, left_out))
    return Page(name=f"browsers {seed}", resources=tuple(resources))


def _resource(
    source: random.Random, index: int, before: list[Resource], left_out: set[str]
) -> Resource:
    kind = source.choice([*Kind, Kind.IMAGE, Kind.SCRIPT, Kind.STYLESHEET])
    flags: dict[str, Any] = {
        flag: source.random() < 0.2 and flag not in left_out for flag in _FLAGS
    }
    found = _trigger(source, before)
    is_hinted = flags["preload"] and source.random() < 0.6
    return Resource(
        id=source.choice(_NAMES).format(index),
        kind=kind,
        host=source.choice(_HOSTS),
        size_bytes=source.choice((0, 60, 700, 1400, 4000, 9000)),
        header_bytes=source.choice((0, 150)),
        parse_ns=ms(source.choice((0, 0, 2))),
        execute_ns=ms(source.choice((0, 3))),
        discovered=found,
        fetchpriority=source.choice([*FetchPriority, FetchPriority.AUTO]),
        viewport=source.choice((None, None, 0.0, 0.05)) if kind is Kind.IMAGE else None,
        reference_offset_bytes=source.randint(0, 16_000) if is_hinted else None,
        priority_changes=_changes(source, before),
        **flags,
    )


def _trigger(source: random.Random, before: list[Resource]) -> Discovery:
    if source.random() < 0.05:
        return Discovery(at=TriggerEvent.TIME, delay_ns=ms(source.randint(0, 90)))
    parent = before[0] if source.random() < 0.6 else source.choice(before)
    at = source.choice([TriggerEvent.OFFSET, TriggerEvent.OFFSET, *list(TriggerEvent)[1:]])
    offset = source.randint(0, parent.size_bytes) if at is TriggerEvent.OFFSET else None
    delay_ns = ms(source.choice((0, 0, 5)))
    return Discovery(by=parent.id, at=at, offset_bytes=offset, delay_ns=delay_ns)


def _changes(source: random.Random, before: list[Resource]) -> tuple[PriorityChange, ...]:
    if source.random() < 0.8:
        return ()
    what: dict[str, Any] = source.choice(
        ({"visible": True}, {"hidden": True}, {"fetchpriority": FetchPriority.HIGH})
    )
    return (PriorityChange(when=_trigger(source, before), **what),)


def _with_redirect(page: Page) -> Page:
    """Return *page* behind a document that redirects to it."""
    to = Resource(id="short", kind=Kind.DOCUMENT, size_bytes=0, header_bytes=120)
    root, *others = page.resources
    when = Discovery(by=to.id, at=TriggerEvent.COMPLETE)
    return page.with_resources((to, replace(root, discovered=when, is_root=True), *others))


def _inferred(page: Page) -> str:
    marks = [
        [resource.above_the_fold for resource in marked(page).resources]
        for marked in (infer_above_the_fold, mark_critical_path)
    ]
    return _short(repr((needed_for_first_paint(page), marks, page.images_before)))


def _summary(load: h3sim.Load) -> str:
    """Return two milestones to see that loads differ, and a digest of all that was done."""
    done = repr((load.trace.signals, load.trace.activities))
    times = f"{load.first_paint_ms:.3f}, {load.load_event_ms:.3f} ms"
    return f"{times}, {_short(digest_of(load) + done)}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is recorded."""
    return json.dumps(document, indent=1) + "\n"

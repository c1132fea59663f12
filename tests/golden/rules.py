"""What each shipped scheme makes of pages that have one of everything, recorded.

The pages are drawn, once and for all: kinds, marks and triggers of any sort, changes of priority,
frames, lazy images, and priorities as a browser was recorded to send them.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import h3sim
from h3sim.page import (
    Discovery,
    FetchPriority,
    Group,
    Kind,
    Level,
    Page,
    PriorityChange,
    RecordedFrom,
    RecordedPriority,
    Resource,
    TriggerEvent,
)
from h3sim.page.transforms import merge_pages
from h3sim.values.units import ms
from tests.checking.drawing import digest_of

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).with_name("rules.json")
_SCHEMES: Final = (
    *("rr", "wrr", "fifo", "dfifo", "firefox", "p+", "s+", "spdyrr", "bucket", "bucket-html"),
    *("zeroweight", "sander-chrome", "sander-wrr", "sander-firefox", "sander-firefox-eps"),
    *("sander-batched-rr", "h2o", "quiche", "google-quiche", "lsquic", "mvfst", "nghttp3"),
    *("cloudflare", "h2o-h2", "nghttp2", "ats", "adaptive-rr", "atf-first", "chrome-50-h2"),
    *("chrome-eps", "chrome-eps-2022", "chrome-h2", "critical-path", "fifo-draft-22", "fifo-h2"),
    *("firefox-draft-20", "firefox-eps", "firefox-eps-2021", "firefox-figure", "firefox-h2"),
    *("h3sim-1", "recorded", "recorded-chrome", "recorded-chrome-h2", "recorded-firefox"),
    *("recorded-firefox-eps", "safari-eps", "safari-h2", "spdy", "swett", "zeroweight-2723"),
    "zeroweight-simple",
)
_OPTIONS: Final[tuple[dict[str, Any], ...]] = (
    {"rtt_ms": 20},
    {"browser": "parse", "rtt_ms": 20, "cpu_slowdown": 1.5},
    {"network": "dsl", "send_buffer_kb": 3},
    {"browser": "parse", "network": "4g", "preload_scanner": False, "hidden_at_ms": 300},
)
_MARKS: Final = (
    *("in_head", "is_async", "is_defer", "preload", "render_blocking", "after_first_image"),
    *("above_the_fold", "critical", "hero", "is_lazy"),
)


def compute() -> dict[str, Any]:
    """Return, by scheme, how pages replayed and computed come out; the last is of two tabs."""
    pages = [_page(1, 26), _page(2, 26), _page(3, 26)]
    pages.append(merge_pages(_page(4, 14), _page(5, 12), after_ms=120, opened="background"))
    return {
        scheme: [
            _summary(h3sim.simulate(page, scheme=scheme, record_packets=True, **options))
            for page, options in zip(pages, _OPTIONS, strict=True)
        ]
        for scheme in _SCHEMES
    }


def _page(seed: int, n_resources: int) -> Page:
    source = random.Random(f"rules {seed}")
    root = Resource(
        id="r0", kind=Kind.DOCUMENT, size_bytes=18_000, header_bytes=300, parse_ns=ms(4)
    )
    resources = [root]
    for index in range(1, n_resources):
        resources.append(_resource(source, index, resources))
    return Page(name=f"rules {seed}", resources=tuple(resources))


def _resource(source: random.Random, index: int, before: list[Resource]) -> Resource:
    kind = source.choice([kind for kind in Kind for _ in range(1 + (kind is Kind.IMAGE))])
    marks: dict[str, Any] = {mark: source.random() < 0.3 for mark in _MARKS}
    if kind is Kind.IMAGE and source.random() < 0.5:
        marks["viewport"] = source.choice((0.05, 0.2))
    return Resource(
        id=f"r{index}",
        kind=kind,
        size_bytes=source.choice((0, 700, 1400, 4000, 9000)),
        header_bytes=source.choice((0, 150)),
        parse_ns=ms(source.choice((0, 0, 2))),
        execute_ns=ms(source.choice((0, 3))) if kind is Kind.SCRIPT else 0,
        server_ns=ms(source.choice((0, 0, 15))),
        discovered=_trigger(source, before),
        fetchpriority=source.choice([*FetchPriority]),
        priority_changes=_changes(source, before),
        recorded=_recorded(source, before),
        **marks,
    )


def _trigger(source: random.Random, before: list[Resource]) -> Discovery:
    # Most is named by the document, as on most pages.
    parent = before[0] if source.random() < 0.6 else source.choice(before)
    at = source.choice(
        (
            TriggerEvent.OFFSET,
            TriggerEvent.OFFSET,
            TriggerEvent.OFFSET,
            TriggerEvent.COMPLETE,
            TriggerEvent.EXECUTED,
            TriggerEvent.REQUEST,
        )
    )
    offset = source.randint(0, parent.size_bytes) if at is TriggerEvent.OFFSET else None
    delay_ns = ms(source.choice((0, 0, 5)))
    if source.random() < 0.05:
        return Discovery(at=TriggerEvent.TIME, delay_ns=ms(source.randint(1, 90)))
    return Discovery(by=parent.id, at=at, offset_bytes=offset, delay_ns=delay_ns)


def _changes(source: random.Random, before: list[Resource]) -> tuple[PriorityChange, ...]:
    if source.random() < 0.7:
        return ()
    what: dict[str, Any] = source.choice(
        ({"visible": True}, {"hidden": True}, {"fetchpriority": FetchPriority.LOW})
    )
    return (PriorityChange(when=_trigger(source, before), **what),)


def _recorded(source: random.Random, before: list[Resource]) -> tuple[RecordedPriority, ...]:
    """Return what Chrome and Firefox said, or one of them; a later word as well, sometimes."""
    if source.random() < 0.3:
        return ()
    message = [
        _message(source, before, browser)
        for browser in (RecordedFrom.CHROME, RecordedFrom.FIREFOX)
        if source.random() < 0.8
    ]
    if message and source.random() < 0.3:
        again = _message(source, before, RecordedFrom.CHROME)
        message.append(replace(again, when=_trigger(source, before)))
    return tuple(message)


def _message(
    source: random.Random, before: list[Resource], browser: RecordedFrom
) -> RecordedPriority:
    eps: dict[str, Any] = {"urgency": source.randint(0, 7), "incremental": source.random() < 0.5}
    weight = source.randint(1, 256)
    if source.random() < 0.5:
        parent, exclusive = source.choice(before).id, source.random() < 0.5
        tree: dict[str, Any] = {"depends_on": parent, "weight": weight, "exclusive": exclusive}
    elif browser is RecordedFrom.CHROME:
        tree = {"level": source.choice([*Level])}
    else:
        tree = {"group": source.choice([*Group]), "weight": weight}
    return RecordedPriority(browser=browser, **tree, **eps)


def _summary(load: h3sim.Load) -> str:
    """Return what was sent and done, in short; a figure to see that loads differ, and a digest."""
    done = repr((load.trace.signals, load.trace.activities))
    digest = hashlib.sha256((digest_of(load) + done).encode()).hexdigest()
    return f"{load.byte_index():.3f} ms, {digest[:16]}"


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is recorded: a line for each scheme."""
    lines = [f" {json.dumps(name)}: {json.dumps(loads)}" for name, loads in document.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"

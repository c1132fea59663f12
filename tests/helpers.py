"""Builders of small pages whose requests are scripted by the clock."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.page import page_from_dict
from h3sim.schemes.rules import UPDATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from h3sim import Load, Page
    from h3sim.schemes import Scheme

__all__ = [
    "PACKET_BYTES",
    "finished_ms",
    "page_document",
    "page_file",
    "page_of",
    "replay",
    "scripted_page",
    "unworded",
    "with_updates",
]

PACKET_BYTES = 1400

Step = tuple[Any, ...]
"""(at_ms, kind, n_packets) or (at_ms, kind, n_packets, {key of the page file: value})."""


AT_ONCE: dict[str, Any] = {
    "browser": "parse",
    "tight_mode": "off",
    "commit_ms": 0,
    "paint_ms": 0,
}
"""A browser that computes its load, holds no request back, and begins and paints at once."""


def page_document(*resources: Mapping[str, Any], name: str = "page") -> dict[str, Any]:
    """Return a page file's document of these entries; they are not checked."""
    return {"format": "h3sim-page/1", "name": name, "resources": list(resources)}


def page_of(*resources: Mapping[str, Any], name: str = "page") -> Page:
    """Return the page of these entries of a page file.

    >>> page_of({"id": "/", "kind": "document", "bytes": 10}).total_bytes
    10
    """
    return page_from_dict(page_document(*resources, name=name))


def page_file(folder: Path, *resources: Mapping[str, Any], name: str = "mine") -> str:
    """Write a page file, named like the page, and return its path."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(page_document(*resources, name=name)), encoding="utf-8")
    return str(path)


def scripted_page(steps: Iterable[Step], name: str = "scripted") -> Page:
    """Return a page whose resources are asked for at given times, whatever is delivered when.

    The first step, at 0, is the root. The resources are called r0, r1, ... as they stand; streams
    are numbered as they are asked for. A resource has whole packets unless it says its "bytes".

    >>> page = scripted_page([(0, "document", 2), (15, "script", 1, {"in_head": True})])
    >>> [(r.id, r.size_bytes, r.in_head) for r in page.resources]
    [('r0', 2800, False), ('r1', 1400, True)]
    """
    return page_of(*(_entry(position, *step) for position, step in enumerate(steps)), name=name)


def _entry(
    position: int, at_ms: float, kind: str, n_packets: int, extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    entry = {"id": f"r{position}", "kind": kind, "bytes": n_packets * PACKET_BYTES, **(extra or {})}
    if position:
        entry["discovered"] = {"at": "time", "delay_ms": at_ms}
    elif at_ms:
        raise ValueError(f"the root is asked for at 0, not at {at_ms}")
    return entry


def replay(steps: Iterable[Step], scheme: str, **setting: Any) -> Load:
    """Return the load of the scripted page of *steps*; `setting` is as `h3sim.simulate` has it."""
    return h3sim.simulate(scripted_page(steps), scheme=scheme, **setting)


def with_updates(name: str) -> Scheme:
    """Return a shipped scheme whose client sends every change of an open request."""
    return replace(h3sim.load_scheme(name), updates=UPDATES)


def finished_ms(load: Load) -> dict[int, float]:
    """Return when each stream was complete."""
    return {timing.stream_id: timing.finished_ms for timing in load.timings}


_WORDS = re.compile(r"(?<=: )(?:[^:\n\[\]'`=.]|\.\d)*?, is (?=[^\n]*$)", re.M)
_NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]\d+)?(?<![,.])")


def unworded(lines: Iterable[object]) -> list[str]:
    """Return errors of single values with place, limits and value, but without words of the check.

    Both sides of a comparison go through it. `tests/unit/test_load_options.py` owns the words.

    >>> unworded(["f.toml: rtt_ms: must be a number, is 'fast'", "up: is missing"])
    ["f.toml: rtt_ms: is 'fast'", 'up: is missing']
    >>> unworded(["loss: must be at least 0 and less than 1 (0.02 is 2 %), is 1"])
    ['loss: 0 1, is 1']
    """
    return [_WORDS.sub(_limits, str(line)) for line in lines]


def _limits(words: re.Match[str]) -> str:
    numbers = " ".join(_NUMBER.findall(re.sub(r"\(.*?\)", "", words[0])))
    return f"{numbers}, is " if numbers else "is "

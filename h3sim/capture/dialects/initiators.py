"""What Chrome says of the initiator of a request, in the shapes that recorders give it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from h3sim.capture.source.fields import Fields

if TYPE_CHECKING:
    from h3sim.capture.inference.observed import Observed

__all__ = ["read_initiator", "read_initiator_fields"]

_DEEPEST = 50
"""So many asynchronous stacks are followed, and so many frames of each are looked at."""
_LONGEST_DETAIL = 1 << 20


def read_initiator(request: Observed, initiator: Fields) -> None:
    """Take over an initiator as the DevTools protocol has it."""
    request.initiator_type = initiator.text("type").lower()
    request.initiator = initiator.text("url")
    line = initiator.number("lineNumber")
    request.line = int(line) if line is not None and line >= 0 else None
    request.stack = _stack(initiator.table("stack"))
    if request.initiator_type == "script":
        # The innermost frame decides; Chrome gives the same URL outside of the stack at times.
        request.initiator = "" if request.stack else request.initiator


def read_initiator_fields(request: Observed, entry: Fields) -> None:
    """Take over an initiator from `_initiator` and what stands beside it in a HAR.

    DevTools has an object there. chrome-har and WebPageTest have a URL, and chrome-har the whole
    object as text in `_initiator_detail`.
    """
    value: Any = entry.raw("_initiator")
    if isinstance(value, dict):
        read_initiator(request, entry.table("_initiator"))
        return
    detail = _parsed(entry.raw("_initiator_detail"))
    if detail:
        read_initiator(request, Fields(detail, entry.key, lambda *_: None))
    if not request.stack:
        request.initiator = entry.text("_initiator") or request.initiator
    request.initiator_type = entry.text("_initiator_type").lower() or request.initiator_type
    line = entry.number("_initiator_line")
    if line is not None and line >= 1 and request.line is None:
        request.line = int(line) - 1  # chrome-har counts lines from 1, the protocol from 0


def _parsed(detail: object) -> dict[str, Any]:
    if not isinstance(detail, str) or len(detail) > _LONGEST_DETAIL:
        return {}
    try:
        value = json.loads(detail)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _stack(stack: Fields) -> tuple[str, ...]:
    """Return the URLs of a stack's frames, the innermost first, then of what scheduled it."""
    urls: dict[str, None] = {}
    for _ in range(_DEEPEST):
        for frame in stack.tables("callFrames")[:_DEEPEST]:
            url = frame.text("url")
            if url:
                urls[url] = None
        if not isinstance(stack.raw("parent"), dict):
            break
        stack = stack.table("parent")
    return tuple(urls)

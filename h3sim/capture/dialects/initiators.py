"""What Chrome says of the initiator of a request, in the shapes that recorders give it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from h3sim.capture.inference.urls import without_fragment
from h3sim.capture.source.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.capture.inference.observed import Observed

__all__ = ["CallFrame", "Initiator", "read_initiator", "read_initiator_fields", "take_initiator"]

_DEEPEST = 50
"""So many asynchronous stacks are followed, and so many frames of each are looked at."""
_LONGEST_DETAIL = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFrame:
    """One line of a stack of calls: the script, and where in it (from 0)."""

    url: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initiator:
    """Why Chromium asked: its type ("parser", "script", "preload", "other"), a place, a stack.

    The stack is the innermost call first, followed by the calls that led to it earlier, over
    timers, promises and events.
    """

    type: str = ""
    url: str = ""
    line: int | None = None
    column: int = 0
    stack: tuple[CallFrame, ...] = ()


def read_initiator(given: Fields) -> Initiator:
    """Return an initiator as the DevTools protocol has it."""
    line, column = given.number("lineNumber"), given.number("columnNumber")
    return Initiator(
        type=given.text("type").lower(),
        url=without_fragment(given.text("url")),
        line=int(line) if line is not None and line >= 0 else None,
        column=int(column or 0),
        stack=tuple(_frames(given.table("stack"))),
    )


def _frames(stack: Fields) -> Iterator[CallFrame]:
    for _ in range(_DEEPEST):
        for call in stack.tables("callFrames")[:_DEEPEST]:
            yield CallFrame(
                url=without_fragment(call.text("url")),
                line=int(call.number("lineNumber") or 0),
                function=call.text("functionName"),
            )
        if not isinstance(stack.raw("parent"), dict):
            return
        stack = stack.table("parent")


def take_initiator(request: Observed, initiator: Initiator) -> None:
    """Take over an initiator as the DevTools protocol has it."""
    request.initiator_type = initiator.type
    request.line = initiator.line
    request.stack = tuple(dict.fromkeys(frame.url for frame in initiator.stack if frame.url))
    is_scripted = initiator.type == "script" and bool(request.stack)
    # The innermost frame decides; Chrome gives the same URL outside of the stack at times.
    request.initiator = "" if is_scripted else initiator.url


def read_initiator_fields(request: Observed, entry: Fields) -> None:
    """Take over an initiator from `_initiator` and what stands beside it in a HAR.

    DevTools has an object there. chrome-har and WebPageTest have a URL, and chrome-har the whole
    object as text in `_initiator_detail`.
    """
    value: Any = entry.raw("_initiator")
    if isinstance(value, dict):
        take_initiator(request, read_initiator(entry.table("_initiator")))
        return
    detail = _parsed(entry.raw("_initiator_detail"))
    if detail:
        take_initiator(request, read_initiator(Fields(detail, entry.key, lambda *_: None)))
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

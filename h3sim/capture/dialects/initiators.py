"""What Chrome says of the initiator of a request, in the shapes that recorders give it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from h3sim.capture.dialects.network_events import read_initiator
from h3sim.capture.source.fields import Fields

if TYPE_CHECKING:
    from h3sim.capture.dialects.network_events import Initiator
    from h3sim.capture.inference.observed import Observed

__all__ = ["read_initiator_fields", "take_initiator"]

_LONGEST_DETAIL = 1 << 20


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

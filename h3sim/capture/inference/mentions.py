"""Finds in the recorded text of documents where each request is named, and what its tag says."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from h3sim.capture.inference.urls import without_fragment
from h3sim.capture.markup.references import read_markup
from h3sim.capture.markup.tags import scan

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from h3sim.capture.inference.observed import Observed

__all__ = ["apply_markup"]

_MOST_LINES = 200_000
_BY_SCRIPT = ("script", "preflight")


def apply_markup(requests: Sequence[Observed], inferred: Counter[str]) -> None:
    """Note for each request where in a document's text it is named, with the flags of its tag.

    A request that has no initiator gets the document as one. The texts are dropped.
    """
    for document in requests:
        if document.text:
            _apply(document, requests, inferred)
            document.text = ""


def _apply(document: Observed, requests: Sequence[Observed], inferred: Counter[str]) -> None:
    own = without_fragment(document.url)
    data = document.text.encode("utf-8", "replace")
    document.decoded_bytes = len(data)
    named = _named(data, own)
    lines: list[int] = []
    for request in requests:
        url = without_fragment(request.url)
        if request is document or request.offset is not None or request.stack:
            continue
        if request.initiator_type in _BY_SCRIPT:
            continue
        is_told = bool(request.initiator)
        if is_told and without_fragment(request.initiator) != own:
            continue
        if url in named:
            offset, flags = named[url]
            request.offset, request.flags = offset, dict(flags)
            request.initiator = document.url
            inferred["place and flags from the markup"] += 1
            inferred["parent from the markup"] += not is_told
        elif is_told and request.line is not None:
            lines = lines or _line_starts(data)
            request.offset = lines[min(request.line, len(lines) - 1)]


def _named(data: bytes, own: str) -> dict[str, tuple[int, dict[str, Any]]]:
    """Return the first place of each URL in a document, with the flags of all its tags."""
    markup = read_markup(scan(data))
    named: dict[str, tuple[int, dict[str, Any]]] = {}
    for reference in markup.references:
        url = reference.url_in(own)
        offset, flags = named.get(url, (reference.offset_bytes, {}))
        # Of a flag that several tags have the first one counts.
        named[url] = (offset, reference.flags | flags)
    return named


def _line_starts(data: bytes) -> list[int]:
    """Return where the lines begin; what lies behind the last one that is looked at is left."""
    ends = itertools.islice(re.finditer(b"\n", data), _MOST_LINES)
    return [0, *(end.end() for end in ends)]

"""Where the parser of a document stood: at scripts and stylesheets that came after its last byte.

Markup that a recording does not have names things as the parser, or its scanner, comes to them.
What is asked for when all of the document had come did not wait for bytes of it; so it follows from
the last of what the parser may have stood at.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from h3sim.capture.inference.recorded import UNIMPORTANT, level_of
from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.capture.inference.observed import Observed

__all__ = ["ParserStops"]

_STOPPING = (Kind.SCRIPT, Kind.STYLESHEET)


class ParserStops:
    """What parsers may have stood at, of *requests* that *documents* name.

    *documents* has the document of each that one names, by their places. Those of which Chrome's
    priority or the markup says that they can wait stopped none.

    >>> from h3sim.capture.inference.observed import Observed
    >>> times = [(0, 50), (20, 90), (95, 120)]
    >>> page, style, image = (
    ...     Observed(key="", url="", start_ms=begin, end_ms=end) for begin, end in times)
    >>> kinds = [Kind.DOCUMENT, Kind.STYLESHEET, Kind.IMAGE]
    >>> stops = ParserStops([page, style, image], kinds, {1: 0, 2: 0})
    >>> stops.last_before(2), stops.last_before(1)
    (1, None)
    """

    def __init__(
        self,
        requests: Sequence[Observed],
        kinds: Sequence[Kind],
        documents: Mapping[int, int],
    ) -> None:
        self._requests = requests
        self._documents = documents
        self._ends = sorted(
            (end_ms, index)
            for index in documents
            if kinds[index] in _STOPPING
            and _may_stop(requests[index])
            and (end_ms := requests[index].end_ms) is not None
        )

    def last_before(self, index: int) -> int | None:
        """Return what the parser stood at last before it came upon *index*.

        None where it need not have stood at anything, for the document was there last.
        """
        document = self._documents.get(index)
        start_ms = self._requests[index].start_ms
        there_ms = None if document is None else self._requests[document].end_ms
        if start_ms is None or there_ms is None:
            return None
        last = bisect_right(self._ends, (start_ms, len(self._requests)))
        for end_ms, stop in reversed(self._ends[:last]):
            if end_ms <= there_ms:
                return None
            if stop != index and self._documents[stop] == document:
                return stop
        return None


def _may_stop(request: Observed) -> bool:
    can_wait = level_of(request.priority) in UNIMPORTANT or request.is_preload
    return not can_wait and not (request.flags or {}).get("is_async")

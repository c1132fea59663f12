"""Why the root of a page may not be what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.capture.inference.observed import RequestOutcome
from h3sim.capture.inference.sizes import NOT_MODIFIED
from h3sim.documents import shown_path
from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.capture.inference.observed import Observed
    from h3sim.capture.inference.urls import Address

__all__ = ["odd_root"]

_NOT_SENT = (RequestOutcome.CACHE, RequestOutcome.SERVICE_WORKER)
_WITHOUT_CACHE = "record with the cache disabled and service workers bypassed"


def odd_root(
    found: Sequence[tuple[Observed, Address, Kind]], root: int, first_kept: int, host: str | None
) -> Iterator[str]:
    """Yield why *root* may not be the page's document.

    *found* are the requests by time with where they went and their kinds, *root* and *first_kept*
    places in it; with *host*, only what went there counts.
    """
    request, address, kind = found[root]
    url = shown_path(address.url)
    if request.status == NOT_MODIFIED:
        yield f"the main document was not modified (304): {_WITHOUT_CACHE}"
    meant = next((each for each in found if _may_be_root(*each, host)), found[root])
    if meant[0] is not request and meant[0].outcome in _NOT_SENT:
        what = "document" if kind is Kind.DOCUMENT else "request"
        yield (
            f"the main document, {shown_path(meant[1].url)}, came {meant[0].outcome.value}:"
            f" {_WITHOUT_CACHE}. The root is now {url}, the first {what} that was sent"
        )
    elif kind is not Kind.DOCUMENT:
        yield f"there is no document: the root is now {url}, the first request"
    elif request.is_framed:
        yield f"the root is now {url}, a document of a frame: that of the page is missing"
    elif first_kept != root:
        other = shown_path(found[first_kept][1].url)
        yield f"the recording begins with {other}: the root is now {url}, the first document"


def _may_be_root(request: Observed, address: Address, kind: Kind, host: str | None) -> bool:
    is_wanted = host is None or address.host == host
    is_there = request.outcome in (RequestOutcome.ANSWERED, *_NOT_SENT)
    return is_wanted and is_there and kind is Kind.DOCUMENT

"""Request sizes on the uplink, and priorities as short texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.page.resource import DEFAULT_REQUEST_BYTES
from h3sim.signals import BucketPriority, Eps, H2Priority, StrictPriority
from h3sim.transport import Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.page import Page, Resource
    from h3sim.signals import Signal
    from h3sim.trace import Trace


def request_sizer(page: Page, protocol: Protocol | None) -> Callable[[Resource], int]:
    """Return a function from a resource to the size of its request, called in request order.

    The size in the page file takes precedence. Otherwise it is the size of a typical Chromium
    request: as text over HTTP/1.1, and over HTTP/2 as compressed by HPACK, which depends on the
    requests before. Over HTTP/3, whose encoder may not know yet which of them have arrived, and at
    a constant rate (None) it is 100 bytes.
    """
    if protocol not in (Protocol.TCP, Protocol.HTTP1):
        return _default_size
    from h3sim.headers import synthetic_headers  # on use: other protocols do not need it

    if protocol is Protocol.TCP:
        return synthetic_headers.Http2RequestSizes(page).of
    return partial(synthetic_headers.http1_request_bytes, page)


def _default_size(resource: Resource) -> int:
    return resource.request_bytes or DEFAULT_REQUEST_BYTES


def priorities_of(trace: Trace) -> dict[int, str]:
    """Return each stream's first priority, and its last one if that differs, as text.

    Empty if all are the same.
    """
    first: dict[int, str] = {}
    last: dict[int, str] = {}
    for _, element_id, signal in trace.signals:
        if element_id >= 0:  # not a placeholder
            last[element_id] = priority_text(signal)
            first.setdefault(element_id, last[element_id])
    texts = {
        stream_id: text + f" \N{RIGHTWARDS ARROW} {last[stream_id]}" * (text != last[stream_id])
        for stream_id, text in first.items()
    }
    return texts if len(set(texts.values())) > 1 else {}


def priority_text(signal: Signal) -> str:
    """Return *signal* as a short text.

    >>> priority_text(Eps(urgency=0, incremental=True)), priority_text(Eps())
    ('u=0,i', 'u=3')
    >>> priority_text(H2Priority(weight=220)), priority_text(BucketPriority(bucket=3, level=1))
    ('w=220', 'bucket 3.1')
    """
    match signal:
        case Eps():
            return f"u={signal.urgency}{',i' * signal.incremental}"
        case H2Priority():
            return f"w={signal.weight}"
        case BucketPriority():
            return f"bucket {signal.bucket}.{signal.level}"
        case StrictPriority():
            return f"strict {signal.strict}, w={signal.weight}"
    return f"rank {signal.value}"

"""When the browser let go of each request: what a recorder calls blocked is the browser's time.

A load opens one connection for each host, or group of them, and takes as many round trips for it as
its protocols do. So a request is asked for so many round trips before it had left. All that a
recording tells beyond that, no load has a place for, and it stays in the delay: what a server took
for TLS; and over HTTP/1.1 waiting for one of six connections, and opening more of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.capture.inference.observed import Observed

__all__ = ["let_go", "opening_ms"]


_TRIPS_OF_TCP, _TRIPS_OF_QUIC = 2, 1
"""Before the first request: TCP and TLS 1.3 (RFC 8446 § 2), or both in one (RFC 9000 § 7)."""
_QUIC = ("h3", "http/3", "hq", "quic")


def opening_ms(request: Observed, rtt_ms: float) -> float:
    """Return how long a load takes to open a connection for *request*.

    >>> from h3sim.capture.inference.observed import Observed
    >>> opening_ms(Observed(key="0", url="", protocol="h2"), 20)
    40
    """
    return rtt_ms * (_TRIPS_OF_QUIC if request.protocol.startswith(_QUIC) else _TRIPS_OF_TCP)


def let_go(requests: Iterable[Observed], root: Observed) -> None:
    """Note for each of *requests*, which come by time, when the browser let go of it.

    Looking up the name of the root's host is over then: a load begins with that.

    >>> from h3sim.capture.inference.observed import Observed, Reached
    >>> page, image = (
    ...     Observed(key=key, url=f"https://a.example/{key}", start_ms=0, sent_ms=sent_ms)
    ...     for key, sent_ms in (("page", 145), ("image", 180)))
    >>> page.reached = Reached(setup_ms=130, handshake_ms=30, dns_ms=10)
    >>> let_go([page, image], page)
    >>> page.asked_ms, image.asked_ms
    (85, 0)
    """
    ready_ms: dict[str, float] = {}
    for request in requests:
        start_ms, sent_ms = request.start_ms, request.sent_ms
        if start_ms is None or sent_ms is None or sent_ms <= start_ms:
            continue
        host = urlsplit(request.url).netloc
        if host not in ready_ms:
            request.asked_ms = sent_ms - _opened_ms(request, root)
            ready_ms[host] = sent_ms
        elif start_ms >= ready_ms[host]:
            request.asked_ms = sent_ms
        else:  # it waited for the connection that another one had opened
            request.asked_ms = start_ms


def _opened_ms(request: Observed, root: Observed) -> float:
    """Return what a load will take before *request* leaves, the first one to its host."""
    reached = request.reached
    looked_up_ms = 0.0 if request is root else reached.dns_ms or 0.0
    if reached.setup_ms is None or reached.handshake_ms is None:
        return looked_up_ms + (reached.setup_ms or 0.0)
    return looked_up_ms + opening_ms(request, reached.handshake_ms)

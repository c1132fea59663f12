"""When the browser let go of each request: what a recorder calls blocked is the browser's time.

A load opens one connection for each host, or group of them, and takes as many round trips for it as
its protocols do. So a request is asked for so many round trips before it had left. All that a
recording tells beyond that, no load has a place for, and it stays in the delay: what a server took
for TLS; and over HTTP/1.1 waiting for one of six connections, and opening more of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from h3sim.capture.inference.estimates import MULTIPLEXED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.capture.inference.observed import Observed

__all__ = ["let_go", "opening_ms", "see_multiplexing"]


_TRIPS_OF_TCP, _TRIPS_OF_QUIC = 2, 1
"""Before the first request: TCP and TLS 1.3 (RFC 8446 § 2), or both in one (RFC 9000 § 7)."""
_CLOCK_MS = 1.0
_QUIC = ("h3", "http/3", "hq", "quic")


def opening_ms(request: Observed, rtt_ms: float) -> float:
    """Return how long a load takes to open a connection for *request*.

    >>> from h3sim.capture.inference.observed import Observed
    >>> opening_ms(Observed(key="0", url="", protocol="h2"), 20)
    40
    """
    return rtt_ms * (_TRIPS_OF_QUIC if request.protocol.startswith(_QUIC) else _TRIPS_OF_TCP)


def see_multiplexing(requests: Iterable[Observed]) -> None:
    """Call the protocol h2 where more than one request was under way on a connection.

    Early recorders call HTTP/2 and SPDY "unknown", or by what the status line of HTTP/1.1 says. One
    such overlap may be a matter of rounded times; HTTP/1.1 has no second one.

    >>> from h3sim.capture.inference.observed import Observed, Reached
    >>> requests = [
    ...     Observed(key="", url="", protocol="unknown", sent_ms=at_ms, first_byte_ms=at_ms + 50)
    ...     for at_ms in (0, 10, 20)]
    >>> for request in requests:
    ...     request.reached = Reached(connection="7")
    >>> see_multiplexing(requests)
    >>> requests[0].protocol
    'h2'
    """
    on_one: dict[tuple[str, str], list[Observed]] = {}
    for request in requests:
        is_told = request.reached.connection and not request.protocol.startswith(MULTIPLEXED)
        if is_told and request.sent_ms is not None and request.first_byte_ms is not None:
            key = request.reached.connection, request.reached.ip
            on_one.setdefault(key, []).append(request)
    for sharing in on_one.values():
        sent = sorted((each.sent_ms or 0.0, each.first_byte_ms or 0.0) for each in sharing)
        overlaps = sum(
            later < answered_ms - _CLOCK_MS for (_, answered_ms), (later, _) in pairwise(sent)
        )
        if overlaps > 1:
            for request in sharing:
                request.protocol = "h2"


def let_go(
    requests: Iterable[Observed], groups: Iterable[int], rtts_ms: Iterable[float], root: Observed
) -> None:
    """Note for each of *requests*, which come by time, when the browser let go of it.

    Those of one of the *groups* share a connection in a load, and *rtts_ms* are to their servers.
    Looking up the name of the root's host is over then: a load begins with that.

    >>> from h3sim.capture.inference.observed import Observed
    >>> page, image = (
    ...     Observed(key=key, url="", protocol="h2", start_ms=0, sent_ms=sent_ms)
    ...     for key, sent_ms in (("page", 145), ("image", 180)))
    >>> let_go([page, image], [0, 0], [30, 30], page)
    >>> page.asked_ms, image.asked_ms
    (85.0, 85.0)
    """
    timed = [
        (request, request.start_ms, request.sent_ms, group, opening_ms(request, rtt_ms))
        for request, group, rtt_ms in zip(requests, groups, rtts_ms, strict=True)
        if request.start_ms is not None and request.sent_ms is not None
    ]
    ready_ms: dict[int, float] = {}
    for _, _, sent_ms, group, _ in timed:
        ready_ms[group] = min(sent_ms, ready_ms.get(group, sent_ms))
    for request, start_ms, sent_ms, group, needed_ms in timed:
        if start_ms >= ready_ms[group] and request is not root:
            request.asked_ms = max(start_ms, sent_ms)
            continue
        # Over one connection all wait for it; over HTTP/1.1 each for one of its own.
        is_shared = request.protocol.startswith(MULTIPLEXED)
        left_ms = ready_ms[group] if is_shared else sent_ms
        looked_up_ms = 0.0 if request is root else request.reached.dns_ms or 0.0
        request.asked_ms = left_ms - needed_ms - looked_up_ms

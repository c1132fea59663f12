"""Networks that recordings state: the traffic shaping of a lab, and what Lighthouse measured.

A lab's traffic shaper (WebPageTest, Browsertime) adds its round-trip time to that of the path, and
limits the rate of the link that all connections share. DevTools' throttling delays each response
and limits the rate of all of them together. What Lighthouse only simulates (`throttlingMethod`
`simulate`) or leaves to others (`provided`) says nothing about the load that was recorded; there
its own measurements of the observed load count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.importers.request_fields import address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.importers.source import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedNetwork:
    """Network of a recorded load as its file states it; None for values that it does not have."""

    source: str
    """Tool that states it, for the report."""
    rtt_ms: float | None = None
    rate_bps: int | None = None
    up_bps: int | None = None
    loss: float = 0.0
    is_imposed: bool = False
    """True if the tool imposed these values, False if it measured them."""
    server_ms: Mapping[str, float] = field(default_factory=dict)
    """Response times of servers by host."""
    rtts_ms: Mapping[str, float] = field(default_factory=dict)
    """Round-trip times to servers by host."""

    @property
    def is_empty(self) -> bool:
        """True if it has no value."""
        return self.rtt_ms is None and self.rate_bps is None and not self.server_ms


_BITS_PER_KILOBIT = 1000
_PERCENT = 100
_MAX_RTT_MS = 60_000.0
_MAX_RATE_KBPS = 10_000_000.0
"""Larger values are mistakes, or stand for a network that is not shaped."""
_PROFILES = {
    "cable": (5000, 1000, 28),
    "dsl": (1500, 384, 50),
    "fios": (20_000, 5000, 4),
    "dial": (49, 30, 120),
    "edge": (240, 200, 840),
    "2g": (280, 256, 800),
    "3gslow": (400, 400, 400),
    "3gem": (400, 400, 400),
    "3g": (1600, 768, 300),
    "3gfast": (1600, 768, 150),
    "4g": (9000, 9000, 170),
    "lte": (12_000, 12_000, 70),
}
"""Down and up in kbit/s and RTT in ms of the profiles of WebPageTest's `connectivity`; those of
Browsertime have the same names and values."""


def _shaped(
    source: str,
    down_kbps: float | None,
    up_kbps: float | None,
    rtt_ms: float | None,
    loss_percent: float | None = None,
) -> StatedNetwork | None:
    """Return the network behind a traffic shaper; None if nothing is shaped. 0 means unlimited."""
    loss = (loss_percent or 0.0) / _PERCENT
    stated = StatedNetwork(
        source=source,
        rtt_ms=rtt_ms if rtt_ms and 0 < rtt_ms <= _MAX_RTT_MS else None,
        rate_bps=_rate_bps(down_kbps),
        up_bps=_rate_bps(up_kbps),
        loss=loss if 0 <= loss < 1 else 0.0,
        is_imposed=True,
    )
    return None if stated.is_empty else stated


def _rate_bps(kbps: float | None) -> int | None:
    is_limit = kbps is not None and 0 < kbps <= _MAX_RATE_KBPS
    return round(kbps * _BITS_PER_KILOBIT) if is_limit else None  # type: ignore[operator]


def shaping_of_webpagetest(result: Fields, prefix: str = "") -> StatedNetwork | None:
    """Return the traffic shaping of a test by WebPageTest; None if it states none.

    `bwDown` and `bwUp` are in kbit/s, `latency` is the round-trip time that is added, in ms, and
    `plr` the packet loss in per cent. Without them, `connectivity` names a profile. In a HAR each
    name has *prefix*.

    >>> from h3sim.importers.source import Fields
    >>> test = {"bwDown": 5000, "bwUp": 1000, "latency": 28, "plr": 0, "connectivity": "Cable"}
    >>> stated = shaping_of_webpagetest(Fields(test, "", print))
    >>> stated.rtt_ms, stated.rate_bps, stated.up_bps, stated.source
    (28.0, 5000000, 1000000, "WebPageTest's traffic shaping")
    """
    names = ("bwDown", "bwUp", "latency", "plr")
    down, up, rtt_ms, plr = (result.duration(f"{prefix}{name}") for name in names)
    source = "WebPageTest's traffic shaping"
    shaped = _shaped(source, down, up, rtt_ms, plr)
    return shaped or _profile(result.name(f"{prefix}connectivity"), "WebPageTest")


def _profile(name: str, tool: str) -> StatedNetwork | None:
    """Return the traffic shaping of a profile that a tool names, None if that is not known."""
    # WebPageTest's locations have it at their end: "Dulles:Chrome.Cable".
    known = _PROFILES.get(name.rpartition(".")[2].replace(" ", "").lower())
    return None if known is None else _shaped(f"{tool}'s profile {name}", *known)


def shaping_in_har(page: Fields) -> StatedNetwork | None:
    """Return the traffic shaping that a page of a HAR states; None if it states none.

    Browsertime names its profile in `_meta.connectivity`; WebPageTest has its fields with an
    underscore.
    """
    named = page.table("_meta").name("connectivity") if "_meta" in page else ""
    return _profile(named, "Browsertime") or shaping_of_webpagetest(page, "_")


def network_of_lighthouse(result: Fields) -> StatedNetwork | None:
    """Return the network of the load that Lighthouse observed; None if the result states none.

    With `devtools`, requests were throttled: `requestLatencyMs` is the least time to a first byte,
    and thus the round-trip time. With `simulate` and `provided`, nothing was throttled by
    Lighthouse; the observed round-trip time of the page's origin and the observed throughput are in
    its audits. Response times of servers are those that it observed, by origin.

    >>> from h3sim.importers.source import Fields
    >>> throttling = {"requestLatencyMs": 562.5, "downloadThroughputKbps": 1474.56}
    >>> settings = {"throttlingMethod": "devtools", "throttling": throttling}
    >>> stated = network_of_lighthouse(Fields({"configSettings": settings}, "", print))
    >>> stated.rtt_ms, stated.rate_bps
    (562.5, 1474560)
    """
    audits, settings = result.table("audits"), result.table("configSettings")
    servers = audits.table("network-server-latency")
    server_ms = _times_by_host(servers, "serverResponseTime")
    method, rtts_ms = settings.text("throttlingMethod"), dict[str, float]()
    if method == "devtools":
        throttling = settings.table("throttling")
        rtt_ms = throttling.duration("requestLatencyMs")
        rate_bps = _rate_bps(throttling.duration("downloadThroughputKbps"))
        up_bps = _rate_bps(throttling.duration("uploadThroughputKbps"))
        source = "Lighthouse's DevTools throttling"
    else:
        rtts_ms = {
            host: rtt_ms
            for host, rtt_ms in _times_by_host(audits.table("network-rtt"), "rtt").items()
            if 0 < rtt_ms <= _MAX_RTT_MS
        }
        host = _host(result.text("finalDisplayedUrl", "finalUrl", "requestedUrl"))
        items = audits.table("diagnostics").table("details").tables("items")
        observed = next(iter(items), audits)
        rtt_ms = rtts_ms.get(host) or observed.duration("rtt")
        throughput = observed.duration("throughput")  # in bit/s
        rate_bps = _rate_bps(None if throughput is None else throughput / _BITS_PER_KILOBIT)
        up_bps, source = None, "Lighthouse's measurement"
    stated = StatedNetwork(
        source=source,
        rtt_ms=rtt_ms if rtt_ms and rtt_ms <= _MAX_RTT_MS else None,
        rate_bps=rate_bps,
        up_bps=up_bps,
        is_imposed=method == "devtools",
        server_ms=server_ms,
        rtts_ms=rtts_ms,
    )
    return None if stated.is_empty else stated


def _times_by_host(audit: Fields, name: str) -> dict[str, float]:
    """Return the times in the rows of an audit by the host of their origins."""
    found: dict[str, float] = {}
    for row in audit.table("details").tables("items"):
        time_ms = row.duration(name)
        if time_ms is not None and (host := _host(row.text("origin"))):
            found.setdefault(host, time_ms)
    return found


def _host(url: str) -> str:
    """Return the host of a URL as those of requests are named, "" if it has none."""
    parts = address(url)
    return "" if parts is None else parts.host

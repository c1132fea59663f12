"""Resources without a visible effect: favicons, beacons, trackers, challenges.

Recognized by the names of resources and hosts alone, so only if these are well known: an unknown
name counts as visible.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from h3sim.page import Kind

if TYPE_CHECKING:
    from h3sim.page import Resource


LEAST_IMAGE_BYTES = 100
"""Smaller images are tracking pixels: 43 bytes as GIF, 68 as PNG."""
# Names of resources; " (2)" ends the second of one name.
_ICON_NAME = re.compile(
    r"(^|/)(favicon[^/]*|apple-touch-icon[^/]*|[^/]+\.ico)( \(\d+\))?$", re.IGNORECASE
)
_BEACON_NAME = re.compile(
    r"(^|/)(__utm\.gif|collect|gen_204|beacon[^/]*|pixel(\.gif|\.png)?|1x1[^/]*|blank\.gif"
    r"|spacer\.gif|usermatch[^/]*|(cookie|user|id)-?_?(sync|match)[^/]*|rum(\.gif)?|adsct|tr)"
    r"( \(\d+\))?$",
    re.IGNORECASE,
)
"""Names of requests that only report a visit, or synchronize the ids of users."""
_CHALLENGE_NAME = re.compile(
    r"cdn-cgi/challenge-platform/|captcha|(^|/)distil_|_incapsula_", re.IGNORECASE
)
"""Names of resources that tell people from bots."""
_TRACKER_HOSTS = (
    "google-analytics.com",
    "googletagmanager.com",
    "doubleclick.net",
    "googlesyndication.com",
    "googleadservices.com",
    "adnxs.com",
    "rubiconproject.com",
    "pubmatic.com",
    "openx.net",
    "criteo.com",
    "casalemedia.com",
    "demdex.net",
    "krxd.net",
    "bluekai.com",
    "quantserve.com",
    "scorecardresearch.com",
    "chartbeat.net",
    "hotjar.com",
    "bidswitch.net",
    "mathtag.com",
    "adsrvr.org",
    "rlcdn.com",
    "taboola.com",
    "outbrain.com",
    "amazon-adsystem.com",
    "omtrdc.net",
    "nr-data.net",
    "clarity.ms",
    "bat.bing.com",
    "adform.net",
    "2o7.net",
    "imrworldwide.com",
    "challenges.cloudflare.com",
    "hcaptcha.com",
    "recaptcha.net",
    "datadome.co",
)
"""Hosts of analytics, advertising or bot protection, with all their subdomains."""


def is_never_seen(resource: Resource) -> bool:
    """Return whether a resource is certainly not part of the content above the fold.

    >>> from h3sim.page import Kind, Resource
    >>> def image(id_, **more):
    ...     return Resource(id=id_, kind=Kind.IMAGE, size_bytes=2000, **more)
    >>> [is_never_seen(image(id_)) for id_ in ("favicon.ico", "img/hero.jpg", "r/collect (2)")]
    [True, False, True]
    >>> is_never_seen(image("ad.gif", host="stats.g.doubleclick.net"))
    True
    """
    name = resource.id
    if _ICON_NAME.search(name) or _BEACON_NAME.search(name) or _CHALLENGE_NAME.search(name):
        return True
    if resource.kind is Kind.IMAGE and resource.size_bytes < LEAST_IMAGE_BYTES:
        return True
    return is_tracker(resource)


def is_tracker(resource: Resource) -> bool:
    """Return whether a resource is of a host of analytics, advertising or bot protection."""
    host = resource.host.lower().partition(":")[0]
    return any(host == each or host.endswith(f".{each}") for each in _TRACKER_HOSTS)

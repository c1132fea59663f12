"""Capabilities of browsers that advice depends on, each with its source and date.

A browser that lacks one ignores the advice, so that none is given.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class BrowserFamily(enum.Enum):
    """A browser, all versions of it on all systems."""

    CHROME = "chrome"
    FIREFOX = "firefox"
    SAFARI = "safari"


class Feature(enum.Enum):
    """Something that a page or a server asks a browser to do."""

    HINTED_PRELOAD = "preload in a 103 response"
    HINTED_PRECONNECT = "preconnect in a 103 response"
    PRELOAD = "preload"
    PRECONNECT = "preconnect"
    FETCHPRIORITY = "fetchpriority"
    LAZY = "loading=lazy"


class Capability(NamedTuple):
    """The first version of a browser that does what a feature asks for; None if none does."""

    since: str | None
    source: str
    read: str = "2026-11-27"


_COMPAT = "MDN browser-compat-data"
_SINCE: dict[Feature, tuple[str, dict[BrowserFamily, str | None]]] = {
    Feature.HINTED_PRELOAD: (
        "http.status.103.preload",
        {BrowserFamily.CHROME: "103", BrowserFamily.FIREFOX: "123", BrowserFamily.SAFARI: None},
    ),
    Feature.HINTED_PRECONNECT: (
        "http.status.103.preconnect",
        {BrowserFamily.CHROME: "103", BrowserFamily.FIREFOX: "120", BrowserFamily.SAFARI: "17"},
    ),
    Feature.PRELOAD: (
        "html.elements.link.rel.preload",
        {BrowserFamily.CHROME: "50", BrowserFamily.FIREFOX: "85", BrowserFamily.SAFARI: "11.1"},
    ),
    Feature.PRECONNECT: (
        "html.elements.link.rel.preconnect",
        {BrowserFamily.CHROME: "46", BrowserFamily.FIREFOX: "39", BrowserFamily.SAFARI: "11.1"},
    ),
    Feature.FETCHPRIORITY: (
        "html.elements.img.fetchpriority",
        {BrowserFamily.CHROME: "102", BrowserFamily.FIREFOX: "132", BrowserFamily.SAFARI: "17.2"},
    ),
    Feature.LAZY: (
        "html.elements.img.loading",
        {BrowserFamily.CHROME: "77", BrowserFamily.FIREFOX: "75", BrowserFamily.SAFARI: "15.4"},
    ),
}
"""By feature: the key in that data, and the first version of each browser."""
CAPABILITIES: dict[BrowserFamily, dict[Feature, Capability]] = {
    client: {
        feature: Capability(since[client], f"{_COMPAT}: {key}")
        for feature, (key, since) in _SINCE.items()
    }
    for client in BrowserFamily
}
"""Capabilities of each browser, as of the date of each entry."""


def supports(client: BrowserFamily, feature: Feature) -> bool:
    """Return whether the current version of a browser does what *feature* asks for.

    >>> [supports(client, Feature.HINTED_PRELOAD) for client in BrowserFamily]
    [True, True, False]
    """
    return CAPABILITIES[client][feature].since is not None

"""One load, with everything given by name, by path or as a value."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim import catalog, engine
from h3sim.page import Page
from h3sim.schemes import Scheme
from h3sim.server import Retransmit
from h3sim.study.setting import Setting
from h3sim.units import kbyte

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from h3sim.engine import Load

__all__ = [
    "resolve_page",
    "resolve_pages",
    "resolve_scheme",
    "resolve_schemes",
    "run_setting",
    "simulate",
]

PageLike: TypeAlias = "Page | str | Path"
SchemeLike: TypeAlias = "Scheme | str | Path"


def simulate(
    page: PageLike, *, scheme: SchemeLike = "rr", records_wire: bool = False, **setting: Any
) -> Load:
    """Load *page* and return what happened.

    Page and scheme are each a shipped name, a path or a value; the other arguments are those of
    `Setting`: *network*, *transport*, *cc*, *transport_profile*, *rate_mbps*, *rtt_ms*, *loss*,
    *burst*, *queue_bdp*, *buffer_kb*, *jitter*, *handshake*, *seed* and so on.

    Raises:
        InputError: listing every mistake in what was given.
        UnknownNameError: if a name is not known.
        StalledError: if the load cannot come to its end.

    >>> load = simulate("davies-meenan", scheme="fifo")
    >>> load.page_load_ms
    4580.0
    """
    return run_setting(
        resolve_page(page), resolve_scheme(scheme), Setting(**setting), records_wire=records_wire
    )


def run_setting(
    page: Page,
    scheme: Scheme,
    setting: Setting,
    *,
    records_wire: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Load:
    """Load *page* with *scheme* over *setting*.

    With *records_wire* the trace holds every packet both ways. *progress* is told packets sent,
    and in all.
    """
    if setting.retransmit is not None:
        # What is asked for goes before what the scheme says, and that before the profile.
        scheme = replace(scheme, retransmission=Retransmit(setting.retransmit))
    return engine.simulate(
        page,
        scheme=scheme,
        network=setting.resolved_network(),
        protocol=setting.protocol,
        profile=setting.resolved_profile(),
        buffer_bytes=kbyte(setting.buffer_kb),
        mode=setting.mode,
        seed=setting.seed,
        records_wire=records_wire,
        browser=setting.browser_model,
        progress=progress,
    )


def resolve_page(page: PageLike) -> Page:
    """Return the page that is meant."""
    return page if isinstance(page, Page) else catalog.load_page(page)


def resolve_scheme(scheme: SchemeLike) -> Scheme:
    """Return the scheme that is meant."""
    return scheme if isinstance(scheme, Scheme) else catalog.load_scheme(scheme)


def resolve_pages(pages: PageLike | Iterable[PageLike]) -> list[Page]:
    """Return the pages that are meant; a name may be that of a set."""
    found: list[Page] = []
    for page in [pages] if isinstance(pages, Page | str | os.PathLike) else list(pages):
        names = catalog.page_set(page) if isinstance(page, str) else None
        found += map(resolve_page, names or (page,))
    return found


def resolve_schemes(schemes: SchemeLike | Iterable[SchemeLike]) -> list[Scheme]:
    """Return the schemes that are meant; a name may be that of a set."""
    found: list[Scheme] = []
    for scheme in [schemes] if isinstance(schemes, Scheme | str | os.PathLike) else list(schemes):
        names = catalog.scheme_set(scheme) if isinstance(scheme, str) else None
        found += map(resolve_scheme, names or (scheme,))
    return found

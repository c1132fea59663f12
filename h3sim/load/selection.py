"""The pages and schemes of many loads: names of sets, pairs, and schedulers beside schemes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim import catalog
from h3sim.load.options import refuse
from h3sim.load.run import resolve_page, resolve_scheme, with_scheduler
from h3sim.page import Page
from h3sim.values.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from h3sim.load.run import PageLike, SchedulerLike, SchemeLike
    from h3sim.schemes import Scheme


SchedulersLike: TypeAlias = "SchedulerLike | Iterable[SchedulerLike]"
HalvesLike: TypeAlias = "catalog.HalfLike | Iterable[catalog.HalfLike] | None"


def add_schedulers(
    schemes: SchemeLike | Iterable[SchemeLike] | None,
    scheduler: SchedulersLike | None,
    signals: SchemeLike | None,
    *,
    default: SchemeLike | Iterable[SchemeLike] = (),
    client: HalvesLike = None,
    server: HalvesLike = None,
) -> list[SchemeLike]:
    """Return *schemes*, each *client* before each *server*, and a scheme for each *scheduler*.

    A scheduler gets the client signals of *signals*; without these, clients send none, as those of
    "fifo". None for the schemes means the *default* ones, or none beside pairs or schedulers.

    Raises:
        InputError: if one is no scheduler, or there are signals but no scheduler.
        UnknownNameError: if the only error is an unknown name.

    >>> from h3sim.schedulers import FifoScheduler
    >>> [each.name for each in add_schedulers([], FifoScheduler, "chrome-eps")]
    ['FifoScheduler']
    """
    is_joined = any(each is not None for each in (scheduler, client, server))
    listed = _as_list((() if is_joined else default) if schemes is None else schemes)
    if client is not None or server is not None:
        listed += catalog.pair_names(client, server)
    if scheduler is None:
        if signals is not None:
            message = "are those of the clients of a scheduler: give scheduler= as well"
            raise InputError.at("signals", message)
        return listed
    clients = resolve_scheme(signals or "fifo")
    schedulers: list[Any] = _as_list(scheduler)
    return [*listed, *(with_scheduler(clients, one) for one in schedulers)]


def resolve_pages(pages: PageLike | Iterable[PageLike]) -> list[Page]:
    """Return the pages; a name may be that of a set."""
    resolved: list[Page] = []
    given: object = pages  # callers may ignore the annotation
    is_single = isinstance(pages, Page | str | os.PathLike) or not isinstance(given, Iterable)
    page_list: Any = [pages] if is_single else pages
    for page in page_list:
        names = catalog.page_set(page) if isinstance(page, str) else None
        resolved += map(resolve_page, names or (page,))
    return resolved


def resolve_schemes(schemes: SchemeLike | Iterable[SchemeLike]) -> list[Scheme]:
    """Return the schemes, each once; a name may be that of a set.

    A set and one of its members may both be named.

    Raises:
        InputError: if a scheme is given twice.
        UnknownNameError: if a name is unknown.
    """
    resolved: list[Scheme] = []
    singles: list[Scheme] = []
    for scheme in _as_list(schemes):
        names = catalog.scheme_set(scheme) if isinstance(scheme, str) else None
        of_name = list(map(resolve_scheme, names or (scheme,)))
        resolved += of_name
        singles += () if names else of_name
    twice = dict.fromkeys(one.name for n, one in enumerate(singles) if one in singles[:n])
    refuse(ValidationIssue(key="schemes", message=f"{name!r} is given twice") for name in twice)
    return list(dict.fromkeys(resolved))


def _as_list(schemes: SchemeLike | Iterable[SchemeLike]) -> list[SchemeLike]:
    """Return a list; a single value becomes a list of one."""
    if isinstance(schemes, Iterable) and not isinstance(schemes, str):
        return list(schemes)
    return [schemes]

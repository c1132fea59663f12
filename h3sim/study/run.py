"""One load, with everything given by name, by path or as a value.

Read next, on the path of docs/reading.md: `h3sim/engine/simulation.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim import catalog, engine
from h3sim.config.load_config import (
    LoadConfig,
    config_for,
    config_of,
    header_compression_of,
    with_options,
)
from h3sim.errors import InputError, ValidationIssue
from h3sim.http import SendBufferRefill
from h3sim.page import ConnectionMode, Page
from h3sim.page.hosts import RecordedHosts
from h3sim.results import MAX_LOAD_NS
from h3sim.schedulers import Retransmit
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.values import Flag
from h3sim.schemes import CustomScheduler, Scheme, scheduler_named
from h3sim.signals import Signalling
from h3sim.units import NS_PER_S, kbyte, ms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from h3sim.engine import Process
    from h3sim.results import Load, LoadSpec
    from h3sim.schedulers import Scheduler
    from h3sim.transport.cross_traffic import CrossFlow


PageLike: TypeAlias = "Page | str | Path"
SchedulerLike: TypeAlias = "Scheduler | Callable[..., Scheduler] | str"
SchemeLike: TypeAlias = "Scheme | str | Path | Scheduler | Callable[..., Scheduler]"

_PROCESSES = Predicate(
    "functions that make SimPy processes",
    lambda value: (
        isinstance(value, Iterable)
        and (not isinstance(value, list | tuple | str | bytes | dict) or all(map(callable, value)))
    ),
)


@with_options
def simulate(
    page: PageLike,
    *,
    scheme: SchemeLike | None = None,
    scheduler: SchedulerLike | None = None,
    record_packets: bool = False,
    processes: Iterable[Process] = (),
    config: LoadConfig | None = None,
    **options: Any,
) -> Load:
    """Load *page* and return what happened.

    Page and scheme are each a shipped name, a path or a value; without a word the scheme is "rr".
    A *scheduler* of your own takes the place of the scheme's: its name, what makes one (a class, a
    function), or an object, which is copied. It hears what clients of the scheme say, by default
    those of "fifo", who say nothing. A scheduler can be given as the *scheme*, too.

    Each of *processes* is a SimPy process function that runs beside the load and may change its
    links (`docs/processes.md`). The other arguments are the fields of `LoadConfig`, which explains
    them: *network*, *transport*, *rtt_ms*, *loss*, *seed* and so on. They change *config* where
    that is given.

    Raises:
        InputError: listing every mistake in what was given.
        UnknownNameError: if only a name is not known.
        UnknownOptionError: if there is no such argument.
        StalledError: if the load cannot come to its end.

    >>> load = simulate("davies-meenan", scheme="fifo")
    >>> load.page_load_ms
    4580.0
    >>> from h3sim.schedulers import FifoScheduler
    >>> simulate("davies-meenan", scheduler=FifoScheduler).trace == load.trace
    True
    """
    taken = {"processes": (_PROCESSES, processes), "record_packets": (Flag(), record_packets)}
    with ErrorCollector() as mistakes:
        mistakes.of("", lambda: check_arguments(InputError, **taken))
        wanted = mistakes.of("scheme", lambda: _scheduled(scheme, scheduler))
        given = mistakes.of(
            "", lambda: config_of(options, known=("scheme", "scheduler", *taken), changed=config)
        )
        found = mistakes.of("page", lambda: resolve_page(page))
    return run_config(found, wanted, given, record_packets=record_packets, processes=processes)


def _scheduled(scheme: SchemeLike | None, scheduler: SchedulerLike | None) -> Scheme:
    """Return the scheme that is meant, with a scheduler of its own where one is given."""
    if scheduler is None:
        return resolve_scheme("rr" if scheme is None else scheme)
    with ErrorCollector() as mistakes:
        wanted = mistakes.of("scheme", lambda: resolve_scheme("fifo" if scheme is None else scheme))
        mistakes.of("scheduler", lambda: scheduler_named(scheduler))
    return with_scheduler(wanted, scheduler)


def run_config(
    page: Page,
    scheme: Scheme,
    config: LoadConfig,
    *,
    record_packets: bool = False,
    progress: Callable[[int, int], None] | None = None,
    processes: Iterable[Process] = (),
) -> Load:
    """Load *page* with *scheme* over *config*.

    With *record_packets* the trace holds every packet both ways. *progress* is told packets sent,
    and in all.
    """
    return engine.simulate(
        resolve_config(page, scheme, config),
        record_packets=record_packets,
        progress=progress,
        processes=processes,
    )


def resolve_config(page: Page, scheme: Scheme, config: LoadConfig) -> LoadSpec:
    """Return the values that *config* stands for when *page* is loaded with *scheme*.

    >>> spec = resolve_config(resolve_page("creative"), resolve_scheme("rr"), LoadConfig(rtt_ms=40))
    >>> spec.network.name, spec.network.rtt_ns
    ('marx-2019 with rtt_ms=40', 40000000)
    """
    config = config_for(page, config)
    path, limit_s = config.path, config.time_limit_s
    return engine.LoadSpec(
        page,
        scheme=with_server_settings(scheme, config),
        network=path.network,
        protocol=path.protocol,
        profile=path.profile,
        mode=config.mode,
        browser=config.browser_model,
        buffer_bytes=kbyte(config.send_buffer_kb),
        send_buffer_refill=SendBufferRefill(config.send_buffer_refill),
        header_compression=header_compression_of(config.header_compression),
        hosts=_recorded_hosts(config),
        cross_traffic=_cross_traffic(config.cross_traffic),
        limit_ns=MAX_LOAD_NS if limit_s is None else round(limit_s * NS_PER_S),
        seed=config.seed,
    )


def _cross_traffic(text: str | None) -> tuple[CrossFlow, ...]:
    """Return the flows of others."""
    if text is None:
        return ()
    from h3sim.transport.cross_traffic import parse_cross_traffic  # on use: few loads have any

    return parse_cross_traffic(text)


def _recorded_hosts(config: LoadConfig) -> RecordedHosts | None:
    """Return how hosts get connections of their own; None where all share one."""
    if config.connections != ConnectionMode.PER_HOST.value:
        return None
    return RecordedHosts(dns_ns=ms(config.dns_ms or 0))


def with_server_settings(scheme: Scheme, config: LoadConfig) -> Scheme:
    """Return *scheme* with what is asked for, which goes before what it says itself."""
    changes: dict[str, Any] = {}
    if config.retransmission_order is not None:
        changes["retransmission"] = Retransmit(config.retransmission_order)
    if config.max_placeholders is not None:
        changes["max_placeholders"] = config.max_placeholders
    if config.closed_stream_retention_ms is not None:
        changes["retention_ns"] = ms(config.closed_stream_retention_ms)
    if config.signalling is not None:
        changes["signalling"] = Signalling(config.signalling)
    return replace(scheme, **changes) if changes else scheme


def resolve_page(page: PageLike) -> Page:
    """Return the page that is meant; one of a recording, or of a site, is imported."""
    if isinstance(page, Page):
        return page
    if catalog.is_recording(page):
        from h3sim.importers import import_page  # on use: importing h3sim should stay quick

        return import_page(page).page
    given: object = page  # whatever the annotation says
    if not isinstance(given, str | os.PathLike):
        # An imported page or a load holds the page that may have been meant.
        hint = ": take its `page`" if isinstance(getattr(given, "page", None), Page) else ""
        message = f"must be a name, a path or a page, is {format_value(page)}{hint}"
        raise InputError([ValidationIssue(key="page", message=message)])
    _refuse_set("page", page, catalog.page_set)
    return catalog.load_page(page)


def _refuse_set(key: str, name: object, members: Callable[[Any], object]) -> None:
    """Refuse the name of a set where one is meant."""
    if isinstance(name, str) and members(name) is not None:
        message = f"{name!r} is a set of {key}s, and one is needed (`h3sim list sets` shows which)"
        raise InputError([ValidationIssue(key=key, message=message)])


def resolve_scheme(scheme: SchemeLike) -> Scheme:
    """Return the scheme that is meant; that of a scheduler has clients who say nothing."""
    if isinstance(scheme, Scheme):
        return scheme
    if isinstance(scheme, str | os.PathLike):
        _refuse_set("scheme", scheme, catalog.scheme_set)
        return catalog.load_scheme(scheme)
    if not callable(scheme) and not hasattr(scheme, "pick"):
        message = f"must be a name, a path, a scheme or a scheduler, is {scheme!r}"
        raise InputError([ValidationIssue(key="scheme", message=message)])
    return with_scheduler(catalog.load_scheme("fifo"), scheme)


def with_scheduler(scheme: Scheme, scheduler: SchedulerLike) -> Scheme:
    """Return *scheme* with another scheduler, and called after it: its clients say the same.

    Raises:
        InputError: if *scheduler* neither is a scheduler nor can be called.
        UnknownNameError: if it is a name, and not known.
    """
    name, given = scheduler_named(scheduler)
    said = scheme.mechanism
    kind = CustomScheduler(
        value=name, factory=given, signal_kind=said.signal_kind, weights=said.weights
    )
    title = f"{name}, told what clients of {scheme.name} say"
    plain = replace(scheme, name=name, title=title, source="", notes="", caveat="")
    # What the scheme sets for its own scheduler, another one has no use for.
    return replace(plain, mechanism=kind, mixed=None, turn=None)


def resolve_pages(pages: PageLike | Iterable[PageLike]) -> list[Page]:
    """Return the pages that are meant; a name may be that of a set."""
    found: list[Page] = []
    given: object = pages  # whatever the annotation says
    one = isinstance(pages, Page | str | os.PathLike) or not isinstance(given, Iterable)
    several: Any = [pages] if one else pages
    with ErrorCollector() as mistakes:
        for page in several:
            names = catalog.page_set(page) if isinstance(page, str) else None
            found += [mistakes.of("pages", partial(resolve_page, p)) for p in names or (page,)]
    return found


def resolve_schemes(schemes: SchemeLike | Iterable[SchemeLike]) -> list[Scheme]:
    """Return the schemes that are meant, each once; a name may be that of a set."""
    found: list[Scheme] = []
    with ErrorCollector() as mistakes:
        for scheme in _listed(schemes):
            names = catalog.scheme_set(scheme) if isinstance(scheme, str) else None
            several = names or (scheme,)
            found += [mistakes.of("schemes", partial(resolve_scheme, one)) for one in several]
    # A set and one of its schemes may both have been named.
    return list(dict.fromkeys(found))


def _listed(schemes: SchemeLike | Iterable[SchemeLike]) -> list[SchemeLike]:
    """Return a list, of one where one was given."""
    if isinstance(schemes, Iterable) and not isinstance(schemes, str):
        return list(schemes)
    return [schemes]

"""Single loads: `simulate`, and the resolution of names, paths and values.

Read next, on the path of docs/reading.md: `h3sim/engine/simulation.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim import catalog, engine
from h3sim.http import SendBufferRefill
from h3sim.load.configuration import MAX_CONNECTIONS_PER_HOST, MAX_LOAD_NS, LoadSpec
from h3sim.load.load import Load
from h3sim.load.load_config import (
    LoadConfig,
    config_for,
    config_of,
    header_compression_of,
    with_options,
)
from h3sim.page import ConnectionMode, Page
from h3sim.page.hosts import RecordedHosts
from h3sim.schedulers import Retransmit, Scheduler
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.values import Flag
from h3sim.schemes import CustomScheduler, Scheme, scheduler_named
from h3sim.signals import Signalling
from h3sim.values.errors import InputError
from h3sim.values.units import NS_PER_S, kbyte, ms

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.engine import Process
    from h3sim.transport.network import CrossFlow


PageLike: TypeAlias = "Page | str | Path"
SchedulerLike: TypeAlias = "Scheduler | Callable[..., Scheduler] | str"
SchedulersLike: TypeAlias = "SchedulerLike | Iterable[SchedulerLike]"
SchemeLike: TypeAlias = "Scheme | str | Path | Scheduler | Callable[..., Scheduler]"

_PROCESSES = Predicate(
    "functions that make SimPy processes",
    lambda value: (
        # Only collections are checked: iterating over another iterable would use it up.
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
    """Simulate the load of *page* and return its results.

    Page and scheme are shipped names, paths or values; the default scheme is "rr".
    A custom *scheduler* replaces the scheme's: a name, a factory (class or function), or an object,
    which is copied. It receives the priority signals of the scheme's clients, by default those of
    "fifo", who send none. A scheduler can also be given as the *scheme*.

    Each of *processes* is a SimPy process function that runs during the load and may change its
    links (`docs/processes.md`). The other arguments are the fields of `LoadConfig`: *network*,
    *transport*, *rtt_ms*, *loss*, *seed* and so on; they override those of *config*.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.
        UnknownOptionError: if there is no such argument.
        StalledError: if the load cannot complete.

    >>> load = simulate("davies-meenan", scheme="fifo")
    >>> load.page_load_ms
    4580.0
    >>> from h3sim.schedulers import FifoScheduler
    >>> simulate("davies-meenan", scheduler=FifoScheduler).trace == load.trace
    True
    """
    typed = {"processes": (_PROCESSES, processes), "record_packets": (Flag(), record_packets)}
    with ErrorCollector() as errors:
        errors.collect("", lambda: check_arguments(InputError, **typed))
        resolved_scheme = errors.collect(
            "scheme", lambda: _scheme_with_scheduler(scheme, scheduler)
        )
        merged = errors.collect(
            "", lambda: config_of(options, known=("scheme", "scheduler", *typed), changed=config)
        )
        resolved_page = errors.collect("page", lambda: resolve_page(page))
    return run_config(
        resolved_page,
        resolved_scheme,
        merged,
        record_packets=record_packets,
        processes=processes,
    )


def _scheme_with_scheduler(scheme: SchemeLike | None, scheduler: SchedulerLike | None) -> Scheme:
    """Return the resolved scheme, with a custom scheduler if one is given."""
    if scheduler is None:
        return resolve_scheme("rr" if scheme is None else scheme)
    with ErrorCollector() as errors:
        requested = errors.collect(
            "scheme", lambda: resolve_scheme("fifo" if scheme is None else scheme)
        )
        errors.collect("scheduler", lambda: scheduler_named(scheduler))
    return with_scheduler(requested, scheduler)


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

    With *record_packets* the trace has every packet in both directions. *progress* is called with
    the numbers of packets sent and in all.
    """
    return engine.simulate(
        resolve_config(page, scheme, config),
        record_packets=record_packets,
        progress=progress,
        processes=processes,
    )


def resolve_config(page: Page, scheme: Scheme, config: LoadConfig) -> LoadSpec:
    """Resolve *config* for a load of *page* with *scheme*.

    >>> spec = resolve_config(resolve_page("creative"), resolve_scheme("rr"), LoadConfig(rtt_ms=40))
    >>> spec.network.name, spec.network.rtt_ns
    ('marx-2019 with rtt_ms=40', 40000000)
    """
    config = config_for(page, config)
    path, limit_s = config.path, config.time_limit_s
    is_per_host = config.connections == ConnectionMode.PER_HOST.value
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
        hosts=RecordedHosts(dns_ns=ms(config.dns_ms or 0)) if is_per_host else None,
        max_connections_per_host=config.max_connections_per_host or MAX_CONNECTIONS_PER_HOST,
        cross_traffic=_cross_traffic(config.cross_traffic),
        limit_ns=MAX_LOAD_NS if limit_s is None else round(limit_s * NS_PER_S),
        seed=config.seed,
    )


def _cross_traffic(text: str | None) -> tuple[CrossFlow, ...]:
    """Return the competing flows."""
    if text is None:
        return ()
    from h3sim.transport.network import parse_cross_traffic  # lazy: few loads have any

    return parse_cross_traffic(text)


def with_server_settings(scheme: Scheme, config: LoadConfig) -> Scheme:
    """Return *scheme* with the server settings of *config*, which take precedence."""
    retention_ms = config.closed_stream_retention_ms
    given = {
        "retransmission": config.retransmission_order and Retransmit(config.retransmission_order),
        "max_placeholders": config.max_placeholders,
        "retention_ns": None if retention_ms is None else ms(retention_ms),
        "signalling": config.signalling and Signalling(config.signalling),
    }
    changes: dict[str, Any] = {key: given[key] for key in given if given[key] is not None}
    return replace(scheme, **changes) if changes else scheme


def resolve_page(page: PageLike) -> Page:
    """Return the page; recordings and sites are imported."""
    if isinstance(page, Page):
        return page
    if catalog.is_recording(page):
        from h3sim.importers import import_page  # lazy: keeps imports fast

        return import_page(page).page
    given: object = page  # callers may ignore the annotation
    if not isinstance(given, str | os.PathLike):
        # Imported pages and loads have a page that may have been meant.
        hint = ": use its `page`" if isinstance(getattr(given, "page", None), Page) else ""
        message = f"must be a name, a path or a page, is {format_value(page)}{hint}"
        raise InputError.at("page", message)
    _refuse_set("page", page, catalog.page_set)
    return catalog.load_page(page)


def _refuse_set(key: str, name: object, members: Callable[[Any], object]) -> None:
    """Refuse the name of a set where a single name is required."""
    if isinstance(name, str) and members(name) is not None:
        message = (
            f"{name!r} is a set of {key}s, but a single {key} is required (see `h3sim list sets`)"
        )
        raise InputError.at(key, message)


def resolve_scheme(scheme: SchemeLike) -> Scheme:
    """Return the scheme; a scheduler alone gets clients that send no signals."""
    if isinstance(scheme, Scheme):
        return scheme
    if isinstance(scheme, str | os.PathLike):
        _refuse_set("scheme", scheme, catalog.scheme_set)
        return catalog.load_scheme(scheme)
    if not callable(scheme) and not hasattr(scheme, "pick"):
        message = f"must be a name, a path, a scheme or a scheduler, is {scheme!r}"
        raise InputError.at("scheme", message)
    return with_scheduler(catalog.load_scheme("fifo"), scheme)


def with_scheduler(scheme: Scheme, scheduler: SchedulerLike, *, name: str = "") -> Scheme:
    """Return *scheme* with another scheduler and its name, or *name*; the clients stay the same.

    Raises:
        InputError: if *scheduler* is neither a scheduler nor callable.
        UnknownNameError: if it is an unknown name.
    """
    usual_name, factory = scheduler_named(scheduler)
    name = name or usual_name
    replaced = scheme.mechanism
    mechanism = CustomScheduler(
        value=name, factory=factory, signal_kind=replaced.signal_kind, weights=replaced.weights
    )
    title = f"{name}, with the client signals of {scheme.name}"
    renamed = replace(scheme, name=name, title=title, source="", notes="", caveat="")
    # Settings of the replaced scheduler do not apply to another one.
    return replace(renamed, mechanism=mechanism, mixed=None, turn=None)


def add_schedulers(
    schemes: SchemeLike | Iterable[SchemeLike] | None,
    scheduler: SchedulersLike | None,
    signals: SchemeLike | None,
    *,
    default: SchemeLike | Iterable[SchemeLike] = (),
) -> list[SchemeLike]:
    """Return *schemes*, and a scheme for each *scheduler* with the client signals of *signals*.

    None for the schemes means the *default* ones. Without *signals*, clients send none, as those of
    "fifo".

    Raises:
        InputError: if one is no scheduler, or there are signals but no scheduler.
        UnknownNameError: if the only error is an unknown name.

    >>> from h3sim.schedulers import FifoScheduler
    >>> [each.name for each in add_schedulers([], FifoScheduler, "chrome-eps")]
    ['FifoScheduler']
    """
    if scheduler is None:
        if signals is not None:
            message = "are those of the clients of a scheduler: give scheduler= as well"
            raise InputError.at("signals", message)
        return _as_list(default if schemes is None else schemes)
    schedulers: list[Any] = _as_list(scheduler)
    with ErrorCollector() as errors:
        clients = errors.collect("signals", lambda: resolve_scheme(signals or "fifo"))
        for one in schedulers:
            errors.collect("scheduler", partial(scheduler_named, one))
    listed = _as_list(default if schemes is None else schemes)
    return [*listed, *(with_scheduler(clients, one) for one in schedulers)]


def resolve_pages(pages: PageLike | Iterable[PageLike]) -> list[Page]:
    """Return the pages; a name may be that of a set."""
    resolved: list[Page] = []
    given: object = pages  # callers may ignore the annotation
    is_single = isinstance(pages, Page | str | os.PathLike) or not isinstance(given, Iterable)
    page_list: Any = [pages] if is_single else pages
    with ErrorCollector() as errors:
        for page in page_list:
            names = catalog.page_set(page) if isinstance(page, str) else None
            members = names or (page,)
            resolved += [errors.collect("pages", partial(resolve_page, one)) for one in members]
    return resolved


def resolve_schemes(schemes: SchemeLike | Iterable[SchemeLike]) -> list[Scheme]:
    """Return the schemes, each once; a name may be that of a set."""
    resolved: list[Scheme] = []
    with ErrorCollector() as errors:
        for scheme in _as_list(schemes):
            names = catalog.scheme_set(scheme) if isinstance(scheme, str) else None
            members = names or (scheme,)
            resolved += [errors.collect("schemes", partial(resolve_scheme, one)) for one in members]
    # A set and one of its members may both be named.
    return list(dict.fromkeys(resolved))


def _as_list(schemes: SchemeLike | Iterable[SchemeLike]) -> list[SchemeLike]:
    """Return a list; a single value becomes a list of one."""
    if isinstance(schemes, Iterable) and not isinstance(schemes, str):
        return list(schemes)
    return [schemes]

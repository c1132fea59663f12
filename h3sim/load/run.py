"""Single loads: `simulate`, and the resolution of names, paths and values.

Read next, on the path of docs/reading.md: `h3sim/engine/simulation.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from h3sim import catalog, engine
from h3sim.engine.load_spec import MAX_CONNECTIONS_PER_HOST, MAX_LOAD_NS, LoadSpec
from h3sim.http import SendBufferRefill
from h3sim.load.load import Load
from h3sim.load.load_config import LoadConfig, changed_config, refuse_unknown
from h3sim.load.network_path import has_connections_per_host, resolve_path
from h3sim.load.options import NO_CODEC
from h3sim.page import Page
from h3sim.page.hosts import RecordedHosts
from h3sim.schedulers import Retransmit, Scheduler
from h3sim.schema import format_value
from h3sim.schema.arguments import Predicate, check_arguments, shows_fields
from h3sim.schema.values import Flag
from h3sim.schemes import CustomScheduler, Scheme, scheduler_named
from h3sim.signals import Signalling
from h3sim.values.errors import InputError
from h3sim.values.units import NS_PER_S, kbyte, ms

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.engine import Process
    from h3sim.headers import HeaderCompression
    from h3sim.headers.base import HeaderLists
    from h3sim.load.load_keywords import LoadKeywords
    from h3sim.load.network_path import ResolvedPath
    from h3sim.transport.network import CrossFlow


PageLike: TypeAlias = "Page | str | Path"
SchedulerLike: TypeAlias = "Scheduler | Callable[..., Scheduler] | str"
SchedulersLike: TypeAlias = "SchedulerLike | Iterable[SchedulerLike]"
HalvesLike: TypeAlias = "catalog.HalfLike | Iterable[catalog.HalfLike] | None"
SchemeLike: TypeAlias = "Scheme | str | Path | Scheduler | Callable[..., Scheduler]"

PROCESSES = Predicate(
    "functions that make SimPy processes",
    lambda value: (
        # Only collections are checked: iterating over another iterable would use it up.
        isinstance(value, Iterable)
        and (not isinstance(value, list | tuple | str | bytes | dict) or all(map(callable, value)))
    ),
)


@shows_fields(LoadConfig)
def simulate(
    page: PageLike,
    *,
    scheme: SchemeLike | None = None,
    client: catalog.HalfLike | None = None,
    server: catalog.HalfLike | None = None,
    scheduler: SchedulerLike | None = None,
    record_packets: bool = False,
    processes: Iterable[Process] = (),
    config: LoadConfig | None = None,
    **options: Unpack[LoadKeywords],
) -> Load:
    """Simulate the load of *page* and return its results.

    Page and scheme are shipped names, paths or values; the default scheme is "rr". Instead, a
    *client* before a *server* can be given, each a name or a path (`docs/schemes.md`).
    A custom *scheduler* replaces the scheme's: a name, a factory (class or function), or an object,
    which is copied. It receives the priority signals of the scheme's clients, by default those of
    "fifo", who send none. A scheduler can also be given as the *scheme*.

    Each of *processes* is a SimPy process function that runs during the load and may change its
    links (`docs/processes.md`). The other arguments are the fields of `LoadConfig`: *network*,
    *transport*, *rtt_ms*, *loss*, *seed* and so on; they override those of *config*.

    Raises:
        InputError: if an argument is invalid.
        UnknownNameError: if a name is unknown.
        UnknownOptionError: if there is no such argument.
        StalledError: if the load cannot complete.

    >>> load = simulate("davies-meenan", scheme="fifo")
    >>> load.page_load_ms
    4580.0
    >>> from h3sim.schedulers import FifoScheduler
    >>> simulate("davies-meenan", scheduler=FifoScheduler).trace == load.trace
    True
    """
    check_arguments(
        InputError, processes=(PROCESSES, processes), record_packets=(Flag(), record_packets)
    )
    refuse_unknown(simulate, options)
    changed = changed_config(config, options)
    resolved_scheme = _scheme_with_scheduler(scheme, client, server, scheduler)
    spec = resolve(resolve_page(page), resolved_scheme, changed)
    return run_spec(spec, record_packets=record_packets, processes=processes)


def scheme_or_pair(
    scheme: SchemeLike | None,
    client: catalog.HalfLike | None,
    server: catalog.HalfLike | None,
    *,
    default: str,
) -> Scheme:
    """Return *scheme*, or that of a *client* before a *server*, or else the *default* one.

    Raises:
        InputError: if both are given, or several clients or servers.
        UnknownNameError: if the only error is an unknown name.

    >>> scheme_or_pair(None, "safari", "nghttp3", default="rr").name
    'safari before nghttp3'
    """
    if client is None and server is None:
        return resolve_scheme(default if scheme is None else scheme)
    if scheme is not None:
        message = "is a client before a server: it does not go with client= or server="
        raise InputError.at("scheme", message)
    names = catalog.pair_names(client, server)
    if len(names) != 1:
        message = f"must be one client before one server, are {len(names)} pairs"
        raise InputError.at("server", message)
    return catalog.load_scheme(names[0])


def _scheme_with_scheduler(
    scheme: SchemeLike | None,
    client: catalog.HalfLike | None,
    server: catalog.HalfLike | None,
    scheduler: SchedulerLike | None,
) -> Scheme:
    """Return the resolved scheme, with a custom scheduler if one is given."""
    default = "rr" if scheduler is None else "fifo"
    resolved = scheme_or_pair(scheme, client, server, default=default)
    return resolved if scheduler is None else with_scheduler(resolved, scheduler)


def run_spec(
    spec: LoadSpec,
    *,
    record_packets: bool = False,
    progress: Callable[[int, int], None] | None = None,
    processes: Iterable[Process] = (),
) -> Load:
    """Return the load of *spec*.

    With *record_packets* the trace has every packet in both directions. *progress* is called with
    the numbers of packets sent and in all.
    """
    result = engine.simulate(
        spec, record_packets=record_packets, progress=progress, processes=processes
    )
    return Load(**result._asdict())


def resolve(
    page: Page | HeaderLists,
    scheme: Scheme,
    config: LoadConfig,
    *,
    path: ResolvedPath | None = None,
) -> LoadSpec:
    """Resolve *config* for loads of *page* with *scheme*: look up names, check that all of it fits.

    Call it once per distinct setting: loads with other seeds or schemes are copies of the result
    (`dataclasses.replace`, `LoadSpec.with_scheme`). *path* is that of `resolve_path`, if it is
    known already.

    Raises:
        InputError: if no network can be estimated from the page's recording, if the network cannot
            carry pages, or listing the options without effect on the network.
        UnknownNameError: if a network, profile or controller is unknown.
        MissingExtraError: if header lists need a compression library that is not installed.

    >>> spec = resolve(resolve_page("creative"), resolve_scheme("rr"), LoadConfig(rtt_ms=40))
    >>> spec.network.name, spec.network.rtt_ns
    ('marx-2019 with rtt_ms=40', 40000000)
    """
    path, limit_s = path or resolve_path(page, config), config.time_limit_s
    compression = _header_compression(config.header_compression)
    is_per_host = False
    if isinstance(page, Page):
        is_per_host = has_connections_per_host(page, config, path.network)
    elif compression is None:
        raise InputError.at("header_compression", "must name a codec for header lists")
    else:
        compression.check()  # now, rather than for each load in a worker
        page = page.page
    settings = _server_settings(config)
    return LoadSpec(
        page,
        scheme=replace(scheme, **settings) if settings else scheme,
        network=path.network,
        protocol=path.protocol,
        profile=path.profile,
        mode=config.mode,
        browser=config.browser_model,
        buffer_bytes=kbyte(config.send_buffer_kb),
        send_buffer_refill=SendBufferRefill(config.send_buffer_refill),
        header_compression=compression,
        hosts=RecordedHosts(dns_ns=ms(config.dns_ms or 0)) if is_per_host else None,
        max_connections_per_host=config.max_connections_per_host or MAX_CONNECTIONS_PER_HOST,
        cross_traffic=_cross_traffic(config.cross_traffic),
        limit_ns=MAX_LOAD_NS if limit_s is None else round(limit_s * NS_PER_S),
        seed=config.seed,
        server_settings=settings,
    )


def _header_compression(codec: HeaderCompression | str | None) -> HeaderCompression | None:
    """Return the header codec; None if headers have the sizes that the page gives."""
    if codec is None or codec == NO_CODEC:
        return None
    from h3sim.headers import HeaderCompression  # lazy: few loads compress headers

    return codec if isinstance(codec, HeaderCompression) else HeaderCompression(codec=codec)


def _cross_traffic(text: str | None) -> tuple[CrossFlow, ...]:
    """Return the competing flows."""
    if text is None:
        return ()
    from h3sim.transport.network import parse_cross_traffic  # lazy: few loads have any

    return parse_cross_traffic(text)


def _server_settings(config: LoadConfig) -> dict[str, Any]:
    """Return the fields of a scheme that options replace."""
    retention_ms = config.closed_stream_retention_ms
    given = {
        "retransmission": config.retransmission_order and Retransmit(config.retransmission_order),
        "max_placeholders": config.max_placeholders,
        "retention_ns": None if retention_ms is None else ms(retention_ms),
        "signalling": config.signalling and Signalling(config.signalling),
    }
    return {key: given[key] for key in given if given[key] is not None}


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
    """Return the schemes, each once; a name may be that of a set."""
    resolved: list[Scheme] = []
    for scheme in _as_list(schemes):
        names = catalog.scheme_set(scheme) if isinstance(scheme, str) else None
        resolved += map(resolve_scheme, names or (scheme,))
    # A set and one of its members may both be named.
    return list(dict.fromkeys(resolved))


def _as_list(schemes: SchemeLike | Iterable[SchemeLike]) -> list[SchemeLike]:
    """Return a list; a single value becomes a list of one."""
    if isinstance(schemes, Iterable) and not isinstance(schemes, str):
        return list(schemes)
    return [schemes]

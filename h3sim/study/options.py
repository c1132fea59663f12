"""The keyword arguments that say over what a page is loaded, the same wherever there are any."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from h3sim.documents.arguments import GatheredMistakes, Only, check_arguments
from h3sim.errors import InputError, Problem, UnknownOptionError
from h3sim.study.arguments import NETWORKS
from h3sim.study.config import LoadConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from h3sim.browser import BrowserModel
    from h3sim.transport import Network, TransportProfile

__all__ = [
    "LoadOptions",
    "config_of",
    "over_networks",
    "refuse_options",
    "unknown_option",
    "with_options",
]

CallableT = TypeVar("CallableT", bound="Callable[..., Any]")
_CONFIG = Only("a LoadConfig", lambda value: value is None or isinstance(value, LoadConfig))


class LoadOptions(TypedDict, total=False):
    """The fields of `LoadConfig`, which explains them, for type checkers."""

    network: Network | str | Path
    transport: str | None
    cc: str | None
    transport_profile: TransportProfile | str | Path | None
    rate_mbps: float | None
    interval_ms: float | None
    packet_bytes: int | None
    rtt_ms: float | None
    loss: float | None
    burst: float | None
    queue_bdp: float | None
    queue_bytes: int | None
    jitter: str | None
    buffer_kb: float
    buffer_model: str
    retransmit: str | None
    max_placeholders: int | None
    retention_ms: float | None
    metadata: bool
    handshake: bool | str
    headers: str | None
    hosts: str | None
    dns_ms: float | None
    cross_traffic: str | None
    seed: int
    max_simulated_s: float | None
    browser: BrowserModel | str
    cpu_factor: float | None
    max_requests: int | None
    max_requests_per_host: int | None
    preload_scanner: bool | None
    tight_mode: bool | None
    styles_stop_parser: bool | None
    background_at_ms: float | None


def config_of(
    options: LoadOptions, known: tuple[str, ...] = (), *, changed: LoadConfig | None = None
) -> LoadConfig:
    """Return the config of *options*; *known* are the other arguments that there were.

    What they do not say is as in *changed*, or as usual.

    Raises:
        UnknownOptionError: naming each option that there is not, with those spelt alike.
        InputError: listing every value that is out of range.

    >>> config_of({"rtt": 5})
    Traceback (most recent call last):
    ...
    h3sim.errors.UnknownOptionError: rtt: there is no such option; did you mean rtt_ms or burst?
    """
    names = [field.name for field in fields(LoadConfig)]
    unknown = [name for name in options if name not in names]
    given: dict[str, Any] = {name: options[name] for name in options if name in names}  # type: ignore[literal-required]
    base = changed if isinstance(changed, LoadConfig) else None
    with GatheredMistakes() as mistakes:
        mistakes.of("", lambda: check_arguments(InputError, config=(_CONFIG, changed)))
        mistakes.of("", partial(refuse_options, unknown, (*names, *known)))
        return mistakes.of(
            "", lambda: LoadConfig(**given) if base is None else replace(base, **given)
        )


def refuse_options(unknown: Sequence[str], known: tuple[str, ...]) -> None:
    """Refuse options that there are not.

    Raises:
        UnknownOptionError: naming each of *unknown*, with those of *known* that are spelt alike.
    """
    if unknown:
        raise UnknownOptionError(unknown_option(name, known) for name in unknown)


def over_networks(config: LoadConfig, networks: Sequence[str]) -> list[LoadConfig]:
    """Return *config* over each of *networks*, each once.

    Raises:
        InputError: listing every name that is not known, and options that a network has no use for.
        UnknownNameError: if only a name is not known.
    """
    check_arguments(InputError, networks=(NETWORKS, networks))
    with GatheredMistakes() as mistakes:
        return [
            mistakes.of("networks", partial(replace, config, network=name))
            for name in dict.fromkeys(networks)
        ]


def with_options(function: CallableT) -> CallableT:
    """Return *function*, which takes `LoadOptions`, with each of them in its signature.

    So a notebook completes them, and `help` shows them with what they are by default.
    """
    signature = inspect.signature(function)
    own = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=field.type,
        )
        for field in fields(LoadConfig)
        if field.name not in signature.parameters
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function


def unknown_option(name: str, known: tuple[str, ...]) -> Problem:
    """Return the mistake that there is no option of that name, with those spelt alike."""
    import difflib  # on use: importing h3sim should stay quick

    alike = difflib.get_close_matches(name, known, n=2, cutoff=0.4)
    hint = f"; did you mean {' or '.join(alike)}?" if alike else ""
    return Problem(key=name, message=f"there is no such option{hint}")

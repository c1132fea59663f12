"""`h3sim list`: what is shipped."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING

from h3sim import catalog
from h3sim.cli.run import RawHelp
from h3sim.cli.tables import table
from h3sim.schemes.registry import REGISTRY
from h3sim.transport.congestion import controller_names
from h3sim.units import to_mbps, to_ms

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from h3sim.cli.options import Parser
    from h3sim.transport import Jitter, Network

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "list",
        help="show what is shipped: pages, schemes, networks and more",
        description="Show what is shipped, by the names that other commands take.",
        epilog="examples:\n  h3sim list schemes\n  h3sim list pages\n",
        formatter_class=RawHelp,
    )
    parser.add_argument("what", choices=tuple(_LISTS), metavar="|".join(_LISTS))
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    print(_LISTS[options.what]())
    return 0


def _schemes() -> str:
    headers = ("scheme", "what it is", "mechanism", "signalling", "placeholders", "source")
    rows = (
        (s.name, s.title, s.mechanism.value, s.signalling.value, str(len(s.placeholders)), s.source)
        for s in catalog.list_schemes()
    )
    return table(headers, rows)


def _networks() -> str:
    headers = ("network", "Mbit/s down", "up", "RTT ms", "loss", "burst", "jitter", "source")
    rows = (
        (n.name, *_rates(n), f"{to_ms(n.rtt_ns):g}", *_accidents(n), n.source)
        for n in catalog.list_networks()
    )
    return table(headers, rows)


def _rates(network: Network) -> tuple[str, str]:
    if network.constant_rate is not None:
        return f"{to_mbps(network.constant_rate.rate_bps):g}", "-"
    links = (network.down, network.up)
    rates = [None if link is None else link.mean_rate_bps for link in links]
    down, up = ("-" if rate is None else f"{float(rate) / 1e6:g}" for rate in rates)
    return down, up


def _accidents(network: Network) -> tuple[str, str, str]:
    down = network.down
    if down is None:
        return "-", "-", _jitter(network.jitter)
    burst = "-" if down.loss_burst is None else f"{down.loss_burst:g}"
    jitter = "-" if down.jitter is None else f"{to_ms(down.jitter.mean_ns):g} ms"
    return f"{100 * down.loss:g} %" if down.loss else "-", burst, jitter


def _controllers() -> str:
    return "\n".join(controller_names())


def _schedulers() -> str:
    headers = ("scheduler", "what it does", "from")
    rows = ((e.name, _first_sentence(e.part), e.origin) for e in REGISTRY.listed())
    return table(headers, rows)


def _first_sentence(factory: Callable[..., object]) -> str:
    """Return what the class or function says of itself; of ours, what is made."""
    text = inspect.getdoc(factory() if isinstance(factory, partial) else factory) or "-"
    return text.split("\n\n", 1)[0].split(". ", 1)[0].replace("\n", " ").removesuffix(".")


def _profiles() -> str:
    headers = ("profile", "what it is", "transport", "controller", "retransmits", "source")
    rows = (
        (p.name, p.title, p.protocol.value, p.cc, p.retransmit, p.source)
        for p in catalog.list_profiles()
    )
    return table(headers, rows)


def _jitter(jitter: Jitter | None) -> str:
    if jitter is None:
        return "-"
    low, high = jitter.min_overtaken, jitter.max_overtaken
    return f"{jitter.every}:{low}" if low == high else f"{jitter.every}:{low}-{high}"


def _pages() -> str:
    headers = ("page", "resources", "kB", "above the fold", "source")
    rows = (
        (
            page.name,
            str(len(page.resources)),
            f"{page.total_bytes / 1000:,.0f}",
            str(sum(resource.above_the_fold for resource in page.resources)),
            page.provenance.get("source", "-"),
        )
        for page in catalog.list_pages()
    )
    return table(headers, rows)


_LISTS = {
    "schemes": _schemes,
    "networks": _networks,
    "profiles": _profiles,
    "controllers": _controllers,
    "schedulers": _schedulers,
    "pages": _pages,
}

"""The options by which several commands change network, transport and browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim import catalog
from h3sim.errors import InputError, Problem
from h3sim.study import LoadConfig

if TYPE_CHECKING:
    import argparse

    from h3sim.cli.parsing import Mistakes
    from h3sim.transport import Network

__all__ = ["add_load_options", "read_config"]


def add_load_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say over what a page is loaded."""
    group = parser.add_argument_group("network and transport")
    group.add_argument(
        "--network",
        metavar="NAME",
        default="marx-2019",
        help="a shipped network or a file.toml (default: %(default)s)",
    )
    group.add_argument(
        "--transport",
        choices=("quic", "tcp"),
        help="what carries HTTP (default: as the transport profile says; quic)",
    )
    group.add_argument(
        "--transport-profile",
        metavar="NAME",
        help="how a stack sends and recovers: a shipped profile or a file.toml",
    )
    group.add_argument(
        "--cc", metavar="NAME", help="the congestion controller: newreno, cubic, bbr, constant, ..."
    )
    for option, kind, metavar, text in (
        ("--rate-mbps", float, "RATE", "the pace as a rate, in Mbit/s of payload"),
        ("--interval-ms", float, "MS", "the pace as the time between two packets"),
        ("--packet-bytes", int, "BYTES", "the most payload of a packet"),
        ("--rtt-ms", float, "MS", "the round-trip time"),
        ("--loss", _share, "SHARE", "the share of packets lost each way: 0.02, or 2%%"),
        ("--burst", float, "PACKETS", "how many packets are lost in a row, on average"),
        ("--queue-bdp", float, "BDPS", "the queue before the bottleneck, in rate times RTT"),
        ("--queue-bytes", int, "BYTES", "the same in bytes"),
    ):
        group.add_argument(option, type=kind, metavar=metavar, help=text)
    group.add_argument(
        "--jitter",
        metavar="EVERY:N[-M]",
        help="hold every so-manieth packet until N (to M) others were sent, say 4:1-3; or none",
    )
    group.add_argument(
        "--no-handshake",
        dest="handshake",
        action="store_false",
        help="the connection is established: the first request leaves at 0",
    )
    group.add_argument(
        "--zero-rtt",
        dest="handshake",
        action="store_const",
        const="0-rtt",
        help="the requests go with the client's first packet",
    )
    group.add_argument(
        "--retransmit",
        choices=("first", "priority", "turn"),
        help="when lost bytes go again: before new ones as they were lost, or the most important"
        " first, or at the stream's turn (default: as the transport profile says)",
    )
    group.set_defaults(handshake=True)
    group.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    _add_browser(parser)


def _add_browser(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what browser loads a page."""
    group = parser.add_argument_group("browser")
    group.add_argument(
        "--browser",
        choices=("replay", "parse"),
        default="replay",
        help="ask for resources as recorded, or compute what parsing, blocking and executing"
        " make of the page (default: %(default)s)",
    )
    group.add_argument(
        "--cpu-factor",
        type=float,
        metavar="FACTOR",
        help="how many times as long parsing and executing take: 4 for a phone, say",
    )
    group.add_argument(
        "--max-requests", type=int, metavar="N", help="how many requests may be open at once"
    )
    group.add_argument(
        "--tight-mode",
        action="store_true",
        default=None,
        help="as Chrome: images and the like wait for the head while two requests are open",
    )
    group.add_argument(
        "--no-preload-scanner",
        dest="preload_scanner",
        action="store_false",
        default=None,
        help="only the parser finds what the document names",
    )


def _share(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def read_config(
    options: argparse.Namespace, mistakes: Mistakes, *, buffer_kb: float
) -> LoadConfig | None:
    """Return the config that the options say, or None after noting every mistake in them."""
    network = mistakes.collect(lambda: catalog.load_network(options.network))
    config = mistakes.collect(lambda: _config(options, network or "marx-2019", buffer_kb))
    return None if network is None else config


def _config(options: argparse.Namespace, network: Network | str, buffer_kb: float) -> LoadConfig:
    """Return the config; mistakes are told by the names of the command line."""
    try:
        return LoadConfig(
            network=network,
            transport=options.transport,
            cc=options.cc,
            transport_profile=options.transport_profile,
            loss=options.loss,
            burst=options.burst,
            queue_bdp=options.queue_bdp,
            queue_bytes=options.queue_bytes,
            retransmit=options.retransmit,
            rate_mbps=options.rate_mbps,
            interval_ms=options.interval_ms,
            packet_bytes=options.packet_bytes,
            rtt_ms=options.rtt_ms,
            jitter=options.jitter,
            buffer_kb=buffer_kb,
            handshake=options.handshake,
            seed=options.seed,
            browser=options.browser,
            cpu_factor=options.cpu_factor,
            max_requests=options.max_requests,
            preload_scanner=options.preload_scanner,
            tight_mode=options.tight_mode,
        )
    except InputError as error:
        if error.source:
            raise
        problems = (
            Problem(key=_option(problem.key), message=problem.message) for problem in error.problems
        )
        raise InputError(problems) from error


def _option(key: str) -> str:
    name = key.partition(".")[0]
    return "--" + {"loss_burst": "burst"}.get(name, name).replace("_", "-")

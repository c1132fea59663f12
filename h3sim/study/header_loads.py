"""What a worker does with header lists: sends them as a setting says, and returns the row."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from h3sim import engine
from h3sim._version import __version__
from h3sim.study.config import header_compression_of
from h3sim.study.header_delays import simulate_headers
from h3sim.study.run import resolve_config
from h3sim.units import to_ms

if TYPE_CHECKING:
    from h3sim.compression import FieldSection
    from h3sim.compression.exchanges import HeaderLists
    from h3sim.compression.header_run import HeaderRun
    from h3sim.schemes import Scheme
    from h3sim.study.config import LoadConfig

__all__ = ["OF_SETTING", "header_row", "send_headers"]

OF_SETTING = (
    *("page", "network", "header_compression", "table_bytes", "blocked_streams", "rtt_ms", "loss"),
)
"""The columns by which runs that differ in their seeds alone belong together."""

HEADER_FIGURES = (
    *("sections", "hol_total_ms", "blocked", "n_bytes", "uncompressed_bytes", "n_packets"),
    *("n_lost", "held_compressed_bytes", "held_decompressed_bytes"),
)
"""The columns that say what came of header lists: no row of theirs lacks one."""
_NO_RESPONSE: FieldSection = ((b":status", b"200"),)


def send_headers(
    lists: HeaderLists, scheme: Scheme, config: LoadConfig, *, seed: int = 0
) -> HeaderRun:
    """Return what comes of *lists* over the network of *config*.

    Over links they go over a transport, next to the bodies of responses, which *scheme* schedules;
    packets are then those of the whole connection down. Over independent packets there are neither.
    """
    compression = header_compression_of(config.header_compression)
    assert compression is not None, "`config_for` asks for it"  # noqa: S101
    network = config.path.network
    if network.independent_packets is not None:
        codec, settings = compression.codec, compression.settings
        return simulate_headers(lists.sections, codec, network, settings=settings, seed=seed)
    both = tuple((entry.request, entry.response or _NO_RESPONSE) for entry in lists.in_order)
    spec = resolve_config(lists.page, scheme, config)
    load = engine.simulate(
        replace(spec, header_compression=replace(compression, lists=both), seed=seed)
    )
    assert load.header_runs is not None, "headers were compressed"  # noqa: S101
    run = load.header_runs[lists.of_responses]
    run.n_packets, run.n_lost = load.packets.sent, load.packets.lost
    return run


def header_row(
    lists: HeaderLists, scheme: Scheme, config: LoadConfig, named: dict[str, Any], *, seed: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row of one run, *named* as it was asked for, and one for each list that waited."""
    run = send_headers(lists, scheme, config, seed=seed)
    compression = header_compression_of(config.header_compression)
    assert compression is not None, "it was sent"  # noqa: S101
    network = config.path.network
    path = network.independent_packets or network.down
    row = {
        "page": lists.name,
        "page_digest": lists.digest,
        "scheme": scheme.name,
        "header_compression": compression.codec,
        "rtt_ms": to_ms(network.rtt_ns),
        "loss": None if path is None else path.loss,
        "seed": seed,
        "network": network.name,
        "of": "responses" if lists.of_responses else "requests",
        **asdict(compression.settings),
        "version": __version__,
        "sections": len(run.sections),
        "hol_total_ms": to_ms(sum(section.hol_ns for section in run.sections)),
        "blocked": sum(section.hol_ns > 0 for section in run.sections),
        "n_bytes": run.n_bytes,
        "uncompressed_bytes": run.uncompressed_bytes,
        "n_packets": run.n_packets,
        "n_lost": run.n_lost,
        "held_compressed_bytes": run.max_held.compressed,
        "held_decompressed_bytes": run.max_held.decompressed,
        **named,
    }
    setting = {column: row[column] for column in OF_SETTING}
    waited = [
        setting | {"id": str(number), "hol_ns": times.hol_ns, **asdict(times)}
        for number, times in enumerate(run.sections)
        if times.hol_ns
    ]
    return row, waited

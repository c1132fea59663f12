"""Header lists over a simulated connection, next to response bodies, with real loss recovery."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim import engine
from h3sim.catalog import load_scheme
from h3sim.compression import HeaderCompression
from h3sim.page import At, Discovery, Kind, Page, Resource
from h3sim.study.config import LoadConfig
from h3sim.study.run import resolve_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.compression import CodecSettings, FieldSection
    from h3sim.compression.exchanges import Exchange
    from h3sim.compression.header_run import HeaderRun
    from h3sim.transport import Network

__all__ = ["DEFAULT_BODY_BYTES", "DEFAULT_NETWORK", "carry_headers", "page_of_exchanges"]

DEFAULT_NETWORK = "4g"
DEFAULT_BODY_BYTES = 10_000
"""What a response has whose size is not known."""
_SCHEME = "rr"
"""All responses share the link, so that none waits for others to end."""
_NO_RESPONSE: FieldSection = ((b":status", b"200"),)
_LENGTH = b"content-length"
_MOST_DIGITS = 12


def carry_headers(
    exchanges: Sequence[Exchange],
    scheme: str,
    *,
    rtt_ms: float,
    loss: float,
    network: str | Network = DEFAULT_NETWORK,
    settings: CodecSettings,
    seed: int = 0,
) -> tuple[HeaderRun, HeaderRun]:
    """Return what comes of requests and of responses that go over QUIC.

    The connection is established, and requests are made at their times; a response has as many
    bytes as it says, or `DEFAULT_BODY_BYTES`. *network* says all of the path but round-trip time
    and loss.
    """
    config = LoadConfig(network=network, rtt_ms=rtt_ms, loss=loss, handshake=False, seed=seed)
    lists = tuple((entry.request, entry.response or _NO_RESPONSE) for entry in exchanges)
    spec = resolve_config(page_of_exchanges(exchanges), load_scheme(_SCHEME), config)
    headers = HeaderCompression(codec=scheme, settings=settings, lists=lists)
    load = engine.simulate(replace(spec, header_compression=headers))
    assert load.header_runs is not None, "headers were compressed"  # noqa: S101
    packets = load.packets
    for run in load.header_runs:
        run.n_packets, run.n_lost = packets.sent, packets.lost
    return load.header_runs


def page_of_exchanges(exchanges: Sequence[Exchange]) -> Page:
    """Return the page that makes these requests at their times, whatever comes down.

    >>> from h3sim.compression.exchanges import Exchange
    >>> two = [Exchange(requested_at_ns=at_ns, request=((b"a", b"b"),)) for at_ns in (0, 5)]
    >>> page_of_exchanges(two).resources[1].discovered.delay_ns
    5
    """
    first = exchanges[0].requested_at_ns
    resources = [
        Resource(
            id=str(number),
            kind=Kind.OTHER if number else Kind.DOCUMENT,
            size_bytes=_body_bytes(entry.response),
            discovered=Discovery(at=At.TIME, delay_ns=entry.requested_at_ns - first),
        )
        for number, entry in enumerate(exchanges)
    ]
    resources[0] = replace(resources[0], discovered=None)
    return Page(name="header lists", resources=tuple(resources))


def _body_bytes(response: FieldSection) -> int:
    text = dict(response).get(_LENGTH, b"")
    if text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    return DEFAULT_BODY_BYTES

"""Draws loads from a seed: a small page, a scheme, a stack, and links that treat it badly."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.browser.capabilities import without_ignored
from h3sim.load import resolve, run_spec
from h3sim.page import Kind, TriggerEvent, page_from_dict
from h3sim.page.resource import FLAGS
from h3sim.transport import Jitter, LinkProfile, Network
from h3sim.transport.congestion import controller_names
from h3sim.transport.link_profile import LinkJitter
from h3sim.values.errors import ConnectionTimeoutError, StalledError
from h3sim.values.units import mbps, ms
from tests.checking.path import Change, lanes
from tests.checking.rules import Checked

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Drawn", "checked", "digest_of", "drawn", "ended", "load_of"]

_LEAST_BPS = 200_000
_HOLDS = (
    Jitter(every=1, min_overtaken=0, max_overtaken=20),
    Jitter(every=4, min_overtaken=1, max_overtaken=3),
)
_IP_BYTES = {"quic": 20 + 8, "tcp": 20}
"""What IPv4 and UDP, or IPv4 alone, add to what the wire's rows give as a size."""
_LARGEST_BYTES = 1500
_HOPELESS = 0.5
"""The share of round trips that both ways let through, below which a load may take an hour."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A load that a seed stands for."""

    seed: int
    page: h3sim.Page
    scheme: str
    network: Network
    config: h3sim.LoadConfig
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        config, down, up = self.config, self.network.down, self.network.up
        return (
            f"seed {self.seed}: {self.scheme}, {config.transport}, {config.transport_profile},"
            f" {config.cc}, rtt {self.network.rtt_ns} ns, down {down}, up {up}, {self.changes}"
        )


def drawn(seed: int) -> Drawn:
    """Return the load that *seed* stands for, the same in any process."""
    source = random.Random(f"checked load {seed}")
    transport = source.choice(("quic", "tcp"))
    profile = source.choice((None, *_profiles(transport)))
    down, up = _link(source), _link(source)
    network = Network(
        name="drawn", rtt_ns=ms(source.choice((0, 5, 30, 100, 300))), down=down, up=up
    )
    controllers = [name for name in controller_names() if name != "constant"]
    config = h3sim.LoadConfig(
        network=network,
        transport=transport,
        transport_profile=profile,
        cc=source.choice(controllers) if profile is None else None,
        retransmission_order=source.choice(("first", "priority", "turn")),
        send_buffer_kb=source.choice((0.0, 0.0, 2.0, 20.0)),
        handshake=source.choice(("none", "1-rtt", "0-rtt")),
        seed=seed,
    )
    return Drawn(
        seed=seed,
        page=_page(source),
        scheme=source.choice(_schemes()),
        network=network,
        config=config,
        changes=_changes(source),
    )


def load_of(load: Drawn) -> h3sim.Load:
    """Load it, with every packet written down."""

    def changing(env: Any) -> Generator[Any, Any, None]:
        for change in load.changes:
            yield env.timeout(change.at_ns - env.now)
            link = env.down if change.is_down else env.up
            if change.rate_bps is not None:
                link.set_rate(change.rate_bps)
            if change.loss is not None:
                link.set_loss(change.loss)

    processes = [changing] if load.changes else []
    scheme = h3sim.load_scheme(load.scheme)
    return run_spec(
        resolve(load.page, scheme, load.config), record_packets=True, processes=processes
    )


def checked(drawn_load: Drawn, load: h3sim.Load) -> Checked:
    """Return what the rules are told: no more than the page, the links' promises and the trace."""
    ip_bytes = _IP_BYTES[drawn_load.config.transport or "quic"]
    paths = lanes(drawn_load.network, drawn_load.changes, ip_bytes)
    restarts = drawn_load.config.cc == "cubic-aioquic"
    page = without_ignored(drawn_load.page, load.scheme.ignores)  # as the scheme's client sees it
    return Checked(page, load.trace, paths, _LARGEST_BYTES, restarts)


@cache
def _schemes() -> list[str]:
    return [scheme.name for scheme in h3sim.list_schemes()]


@cache
def _profiles(transport: str) -> list[str]:
    return [p.name for p in h3sim.list_profiles() if p.protocol.value == transport]


def _link(source: random.Random) -> LinkProfile:
    """Draw a link: up to 60 % lost, alone or in bursts, tiny queues, delays that may reorder."""
    loss = source.choice((0.0, 0.0, 0.02, 0.1, 0.3, 0.6))
    link = LinkProfile(
        rate_bps=mbps(source.choice((0.3, 1, 5, 50))),
        burst_bytes=source.choice((0, 1514)),
        queue_bytes=source.choice((None, 3_000, 8_000, 40_000)),
        frame_overhead_bytes=source.choice((0, 0, 14)),
        loss=loss,
        loss_burst=source.choice((None, 4.0)) if loss else None,
    )
    delays = source.choice((None, None, "ordered", "reordered", "held"))
    if delays == "held":
        return replace(link, hold=source.choice(_HOLDS))
    if delays is None:
        return link
    spread = ms(source.choice((1, 10, 50)))
    return replace(
        link,
        jitter=LinkJitter(mean_ns=spread, deviation_ns=spread, reorder=delays == "reordered"),
    )


def _changes(source: random.Random) -> tuple[Change, ...]:
    """Draw what becomes of the links: nothing, other rates, or seconds in which nothing passes."""
    what = source.choice(("nothing", "rates", "stops", "both"))
    changes: list[Change] = []
    at_ns = 0
    for _ in range(0 if what == "nothing" else source.randint(1, 6)):
        at_ns += ms(source.randint(1, 800))
        is_down = source.random() < 0.5
        if what == "rates" or (what == "both" and source.random() < 0.5):
            rate_bps = round(_LEAST_BPS * 10 ** (2 * source.random()))
            changes.append(Change(at_ns, is_down, rate_bps, None))
        else:
            changes.append(Change(at_ns, is_down, None, 1 - 1e-9))
            at_ns += ms(source.choice((50, 500, 3000)))
            changes.append(Change(at_ns, is_down, None, source.choice((0.0, 0.0, 0.1, 0.5))))
    return tuple(changes)


def _page(source: random.Random) -> h3sim.Page:
    """Draw a page of one to eight resources, each found by one that was drawn before it."""
    entries: list[dict[str, Any]] = []
    for n in range(source.randint(1, 8)):
        entry: dict[str, Any] = {
            "id": f"r{n}",
            "kind": source.choice(list(Kind)).value,
            "bytes": source.choice(
                (0, 1, 1400, source.randint(2, 3000), source.randint(1, 30_000))
            ),
            **{flag: True for flag in FLAGS if source.random() < 0.3},
        }
        if source.random() < 0.5:
            entry["header_bytes"] = source.choice((0, 1, source.randint(1, 3000)))
            for key in ("server_ms", "parse_ms", "execute_ms"):
                entry[key] = source.choice((0, 0, 2.5, source.randint(0, 200)))
        if entries:
            entry["discovered"] = _discovery(source, entries)
        entries.append(entry)
    source.shuffle(entries)
    return page_from_dict({"format": "h3sim-page/1", "name": "drawn", "resources": entries})


def _discovery(source: random.Random, entries: list[dict[str, Any]]) -> dict[str, Any]:
    at = source.choice(list(TriggerEvent))
    found: dict[str, Any] = {"at": at.value, "delay_ms": source.choice((0, 0, 5, 37, 600))}
    if at is not TriggerEvent.TIME:
        parent = source.choice(entries)
        found["by"] = parent["id"]
        if at is TriggerEvent.OFFSET:
            found["offset_bytes"] = source.randint(0, parent["bytes"])
    return found


def digest_of(load: h3sim.Load) -> str:
    """Return the digest of the whole trace, of the wire and of recovery too."""
    trace = load.trace
    others = repr((trace.wire, trace.recovery))
    return hashlib.sha256((trace.digest() + others).encode()).hexdigest()


def ended(drawn_load: Drawn) -> h3sim.Load | None:
    """Return the load; None where losses are such that it is given up.

    That is after a simulated hour, or when an end hears nothing for as long as its profile says.

    Raises:
        StalledError: if it stalls in any other way.
    """
    try:
        return load_of(drawn_load)
    except ConnectionTimeoutError:
        return None
    except StalledError as stalled:
        if "given up after" not in str(stalled) or not _is_hopeless(drawn_load):
            raise
        return None


def _is_hopeless(drawn_load: Drawn) -> bool:
    """Say whether so much is lost in the end that timers may double for an hour."""
    shares = []
    for is_down, link in ((True, drawn_load.network.down), (False, drawn_load.network.up)):
        assert link is not None
        losses = [link.loss, *(c.loss for c in drawn_load.changes if c.is_down is is_down)]
        shares.append(1 - [loss for loss in losses if loss is not None][-1])
    return shares[0] * shares[1] < _HOPELESS

"""Logs of servers that have none of the mechanisms: none is named."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.identification.chance import ContestedPick, contested_picks, share_saved
from h3sim.identification.identification import identify
from h3sim.identification.send_order import SendOrder, Step, StepKind

if TYPE_CHECKING:
    from pathlib import Path

SERVER, CLIENT = 1, 2


class RandomPicks:
    """A scheduler that draws each pick, and repeats the last stream with that probability."""

    repeats = 0.0

    def __init__(self) -> None:
        self._rng = random.Random(8)
        self._active: list[int] = []
        self._last: int | None = None
        self._next: int | None = None

    def open(self, stream_id: int, signal: Any) -> None:
        """Ignore the signal."""

    def update(self, stream_id: int, signal: Any) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        if stream_id not in self._active:
            self._active.append(stream_id)

    def deactivate(self, stream_id: int) -> None:
        if stream_id in self._active:
            self._active.remove(stream_id)

    def close(self, stream_id: int) -> None:
        self.deactivate(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._last, self._next = stream_id, None

    def pick(self) -> int | None:
        if self._next not in self._active:
            self._next = self._draw() if self._active else None
        return self._next

    def _draw(self) -> int:
        if self._last in self._active and self._rng.random() < self.repeats:
            assert self._last is not None
            return self._last
        return self._rng.choice(self._active)


class MostlyTheLast(RandomPicks):
    repeats = 0.95


class OftenTheLast(RandomPicks):
    repeats = 0.8


class TenPacketsEach(RandomPicks):
    """Sends ten packets of a stream that is drawn at random: a quantum, but no round."""

    _n_left = 0

    def _draw(self) -> int:
        self._n_left -= 1
        if self._last in self._active and self._n_left > 0:
            assert self._last is not None
            return self._last
        self._n_left = 10
        return self._rng.choice(self._active)


def logged(folder: Path, page: str, **options: Any) -> Path:
    path = folder / "load.qlog"
    load = h3sim.simulate(page, record_packets=True, network="marx-2019", **options)
    write_load_qlog(load, path)
    return path


@pytest.mark.parametrize("trace", [SERVER, CLIENT])
@pytest.mark.parametrize("kind", [RandomPicks, MostlyTheLast, OftenTheLast, TenPacketsEach])
def test_random_orders_have_no_name(tmp_path: Path, kind: type, trace: int) -> None:
    log = logged(tmp_path, "davies-meenan", scheme="chrome-eps", scheduler=kind)
    found = identify(log, trace=trace)
    assert found.n_changes > 20
    assert found.candidates == ()
    assert found.n_changes_explained < 0.7 * found.n_changes


@pytest.mark.parametrize("scheme", ["wrr", "firefox", "bucket", "zeroweight", "p+"])
def test_servers_with_other_signals_have_no_name_by_their_own_logs(
    tmp_path: Path, scheme: str
) -> None:
    log = logged(tmp_path, "davies-meenan", scheme=scheme)
    assert identify(log, trace=SERVER).candidates == ()


@pytest.mark.parametrize("trace", [SERVER, CLIENT])
@pytest.mark.parametrize(("scheme", "name"), [("rr", "round-robin"), ("fifo", "fifo")])
def test_plain_servers_keep_their_names(tmp_path: Path, scheme: str, name: str, trace: int) -> None:
    log = logged(tmp_path, "davies-meenan", scheme=scheme)
    assert name in identify(log, trace=trace).candidates


def order_of(*streams: int) -> SendOrder:
    """Return a server's order in which streams 0, 4 and 8 are always ready."""
    steps = [
        Step(kind, 0, key) for kind in (StepKind.ACTIVATE, StepKind.READY) for key in (0, 4, 8)
    ]
    steps += [
        Step(StepKind.SENT, number, key, 1000, number, is_choice=True)
        for number, key in enumerate(streams)
    ]
    return SendOrder(
        title="by hand",
        source="server",
        steps=tuple(steps),
        packet_bytes=1000,
        turn_bytes=1000,
        knows_losses=True,
        paths={},
        unknown=(),
    )


def test_a_pick_is_a_change_if_it_is_of_another_stream() -> None:
    assert contested_picks(order_of(0, 0, 4)) == [
        ContestedPick(0, True, False, 3),
        ContestedPick(1, False, True, 2),
        ContestedPick(2, True, True, 2),
    ]


def test_a_quantum_alone_saves_nothing_and_a_round_much() -> None:
    rng = random.Random(3)
    drawn = [key for key in rng.choices((0, 4, 8), k=40) for _ in range(10)]
    picks = contested_picks(order_of(*drawn))
    same_stream = [not pick.is_change for pick in picks]
    assert share_saved(picks, same_stream, n_fitted=1) < 0
    in_turn = [key for _ in range(13) for key in (0, 4, 8) for _ in range(10)]
    picks = contested_picks(order_of(*in_turn))
    # By chance 38 changes cost ln 2 each, and the first ln 3. The mixture costs ln 39 / 2.
    by_chance = 38 * math.log(2) + math.log(3)
    hits = [True] * len(picks)
    saved = share_saved(picks, hits)
    assert saved == pytest.approx(1 - math.log(39) / 2 / by_chance, abs=0.01)
    # A fitted quantum costs as much again; one of 50 mechanisms that were tried, ln 50.
    assert saved - share_saved(picks, hits, n_fitted=1) == pytest.approx(
        math.log(39) / 2 / by_chance
    )
    assert saved - share_saved(picks, hits, n_tried=50) == pytest.approx(math.log(50) / by_chance)

"""`make validate-trees`: dependency trees of real servers of HTTP/2, frame by frame.

nghttpd and h2o, from Debian's packages, and Node answer random loads whose windows are shut until
all was said; then a burst goes. The order of its DATA frames is a matter of the tree alone, and
the model must have it: each stream the same number of frames at every moment, within one.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tabulate import tabulate

from validation.http2_frames import FIRST_WINDOW, FrameClient
from validation.tree_models import MODELS
from validation.tree_scripts import KINDS, WARM_UP, Ask, Prioritize, script, stream_window_of
from validation.tree_servers import PACKAGES, path_of, serving, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validation.tree_scripts import Round

__all__ = ["main", "most_apart"]

_SEEDS = range(10)
_ALLOWED = 1
_HEADINGS = ("server", "trees", "connections", "frames", "same order", "most apart")


@dataclass(frozen=True, slots=True)
class _Outcome:
    server: str
    kind: str
    seed: int
    n_frames: int
    apart: int
    is_same: bool


def most_apart(measured: Sequence[int], modelled: Sequence[int]) -> int:
    """Return by how many frames a stream was at most ahead or behind, at any moment.

    >>> most_apart([1, 3, 1, 3], [1, 1, 3, 3]), most_apart([1, 1, 1, 3], [3, 1, 1, 1])
    (1, 1)
    """
    ahead: Counter[int] = Counter()
    most = abs(len(measured) - len(modelled))
    for real, made in zip(measured, modelled, strict=False):
        ahead[real] += 1
        ahead[made] -= 1
        most = max(most, abs(ahead[real]), abs(ahead[made]))
    return most


class _Conversation:
    """A connection with a server, that knows how much of each body may still come."""

    def __init__(self, client: FrameClient, stream_window: int) -> None:
        self._client = client
        self._stream_window = stream_window
        self._left: dict[int, int] = {}
        self._windows: dict[int, int] = {}
        self._n_counted = 0

    def begin(self) -> None:
        """Let the first body take the window that a connection begins with."""
        self._ask(WARM_UP)
        self._client.open_window(WARM_UP.size_bytes, WARM_UP.stream_id)
        self._client.flush(answered=[WARM_UP.stream_id])
        self._windows[WARM_UP.stream_id] = WARM_UP.size_bytes
        self._receive(FIRST_WINDOW)

    def go_on(self, each: Round) -> None:
        """Say what a round says while everything waits, then let the burst go."""
        for event in each.events:
            if isinstance(event, Ask):
                self._ask(event)
            elif isinstance(event, Prioritize):
                self._client.prioritize(event.stream_id, event.priority)
            else:
                self._client.open_window(event.n_bytes, event.stream_id)
                self._windows[event.stream_id] += event.n_bytes
        self._client.flush(
            answered=[event.stream_id for event in each.events if isinstance(event, Ask)]
        )
        sendable = sum(min(left, self._windows[s]) for s, left in self._left.items())
        self._receive(min(each.window_bytes, sendable), opens=True)

    def _ask(self, ask: Ask) -> None:
        self._client.ask(ask.stream_id, path_of(ask.size_bytes), ask.priority)
        self._left[ask.stream_id] = ask.size_bytes
        self._windows[ask.stream_id] = self._stream_window

    def _receive(self, n_bytes: int, *, opens: bool = False) -> None:
        if n_bytes and opens:
            self._client.open_window(n_bytes)
            self._client.send()
        self._client.receive(n_bytes)
        for stream_id, length in self._client.data[self._n_counted :]:
            self._left[stream_id] -= length
            self._windows[stream_id] -= length
        self._n_counted = len(self._client.data)
        # What ended was closed before this is answered.
        self._client.flush()


def _measured(port: int, rounds: Sequence[Round], stream_window: int) -> list[tuple[int, int]]:
    """Return the DATA frames that a server sends."""
    with FrameClient(port, stream_window) as client:
        conversation = _Conversation(client, stream_window)
        conversation.begin()
        for each in rounds:
            conversation.go_on(each)
        return client.data


def _outcomes(server: str) -> list[_Outcome]:
    scripts = {(kind, seed): script(seed, kind) for kind in KINDS for seed in _SEEDS}
    sizes = [WARM_UP.size_bytes] + [
        event.size_bytes
        for rounds in scripts.values()
        for each in rounds
        for event in each.events
        if isinstance(event, Ask)
    ]
    outcomes = []
    with serving(server, sizes) as port:
        for (kind, seed), rounds in scripts.items():
            window = stream_window_of(kind)
            measured = _measured(port, rounds, window)
            modelled = MODELS[server](window).run(rounds)
            apart = most_apart([s for s, _ in measured], [s for s, _ in modelled])
            is_same = measured == modelled
            outcomes.append(_Outcome(server, kind, seed, len(measured), apart, is_same))
    return outcomes


def _rows(outcomes: Sequence[_Outcome]) -> list[list[object]]:
    rows: list[list[object]] = []
    for server in MODELS:
        for kind in KINDS:
            some = [each for each in outcomes if (each.server, each.kind) == (server, kind)]
            same = sum(each.is_same for each in some)
            frames, apart = sum(each.n_frames for each in some), max(each.apart for each in some)
            rows.append([server, kind, len(some), frames, f"{same} of {len(some)}", apart])
    return rows


def main() -> int:
    """Drive the servers, print a table; return 1 if any tree is more than a frame apart."""
    try:
        versions = [f"{server} {version_of(server)}" for server in PACKAGES]
    except FileNotFoundError:
        print(f"skipped: apt-get install {' '.join(PACKAGES.values())}")
        return 0
    outcomes = [each for server in MODELS for each in _outcomes(server)]
    print(f"{'; '.join(versions)}\n")
    print(tabulate(_rows(outcomes), _HEADINGS, "github"))
    too_far = [each for each in outcomes if each.apart > _ALLOWED]
    for each in too_far:
        print(f"{each.server}, {each.kind}, seed {each.seed}: {each.apart}", file=sys.stderr)
    return int(bool(too_far))


if __name__ == "__main__":
    sys.exit(main())

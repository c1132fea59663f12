"""`make validate-trees`: dependency trees of real servers of HTTP/2, frame by frame.

nghttpd and h2o, from Debian's packages, answer random loads whose windows are shut until all was
said; then a burst goes. The order of its DATA frames is a matter of the tree alone, and the model
must have it: each stream the same number of frames at every moment, within one.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tabulate import tabulate

from validation.http2_frames import FIRST_WINDOW, FrameClient
from validation.tree_models import MODELS
from validation.tree_scripts import KINDS, WARM_UP, Ask, script
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


def _measured(port: int, rounds: Sequence[Round]) -> list[tuple[int, int]]:
    """Return the DATA frames that a server sends."""
    with FrameClient(port) as client:
        client.ask(WARM_UP.stream_id, path_of(WARM_UP.size_bytes), WARM_UP.priority)
        client.flush(answered=[WARM_UP.stream_id])
        allowed = FIRST_WINDOW
        client.receive(allowed)
        client.flush()
        for each in rounds:
            asks = [event for event in each.events if isinstance(event, Ask)]
            for event in each.events:
                if isinstance(event, Ask):
                    client.ask(event.stream_id, path_of(event.size_bytes), event.priority)
                else:
                    client.prioritize(event.stream_id, event.priority)
            client.flush(answered=[ask.stream_id for ask in asks])
            allowed += each.window_bytes
            if each.window_bytes:
                client.open_window(each.window_bytes)
                client.send()
            client.receive(allowed)
            # What ended was closed before this is answered.
            client.flush()
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
            measured, modelled = _measured(port, rounds), MODELS[server]().run(rounds)
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
    """Drive both servers, print a table; return 1 if any tree is more than a frame apart."""
    try:
        versions = [f"{server} {version_of(server)}" for server in PACKAGES]
    except FileNotFoundError:
        print(f"skipped: apt-get install {' '.join(PACKAGES.values())}")
        return 0
    outcomes = [each for server in MODELS for each in _outcomes(server)]
    print(f"{'; '.join(versions)}\n")
    print(tabulate(_rows(outcomes), _HEADINGS, "github"))
    for each in outcomes:
        if each.apart > _ALLOWED:
            print(f"{each.server}, {each.kind}, seed {each.seed}: {each.apart}", file=sys.stderr)
    return int(any(each.apart > _ALLOWED for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())

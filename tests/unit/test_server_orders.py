"""The workloads that hold Apache to trees, before a server in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from validation.server_orders import MODELS, run_workload
from validation.tree_servers import serving

if TYPE_CHECKING:
    from h3sim.schedulers import TreeScheduler
    from h3sim.signals import H2Priority

_FRAME_BYTES = 16_384


class ServerInMemory:
    """A server that goes by a tree: frames of at most 16 KiB, as far as windows are open."""

    def __init__(self, tree: TreeScheduler) -> None:
        self.data: list[tuple[int, int]] = []
        self.n_updates = self.n_stalls = 0
        self._tree = tree
        self._left: dict[int, int] = {}
        self._windows: dict[int, int] = {}

    def ask(self, stream_id: int, path: str, priority: H2Priority) -> None:
        self._left[stream_id] = int(path.strip("/").removesuffix(".bin"))
        self._windows[stream_id] = _FRAME_BYTES
        self._tree.open(stream_id, priority)
        self._tree.activate(stream_id)

    def prioritize(self, stream_id: int, priority: H2Priority) -> None:
        self.n_updates += 1
        self._tree.prioritize(stream_id, priority)

    def open_window(self, n_bytes: int, stream_id: int = 0) -> None:
        if stream_id:
            self._windows[stream_id] += n_bytes
            self._tree.activate(stream_id)

    def send(self) -> None:
        """Do nothing: what is said arrives at once, and nothing leaves before `receive`."""

    def flush(self, *, answered: list[int]) -> None:
        assert all(stream_id in self._left for stream_id in answered)

    def receive(self, n_bytes: int) -> None:
        n_sent = 0
        stalled = []
        while (stream_id := self._tree.pick()) is not None:
            length = min(_FRAME_BYTES, self._left[stream_id], self._windows[stream_id])
            self.data.append((stream_id, length))
            self._tree.charge(stream_id, length)
            self._left[stream_id] -= length
            self._windows[stream_id] -= length
            n_sent += length
            if not self._left[stream_id]:
                self._tree.deactivate(stream_id)
                self._tree.close(stream_id)
            elif not self._windows[stream_id]:
                self.n_stalls += 1
                self._tree.block(stream_id)
                stalled.append(stream_id)
        for stream_id in stalled:
            self._tree.deactivate(stream_id)
        assert n_sent == n_bytes, "the workload expects what its windows let go"


def test_a_model_of_the_same_rules_sends_every_frame_of_the_server() -> None:
    (rules, *_) = MODELS.values()
    for seed in range(10):
        server = ServerInMemory(rules())
        picks = run_workload(server, rules(), seed)  # type: ignore[arg-type]
        assert len(picks) == len(server.data) > 10
        assert all(real == modelled for real, modelled in picks)


def test_workloads_tell_whether_closed_streams_are_kept() -> None:
    dropped, kept = MODELS.values()
    n_apart = 0
    for seed in range(10):
        server = ServerInMemory(dropped())
        picks = run_workload(server, kept(), seed)  # type: ignore[arg-type]
        n_apart += any(real != modelled for real, modelled in picks)
    assert n_apart >= 1


def test_workloads_reprioritize_and_stall() -> None:
    (rules, *_) = MODELS.values()
    servers = [ServerInMemory(rules()) for _ in range(10)]
    for seed, server in enumerate(servers):
        run_workload(server, rules(), seed)  # type: ignore[arg-type]
    assert sum(server.n_updates for server in servers) > 10
    assert sum(server.n_stalls for server in servers) > 20


def test_only_h2o_gives_responses_headers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/sbin/{name}")
    with (
        pytest.raises(ValueError, match="apache2 gives every response the same headers"),
        serving("apache2", (1,), ("x",)),
    ):
        pass

"""Progress of a load, and the largest load: reported and refused at round numbers of packets."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.engine import builders
from h3sim.load.load_config import LoadConfig
from h3sim.load.run import resolve, run_spec
from h3sim.values.errors import PageError
from tests.helpers import page_of


@pytest.mark.parametrize(("network", "every"), [("marx-2019", 4096), ("fibre", 1024)])
def test_progress_is_reported_every_so_many_packets(network: str, every: int) -> None:
    page = page_of({"id": "/", "kind": "document", "bytes": 8_500 * 1400})
    calls: list[tuple[int, int]] = []

    def on_progress(n_done: int, n_packets: int) -> None:
        calls.append((n_done, n_packets))

    scheme, config = h3sim.load_scheme("fifo"), LoadConfig(network=network)
    load = run_spec(resolve(page, scheme, config), progress=on_progress)
    n_packets = calls[-1][1]
    assert load.packets.sent >= n_packets >= 8_500
    done = range(every if network == "marx-2019" else 0, n_packets, every)
    assert calls == [(n, n_packets) for n in done]


def test_a_page_of_too_many_packets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(n_bytes: int) -> Any:
        return page_of({"id": "/", "kind": "document", "bytes": n_bytes})

    monkeypatch.setattr(builders, "MAX_PACKETS", 3)
    assert builders.count_packets(page(3 * 1400), 1400) == 3
    with pytest.raises(PageError, match="takes 4 packets; the most that is simulated is 3"):
        builders.count_packets(page(3 * 1400 + 1), 1400)

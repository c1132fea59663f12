"""Equal runs are equal byte for byte, in whatever process; other seeds are not."""

from __future__ import annotations

import h3sim
from tests.property.digests import all_digests
from tests.property.scheduler_laws import check_every_process_agrees


def test_every_process_writes_the_same_traces() -> None:
    message = check_every_process_agrees("tests.property.digests:all_digests")
    assert message == all_digests()
    assert len(set(message)) == len(message)


def test_another_seed_holds_other_packets() -> None:
    digests = {
        h3sim.simulate("davies-meenan", reorder="4:1-3", seed=seed).trace.digest()
        for seed in range(5)
    }
    assert len(digests) == 5


def test_all_schemes_meet_the_same_jitter() -> None:
    holds = {
        tuple(row[1] - row[0] for row in load.trace.packet_rows[:300])
        for scheme in h3sim.list_schemes()
        for load in [h3sim.simulate("davies-meenan", scheme=scheme, reorder="4:1-3", seed=3)]
    }
    assert len(holds) == 1

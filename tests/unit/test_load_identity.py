"""A load is known again by its resolved configuration, however its options were given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "davies-meenan"
GIVEN: dict[str, Any] = {"network": "cable", "loss": 0.01}


def sweep(**options: Any) -> Any:
    reported: dict[str, Any] = {"schemes": ["rr", "fifo"], "seeds": 2, "executor": "serial"}
    return h3sim.sweep(PAGE, progress=False, **reported, **options)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cc", ["cubic", "bbr"]),
        ("rtt_ms", [28, 100]),
        ("loss", [0.01, 0.02]),
        ("transport", ["quic", "tcp"]),
        ("send_buffer_kb", [0, 14]),
        ("send_buffer_refill", ["continuous", "when-empty"]),
        ("handshake", [True, "none"]),
        ("browser", ["replay", "parse"]),
        ("transport_profile", ["default", "quiche-chrome"]),
        ("connections", ["single", "per-host"]),
    ],
)
def test_an_added_axis_keeps_the_loads_that_are_the_same(
    name: str, values: list[Any], tmp_path: Path
) -> None:
    store = tmp_path / "study.db"
    assert sweep(store=store, **GIVEN).counts.ran == 4
    added = {**GIVEN, name: values}
    again = sweep(store=store, **added)
    # Without a buffer there is none to be refilled: both values come to the same load.
    n_kept = 8 if name == "send_buffer_refill" else 4
    assert (again.counts.reused, again.counts.ran) == (n_kept, 8 - n_kept)
    assert list(again) == list(sweep(**added))


def test_loads_that_differ_are_not_taken_for_each_other(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    different: list[dict[str, Any]] = [
        {},
        {"cc": "bbr"},
        {"cc": "newreno"},
        {"rtt_ms": 29},
        {"rate_mbps": 4},
        {"queue_bdp": 2},
        {"loss": 0.02},
        {"mean_loss_burst": 3},
        {"reorder": "4:1-3"},
        {"send_buffer_kb": 14},
        {"send_buffer_kb": 14, "send_buffer_refill": "when-empty"},
        {"retransmission_order": "turn"},
        {"transport_profile": "quicly"},
        {"cross_traffic": "cubic"},
        {"header_compression": "qpack"},
        {"time_limit_s": 100},
    ]
    for options in different:
        counts = sweep(store=store, **{**GIVEN, **options}).counts
        assert (counts.reused, counts.ran) == (0, 4), options


def test_profiles_of_one_name_that_differ_are_other_loads(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    default = h3sim.load_profile("default")
    sweep(store=store, transport_profile=default, **GIVEN)
    small = replace(default, initial_window_bytes=5000)
    assert sweep(store=store, transport_profile=small, **GIVEN).counts.reused == 0
    assert sweep(store=store, transport_profile=default, **GIVEN).counts.reused == 4


def test_a_network_by_another_name_keeps_rows_of_its_own(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    cable = h3sim.load_network("cable")
    sweep(store=store, network=cable)
    other = sweep(store=store, network=replace(cable, name="mine"))
    assert other.counts.reused == 0
    assert set(other.column("network")) == {"mine"}

"""How measured downloads are read and compared, on made-up ones."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.schemes import Arrangement
from validation import measured, modelled
from validation.acks import waits
from validation.comparing import Compared
from validation.measured import Setting, read_runs, read_settings
from validation.modelled import simulate
from validation.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "T1_h2o-q-reno_{}_W1_2M_100ms_l0.02"
CFG = {
    "label": "h2o-q-reno",
    "proto": "h3",
    "workload": "W1",
    "rate_mbps": 2,
    "rtt_ms": 100,
    "loss": 0.02,
}
WORKLOAD = [
    {"name": "a", "size": 3000, "deps": [], "w": 16, "u": 1, "i": 0},
    {"name": "b", "size": 90_000, "deps": [0], "w": 16, "u": 3, "i": 0},
    {"name": "c", "size": 20_000, "deps": [0], "w": 8, "u": 1, "i": 0},
    {"name": "d", "size": 5000, "deps": [0, 1, 2], "w": 16, "u": 1, "i": 0},
]


def run(label: Any, rep: Any, seed: int) -> dict[str, Any]:
    scheme = "rr"
    cfg = {**CFG, "label": label, "scheme": scheme}
    return {
        "setting": f"T1_{label}_{scheme}_W1_2M_100ms_l0.02",
        "cfg": cfg,
        "rep": rep,
        "seed": seed,
        "plt_ms": 5000.0,
        "mean_done_ms": 4000.0,
        "stream_hol": 70,
    }


def trace(scheme: Any, rep: Any, seed: int, verdicts: Any, sizes: Any) -> dict[str, Any]:
    down = {"v": verdicts, "size": sizes}
    return {"setting": NAME.format(scheme), "rep": rep, "seed": seed, "emu_down": down}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Write files as the measurement left them."""

    def write(name: str, entries: Any) -> None:
        with gzip.open(tmp_path / name, "wt") as lines:
            lines.writelines(json.dumps(entry) + "\n" for entry in entries)

    write("runs.jsonl.gz", [run("h2o-q-reno", 0, 7), run("aioq-reno", 3, 7)])
    traces = [
        trace("rr", 0, 7, "0102002", [1308, 1308, 60, 1308, 60, 1308, 1308]),
        trace("fifo", 0, 7, "002000002", [1308] * 9),
        trace("fifo", 1, 8, "2", [1308]),
    ]
    write("T1_h2o-q-reno.jsonl.gz", traces)
    entry = {"setting": NAME.format("rr"), "cfg": {**CFG, "scheme": "rr"}}
    entry |= {"plt": [5000.0], "mean": [4000.0], "hol": [57.0]}  # type: ignore[list-item]
    (tmp_path / "settings.jsonl").write_text(json.dumps(entry) + "\n")
    (tmp_path / "workloads.json").write_text(json.dumps({"W1": WORKLOAD}))
    monkeypatch.setattr(measured, "STACKS", tmp_path)
    for cached in (measured.read_workload, modelled._page, modelled._scheme):
        cached.cache_clear()
    yield
    for cached in (measured.read_workload, modelled._page, modelled._scheme):
        cached.cache_clear()


def test_a_setting_is_compared_in_kilobytes_and_milliseconds(data: Any) -> None:
    (setting,) = read_settings()
    assert (setting.total_ms, setting.mean_ms, setting.hol_bytes) == (5000, 4000, 57_000)
    assert (setting.loss, setting.loss_burst, setting.queue_bytes) == (0.02, None, None)
    assert setting.cell == "T1_h2o-q-reno_W1_2M_100ms_l0.02"


def test_a_recorded_run_loses_what_it_lost_counted_without_queue_drops_and_bare_acks(
    data: Any,
) -> None:
    own = read_runs()[1]
    # Of 0102002 the second was dropped by the queue, the third and fifth are bare ACKs.
    assert (own.lost, own.lost_from_bytes) == ((1, 3), 100)


def test_a_run_of_another_stack_loses_what_the_longest_record_of_its_seed_lost(data: Any) -> None:
    other = read_runs()[0]
    assert other.setting.startswith("T1_aioq")
    assert (other.lost[:2], other.lost_from_bytes) == ((2, 8), 0)
    behind = [number for number in other.lost if number >= 9]
    assert behind == list(other.lost[2:])
    assert 0.01 < len(behind) / 4991 < 0.03


def test_a_resource_that_waits_for_several_is_asked_for_after_the_last(data: Any) -> None:
    finished = [10.0, 90.0, 30.0, 200.0]
    assert modelled._first_guess("W1") == (0, 0, 0, 2)
    assert modelled._last_to_come("W1", finished) == (0, 0, 0, 1)
    page = modelled._page("W1", "rr", (0, 0, 0, 1))
    assert page.resources[page.index["d"]].discovered.by == "b"


def test_a_load_settles_on_what_came_last(data: Any) -> None:
    (setting,) = read_settings()
    first = simulate(setting, 0)
    assert first == simulate(setting, 0)
    assert first.total_ms > 400
    run_without_loss = measured.Run(
        setting="", total_ms=0, mean_ms=0, hol_bytes=0, lost=(), lost_from_bytes=0
    )
    assert simulate(setting, 0, run_without_loss).total_ms <= first.total_ms


def test_over_http2_urgencies_are_a_chain(data: Any) -> None:
    scheme = modelled._scheme("W1", "eps", "h2-nghttpd")
    assert [entry.arrangement for entry in scheme.classes] == [Arrangement.STRICT_CHAIN] * 2


def compared(
    scheme: Any, total: Any, mean: Any, hol_kb: Any, to_fifo: Any = None, hol_to_fifo: Any = None
) -> Any:
    setting = Setting(
        name=scheme,
        label="aioq-reno",
        is_http3=True,
        scheme=scheme,
        workload="W1",
        rate_mbps=2,
        rtt_ms=100,
        queue_bytes=None,
        loss=0,
        loss_burst=None,
        total_ms=1,
        mean_ms=1,
        hol_bytes=1,
    )
    return Compared(setting, total, mean, None, hol_kb, to_fifo, hol_to_fifo)


def test_the_summary_gives_the_median_and_the_largest_deviation() -> None:
    rows = [
        compared("fifo", 1.01, 0.95, (100, 210)),
        compared("rr", 0.98, 1.0, (50, 100), (1.5, 1.53), (0.5, 0.4)),
        compared("wrr", 1.0, 1.02, (100, 60), (1.2, 1.21), (0.9, 0.1)),
    ]
    *_, line = summary(rows, []).splitlines()
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == [
        *("one BDP", "aioquic", "3", "1.0 %, 2.0 %", "2.0 %, 5.0 %", "0.02, 0.03"),
        *("2 of 3", "0.10, 0.10"),
    ]


def test_a_wait_is_that_of_the_first_packet_that_an_ack_covers() -> None:
    # Two packets wait for the ACK at 2.5, one for that at 6; nothing waits for the one at 7.
    assert waits([1, 2, 5], [2.5, 6, 7]) == (1.5, 1.25)


def test_a_mechanism_that_is_left_out_is_left_out_of_its_profile() -> None:
    without, complete = (modelled._profile("aioq-reno", name) for name in ("event loop", None))
    assert complete.quic.has_event_loop
    assert not without.quic.has_event_loop
    assert not without.quic_client.has_event_loop
    plain = modelled._profile("h2-nghttpd", "autotuned send buffer").tcp
    assert (plain.send_buffer, plain.notsent_lowat_bytes) == ("fixed", 16_384)
    assert set(modelled.MECHANISMS) == {"event loop", "autotuned send buffer", "header sizes"}

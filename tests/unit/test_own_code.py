"""Schedulers and controllers of a user's own in every entry point, also from where no file is."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.schedulers import FifoScheduler
from h3sim.study.code_identity import CodeDigests
from h3sim.transport.congestion import NewRenoController
from h3sim.values.errors import InputError, interrupt_note

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.transport.congestion import ControllerSettings

PAGE = "davies-meenan"


class NewestFirst(FifoScheduler):
    """Sends the newest stream."""

    def pick(self) -> int | None:
        return max(self._active._entries, default=None)


class Cautious(NewRenoController):
    """Starts with a window of two packets."""

    n_packets = 2

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings)
        self.congestion_window = self.n_packets * settings.max_datagram_bytes


def test_a_controller_of_ones_own_goes_into_every_entry_point() -> None:
    load = h3sim.simulate(PAGE, network="cable", cc=Cautious)
    assert load.configuration["cc"] == "Cautious"
    assert load.page_load_ms > h3sim.simulate(PAGE, network="cable", cc="newreno").page_load_ms
    (row,) = h3sim.compare(
        PAGE, schemes=["rr"], send_buffers_kb=[0], network="cable", cc=Cautious
    ).rows
    assert row.page_load_ms == load.page_load_ms
    results = h3sim.sweep(PAGE, schemes="rr", network="cable", cc=["newreno", Cautious])
    assert results.filter(cc="Cautious").column("page_load_ms") == [load.page_load_ms]
    found = h3sim.search(
        PAGE,
        schemes=["rr"],
        baseline="rr",
        network="cable",
        networks=[],
        vary={"cc": ["newreno", Cautious]},
    )
    assert {row.scheme for row in found.rows} == {"rr", "rr cc=newreno", "rr cc=Cautious"}


def test_a_scheduler_of_ones_own_joins_with_the_signals_of_a_scheme() -> None:
    own = h3sim.simulate(PAGE, scheme="chrome-eps", scheduler=NewestFirst, network="cable")
    how: dict[str, Any] = {"scheduler": [NewestFirst], "signals": "chrome-eps", "network": "cable"}
    results = h3sim.sweep(PAGE, **how)
    assert results.column("scheme") == ["NewestFirst"]
    assert results.column("page_load_ms") == [own.page_load_ms]
    both = h3sim.sweep(PAGE, schemes="rr", **how)
    assert both.column("scheme") == ["rr", "NewestFirst"]
    compared = h3sim.compare(PAGE, send_buffers_kb=[0], **how)
    assert [row.page_load_ms for row in compared.rows] == [own.page_load_ms]
    found = h3sim.search(PAGE, schemes=["rr"], networks=[], **how)
    assert "NewestFirst" in found.rows.column("scheme")
    advice = h3sim.recommend(PAGE, schemes=["rr"], networks=[], n_seeds=1, **how)
    assert advice.found.rows == found.rows


def test_what_cannot_be_a_controller_or_scheduler_is_refused() -> None:
    with pytest.raises(InputError, match="cc: must be a name, or a class or function"):
        h3sim.simulate(PAGE, cc=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cc: 'bbr' is the name of a built-in controller"):
        h3sim.simulate(PAGE, cc=type("bbr", (NewRenoController,), {}))
    twin = type("Cautious", (NewRenoController,), {})
    with pytest.raises(InputError, match="two controllers are called 'Cautious'"):
        h3sim.sweep(PAGE, network="cable", cc=[Cautious, twin])
    with pytest.raises(InputError, match=r"signals: .*give scheduler="):
        h3sim.sweep(PAGE, signals="chrome-eps")
    with pytest.raises(InputError, match="scheduler: must be a scheduler, a factory or a name"):
        h3sim.compare(PAGE, scheduler=[3])


def test_a_store_knows_a_controller_by_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = partial(
        h3sim.sweep, PAGE, schemes="rr", network="cable", store=tmp_path / "s.db", executor="serial"
    )
    assert sweep(cc=Cautious).counts == (0, 1, 0)
    assert sweep(cc=["newreno", Cautious]).counts == (1, 1, 0)
    monkeypatch.setattr(Cautious, "n_packets", 3)
    edited = CodeDigests().digest_of(Cautious, "Cautious")
    monkeypatch.undo()
    assert CodeDigests().digest_of(Cautious, "Cautious") != edited
    # A class in a module is known by its source; one made by a call by what it is made with.
    assert sweep(cc=partial(_cautious, n_packets=3)).counts == (0, 1, 0)
    assert sweep(cc=partial(_cautious, n_packets=4)).counts == (0, 1, 0)


def _cautious(settings: ControllerSettings, *, n_packets: int) -> Cautious:
    controller = Cautious(settings)
    controller.congestion_window = n_packets * settings.max_datagram_bytes
    return controller


HELPER = """
def helper():
    return {value}

class Mine:
    def pick(self):
        return helper()
"""


def test_a_class_of_a_module_is_known_by_what_its_methods_call_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for value in (1, 2):
        name = f"own_helper_{value}"
        (tmp_path / f"{name}.py").write_text(HELPER.format(value=value), encoding="utf-8")
        module = __import__(name)
        found.append(CodeDigests().digest_of(module.Mine, "Mine"))
    assert found[0] != found[1]


PROMPT = """
import sys
import h3sim
from h3sim.schedulers import FifoScheduler
TURN = {turn}
class Mine(FifoScheduler):
    def pick(self):
        return (max if TURN else min)(self._active._entries, default=None)
results = h3sim.sweep(
    "davies-meenan", scheduler=Mine, signals="chrome-eps", executor="processes", workers=1,
    store=sys.argv[1], progress=False,
)
print(*results.counts)
"""


def test_a_program_read_from_standard_input_runs_on_workers(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-", str(tmp_path / "s.db")],
        input=PROMPT.format(turn=True),
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ},
    )
    # Nothing of the traceback of a worker that died.
    assert (ran.stdout.strip(), ran.stderr) == ("0 1 0", "")


def test_a_class_without_a_file_runs_on_workers_and_is_known_by_its_code(tmp_path: Path) -> None:
    counts = []
    for turn in (True, True, False):
        command = [sys.executable, "-c", PROMPT.format(turn=turn), str(tmp_path / "s.db")]
        ran = subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ}
        )
        counts.append(ran.stdout.strip())
    assert counts == ["0 1 0", "1 0 0", "0 1 0"]


def test_comparisons_over_seeds_are_those_of_a_study() -> None:
    how: dict[str, Any] = {"loss": 0.02, "rtt_ms": 50}
    compared = h3sim.compare(PAGE, schemes=["fifo"], seeds=4, send_buffers_kb=[0, 100], **how)
    study = h3sim.sweep(PAGE, schemes=["rr", "fifo"], seeds=4, send_buffer_kb=[0, 100], **how)
    rows = compared.rows_of("page_load_ms", send_buffer_kb=100)
    own = study.filter(send_buffer_kb=100).compare("rr", value="page_load_ms")
    assert [row[2:] for row in rows] == [tuple(row) for row in own]
    with pytest.raises(InputError, match=r"^keep_loads: does not go with seeds"):
        h3sim.compare(PAGE, seeds=4, keep_loads=True)
    with pytest.raises(InputError, match=r"^sample_ms: does not go with seeds"):
        h3sim.compare(PAGE, seeds=4, sample_ms=100)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_states_what_is_kept(tmp_path: Path) -> None:
    def notes(call: Any) -> str:
        with pytest.raises(KeyboardInterrupt) as caught:
            call()
        # No frame of a load hides what is said.
        assert not any("engine" in str(entry.path) for entry in caught.traceback)
        return " ".join(caught.value.__notes__)

    assert "lost: use a store" in notes(lambda: h3sim.compare(PAGE, progress=_interrupt))
    assert "lost: use a store" in notes(lambda: h3sim.search(PAGE, progress=_interrupt))
    compare = partial(h3sim.compare, PAGE, store=tmp_path / "c.db")
    assert "1 finished before the interrupt, which are kept in" in notes(
        lambda: compare(progress=_interrupt)
    )
    done: list[tuple[int, int]] = []
    compare(progress=lambda *counts: done.append(counts))
    assert done[0][0] > 1
    sweep = partial(h3sim.sweep, PAGE, executor="serial", progress=_interrupt)
    assert "kept in" in notes(lambda: sweep(store=tmp_path / "s.db"))
    assert "lost" in notes(sweep)
    assert h3sim.sweep(PAGE, store=tmp_path / "s.db").counts.reused > 0


def test_notes_of_an_interrupt_add_up() -> None:
    with (
        pytest.raises(KeyboardInterrupt) as caught,
        interrupt_note(lambda: "outer"),
        interrupt_note(lambda: "inner"),
    ):
        raise KeyboardInterrupt
    assert caught.value.__notes__ == ["inner", "outer"]

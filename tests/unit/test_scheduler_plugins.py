"""Schedulers that other packages bring along, and those that are given to `simulate`."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import h3sim
from h3sim.cli import main
from h3sim.conformance import ReferenceRounds
from h3sim.schedulers import (
    CheckedScheduler,
    FifoScheduler,
    RoundRobinScheduler,
    SupportsRequeue,
    TreeScheduler,
)
from h3sim.schemes import SchedulerKind, scheduler_kind_named
from h3sim.schemes.registry import REGISTRY
from h3sim.signals import H2Priority
from h3sim.study.cache_key import model_version
from h3sim.values.errors import (
    InputError,
    SchedulerError,
    SchemeError,
    StalledError,
    UnknownNameError,
)
from h3sim.values.plugins import NO_PLUGINS_VARIABLE, PluginWarning
from tests.effort import HANG_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = "davies-meenan"
CODE = '''
"""A package that somebody else has written."""

from h3sim.schedulers import FifoScheduler


class NewestFirst(FifoScheduler):
    """Sends the newest stream first. It is an example."""

    def __init__(self, *, turn_bytes):
        super().__init__()
        self.turn_bytes = turn_bytes
        self.told = []

    def open(self, stream_id, signal):
        self.told.append(signal)

    def pick(self):
        return max(self._active._entries, default=None)


NOT_A_FACTORY = "a word"
'''
ENTRY_POINTS = """[h3sim.schedulers]
newest-first = newest_first:NewestFirst
missing = newest_first:Oldest
not-callable = newest_first:NOT_A_FACTORY
exits = newest_first_exits:Nothing
fifo = newest_first:NewestFirst
"""
LEAVING = """

def leave(self):
    raise SystemExit(3)


NewestFirst.pick = leave
"""
SCHEME = """format = "h3sim-scheme/1"
name = "mine"
title = "Buckets for a plug-in"
mechanism = "newest-first"
signalling = "server"
source = "an example"

[classes.all]
bucket = 5
level = 1
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A package as pip leaves it: a module, and beside it what the package says of itself."""
    (tmp_path / "newest_first.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "newest_first_exits.py").write_text('raise SystemExit("\\x1b[2Jbye")\n', "utf-8")
    about = tmp_path / "newest_first-1.2.dist-info"
    about.mkdir()
    metadata = "Metadata-Version: 2.1\nName: newest-first-package\nVersion: 1.2\n"
    (about / "METADATA").write_text(metadata, encoding="utf-8")
    (about / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(NO_PLUGINS_VARIABLE, raising=False)
    REGISTRY.forget()
    yield
    REGISTRY.forget()
    for name in ("newest_first", "bare_plug_in"):
        sys.modules.pop(name, None)


taken = pytest.mark.filterwarnings("ignore:.*the name is taken:RuntimeWarning")
broken = pytest.mark.filterwarnings("ignore:.*is left out:RuntimeWarning")


@broken
def test_a_plug_in_is_listed_with_its_package(
    package: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "schedulers", "--no-truncate"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "newest-first Sends the newest stream first newest-first-package 1.2" in lines
    assert next(line for line in lines if line.startswith("fifo")).endswith(" h3sim")
    names = [line.split()[0] for line in lines[2:]]
    assert names == sorted([*(mechanism.value for mechanism in SchedulerKind), "newest-first"])


def test_a_broken_plug_in_is_warned_about_by_name_and_only_once(package: Any) -> None:
    with pytest.warns(RuntimeWarning) as caught:
        assert REGISTRY.names() == REGISTRY.names()
    assert sorted(str(warning.message) for warning in caught) == [
        "the scheduler 'exits' (newest_first_exits:Nothing) of newest-first-package 1.2 is left "
        r"out: SystemExit: \x1b[2Jbye",
        "the scheduler 'fifo' (newest_first:NewestFirst) of newest-first-package 1.2 is left out: "
        "the name is taken",
        "the scheduler 'missing' (newest_first:Oldest) of newest-first-package 1.2 is left out: "
        "AttributeError: module 'newest_first' has no attribute 'Oldest'",
        "the scheduler 'not-callable' (newest_first:NOT_A_FACTORY) of newest-first-package 1.2 "
        "is left out: it cannot be called",
    ]


@taken
def test_a_plug_in_is_loaded_when_it_is_named_and_no_other_one_is(package: Any) -> None:
    scheduler_kind_named("fifo")
    assert "newest_first" not in sys.modules
    assert scheduler_kind_named("newest-first").make(turn_bytes=1200).scheduler.turn_bytes == 1200  # type: ignore[attr-defined]


def test_plug_ins_are_left_out_on_demand(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NO_PLUGINS_VARIABLE, "1")
    assert "newest-first" not in REGISTRY.names()
    with pytest.raises(UnknownNameError, match="no scheduler is called 'newest-first'"):
        scheduler_kind_named("newest-first")


@taken
def test_simulate_takes_the_name_of_a_plug_in(package: Any) -> None:
    load = h3sim.simulate(PAGE, scheduler="newest-first", scheme="bucket")
    assert load.scheme.name == "newest-first"
    assert {type(sent.signal).__name__ for sent in load.trace.signals} == {"BucketPriority"}
    assert load.trace.order != h3sim.simulate(PAGE, scheme="fifo").trace.order


@taken
def test_a_scheme_file_names_a_plug_in_and_what_its_clients_state(
    package: Any, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(SCHEME, encoding="utf-8")
    scheme = h3sim.catalog.read_scheme(tmp_path / "mine.toml")
    assert scheme.mechanism.value == "newest-first"
    load = h3sim.simulate(PAGE, scheme=scheme)
    assert {sent.signal.bucket for sent in load.trace.signals} == {5}
    scheduler = h3sim.simulate(PAGE, scheduler="newest-first")
    assert load.trace.order == scheduler.trace.order


@broken
def test_an_unknown_mechanism_in_a_file_is_reported_with_those_that_there_are(
    package: Any, tmp_path: Path
) -> None:
    text = SCHEME.replace("newest-first", "oldest-first")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SchemeError, match=r"'oldest-first' .*newest-first"):
        h3sim.catalog.read_scheme(tmp_path / "mine.toml")


@pytest.mark.parametrize("scheduler", [ReferenceRounds, ReferenceRounds(), "round-robin"])
def test_simulate_takes_a_class_an_object_and_a_name(scheduler: Any) -> None:
    load = h3sim.simulate(PAGE, scheduler=scheduler)
    assert load.trace.order == h3sim.simulate(PAGE, scheme="rr").trace.order
    assert load.scheme.name in ("ReferenceRounds", "round-robin")


def test_an_object_is_copied_for_each_load_and_stays_as_it_was() -> None:
    scheduler = ReferenceRounds()
    first, second = (h3sim.simulate(PAGE, scheduler=scheduler) for _ in range(2))
    assert first.trace == second.trace
    assert scheduler.ids == []


def test_a_scheduler_hears_what_clients_of_the_scheme_state() -> None:
    load = h3sim.simulate(PAGE, scheme="wrr", scheduler=TreeScheduler)
    wrr = h3sim.simulate(PAGE, scheme="wrr")
    assert load.trace.order == wrr.trace.order
    assert load.trace.signals == wrr.trace.signals


@pytest.mark.parametrize("scheme", ["nghttp3", "google-quiche", "sander-batched-rr"])
def test_settings_of_a_scheme_for_its_own_scheduler_do_not_reach_another(scheme: Any) -> None:
    """Mixed urgencies, and turns."""
    load = h3sim.simulate(PAGE, scheme=scheme, scheduler=FifoScheduler)
    assert load.scheme.mixed is load.scheme.turn is None  # type: ignore[comparison-overlap]
    assert load.trace.order == h3sim.simulate(PAGE, scheme="fifo").trace.order


def test_a_scheduler_is_next_to_schemes_in_a_comparison() -> None:
    comparison = h3sim.compare(PAGE, schemes=["rr", ReferenceRounds], send_buffers_kb=[0])
    assert [(row.scheme, row.speedup_all) for row in comparison.rows] == [
        ("rr", 1.0),
        ("ReferenceRounds", 1.0),
    ]


def test_one_scheduler_alone_may_be_compared() -> None:
    comparison = h3sim.compare(PAGE, schemes=RoundRobinScheduler, send_buffers_kb=[0])
    assert [row.scheme for row in comparison.rows] == ["RoundRobinScheduler"]


def test_over_links_lost_bytes_have_a_scheduler_of_their_own() -> None:
    setting: dict[str, Any] = {
        "network": "marx-2019",
        "cc": "newreno",
        "rate_mbps": 5,
        "retransmission_order": "priority",
    }
    load = h3sim.simulate(PAGE, scheduler=FifoScheduler(), loss=0.02, **setting)
    fifo = h3sim.simulate(PAGE, scheme="fifo", loss=0.02, **setting)
    assert load.trace.order == fifo.trace.order


def test_what_is_no_scheduler_is_refused() -> None:
    with pytest.raises(InputError, match="scheduler: must be a scheduler, a factory or a name"):
        h3sim.simulate(PAGE, scheduler=5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="scheme: must be a name, a path, a scheme or a scheduler"):
        h3sim.simulate(PAGE, scheme=5)  # type: ignore[arg-type]
    with pytest.raises(SchemeError, match=r"dict: scheduler: dict has no open, activate"):
        h3sim.simulate(PAGE, scheduler=dict)  # type: ignore[arg-type]


class Stranger(FifoScheduler):
    """Picks a stream that there is not."""

    def pick(self) -> int:
        return 9999


class Impatient(FifoScheduler):
    """Picks a stream before it has data."""

    first = None

    def open(self, stream_id: int, signal: Any) -> None:
        self.first = stream_id

    def pick(self) -> Any:
        return self.first


class NoStream(FifoScheduler):
    """Returns what cannot be a stream."""

    def pick(self) -> list[Any]:  # type: ignore[override]
        return [4]


class Fraction(FifoScheduler):
    """Returns the right stream as a number that is no id: 0.0, 4.0."""

    def pick(self) -> Any:
        picked = super().pick()
        return picked if picked is None else float(picked)


class Raises(FifoScheduler):
    """Raises in the middle of a load."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        raise OverflowError("that is too much")


class Exits(RoundRobinScheduler):
    """Ends the process when it is asked."""

    def pick(self) -> None:
        sys.exit("good bye")


def test_every_call_is_passed_on_with_what_was_given() -> None:
    reported: list[tuple[Any, ...]] = []

    class ResultTable:
        def __getattr__(self, name: str) -> Any:
            return lambda *given: reported.append((name, *given))

        def pick(self) -> int:
            return 4

    scheduler = CheckedScheduler(ResultTable(), name="told")
    scheduler.open(4, H2Priority())
    with pytest.raises(SchedulerError, match="picks stream 4, which has no data"):
        scheduler.pick()
    scheduler.close(4)
    reported.clear()
    calls: list[tuple[Any, ...]] = [
        *(("open", 4, H2Priority()), ("update", 4, H2Priority(weight=1)), ("activate", 4)),
        *(("charge", 4, 1400), ("deactivate", 4), ("close", 4)),
    ]
    for name, *given in calls[:4]:
        getattr(scheduler, name)(*given)
    assert scheduler.pick() == 4
    for name, *given in calls[4:]:
        getattr(scheduler, name)(*given)
    assert reported == calls
    with pytest.raises(SchedulerError, match="which is not open"):
        scheduler.pick()


WRONG = {
    Stranger: r"picks stream 9999, which is not open",
    Impatient: r"picks stream \d+, which has no data",
    NoStream: r"picks \[4\], which is no id of a stream",
    Fraction: r"picks 0.0, which is no id of a stream",
    Raises: r"charge\(0, \d+\) raised OverflowError: that is too much",
    Exits: r"pick\(\) raised SystemExit: good bye",
}
LINKS = {"cc": "newreno", "rtt_ms": 20, "rate_mbps": 5}


@pytest.mark.parametrize("setting", [{}, LINKS], ids=["constant rate", "links"])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_a_scheduler_does_wrong_in_a_load_is_a_sentence_with_its_name(
    wrong: Any, setting: Any
) -> None:
    expected = f"^the scheduler '{wrong.__name__}' {WRONG[wrong]}$"
    with pytest.raises(SchedulerError, match=expected):
        h3sim.simulate(PAGE, scheduler=wrong, **setting)


class OfNumpy(FifoScheduler):
    """Keeps its ids in an array."""

    def pick(self) -> Any:
        picked = super().pick()
        return picked if picked is None else np.int64(picked)


def test_ids_may_be_integers_of_any_type() -> None:
    load = h3sim.simulate(PAGE, scheduler=OfNumpy)
    assert load.trace == h3sim.simulate(PAGE, scheduler=FifoScheduler).trace
    assert {type(packet.stream_id) for packet in load.trace.packets} == {int}


class Idle(FifoScheduler):
    """Never sends."""

    def pick(self) -> None:
        return None


@pytest.mark.parametrize(
    ("setting", "shown_text"),
    [
        ({}, "nothing more .*: the scheduler 'Idle' picks none of the streams that have data"),
        (LINKS, r"given up after 3600 s .*: does the scheduler 'Idle' pick none of .* data\?"),
    ],
    ids=["constant rate", "links"],
)
def test_one_that_picks_nobody_is_named_where_a_load_has_no_end(
    setting: Any, shown_text: Any
) -> None:
    with pytest.raises(StalledError, match=f"^{shown_text}$") as caught:
        h3sim.simulate(PAGE, scheduler=Idle, **setting)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_no_scheduler_is_named_where_a_load_over_a_slow_network_has_no_end() -> None:
    with pytest.raises(StalledError) as caught:
        h3sim.simulate(PAGE, scheme="rr", network="cable", time_limit_s=0.1)
    assert "scheduler" not in str(caught.value)


def test_responses_begin_before_all_requests_of_a_packet_were_read(package: Any) -> None:
    with pytest.warns(PluginWarning, match="left out"):
        kind = scheduler_kind_named("newest-first")
    assert not kind.batches_responses


def test_one_that_needs_arguments_may_be_listed(
    package: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = """
from functools import partial

class Bare(NewestFirst):
    __doc__ = None

def make(turn_bytes, depth):
    return NewestFirst(turn_bytes=turn_bytes)

preset = partial(make, depth=3)
"""
    (tmp_path / "newest_first.py").write_text(CODE + preset, encoding="utf-8")
    own = tmp_path / "bare_plug_in"
    own.mkdir()
    (own / "__init__.py").write_text("class Bare:\n    pass\n", encoding="utf-8")
    names = "preset = newest_first:preset\nbare = bare_plug_in:Bare\n"
    about = tmp_path / "newest_first-1.2.dist-info" / "entry_points.txt"
    about.write_text(f"[h3sim.schedulers]\n{names}", encoding="utf-8")
    assert main(["list", "schedulers", "--no-truncate"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert {"preset - newest-first-package 1.2", "bare - newest-first-package 1.2"} <= {*lines}


def test_at_the_shell_a_plug_in_that_is_left_out_is_one_line(package: Any, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "h3sim", "list", "schedulers"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 4
    assert lines[0] == (
        "h3sim: the scheduler 'fifo' (newest_first:NewestFirst) of newest-first-package 1.2 is "
        "left out: the name is taken"
    )


def test_on_the_command_line_such_a_plug_in_is_one_line_and_exit_code_1(
    package: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "newest_first.py").write_text(CODE + LEAVING, encoding="utf-8")
    (tmp_path / "mine.toml").write_text(SCHEME, encoding="utf-8")
    with pytest.warns(RuntimeWarning, match="left out"):
        assert main(["run", PAGE, "--scheme", str(tmp_path / "mine.toml")]) == 1
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith("the scheduler 'newest-first' pick() raised SystemExit: 3")
    )


def test_one_that_cannot_be_made_is_an_error_in_what_was_given() -> None:
    class Unmakeable(FifoScheduler):
        def __init__(self) -> None:
            sys.exit(3)

    with pytest.raises(SchemeError) as caught:
        h3sim.simulate(PAGE, scheduler=Unmakeable)
    assert str(caught.value) == "Unmakeable: scheduler: creating one raised SystemExit: 3"


def test_only_a_scheduler_that_requeues_is_asked_to_requeue() -> None:
    queues = CheckedScheduler(RoundRobinScheduler(), name="rr")
    assert isinstance(queues, SupportsRequeue)
    assert not isinstance(CheckedScheduler(FifoScheduler(), name="fifo"), SupportsRequeue)
    for stream_id in (0, 4):
        queues.open(stream_id, None)  # type: ignore[arg-type]
        queues.activate(stream_id)
    queues.requeue(0)
    assert queues.pick() == 4


def test_entry_points_that_cannot_be_read_hide_no_other_package(
    package: Any, tmp_path: Path
) -> None:
    broken = tmp_path / "broken-1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n", "utf-8")
    (broken / "entry_points.txt").write_text("[h3sim.schedulers]\na\n", "utf-8")
    with pytest.warns(PluginWarning) as caught:
        assert "newest-first" in REGISTRY.names()
    assert any("'broken' has entry points that cannot be read" in str(w.message) for w in caught)


def test_a_plug_in_that_names_no_module_is_left_out_of_studies(
    package: Any, tmp_path: Path
) -> None:
    about = tmp_path / "newest_first-1.2.dist-info" / "entry_points.txt"
    about.write_text("[h3sim.schedulers]\nnone = ::\n", "utf-8")
    with pytest.warns(PluginWarning, match="'none'"):
        assert "none" not in REGISTRY.names()
    model_version.cache_clear()
    try:
        assert "newest-first-package 1.2" in model_version()
    finally:
        model_version.cache_clear()


def test_a_pick_that_cannot_be_shown_is_still_an_error_of_the_plug_in() -> None:
    class Unshown:
        def __repr__(self) -> str:
            raise KeyError

    for answer, shown in ((10**5000, "a huge number"), (Unshown(), "a value too large to show")):

        class Picking(FifoScheduler):
            def pick(self) -> Any:
                return answer  # noqa: B023

        with pytest.raises(SchedulerError, match=f"picks (stream )?{shown}, which is no"):
            h3sim.simulate(PAGE, scheduler=Picking)


def test_very_many_plug_ins_are_not_all_imported(package: Any, tmp_path: Path) -> None:
    about = tmp_path / "newest_first-1.2.dist-info" / "entry_points.txt"
    names = "".join(f"a{n:04} = newest_first:NewestFirst\n" for n in range(1001))
    about.write_text(f"[h3sim.schedulers]\n{names}", "utf-8")
    with pytest.warns(PluginWarning, match="'a1000' .* more than 1000"):
        assert {"a0000", "a0999"} <= {*REGISTRY.names()}
    assert "a1000" not in REGISTRY.names()

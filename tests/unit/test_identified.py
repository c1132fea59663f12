"""What `validation.identified` counts as right, and what clients' logs tell of servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.identification.send_order import StepKind, send_orders
from validation.identified import Row, is_reported, options_of, rows_of, table

if TYPE_CHECKING:
    from pathlib import Path


def row(*, truth: str = "", fitting: tuple[str, ...] = ("fifo",), **about: bool | float) -> Row:
    fields = {"is_named": True, "is_exact": False, "saved": 0.9, "cpu_s": 0.1, **about}
    return Row("random", "client", truth, fitting, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (row(truth="fifo", fitting=("eps", "fifo")), "right"),
        (row(truth="fifo", fitting=("eps",)), "wrong"),
        (row(truth="fifo", is_named=False), "none"),
        (row(), "wrong"),
        (row(is_exact=True), "right"),  # the order is that of the mechanism
        (row(is_named=False), "none"),
    ],
)
def test_a_name_is_right_if_the_truth_is_among_those_named(found: Row, verdict: str) -> None:
    assert found.verdict() == verdict


def test_a_higher_limit_names_fewer() -> None:
    assert [row(saved=0.7).verdict(limit) for limit in (0.6, 0.8)] == ["wrong", "none"]
    assert row(saved=0.0, is_exact=True).verdict(0.8) == "right"


def test_an_aim_that_is_missed_is_called_so() -> None:
    shown = table([row(cpu_s=30.0), row(truth="fifo", is_named=False)])
    assert shown.count("not met") == 4
    assert table([row(is_named=False)]).count("not met") == 0


def test_each_load_is_of_one_half_whatever_its_kind() -> None:
    reported = [number for number in range(1000) if is_reported(number)]
    assert 400 < len(reported) < 600
    assert options_of("own", 5)[1]["network"] == options_of("foreign", 5)[1]["network"]


def test_each_kind_of_mechanism_is_drawn() -> None:
    names = {options_of("own", number)[0] for number in range(60)}
    assert {"fifo", "round-robin", "eps, halves", "tree"} <= names
    assert {options_of(kind, 7)[0] for kind in ("random", "foreign")} == {""}


def test_a_load_is_identified_by_the_logs_of_both_sides() -> None:
    rows = [row for number in range(3) for row in rows_of("own", number)]
    assert {each.side for each in rows} == {"server", "client"}
    assert all(each.verdict() == "right" for each in rows if each.side == "server")


@pytest.fixture(scope="module")
def tree_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    load = h3sim.simulate(
        "kicad-pl-editor",
        scheme="chrome-h2",
        network="cable",
        transport_profile="aioquic",
        record_packets=True,
    )
    log = tmp_path_factory.mktemp("log") / "load.qlog"
    write_load_qlog(load, log)
    return log


def test_a_client_s_priorities_arrive_with_requests_of_two_packets(tree_log: Path) -> None:
    signals = [
        {step.stream_id: step.signal for step in order.steps if step.kind is StepKind.OPEN}
        for order in (next(iter(send_orders(tree_log, trace=trace))) for trace in (1, 2))
    ]
    assert signals[0] == signals[1]


def test_a_stream_closes_once_it_is_acknowledged(tree_log: Path) -> None:
    (order,) = send_orders(tree_log, trace=1)
    sent = {step.stream_id: step.at_ns for step in order.steps if step.kind is StepKind.SENT}
    closed = {step.stream_id: step.at_ns for step in order.steps if step.kind is StepKind.CLOSE}
    assert len(closed) > len(sent) // 2  # the log ends before the last acknowledgements
    assert all(at_ns > sent[stream_id] for stream_id, at_ns in closed.items())

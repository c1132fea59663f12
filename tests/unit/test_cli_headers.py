"""`h3sim header-compression` from the command line."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.study.header_study import HeaderRow
from tests.helpers import unworded

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "header-compression"


@pytest.fixture
def lists(tmp_path: Path) -> Any:
    path = tmp_path / "lists.qif"
    path.write_bytes(b":method\tGET\n:path\t/\nx-trace\t7\n\n" * 30)
    return str(path)


def test_a_table_stands_below_each_path(lists: Any, capsys: pytest.CaptureFixture[str]) -> None:
    argv = [
        "header-compression",
        lists,
        "--schemes",
        "hpack,static",
        "--rtt-ms",
        "10,100",
        "--loss",
        "5%",
    ]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert out.startswith("lists.qif: 30 requests, 5 runs, table of 4,096 bytes\n")
    assert out.count("\nhpack ") == out.count("\nstatic ") == 2
    assert "RTT 10 ms, loss 5 %" in out


def test_json_reports_the_interval_as_it_was_read(
    lists: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([COMMAND, lists, "--schemes", "hpack", "--interval-ms", " 0.50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["interval_ms"] == 0.5


def test_shares_alone_may_be_per_cent(lists: str, capsys: pytest.CaptureFixture[str]) -> None:
    argv = [COMMAND, lists, "--schemes", "hpack", "--runs", "1", "--loss", "0.07%"]
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["loss"] == 0.0007
    assert main([*argv, "--interval-ms", "50%", "--rtt-ms", "10,50%"]) == 2
    assert unworded(capsys.readouterr().err.splitlines()) == [
        f"h3sim {COMMAND}: --rtt-ms: is '50%'",
        f"h3sim {COMMAND}: --interval-ms: is '50%'",
    ]


def test_json_has_every_row_and_what_it_follows_from(
    lists: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [
        "header-compression",
        lists,
        "--schemes",
        "qcram",
        "--runs",
        "2",
        "--table-bytes",
        "256",
        "--json",
    ]
    assert main([*argv, "--seed", "4"]) == 0
    document = json.loads(capsys.readouterr().out)
    (row,) = document.pop("rows")
    assert document == {
        "format": "h3sim-headers/1",
        "version": h3sim.__version__,
        "source": "lists.qif",
        "of": "requests",
        "interval_ms": 10.0,
        "network": None,
        "table_bytes": 256,
        "blocked_streams": 100,
        "seed": 4,
    }
    assert set(row) == {field.name for field in fields(HeaderRow)}
    assert (row["scheme"], row["runs"], row["sections"]) == ("qcram", 2, 30)


def test_a_figure_is_drawn_over_round_trip_times_or_losses(
    lists: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, axis in (("rtt.png", ["--rtt-ms", "10,100"]), ("loss.svg", ["--loss", "1%,5%"])):
        path = tmp_path / name
        argv = [
            "header-compression",
            lists,
            "--schemes",
            "hpack,qpack",
            "--runs",
            "1",
            "--plot",
            str(path),
        ]
        assert main([*argv, *axis]) == 0
        first = path.read_bytes()
        assert main([*argv, *axis]) == 0
        assert path.read_bytes() == first
    capsys.readouterr()


def test_every_error_is_reported_in_one_line(
    lists: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [COMMAND, lists, "--schemes", "zstd,qpack", "--rtt-ms", "x", "--loss", "2"]
    argv += ["--runs", "0", "--table-bytes", "-1", "--seed", "-5", "--interval-ms", "1,2"]
    assert main([*argv, "--direction", "responses", "--network", "fibre"]) == 2
    assert unworded(capsys.readouterr().err.splitlines()) == unworded(
        [
            f"h3sim {COMMAND}: no codec is called 'zstd'"
            " (`h3sim header-compression --help` shows all)",
            f"h3sim {COMMAND}: --rtt-ms: is 'x'",
            f"h3sim {COMMAND}: --loss: must be at least 0 and less than 1 (0.02, or 2%), is 2.0",
            f"h3sim {COMMAND}: --runs: must be 1 to 10,000, is 0",
            f"h3sim {COMMAND}: --table-bytes: is -1",
            f"h3sim {COMMAND}: --interval-ms: is '1,2'",
            f"h3sim {COMMAND}: {lists}: contains only header lists of requests:"
            " use --direction requests",
            f"h3sim {COMMAND}: --seed: is -5",
            f"h3sim {COMMAND}: --network: goes only with --model quic",
        ]
    )


def test_lists_go_over_quic_where_that_is_requested(
    lists: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [COMMAND, lists, "--schemes", "hpack", "--runs", "1", "--model", "quic"]
    assert main(argv) == 0
    assert ", QUIC over 4g\n" in capsys.readouterr().out
    assert main([*argv, "--network", "nowhere"]) == 2
    assert "no network is called 'nowhere'" in capsys.readouterr().err


def test_a_path_that_is_given_twice_is_run_once(
    lists: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [
        "header-compression",
        lists,
        "--schemes",
        "hpack,hpack",
        "--runs",
        "1",
        "--rtt-ms",
        "20,20.0",
    ]
    assert main([*argv, "--loss", "2%,0.02"]) == 0
    assert capsys.readouterr().out.count("\nhpack ") == 1


def test_the_largest_table_that_may_be_requested_can_be_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = [COMMAND, "creative", "--schemes", "qpack", "--runs", "1"]
    assert main([*argv, "--table-bytes", str(2**30 - 1)]) == 0
    assert ", table of 1,073,741,823 bytes\n" in capsys.readouterr().out


def test_lists_of_one_direction_need_no_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "responses.qif"
    path.write_bytes(b"server\th\n\n:status\t200\n\n")
    assert main([COMMAND, str(path), "--schemes", "static", "--runs", "1"]) == 0
    assert "responses.qif: 2 responses, 1 run" in capsys.readouterr().out


def test_both_paths_take_the_lists_of_one_direction_by_their_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "both.qif"
    path.write_bytes(
        b"# at_ms 5\n:method\tGET\nx\tlate\n\n:status\t200\n\n# at_ms 1\n:method\tGET\n"
    )
    for over in ("model", "quic"):
        for of, complete in (("requests", "2 requests"), ("responses", "1 response")):
            argv = [
                "header-compression",
                str(path),
                "--schemes",
                "static",
                "--runs",
                "1",
                "--model",
                over,
            ]
            assert main([*argv, "--direction", of]) == 0
            assert f"both.qif: {complete}, 1 run" in capsys.readouterr().out

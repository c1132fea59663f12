"""The matrix of clients before servers, worked by hand, and what is lost between two parties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.catalog import list_clients, list_servers, load_client, load_server, text_of
from h3sim.cli.main import main
from h3sim.reporting import alt_text
from h3sim.reporting.study_plots import matrix_figure
from h3sim.study.matrix import grid_table, lost_between, matrix_of
from tools.picture_check import errors_in

if TYPE_CHECKING:
    from pathlib import Path

SPEEDUPS = {
    "rr": (1.0, None, None),
    "chrome before quic-go": (1.2, 1.1, 1.3),
    "chrome before haproxy": (1.0, 0.9, 1.1),
    "safari before quic-go": (1.5, 1.4, 1.6),
    "safari before haproxy": (0.5, 0.4, 0.6),
}


def test_each_pair_says_what_the_best_other_party_would_add() -> None:
    rows = {(row.client, row.server): row for row in matrix_of(SPEEDUPS)}
    assert len(rows) == 4
    assert rows["safari", "haproxy"].other_server == 3.0
    assert rows["safari", "haproxy"].other_client == 2.0
    assert rows["chrome", "quic-go"].other_server == 1.0
    assert rows["chrome", "quic-go"].other_client == 1.25


def test_the_map_has_a_row_per_server_and_a_column_per_client() -> None:
    table = grid_table(matrix_of(SPEEDUPS)).to_records()
    assert [row["server"] for row in table] == ["quic-go", "haproxy"]
    assert table[1] == {
        "server": "haproxy",
        "chrome": "1.00 (0.90 to 1.10)",
        "safari": "0.50 (0.40 to 0.60)",
    }


def test_the_figure_has_the_numbers_and_marks_what_is_certain() -> None:
    figure = matrix_figure(matrix_of(SPEEDUPS), "rr")
    (ax,) = figure.axes
    weights = {text.get_text(): text.get_fontweight() for text in ax.texts}
    assert weights == {
        "1.20  1.10 to 1.30": "bold",
        "1.00  0.90 to 1.10": "normal",
        "1.50  1.40 to 1.60": "bold",
        "0.50  0.40 to 0.60": "bold",
    }
    assert [label.get_text() for label in ax.get_yticklabels()] == ["quic-go", "haproxy"]
    assert "1.50 with safari before quic-go" in alt_text(figure)
    assert list(errors_in(figure)) == []


@pytest.mark.parametrize(
    ("client", "server", "word"),
    [
        ("chrome", "haproxy", "reads no signal"),
        ("edge", "rfc7540", "says nothing"),
        ("chrome-50", "rfc9218", "says nothing that the server reads"),
        ("chrome-116", "go-h2", "HTTP/2"),
        ("chrome", "google-quiche", "not incremental"),
        ("safari", "rfc9218", "within an urgency"),
        ("firefox", "cloudflare", "share a bucket"),
        ("chrome", "rfc9218", "sends no frame"),
    ],
)
def test_what_is_lost_between_a_client_and_a_server_is_named(
    client: str, server: str, word: str
) -> None:
    assert any(word in text for text in lost_between(load_client(client), load_server(server)))


def test_a_tree_reaches_a_server_that_reads_trees_whole() -> None:
    assert lost_between(load_client("firefox"), load_server("rfc7540")) == []


def test_every_pair_can_be_judged() -> None:
    assert len(list_clients()) >= 4
    assert len(list_servers()) >= 16
    for client in list_clients():
        for server in list_servers():
            assert isinstance(lost_between(client, server), list)


def test_compare_prints_and_draws_the_matrix_of_all_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = ["--client", "chrome,safari", "--server", "quic-go,haproxy", "--send-buffer-kb", "0"]
    drawn = tmp_path / "map.svg"
    given = ["--network", "cable", *pairs, "--map", str(drawn)]
    assert main(["compare", "davies-meenan", *given]) == 0
    text = capsys.readouterr().out
    assert "haproxy" in drawn.read_text("utf-8")
    assert "clients before servers" in text
    assert text.count("all: the server reads no signal") == 2


def test_clients_and_servers_from_files_are_in_the_matrix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(text_of("client", "safari").replace('name = "safari"', 'name = "mine"'), "utf-8")
    pairs = ["--client", f"chrome,{own}", "--server", "rfc9218,haproxy", "--send-buffer-kb", "0"]
    assert main(["compare", "davies-meenan", "--network", "cable", *pairs]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("mine" in line and "order within" in line for line in lines)


def test_a_pair_of_which_a_half_is_not_known_is_left_out_of_the_matrix() -> None:
    rows = matrix_of({"mine before quic-go": (1.0, None, None), **SPEEDUPS})
    assert "mine" not in {row.client for row in rows}


def test_a_single_client_makes_no_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = ["--client", "chrome", "--server", "quic-go,haproxy", "--send-buffer-kb", "0"]
    assert main(["compare", "davies-meenan", "--network", "cable", *pairs]) == 0
    assert "clients before servers" not in capsys.readouterr().out


def test_a_map_of_fewer_than_two_clients_or_servers_is_refused(tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "map.svg"
    assert main(["compare", "davies-meenan", "--scheme", "rr,fifo", "--map", str(path)]) == 2
    assert "--map" in capsys.readouterr().err
    assert not path.exists()

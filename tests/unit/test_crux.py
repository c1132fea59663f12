"""Connections of users in CrUX: files as its API and BigQuery document them, made into networks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli.main import main
from h3sim.errors import NetworkError
from h3sim.importers import format_network, is_crux, read_crux
from h3sim.transport.network import read_network
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

BOUNDS = ((0, 75), (75, 275), (275, None))


def bins(*densities: float | None, key: str = "density") -> list[dict[str, Any]]:
    """Return a histogram of round-trip times as the API has it."""
    found = []
    for (start, end), density in zip(BOUNDS, densities, strict=True):
        each: dict[str, Any] = {"start": start} if end is None else {"start": start, "end": end}
        found.append(each if density is None else {**each, key: density})
    return found


def response(metric: dict[str, Any]) -> dict[str, Any]:
    key = {"origin": "https://shop.example", "formFactor": "PHONE"}
    return {"record": {"key": key, "metrics": {"round_trip_time": metric}}}


API = response({"histogram": bins(0.45, 0.48, 0.07), "percentiles": {"p75": 126}})


def written(folder: Path, document: object, name: str = "crux.json") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def shares(path: Path) -> dict[str, float]:
    return {each.network.name: round(each.share, 4) for each in read_crux(path)}


def test_a_response_of_the_api_becomes_a_network_for_each_class(tmp_path: Path) -> None:
    path = written(tmp_path, API)
    assert is_crux(path)
    assert shares(path) == {
        "crux-low-rtt": 0.45,
        "crux-medium-rtt": 0.48,
        "crux-high-rtt": 0.07,
    }
    # Each class has the median of its users: within its bounds, and the third quartile of all
    # users, of which the file says 126 ms, is above the median of the middle class.
    low, medium, high = (each.network.rtt_ns / 1e6 for each in read_crux(path))
    assert low < 75 < medium < 126 < 275 < high


def test_round_trip_times_are_those_of_a_log_normal_distribution(tmp_path: Path) -> None:
    """With 0.16 and 0.84 of the users below 75 and 275 ms, these are a sigma from the median."""
    path = written(tmp_path, response({"histogram": bins(0.1586553, 0.6826894, 0.1586553)}))
    medium_ms = read_crux(path)[1].network.rtt_ns / 1e6
    assert medium_ms == pytest.approx((75 * 275) ** 0.5, abs=0.1)


def test_of_a_history_the_last_period_counts(tmp_path: Path) -> None:
    series = bins([0.2, 0.5, None], [0.5, 0.3, None], [0.3, 0.2, None], key="densities")  # type: ignore[arg-type]
    assert shares(written(tmp_path, response({"histogramTimeseries": series}))) == {
        "crux-low-rtt": 0.5,
        "crux-medium-rtt": 0.3,
        "crux-high-rtt": 0.2,
    }


def test_rows_of_bigquery_are_read_with_numbers_as_text(tmp_path: Path) -> None:
    """Rows of the last month are added up, as those of phones and desktops."""
    rows = [
        {"origin": "o", "yyyymm": "202501", "low_rtt": "0.9", "medium_rtt": "0.1", "high_rtt": "0"},
        {"origin": "o", "yyyymm": "202502", "low_rtt": "0.1", "medium_rtt": "0.2", "high_rtt": 0.1},
        {"origin": "o", "yyyymm": "202502", "low_rtt": 0.3, "medium_rtt": 0.2, "high_rtt": 0.1},
    ]
    expected = {"crux-low-rtt": 0.4, "crux-medium-rtt": 0.4, "crux-high-rtt": 0.2}
    assert shares(written(tmp_path, rows)) == expected
    lines = "\n".join(map(json.dumps, rows))
    assert shares(written(tmp_path, lines, "rows.jsonl")) == expected


def test_effective_connection_types_are_read_and_who_is_offline_is_left_out(tmp_path: Path) -> None:
    row = {"_4GDensity": 0.6, "_3GDensity": 0.2, "_2GDensity": 0.0, "slow2GDensity": None}
    path = written(tmp_path, {**row, "offlineDensity": 0.2})
    assert shares(path) == {"crux-4g": 0.75, "crux-3g": 0.25}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": 1}, "neither round_trip_time nor"),
        ("{", "is not JSON"),
        ([], "neither round_trip_time nor"),
        (response({"histogram": bins(0, 0, None)}), "add up to 0"),
        (response({"histogram": 3}), "histogram: must be a list of bins, is 3"),
        (response({}), "must be a list of bins"),
        (response({"histogram": [7]}), r"histogram\[0\].start: must be at least 0"),
        (response({"histogram": [{"start": -1}]}), r"start: must be at least 0, is -1"),
        (response({"histogram": bins(2, 0, 0)}), r"\[0\].density: must be 0 to 1, is 2"),
        ({"low_rtt": "many", "high_rtt": -1}, "low_rtt: must be 0 to 1(.|\n)*high_rtt: must be"),
        ({"low_rtt": "nan"}, "low_rtt: must be 0 to 1"),
    ],
)
def test_every_error_in_a_file_is_listed(tmp_path: Path, document: object, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        read_crux(written(tmp_path, document))


def test_networks_are_written_as_files_that_are_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = written(tmp_path, API), tmp_path / "networks"
    assert main(["import", str(path), "-o", f"{folder}/"]) == 0
    assert "crux-medium-rtt (48 %): RTT" in capsys.readouterr().out
    for each in read_crux(path):
        again = read_network(folder / f"{each.network.name}.toml")
        assert (again.rtt_ns, again.down, again.up) == (
            each.network.rtt_ns,
            each.network.down,
            each.network.up,
        )
        assert f'name = "{again.name}"' in format_network(each)
    assert main(["import", str(path), "-o", str(tmp_path / "page.json")]) == 2
    assert "-o FOLDER/" in capsys.readouterr().err


def test_users_of_hints_have_the_networks_by_their_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, API)
    page = page_of({"id": "/", "kind": "document", "bytes": 1000})
    over: dict[str, Any] = {"n_seeds": 4, "network_within": 1, "edits": [], "progress": False}
    found = h3sim.hints(page, networks=read_crux(path), **over)
    titles = ["crux-low-rtt (45 %)", "crux-medium-rtt (48 %)", "crux-high-rtt (7 %)"]
    assert list(found.networks) == titles
    file = str(written(tmp_path, page.to_dict(), "page.json"))
    assert main(["hints", file, "--networks", str(path), "--seeds", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["networks"] == titles
    assert main(["hints", file, "--networks", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err

"""Connections of users in CrUX: files as its API and BigQuery document them, made into networks."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli.main import main
from h3sim.importers import read_crux
from h3sim.transport.network import read_network
from h3sim.values.errors import NetworkError
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

BOUNDS = ((0, 75), (75, 275), (275, None))


def bins(*densities: float | None) -> list[dict[str, Any]]:
    """Return a histogram of round-trip times as the API has it."""
    found = []
    for (start, end), density in zip(BOUNDS, densities, strict=True):
        each: dict[str, Any] = {"start": start} if end is None else {"start": start, "end": end}
        found.append(each if density is None else {**each, "density": density})
    return found


def response(metric: object) -> dict[str, Any]:
    """Return a response of the API with all kinds of metrics that it had in 2026."""
    metrics = {
        "cumulative_layout_shift": {
            "histogram": [
                {"start": "0.00", "end": "0.10", "density": 0.9},
                {"start": "0.10", "end": "0.25", "density": 0.07},
                {"start": "0.25", "density": 0.03},
            ],
            "percentiles": {"p75": "0.00"},
        },
        "form_factors": {"fractions": {"phone": 0.7, "tablet": 0, "desktop": 0.3}},
        "largest_contentful_paint_image_resource_load_delay": {"percentiles": {"p75": 250}},
        "round_trip_time": metric,
    }
    period = {
        "firstDate": {"year": 2026, "month": 4, "day": 5},
        "lastDate": {"year": 2026, "month": 5, "day": 2},
    }
    key = {"origin": "https://shop.example"}
    return {"record": {"key": key, "metrics": metrics, "collectionPeriod": period}}


def history(*periods: tuple[Any, Any, Any]) -> dict[str, Any]:
    """Return a response of the history's API, with the densities of each period."""
    series: Any = [
        {**each, "densities": [densities[number] for densities in periods]}
        for number, each in enumerate(bins(None, None, None))
    ]
    p75s = [None if "NaN" in densities else 126 for densities in periods]
    return response({"histogramTimeseries": series, "percentilesTimeseries": {"p75s": p75s}})


API = response({"histogram": bins(0.45, 0.48, 0.07), "percentiles": {"p75": 126}})


def written(folder: Path, document: object, name: str = "crux.json") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def shares(path: Path) -> dict[str, float]:
    return {each.network.name: round(each.share, 4) for each in read_crux(path)}


def test_a_response_of_the_api_becomes_a_network_for_each_class(tmp_path: Path) -> None:
    path = written(tmp_path, API)
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


@pytest.mark.parametrize(
    ("low", "medium", "high"),
    [
        (0.5, 0.0002, 0.4998),
        (0.88, 0.0008, 0.1192),
        (0.5, 0.5, 1e-18),
        (0.25, 1e-18, 0.75),
        (1e-18, 0.5, 0.5),
        (5e-324, 5e-324, 1),
    ],
)
def test_shares_of_two_groups_have_the_times_of_the_presets(
    tmp_path: Path, low: float, medium: float, high: float
) -> None:
    path = written(tmp_path, [{"yyyymm": 202601, "low_rtt": low, "medium_rtt": medium,
                               "high_rtt": high}])  # fmt: skip
    for each, (least, most) in zip(read_crux(path), ((1, 75), (75, 275), (275, 2000)), strict=True):
        assert least <= each.network.rtt_ns / 1e6 <= most


@pytest.mark.parametrize("missing", ["NaN", None])
def test_of_a_history_the_last_period_with_users_counts(tmp_path: Path, missing: object) -> None:
    """A period in which the page had too few users has the text "NaN" (eligibility)."""
    none = (missing, missing, missing)
    series = history((0.2, 0.5, 0.3), none, (0.5, 0.3, 0.2), none)
    assert shares(written(tmp_path, series)) == {
        "crux-low-rtt": 0.5,
        "crux-medium-rtt": 0.3,
        "crux-high-rtt": 0.2,
    }


def test_densities_of_a_history_are_of_one_period(tmp_path: Path) -> None:
    series = history((0.2, 0.5, 0.3), (0.6, 0.4, "NaN"))
    assert shares(written(tmp_path, series)) == {"crux-low-rtt": 0.6, "crux-medium-rtt": 0.4}


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
        (response({"histogram": 3}), "histogram: .*, is 3"),
        (
            response({"histogram": {"start": 0}}),
            "histogram: .*, is {'start': 0}",
        ),
        (response({"histogram": []}), "must be a list of bins"),
        (response({"percentiles": {"p75": 199}}), "histogram: is missing; percentiles alone"),
        (response(None), "neither round_trip_time nor"),
        (response([]), "neither round_trip_time nor"),
        ({"record": None}, "neither round_trip_time nor"),
        ({"record": {"metrics": [3]}}, "neither round_trip_time nor"),
        (response({"histogram": [7]}), r"histogram\[0\].start: "),
        (response({"histogram": [{"start": -1}]}), r"start: .*, is -1"),
        (response({"histogram": bins(2, 0, 0)}), r"\[0\].density: .*, is 2"),
        ({"low_rtt": "many", "high_rtt": -1}, "low_rtt: must be 0 to 1(.|\n)*high_rtt: must be"),
        ({"low_rtt": "nan"}, "low_rtt: "),
        ({"low_rtt": [[0.5]]}, "low_rtt: "),
        ({"low_rtt": {}}, "low_rtt: "),
        ({"low_rtt": True}, "low_rtt: "),
        ('{"low_rtt": NaN}', "low_rtt: "),
        ('{"low_rtt": 1e999}', "low_rtt: "),
        (response({"histogram": [None]}), r"histogram\[0\].start: "),
        (response({"histogram": [{"start": "0"}]}), r"start: .*, is '0'"),
        (response({"histogram": [{"start": 0, "end": 1000}]}), "end: .*, is 1000"),
        (response({"histogram": [{"start": 0}]}), "end: .*, is None"),
        (response({"histogram": [{"start": 80, "end": []}]}), "end: "),
        (response({"histogram": bins([0.5], {}, "x")}), ".*, is (.|\n)*is 'x'"),  # type: ignore[arg-type]
        (response({"histogramTimeseries": 3}), "histogramTimeseries: .*, is 3"),
        (response({"histogramTimeseries": [None]}), "densities: must be a list of shares"),
        *(
            (response({"histogramTimeseries": [{"densities": value}]}), "densities: must be a list")
            for value in (3, None, "0.5", {"0": 0.5})
        ),
        (response({"histogramTimeseries": [{"densities": [[0.5]]}]}), "start: "),
        (history((0.5, [0.5], {})), r"\[1\].density: must be 0 to 1(.|\n)*\[2\].density: must"),
        (history(("NaN", "NaN", "NaN")), "add up to 0"),
        (history(), "add up to 0"),
        (
            response({"histogramTimeseries": [{"densities": [1]}, {"densities": []}]}),
            "must have as many densities in each bin",
        ),
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
        assert (again.name, again.title) == (each.network.name, each.network.title)
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
    assert main(["hints", file, "--networks", f"cable,{path}"]) == 2
    assert "crux.json: has all users" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["predict", "recommend", "import"])
def test_a_file_of_crux_as_a_page_is_refused_with_the_command_that_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    arguments = ["-o", str(tmp_path / "page.json")] if command == "import" else []
    assert main([command, str(written(tmp_path, API)), *arguments]) == 2
    assert "`h3sim import FILE -o FOLDER/`" in capsys.readouterr().err


def test_a_compressed_file_of_crux_has_the_same_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, API)
    packed = tmp_path / "crux.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    shown = []
    for each in (path, packed):
        assert main(["predict", "creative", "--network", str(each)]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


@pytest.mark.parametrize("command", ["run", "hints"])
def test_a_file_of_crux_as_one_network_is_refused_with_what_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    path = written(tmp_path, API)
    assert main([command, "davies-meenan", "--network", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "crux.json: is JSON" in line
    assert "h3sim hints --networks" in line


def test_a_folder_for_what_is_neither_archive_nor_crux_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("page.html", "<p>a"), ("shop.har", '{"log": {"entries": []}}')):
        path = written(tmp_path, text, name)
        assert main(["import", str(path), "-o", f"{tmp_path}/"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("h3sim import: --output: is a folder, but ")

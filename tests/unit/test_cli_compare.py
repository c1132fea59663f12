"""`h3sim compare`: its tables and its document."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.cli import main
from h3sim.cli.compare import _speedup_cells, too_few
from h3sim.reporting import LoadPlots
from h3sim.study import Results
from h3sim.study.compare import SeedComparisonRow
from h3sim.study.statistics.contrasts import NO_SEED_MATTERS, compare_schemes
from h3sim.study.statistics.intervals import mean_interval
from tests.helpers import page_file, unworded

if TYPE_CHECKING:
    from pathlib import Path

ELEVEN = [
    *("rr", "wrr", "fifo", "dfifo", "firefox", "p+", "s+", "spdyrr"),
    *("bucket", "bucket-html", "zeroweight"),
]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command, which must succeed and complain of nothing; return what it prints."""
    assert main(["compare", *arguments]) == 0
    out, err = capsys.readouterr()
    assert all(line.startswith("wrote ") for line in err.splitlines())
    return out


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_the_table_has_every_scheme_with_every_buffer(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "davies-meenan")
    table, _, means = out.partition("mean speedups")
    rows = [row for row in rows_of(table) if row and row[0] in ELEVEN]
    assert [row[0] for row in rows] == ELEVEN * 2
    without, _, with_buffer = table.partition("a send buffer of 1000 kB:")
    assert "no send buffer:" in without
    assert len([row for row in rows_of(with_buffer) if row and row[0] in ELEVEN]) == 11
    assert [row[0] for row in rows_of(means) if len(row) == 5 and row[0] in ELEVEN] == ELEVEN


def test_a_row_reports_the_byte_indexes_speedups_and_what_came_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = printed(capsys, "davies-meenan", "--scheme", "rr,fifo", "--send-buffer-kb", "0")
    (row,) = [row for row in rows_of(out) if row[:1] == ["fifo"] and len(row) == 8]
    # Above the fold, by hand from the timeline of fifo: index.html 3379 at 30, top.js 50034 at
    # 390, font 12052 at 3110, hero 104484 at 3860:
    # (3379 * 30 + 50034 * 390 + 12052 * 3110 + 104484 * 3860) / 169949 = 2709.1.
    assert row[2] == "2,709.1"
    assert row[5:] == ["30.0", "3,860.0", "hero.jpg"]


def test_sampled_byte_indexes_are_next_to_the_others_and_marked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = (
        "davies-meenan",
        "--scheme",
        "rr,fifo",
        "--send-buffer-kb",
        "0",
        "--sample-ms",
        "100",
    )
    _, message, below = printed(capsys, *options).partition("sampled every 100 ms, as in Marx 2019")
    assert message
    # By hand, as above, each completion rounded up: 100, 400, 3200, 3900.
    below, _, _ = below.partition("mean speedups")
    (row,) = [row for row in rows_of(below) if row[:1] == ["fifo"]]
    assert row[2] == "2,744.4"
    document = json.loads(printed(capsys, *options, "--json"))
    assert document["sample_ms"] == 100
    fifo = document["rows"][1]
    assert round(fifo["byte_index_sampled_atf_ms"], 1) == 2744.4
    assert round(fifo["byte_index_atf_ms"], 1) == 2709.1
    assert (
        fifo["speedup_atf"] == document["rows"][0]["byte_index_atf_ms"] / fifo["byte_index_atf_ms"]
    )


def test_schemes_that_differ_differ_on_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # At 100 Gbit/s what differs does by far less than a tenth of a millisecond.
    options = ("--scheme", "rr,fifo,bucket-html", "--send-buffer-kb", "0", "--rate-mbps", "100000")
    out = printed(capsys, "davies-meenan", *options)
    rows = [
        row for row in rows_of(out) if len(row) == 8 and row[0] in ("rr", "fifo", "bucket-html")
    ]
    exact = {
        row[0]: h3sim.simulate("davies-meenan", scheme=row[0], rate_mbps=100_000).byte_index()
        for row in rows
    }
    assert len({row[1] for row in rows}) == len({round(value, 6) for value in exact.values()}) == 3
    shown = sorted(rows, key=lambda row: float(row[1]))
    assert [row[0] for row in shown] == sorted(exact, key=lambda name: exact[name])


def test_schemes_may_be_given_with_commas_in_several_options_and_as_sets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = (
        "--scheme",
        "rr,firefox-figure",
        "--scheme",
        "marx-2019",
        "--send-buffer-kb",
        "0",
        "--json",
    )
    document = json.loads(printed(capsys, "davies-meenan", *options))
    assert [row["scheme"] for row in document["rows"]] == [
        "rr",
        "firefox-figure",
        *ELEVEN[1:],  # rr, which stands first there, is loaded once
    ]


def test_pages_may_be_given_as_a_set(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, "papers", "--scheme", "fifo", "--json"))
    assert [(row["page"], row["send_buffer_kb"]) for row in document["rows"]] == [
        ("http2rulez", 0),
        ("http2rulez", 1000),
        ("davies-meenan", 0),
        ("davies-meenan", 1000),
    ]


def test_json_is_a_comparison_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "davies-meenan", "--scheme", "rr,bucket-html", "--json")
    assert out.count("\n") == 1
    document = json.loads(out)
    assert list(document)[:3] == ["format", "version", "baseline"]
    assert document["configuration"]["rate_mbps"] == 1.12
    assert document["page_digests"] == {"davies-meenan": h3sim.load_page("davies-meenan").digest}
    assert (document["format"], document["baseline"]) == ("h3sim-comparison/2", "rr")
    comparison = h3sim.compare("davies-meenan", schemes=["rr", "bucket-html"])
    assert document["rows"] == [row._asdict() for row in comparison.rows]
    assert document["means"] == [row._asdict() for row in comparison.means]


def test_json_of_many_seeds_has_the_rows_with_intervals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--network", "wifi-lossy", "--scheme", "fifo", "--send-buffer-kb", "0")
    out = printed(capsys, "davies-meenan", *options, "--seeds", "3", "-j", "1", "--json")
    document = json.loads(out)
    assert (document["format"], document["seeds"]) == ("h3sim-seed-comparison/1", [0, 1, 2])
    assert document["configuration"]["network"] == "wifi-lossy"
    comparison = h3sim.compare(
        "davies-meenan", schemes=["fifo"], network="wifi-lossy", send_buffers_kb=[0], seeds=3
    )
    assert document["rows"] == [row._asdict() for row in comparison.rows]
    assert document["metrics"] == [row._asdict() for row in comparison.metrics]


def test_the_baseline_is_loaded_without_a_buffer(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--scheme", "fifo", "--baseline", "fifo", "--send-buffer-kb", "1000,0", "--json")
    document = json.loads(printed(capsys, "davies-meenan", *options))
    assert [row["send_buffer_kb"] for row in document["rows"]] == [1000, 0]
    # fifo is fifo with and without.
    assert [row["speedup_all"] for row in document["rows"]] == [1, 1]


def test_pages_without_anything_above_the_fold_do_not_count_in_that_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = page_file(tmp_path, {"id": "/", "kind": "document", "bytes": 10}, name="bare")
    options = ("--scheme", "fifo", "--baseline", "fifo", "--send-buffer-kb", "0")
    document = json.loads(printed(capsys, bare, "davies-meenan", *options, "--json"))
    row = document["rows"][0]
    assert (row["byte_index_atf_ms"], row["speedup_atf"], row["last_atf_id"]) == (None, None, None)
    assert document["means"] == [
        {"scheme": "fifo", "send_buffer_kb": 0, "pages": 2, "mean_all": 1, "mean_atf": 1}
    ]
    rows = rows_of(printed(capsys, bare, *options))
    assert ["fifo", "10.0", "-", "1.00", "-", "10.0", "-", "-"] in rows


@pytest.mark.parametrize(("mean", "expected"), [("arithmetic", "8.50"), ("geometric", "4.00")])
def test_means_are_of_the_kind_that_is_requested(
    tmp_path: Path, mean: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # fifo against dfifo. On "one" both take 20: 1. On "two" the image of 30 packets, not above the
    # fold, goes before the stylesheet under fifo, complete at 310 + 10 = 320, and behind it under
    # dfifo, complete at 20: 16. (1 + 16) / 2, sqrt(1 * 16).
    root = {"id": "/", "kind": "document", "bytes": 10}
    visible = {"above_the_fold": True, "discovered": {"by": "/", "at": "complete"}}
    image = {"id": "i", "kind": "image", "bytes": 42000}
    css = {"id": "c", "kind": "stylesheet", "bytes": 10} | visible
    pages = [
        page_file(
            tmp_path,
            root | {"id": "/one"},
            css | {"discovered": {"by": "/one", "at": "complete"}},
            name="one",
        ),
        page_file(tmp_path, root, image | {"discovered": visible["discovered"]}, css, name="two"),
    ]
    options = ("--scheme", "dfifo", "--baseline", "fifo", "--send-buffer-kb", "0", "--mean", mean)
    out = printed(capsys, *pages, *options)
    assert rows_of(out.partition("mean speedups")[2])[4][2] == expected


def test_what_a_reader_must_know_of_a_scheme_is_stated(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "davies-meenan", "--scheme", "zeroweight,fifo", "--send-buffer-kb", "0")
    lines = out.splitlines()
    assert any(line.startswith("zeroweight: ") and "reconstruction" in line for line in lines)
    assert any(line.startswith("zeroweight: ") and "visible images" in line for line in lines)
    assert not any(line.startswith("fifo: ") for line in lines)


def test_many_pages_are_shown_by_their_means_and_by_page_on_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--scheme", "fifo", "--send-buffer-kb", "0")
    five = ("davies-meenan", "http2rulez", "agency", "creative", "stories")
    five = tuple(page for page in five if page in {page.name for page in h3sim.list_pages()})  # type: ignore[assignment]
    five = (*five, *(page.name for page in h3sim.list_pages() if page.name not in five))[:5]  # type: ignore[assignment]
    means = printed(capsys, *five, *options)
    assert means.startswith("marx-2019, QUIC, 1.12 Mbit/s")
    assert "\n\narithmetic mean speedups to rr over 5 pages" in means
    assert " resources, " not in means
    by_page = printed(capsys, *five, *options, "--by-page")
    assert [line.partition(":")[0] for line in by_page.splitlines() if " resources, " in line] == [
        *five
    ]
    assert "resources" not in printed(capsys, "davies-meenan", *options, "--no-by-page")


def test_paints_are_shown_where_the_browser_computes_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--scheme", "fifo", "--send-buffer-kb", "0")
    assert "first paint" not in printed(capsys, "davies-meenan", *options)
    out = printed(capsys, "davies-meenan", *options, "--browser", "parse")
    load = h3sim.simulate("davies-meenan", scheme="fifo", browser="parse")
    assert load.first_paint_ms is not None
    assert load.largest_paint_ms is not None
    shown = (load.first_paint_ms, load.largest_paint_ms)
    assert ["fifo", *(f"{value_ms:,.1f}" for value_ms in shown)] in [
        row[:3] for row in rows_of(out)
    ]


def test_figures_of_pages_named_like_paths_are_files_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = {"id": "/", "kind": "document", "bytes": 10}
    pages = []
    for number, name in enumerate(("docs/index.html", "docs-index.html", "../x" + "y" * 300)):
        document = {"format": "h3sim-page/1", "name": name, "resources": [root]}
        pages.append(str(tmp_path / f"{number}.json"))
        (tmp_path / f"{number}.json").write_text(json.dumps(document), encoding="utf-8")
    figure = tmp_path / "figure.svg"
    options = ("--scheme", "fifo", "--send-buffer-kb", "0", "--plot", str(figure))
    assert main(["compare", *pages, *options]) == 0
    capsys.readouterr()
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == [
        f"figure-..-x{'y' * 96}.svg",
        "figure-docs-index.html-2.svg",
        "figure-docs-index.html.svg",
    ]


def test_many_seeds_give_intervals_and_wins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.csv"
    options = (
        "--scheme",
        "fifo",
        "--seeds",
        "4",
        "--send-buffer-kb",
        "0",
        "--loss",
        "5%",
        "-j",
        "1",
    )
    out = printed(capsys, "davies-meenan", *options, "--rtt-ms", "20", "--csv", str(rows))
    assert out.startswith("1 page, 4 seeds each: reused 0, ran 8, failed 0\n")
    assert "ByteIndex, above the fold, 0 kB buffer:" in out
    results = h3sim.sweep(
        "davies-meenan", schemes=["rr", "fifo"], seeds=4, loss=0.05, rtt_ms=20, send_buffer_kb=[0.0]
    )
    row = results.compare("rr")[1]
    assert f"{row.low:.2f} to {row.high:.2f}" in out
    assert len(rows.read_text(encoding="utf-8").splitlines()) == 9


@pytest.mark.parametrize(
    ("clusters", "schemes", "reason"),
    [
        (1, 1, "1 page: too few for an interval or a p-value below 1"),
        (2, 1, "2 pages: too few for an interval"),
        (3, 1, ""),
        (3, 4, "3 pages: too few for a p-value below 1, corrected for 4 schemes"),
        (4, 4, ""),
    ],
)
def test_a_line_states_why_there_is_no_interval_or_p(
    clusters: int, schemes: int, reason: str
) -> None:
    study = Results.of(
        {"page": str(page), "scheme": scheme, "seed": 0, "ms": 100.0 + page * position + position}
        for page in range(clusters)
        for position, scheme in enumerate(["rr", *"abcd"[:schemes]])
    )
    rows = [row for row in compare_schemes(study, value="ms") if row.scheme != "rr"]
    assert too_few(rows, "page") == reason
    # And it is true: what it says is lacking is lacking, and nothing else.
    assert ("interval" in reason) == (rows[0].low is None)
    p_values = [row.p_corrected for row in rows if row.p_corrected is not None]
    assert ("p-value" in reason) == (min(p_values, default=1) >= 1)


def test_seeds_that_change_nothing_get_no_interval_and_no_p(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--scheme", "rr,fifo", "--seeds", "9", "--send-buffer-kb", "0", "-j", "1")
    assert main(["compare", "creative", "--network", "fibre", *options]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.startswith("fifo")]
    fifo = [row for row in rows if len(row) == 10]  # the others have means
    assert fifo
    assert {(cells[2], cells[3]) for cells in fifo} == {("-", "-")}
    assert out.count(NO_SEED_MATTERS) == len(fifo)


def test_a_speedup_that_surely_differs_from_1_does_not_look_like_1() -> None:
    values = {"rr": 100.0, "fifo": 99.97}
    study = Results.of(
        {"page": str(page), "scheme": scheme, "seed": 0, "ms": ms * (1 + page * 1e-6)}
        for page in range(9)
        for scheme, ms in values.items()
    )
    rows = [SeedComparisonRow("ms", 0.0, *row) for row in compare_schemes(study, value="ms")]
    base, (_, speedup, interval, *_) = _speedup_cells(rows)
    assert base[1] == "1.0000"
    assert (speedup, interval) == ("1.0003", "1.0003 to 1.0003")


def test_tables_of_many_seeds_can_be_sorted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--scheme", "rr,fifo", "--seeds", "2", "--send-buffer-kb", "0", "-j", "1")
    out = printed(capsys, "davies-meenan", *options, "--sort")
    rows = [line.split() for line in out.splitlines() if line.startswith(("fifo ", "rr "))]
    assert [row[:2] for row in rows[:2]] == [["fifo", "1.41"], ["rr", "1.00"]]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--sort",), "--sort: goes only with --seeds"),
        (("--seeds", "0"), "--seeds: must be at least 1, is 0"),
        (("--seeds", "2", "--sample-ms", "9"), "--seeds: does not go with --sample-ms"),
        (("--csv", "/nowhere/x.csv"), "--csv: "),
    ],
)
def test_options_that_do_not_go_together_are_reported(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], complaint: str
) -> None:
    assert main(["compare", "davies-meenan", *options]) == 2
    assert unworded([complaint])[0] in unworded([capsys.readouterr().err])[0]


def test_versions_of_a_page_are_compared_with_the_first_scheme_by_scheme(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = {"id": "/", "kind": "document", "bytes": 1400, "above_the_fold": True}
    image = {"id": "i", "kind": "image", "discovered": {"by": "/", "at": "complete"}}
    first = page_file(tmp_path, root, image | {"bytes": 1400 * 9}, name="large")
    other = page_file(tmp_path, root, image | {"bytes": 1400 * 4}, name="small")
    options = (first, other, "--scheme", "rr,fifo", "--send-buffer-kb", "0")
    out = printed(capsys, *options)
    _, message, below = out.partition("small against large with the same scheme: speedups")
    assert message
    assert "mean speedups" not in out
    # One packet every 10 ms: the document at 10, the image at 100 and 50. All bytes: (10 + 9 * 100)
    # / 10 = 91 and (10 + 4 * 50) / 5 = 42; above the fold 10 and 10.
    expected = [f"{91 / 42:.2f}", "1.00", "2.00"]
    assert [row[1:] for row in rows_of(below) if row[:1] in (["rr"], ["fifo"])] == [expected] * 2
    document = json.loads(printed(capsys, *options, "--json"))
    assert [row["scheme"] for row in document["versions"]] == ["rr", "fifo"]
    assert document["versions"][0]["speedup_page_load"] == 2


def test_other_pages_are_no_versions(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "papers", "--scheme", "rr,fifo", "--send-buffer-kb", "0")
    assert "against" not in out
    assert "mean speedups to rr over 2 pages" in out


LOSSY = ("davies-meenan", "--scheme", "rr,fifo", "--network", "wifi-lossy")
NO_BUFFER = ("--send-buffer-kb", "0")


def tables_of(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the tables of *text* by title: the cells of each row by its scheme."""
    tables: dict[str, dict[str, list[str]]] = {}
    title = ""
    for line in text.splitlines():
        if line.endswith(":"):
            title = line.removesuffix(":")
        elif line.split()[:1] in (["rr"], ["fifo"]):
            # The last table has a heading without a colon.
            tables.setdefault(title, {}).setdefault(line.split()[0], line.split()[1:])
    return tables


def hol_of(scheme: str, seed: int = 0) -> tuple[int, int, int, int]:
    hol = h3sim.simulate("davies-meenan", scheme=scheme, network="wifi-lossy", seed=seed).hol
    return (
        hol.stream_bytes,
        hol.connection_bytes,
        hol.sander_stream_bytes,
        hol.sander_connection_bytes,
    )


def test_bytes_of_head_of_line_blocking_are_in_tables_beside_the_byte_indexes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables = tables_of(printed(capsys, *LOSSY, *NO_BUFFER))
    for scheme in ("rr", "fifo"):
        own = tables["bytes of head-of-line blocking"][scheme]
        sander = tables["bytes of head-of-line blocking, Sander's count"][scheme]
        assert [*own, *sander] == [f"{n:,}" for n in hol_of(scheme)]


def test_without_blocking_a_line_states_how_to_see_some(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = printed(capsys, "davies-meenan", "--scheme", "rr,fifo")
    assert "bytes of head-of-line blocking" not in out
    assert out.count("No head-of-line blocking: no byte waited for a gap in any load.") == 1
    out = printed(capsys, "davies-meenan", "--scheme", "rr,fifo", "--metric", "hol_stream_bytes")
    assert tables_of(out)["metrics requested"] == {"rr": ["0"], "fifo": ["0"]}


def test_any_metric_can_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--metric", "packets_lost", "--metric", "fcp_ms,multiplexing_interleaving")
    tables = tables_of(printed(capsys, *LOSSY, *NO_BUFFER, *options))
    lost = h3sim.simulate("davies-meenan", scheme="rr", network="wifi-lossy").packets.lost
    # Nothing was painted, as no page was computed.
    assert tables["metrics requested"]["rr"][:2] == [str(lost), "-"]
    with pytest.raises(h3sim.values.errors.UnknownNameError, match="packets_lost"):
        h3sim.compare("davies-meenan", metrics=["packets_lots"])
    assert main(["compare", "creative", "--metric", "packets_lots,hol_bites"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_metrics_are_in_the_document_the_csv_file_and_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.csv"
    options = (*LOSSY, *NO_BUFFER, "--metric", "packets_lost", "--csv", str(rows))
    document = json.loads(printed(capsys, *options, "--json"))
    values = {(row["scheme"], row["metric"]): row["value"] for row in document["metrics"]}
    comparison = h3sim.compare(
        "davies-meenan",
        schemes=["rr", "fifo"],
        network="wifi-lossy",
        send_buffers_kb=[0],
        metrics=["packets_lost"],
    )
    assert {(row.scheme, row.metric): row.value for row in comparison.metrics} == values
    assert len(values) == 2 * 5
    with rows.open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["scheme"] for row in written] == ["rr", "fifo"]
    for row in written:
        names = ("stream_bytes", "connection_bytes", "sander_stream_bytes")
        assert [int(row[f"hol_{name}"]) for name in names] == [*hol_of(row["scheme"])][:3]
        assert int(row["packets_lost"]) == values[row["scheme"], "packets_lost"]


def test_values_over_seeds_are_means_with_intervals_and_zeros_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    comparison = h3sim.compare(
        "davies-meenan",
        schemes=["rr", "fifo"],
        network="wifi-lossy",
        send_buffers_kb=[0],
        seeds=4,
    )
    values = [hol_of("rr", seed)[0] for seed in range(4)]
    (row,) = [
        row for row in comparison.metrics if (row.metric, row.scheme) == ("hol_stream_bytes", "rr")
    ]
    assert (row.loads, row.clusters, row.mean) == (4, 4, sum(values) / 4)
    assert (row.low, row.high) == mean_interval(values)
    out = printed(capsys, *LOSSY, *NO_BUFFER, "--seeds", "4", "-j", "1")
    cells = tables_of(out)["bytes of head-of-line blocking, 0 kB buffer: means"]["rr"]
    assert cells[0] == f"{row.mean:,.0f}"
    assert row.low is not None
    assert cells[1:4] == [f"{row.low:,.0f}", "to", f"{row.high:,.0f}"]


def test_means_over_pages_average_their_blocked_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "creative", *LOSSY, *NO_BUFFER, "--no-by-page")
    tables = tables_of(out)
    other = h3sim.simulate("creative", scheme="rr", network="wifi-lossy").hol.stream_bytes
    title = "bytes of head-of-line blocking, 0 kB buffer: means over 2 pages"
    assert tables[title]["rr"][0] == f"{(other + hol_of('rr')[0]) / 2:,.0f}"


def test_the_figure_of_a_comparison_has_the_blocked_bytes() -> None:
    loads = h3sim.compare(
        "davies-meenan",
        schemes=["rr", "fifo"],
        network="wifi-lossy",
        send_buffers_kb=[0],
        keep_loads=True,
    ).loads
    texts = [text.get_text() for text in LoadPlots(loads).byte_index().texts]
    assert {text.rpartition(", ")[2] for text in texts} == {
        f"{hol_of(scheme)[0] / 1000:.0f} kB" for scheme in ("rr", "fifo")
    }

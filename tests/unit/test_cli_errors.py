"""The command line against bad input: exit code 2, a line for each mistake, never a traceback."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

import h3sim
from h3sim.cli import main
from h3sim.export.har import load_to_har
from h3sim.load.options import flags_of
from h3sim.page import page_to_dict
from tests.helpers import page_file, unworded

ROOT = {"id": "/", "kind": "document", "bytes": 10}


def complaints(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Run the command, which must refuse its input; return what it says, line by line."""
    try:
        code = main(arguments)
    except SystemExit as exited:  # argparse
        code = int(exited.code or 0)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err
    return unworded(err.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "htp2rulez"], "http2rulez"),
        (["run", "http2rulez", "--scheme", "buckethtml"], "bucket-html"),
        (["run", "http2rulez", "--network", "marx2019"], "marx-2019"),
        (["run", "http2rulez", "--cc", "cubik"], "cubic"),
        (["run", "http2rulez", "--transport-profile", "quickly"], "quicly"),
        (["compare", "davies-mennan"], "davies-meenan"),
        (["compare", "http2rulez", "--scheme", "rr,fiffo"], "fifo"),
        (["compare", "http2rulez", "--baseline", "dfiffo"], "dfifo"),
    ],
)
def test_a_wrong_name_suggests_near_ones(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = complaints(capsys, *arguments)
    assert line.startswith(f"h3sim {arguments[0]}: no ")
    assert unworded([message])[0] in line


NO_BOTTLENECK = """format = "h3sim-network/1"
name = "far"
title = "nothing but distance"
source = "a test"
rtt_ms = 20
[down]
[up]
"""


def test_a_rate_and_a_queue_want_a_bottleneck_that_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = tmp_path / "far.toml"
    network.write_text(NO_BOTTLENECK, "utf-8")
    arguments = ["--network", str(network), "--rate-mbps", "2", "--queue-bdp", "2"]
    assert complaints(capsys, "run", "http2rulez", *arguments) == [
        "h3sim run: --rate-mbps: changes the rate of a bottleneck, but no link of this network"
        " has one",
        "h3sim run: --queue-bdp: applies to the queue of a bottleneck, but no link of this network"
        " has one",
    ]


def test_a_queue_can_be_stated_of_a_link_that_follows_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = tmp_path / "trace.toml"
    network.write_text(NO_BOTTLENECK.replace("[down]", "[down]\nmahimahi = [1, 2]"), "utf-8")
    lost = {}
    for n_bytes in (2000, 10_000_000):
        arguments = ["--network", str(network), "--queue-bytes", str(n_bytes), "--json"]
        assert main(["run", "http2rulez", *arguments]) == 0
        lost[n_bytes] = json.loads(capsys.readouterr().out)["packets"]["lost"]
    assert lost[2000] > 0 == lost[10_000_000]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "http2rulez", "--sed=3"],
            "--seed or --style? (see `h3sim run --help`)",
        ),
        (
            ["store", "export", "a.db", "a.csv", "--resource-rows"],
            "--resources? (see `h3sim store export --help`)",
        ),
        (["run", "http2rulez", "extra"], "unrecognized arguments: extra (see `h3sim run --help`)"),
    ],
)
def test_what_a_command_does_not_know_is_refused_with_its_own_help(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = complaints(capsys, *arguments)
    assert "unrecognized arguments" in line
    assert line.endswith(unworded([message])[0])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["run"],
        ["run", "http2rulez", "--fast"],
        ["run", "http2rulez", "--no-handshake", "--zero-rtt"],
        ["compare"],
        ["list"],
        ["list", "browsers"],
    ],
)
def test_bad_usage_is_reported_in_one_line_that_points_to_the_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = complaints(capsys, *arguments)
    assert line.startswith("h3sim")
    assert "--help`" in line


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--rate-mbps", "0"),
        ("--rate-mbps", "inf"),
        ("--interval-ms", "-1"),
        ("--packet-bytes", "0"),
        ("--packet-bytes", "65508"),
        ("--rtt-ms", "-1"),
        ("--rtt-ms", "nan"),
        ("--send-buffer-kb", "-1"),
        ("--send-buffer-kb", "1e400"),
        ("--send-buffer-kb", "much"),
        ("--seed", "1e3"),
        ("--rtt-ms", "x"),
        ("--loss", "3x"),
        ("--transport", "sctp"),
        ("--retransmission-order", "never"),
        ("--reorder", "4"),
        ("--reorder", "4:3-1"),
        ("--plot", "load.jpeg2000"),
        ("--plot", "load"),
        ("--plot", "no/such/folder/load.png"),
    ],
)
@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_value_that_is_out_of_range_is_reported_by_its_option(
    command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = complaints(capsys, command, "http2rulez", f"{option}={value}")
    assert line.startswith(f"h3sim {command}: {option}: ")


def test_an_unknown_kind_of_figure_is_reported_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (line,) = complaints(capsys, "run", "http2rulez", "--plot", "load.gif")
    assert "load.gif" in line
    assert ".png" in line
    assert list(tmp_path.iterdir()) == []


def test_several_errors_give_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    lines = complaints(
        capsys,
        *("run", "nowhere", "--scheme", "nothing", "--network", "nobody"),
        *("--rtt-ms=-1", "--packet-bytes=0", "--reorder=often", "--plot=x.gif"),
    )
    starts = [
        *("no page is called 'nowhere'", "no scheme is called 'nothing'"),
        *("no network is called 'nobody'", "--rtt-ms: ", "--packet-bytes: ", "--reorder: "),
        "--plot: ",
    ]
    assert len(lines) == len(starts)
    for start in starts:
        assert len([line for line in lines if line.startswith(f"h3sim run: {start}")]) == 1


def test_words_that_are_no_values_are_reported_together_with_what_else_is_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = complaints(
        capsys,
        *("run", "nowhere", "--seed", "1e3", "--transport", "sctp", "--rtt-ms", "x"),
        *("--loss", "3x", "--mean-loss-burst", "0.5", "--qlog", "load.json"),
    )
    assert lines == unworded(
        [
            "h3sim run: no page is called 'nowhere' (`h3sim list pages` shows all)",
            "h3sim run: --transport: 'sctp' is not one of quic, tcp, http1, qmux",
            "h3sim run: --rtt-ms: is 'x'",
            "h3sim run: --loss: is '3x'",
            "h3sim run: --mean-loss-burst: must be 1 to 1e+06, is 0.5",
            "h3sim run: --seed: is '1e3'",
            "h3sim run: --qlog: must end in .qlog or .sqlog, is 'load.json'",
        ]
    )


def test_all_of_a_command_line_that_cannot_be_read_is_reported_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = complaints(capsys, "compare", "--seeds", "x", "-j", "y", "--mean", "median")
    assert lines == [
        "h3sim compare: --seeds: is 'x'",
        "h3sim compare: --workers: is 'y'",
        "h3sim compare: --mean: 'median' is not one of arithmetic, geometric",
        "h3sim compare: the following arguments are required: PAGE (see `h3sim compare --help`)",
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["comapre", "http2rulez"],
            "h3sim: no command is called 'comapre'; did you mean compare? (see `h3sim --help`)",
        ),
        (
            ["store", "lst"],
            "h3sim store: no action is called 'lst'; did you mean list? (see `h3sim store --help`)",
        ),
        (
            ["list", "netwroks"],
            "h3sim list: 'netwroks' is not one of schemes, clients, servers, networks, profiles,"
            " controllers, schedulers, pages, experiments, findings, metrics, sets; did you mean"
            " networks?"
            " (see `h3sim list --help`)",
        ),
    ],
)
def test_commands_that_nobody_knows_are_reported_with_those_spelt_alike(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaints(capsys, *arguments) == unworded([line])


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--zero-rtt", "'0-rtt' needs links: a constant rate has no handshake packets"),
        ("--no-preload-scanner", "goes only with browser = 'parse'"),
    ],
)
def test_an_error_in_the_value_of_a_flag_names_that_flag(
    flag: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaints(capsys, "run", "http2rulez", flag) == unworded(
        [f"h3sim run: {flag}: {message}"]
    )


def test_unknown_names_and_wrong_numbers_are_reported_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = complaints(
        capsys,
        *("run", "http2rulez", "--cc", "cubik", "--transport-profile", "quickly"),
        *(
            "--network",
            "sander-2mbps-100ms",
            "--loss",
            "100%",
            "--mean-loss-burst",
            "0.5",
            "--rate-mbps",
            "-1",
        ),
    )
    assert [line.removeprefix("h3sim run: ").partition(":")[0] for line in lines] == [
        "--rate-mbps",
        "--loss",
        "--mean-loss-burst",
        "--transport-profile",
        "--cc",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--loss", "0.9", "--mean-loss-burst", "1"],
            "--mean-loss-burst: must be at least 9 for a loss of 0.9, is 1",
        ),
        (
            ["--mean-loss-burst", "5"],
            "--mean-loss-burst: clusters losses, but there is no loss",
        ),
        (["--scheme", "sander-2022"], "is a set of schemes: use `h3sim compare`"),
        (["--scheme", "fifo,rr"], "'fifo,rr' names several schemes: use `h3sim compare`"),
    ],
)
def test_options_that_do_not_go_together_are_reported(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = complaints(capsys, "run", "http2rulez", *options)
    assert unworded([message])[0] in line


def test_several_errors_of_a_comparison_give_a_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = complaints(
        capsys,
        *("compare", "nowhere", "never", "--scheme", "rr,nothing", "--scheme", "neither"),
        *("--baseline", "nil", "--send-buffer-kb", "0,many,-1", "--rtt-ms=-1"),
    )
    reported = (
        "'nowhere'",
        "'never'",
        "'nothing'",
        "'neither'",
        "'nil'",
        "'many'",
        "-1",
        "--rtt-ms",
    )
    assert len(lines) == len(reported)
    assert all(any(unworded([message])[0] in line for line in lines) for message in reported)


def test_a_broken_page_file_lists_all_its_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = page_file(
        tmp_path,
        ROOT | {"bytes": -1, "colour": "red"},
        {"id": "a", "kind": "film", "bytes": 1, "discovered": {"by": "b", "at": "complete"}},
    )
    lines = complaints(capsys, "run", path)
    positions = [line.removeprefix(f"h3sim run: {path}: ").partition(":")[0] for line in lines]
    assert sorted(positions) == [
        *("resources[0].bytes", "resources[0].colour"),
        *("resources[1].discovered.by", "resources[1].kind"),
    ]


def test_broken_files_of_several_kinds_are_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, scheme, network = (tmp_path / name for name in ("p.json", "s.toml", "n.toml"))
    page.write_text("{", encoding="utf-8")
    scheme.write_text("mechanism = ", encoding="utf-8")
    network.write_text("rtt_ms = ", encoding="utf-8")
    options = ("--scheme", str(scheme), "--network", str(network))
    lines = complaints(capsys, "run", str(page), *options)
    assert len(lines) == 3
    for path in (page, scheme, network):
        assert len([line for line in lines if f": {path}: is not " in line]) == 1


def test_an_empty_page_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.json"
    path.write_text('{"resources": []}', encoding="utf-8")
    lines = complaints(capsys, "run", str(path))
    positions = [line.removeprefix(f"h3sim run: {path}: ").partition(":")[0] for line in lines]
    assert sorted(positions) == ["format", "name", "resources"]


@pytest.mark.parametrize("name", ["missing.json", "folder.json", "missing/page.json"])
def test_a_file_that_cannot_be_read_is_reported(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.json").mkdir()
    (line,) = complaints(capsys, "run", str(tmp_path / name))
    assert line.startswith(f"h3sim run: {tmp_path / name}: cannot be read: ")


@pytest.mark.parametrize("option", ["--scheme", "--network"])
def test_a_file_of_another_kind_that_cannot_be_read_is_reported(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.toml"
    (line,) = complaints(capsys, "run", "http2rulez", option, str(path))
    assert line.startswith(f"h3sim run: {path}: cannot be read: ")


@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_page_over_the_limit_of_packets_is_refused_at_once_in_one_line(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # One byte more than 5 million packets carry.
    path = page_file(tmp_path, ROOT | {"bytes": 5_000_000 * 1400 + 1})
    (line,) = complaints(capsys, command, path)
    assert "5,000,001 packets" in line
    assert "5,000,000" in line


@pytest.mark.parametrize("name", ["x" * 300, "", " ", "résumé", "../nothing", "-"])
@pytest.mark.parametrize("where", ["page", "--scheme", "--network"])
def test_no_name_whatever_breaks_the_program(
    name: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [name] if where == "page" else ["http2rulez", f"{where}={name}"]
    assert len(complaints(capsys, "run", *arguments)) == 1


@pytest.mark.parametrize("value", ["1e308", "1" + "0" * 400])
def test_no_number_whatever_breaks_the_program(
    tmp_path: Path, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(page_file(tmp_path, ROOT | {"server_ms": "?"}))
    path.write_text(path.read_text("utf-8").replace('"?"', value), encoding="utf-8")
    (line,) = complaints(capsys, "run", str(path))
    assert line.startswith(f"h3sim run: {path}: resources[0].server_ms: ")


def test_half_a_character_in_an_id_does_not_break_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # JSON may hold half of a surrogate pair, which no output can show as it is.
    path = Path(page_file(tmp_path, ROOT | {"id": "?"}))
    path.write_text(path.read_text("utf-8").replace('"?"', '"\\ud83d"'), encoding="utf-8")
    code = main(["run", str(path)])
    assert code in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_two_pages_of_one_name_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Rows of a comparison go by the name of the page.
    path = page_file(tmp_path, ROOT, name="http2rulez")
    (line,) = complaints(capsys, "compare", "http2rulez", path)
    assert "two pages are called 'http2rulez'" in line


@pytest.mark.parametrize("command", [["annotate"], ["show", "page"]], ids=" ".join)
@pytest.mark.parametrize("name", ["shop.har", "shop.HAR.gz", "index.html"])
def test_a_recording_in_the_place_of_a_page_is_reported_with_how_to_be_imported(
    command: list[str], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(b"{}")
    assert main([*command, str(path)]) == 2
    assert capsys.readouterr().err == (
        f"h3sim {command[0]}: {path}: is not a page file:"
        f" convert it with `h3sim import {path} -o page.json`\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["import", "shop.har", "-o", "./shop.har"],
            "import: --output: './shop.har' is also an input file",
        ),
        (["run", "shop.har", "--har", "shop.har"], "run: --har: 'shop.har' is also an input file"),
        (
            ["sweep", "study.toml", "--csv", "study.toml"],
            "sweep: --csv: 'study.toml' is also an input",
        ),
        (
            ["sweep", "study.toml", "--csv", "rows", "--save", "rows"],
            "sweep: --save: 'rows' is also --csv: choose another file",
        ),
        (["compare", "page.json", "--seeds", "2", "--csv", "page.json"], "--csv: 'page.json' is"),
        (
            ["record", "site.html", "-o", "site.html"],
            "record: --output: 'site.html' is also an input",
        ),
    ],
)
def test_no_output_takes_the_place_of_what_is_read_or_of_another(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "shop.har": json.dumps(load_to_har(h3sim.simulate("davies-meenan"))),
        "study.toml": 'format = "h3sim-study/1"\npages = "davies-meenan"\n',
        "page.json": json.dumps(page_to_dict(h3sim.load_page("davies-meenan"))),
        "site.html": "<p>",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    (line,) = complaints(capsys, *arguments)
    assert unworded([message])[0] in line
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == files


def test_rare_options_of_a_load_are_settings_and_every_error_in_them_is_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = complaints(
        capsys,
        *("what-if", "nowhere", "--set", "zzz=3", "--set", "loss=7", "--set", "seed"),
        *("--set", "preload_scanner=perhaps", "--rtt-ms", "x"),
    )
    assert lines == unworded(
        [
            "h3sim what-if: no page is called 'nowhere' (`h3sim list pages` shows all)",
            "h3sim what-if: --set zzz: there is no such option",
            "h3sim what-if: --set: must be KEY=VALUE, is 'seed'; --set help lists the keys",
            "h3sim what-if: --rtt-ms: is 'x'",
            "h3sim what-if: --set loss: must be at least 0 and less than 1 (0.02, or 2%), is 7.0",
            "h3sim what-if: --set preload_scanner: is 'perhaps'",
        ]
    )


def test_an_option_that_is_a_setting_is_refused_with_the_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for flag, setting in (
        ("--mean-loss-burst=4", "mean_loss_burst=VALUE"),
        ("--zero-rtt", "handshake=0-rtt"),
        ("--no-preload-scanner", "preload_scanner=false"),
    ):
        (line,) = complaints(capsys, "search", "http2rulez", flag)
        assert f"; use --set {setting}" in line
    (line,) = complaints(capsys, "run", "http2rulez", "--set", "seed=3")
    assert "is an option of its own here: see --help-all" in line


@pytest.mark.parametrize("setting", ["loss=2%", "loss=0.02"])
def test_a_setting_is_the_option_of_that_name(
    setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["optimality", "davies-meenan", "--scheme", "rr", "--network", "cable", "--json"]
    assert main([*command, "--loss", "0.02"]) == 0
    expected = capsys.readouterr().out
    assert main([*command, "--set", setting]) == 0
    assert capsys.readouterr().out == expected


def test_the_settings_are_listed_with_every_option_of_a_load(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["report", "--set", "help"])
    assert exited.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    keys = {line.split(" ")[0] for line in lines if line and not line.startswith(" ")}
    assert {field.name for field in fields(h3sim.LoadConfig)} <= keys


def test_the_help_of_run_fits_two_screens_and_help_all_has_every_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = {}
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            main(["run", option])
        shown[option] = capsys.readouterr().out
    assert len(shown["--help"].splitlines()) <= 100
    flags = {flag for flags in flags_of(h3sim.LoadConfig).values() for flag in flags}
    assert [flag for flag in flags if f" {flag}" not in shown["--help-all"]] == []
    assert "--mean-loss-burst" not in shown["--help"]

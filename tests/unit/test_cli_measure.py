"""`h3sim qlog`, and that a log of h3sim gives what its load gave."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim import engine
from h3sim.cli import main
from h3sim.export.load_document import measured_to_dict
from h3sim.export.qlog_file import write_load_qlog
from h3sim.load.run import run_spec
from h3sim.qlog import DIALECTS, parse_qlog
from h3sim.schema.files import DIGEST
from h3sim.transport import Protocol
from tests.helpers import replay
from tests.logs import NO_UPLINK

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim import Load


def measure(*arguments: object) -> int:
    return main(["qlog", *map(str, arguments)])


OF_LOADS = (
    *("build", "notes", "inputs"),
    *("image_index_ms", "multiplexing", "visual", "priority_frames"),
)
"""What needs the page, the scheme, or to know what the client sent."""


def of_a_log(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a load without what no log can tell."""
    unknown = dict.fromkeys(("page_digest", "scheme", "network", "seed", "configuration"))
    unknown["above_the_fold"] = {"resources": None, "bytes": None, "from": None}
    figures = {k: figures[k] for k in figures if k not in OF_LOADS}
    indexes = {
        key: {**figures[key], "atf": None} for key in ("byte_index_ms", "byte_index_sampled_ms")
    }
    packets = {"packets": figures["packets"] | NO_UPLINK}
    return without_digest({**figures, **unknown, **indexes, **packets})


def without_digest(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != DIGEST}


def measured(load: Load, path: Path, **how: str) -> dict[str, Any]:
    write_load_qlog(load, path, **how)
    return without_digest(measured_to_dict(parse_qlog(path)))


SETTINGS = [
    {},
    {"reorder": "4:1-3"},
    {"reorder": "1:0-5", "rtt_ms": 75.3, "send_buffer_kb": 14, "handshake": False},
    {"reorder": "4:1-3", "transport": "tcp"},
    {"reorder": "3:7", "transport": "tcp", "rtt_ms": 20, "packet_bytes": 1000},
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("scheme", ["rr", "fifo", "bucket-html", "s+"])
def test_a_log_of_a_load_gives_exactly_the_figures_of_the_load(
    tmp_path: Path, scheme: str, setting: dict[str, Any]
) -> None:
    load = h3sim.simulate("davies-meenan", scheme=scheme, **setting)
    expected = of_a_log(load.to_dict())
    assert measured(load, tmp_path / "load.qlog") == expected
    assert measured(load, tmp_path / "load.sqlog", dialect="draft") == expected


def test_what_is_done_to_one_document_changes_no_other(tmp_path: Path) -> None:
    load = h3sim.simulate("davies-meenan")
    before = json.dumps(measured(load, tmp_path / "load.qlog"))
    measured(load, tmp_path / "load.qlog")["above_the_fold"]["bytes"] = 1
    assert json.dumps(measured(load, tmp_path / "load.qlog")) == before


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_so_does_a_log_of_a_load_with_losses(tmp_path: Path, transport: str) -> None:
    load = run_spec(
        engine.LoadSpec(
            h3sim.load_page("davies-meenan"),
            scheme=h3sim.load_scheme("rr"),
            network=h3sim.load_network("sander-2mbps-100ms-2pct"),
            protocol=Protocol(transport),
        ),
        record_packets=True,
    )
    assert load.packets.lost > 0
    assert len(load.trace.wire) > load.packets.sent
    expected = of_a_log(load.to_dict())
    # No log has the reason of a loss.
    expected["packets"] = {**expected["packets"], "queue_drops": None}
    assert measured(load, tmp_path / "load.qlog") == expected
    assert measured(load, tmp_path / "load.qlog", dialect="draft") == expected


def test_a_clients_log_alone_has_no_figures_for_what_it_did_not_see(tmp_path: Path) -> None:
    load = run_spec(
        engine.LoadSpec(
            h3sim.load_page("davies-meenan"),
            scheme=h3sim.load_scheme("rr"),
            network=h3sim.load_network("sander-2mbps-100ms-2pct"),
        )
    )
    expected = of_a_log(load.to_dict())
    figures = measured(load, tmp_path / "load.sqlog")
    unseen = {"connection_bytes": None, "connection_delay_ms": None}
    assert figures["hol"] == {**expected["hol"], **unseen}
    assert figures["packets"]["retransmitted"] is None
    # Ends of responses that were lost leave no gap.
    assert 0 < figures["packets"]["lost"] <= load.packets.lost
    same = ("byte_index_ms", "page_load_ms", "resources")
    assert {key: figures[key] for key in same} == {key: expected[key] for key in same}


def test_a_load_is_written_with_the_names_and_sizes_of_its_page(tmp_path: Path) -> None:
    load = replay([(0, "document", 2), (15, "image", 1, {"request_bytes": 77})], "rr")
    write_load_qlog(load, tmp_path / "load.qlog")
    log = parse_qlog(tmp_path / "load.qlog")
    assert log.title == "scripted"
    assert log.resources == (("r0", 2800), ("r1", 1400))
    sent = [
        frame["length"]
        for event in json.loads((tmp_path / "load.qlog").read_text())["traces"][1]["events"]
        if event["name"] == "transport:packet_sent"
        for frame in event["data"]["frames"]
    ]
    assert sent == [100, 77]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    load = h3sim.simulate("davies-meenan", scheme="fifo", reorder="4:1-3")
    write_load_qlog(load, tmp_path / "load.qlog")
    return tmp_path / "load.qlog"


def test_json_is_all_that_goes_to_standard_output(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(log, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == measured_to_dict(parse_qlog(log))
    assert (out.count("\n"), err) == (1, "")


def test_people_get_figures_and_a_row_for_each_stream(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure(log) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    figures = measured_to_dict(parse_qlog(log))
    assert lines[0] == "davies-meenan: a log over quic"
    assert lines[2].split() == ["ByteIndex", f"{figures['byte_index_ms']['all']:,.1f}", "ms"]
    packets = "458 sent, 0 lost, 0 retransmitted"
    assert lines[4].split(None, 2) == ["downlink", "packets", packets]
    assert len(lines) == 12 + len(figures["resources"])
    assert err == ""


def test_what_a_log_does_not_state_is_reported_next_to_the_figures(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(log.read_text())
    del document["traces"][0]
    document["traces"][0]["events"] = [
        event
        for event in document["traces"][0]["events"]
        if event["data"].get("header", {}).get("packet_number") != 50
    ]
    log.write_text(json.dumps(document))
    assert measure(log) == 0
    out, err = capsys.readouterr()
    assert err.splitlines()[:2] == [
        "h3sim qlog: unknown: when packets were sent: the server has no log here",
        "h3sim qlog: unknown: what 1 packet carried, of which only the number is missing;"
        " taken as lost",
    ]
    assert "458 sent, 1 lost, - retransmitted" in out
    assert "HOL blocking across streams      -" in out


def test_a_bad_log_is_reported_line_by_line_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.qlog"
    path.write_text('{"traces": [1, {}]}')
    assert measure(path) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"h3sim qlog: {path}: traces[0]: must be an object",
        f"h3sim qlog: {path}: traces[1].events: is missing",
    ]


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        measure("--help")
    assert caught.value.code == 0
    assert "h3sim qlog client.qlog" in capsys.readouterr().out


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_command_line_writes_every_dialect_and_reads_it_back(
    dialect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "load.qlog")
    assert main(["run", "davies-meenan", "--json", "--qlog", log, "--qlog-dialect", dialect]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert main(["qlog", log, "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["hol"] == ran["hol"]
    assert measured["byte_index_ms"]["all"] == ran["byte_index_ms"]["all"]

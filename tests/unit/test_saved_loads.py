"""Every output says what was run; a saved load runs again from itself."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.browser import BrowserMode, BrowserModel, TightMode
from h3sim.cli import main
from h3sim.export import SavedLoadError, load_from_dict
from h3sim.export.qlog_file import write_load_qlog
from h3sim.schedulers import FifoScheduler
from h3sim.schema.files import DIGEST, json_digest
from tests.helpers import page_file, page_of
from tests.schemas import schema_problems

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 28_000, "parse_ms": 3}
IMAGE = {"id": "a.png", "kind": "image", "bytes": 1400, "discovered": {"by": "/", "at": "complete"}}
PAGE = page_of(ROOT, IMAGE)
SETTINGS = [
    {},
    {"rate_mbps": 3, "packet_bytes": 1200, "reorder": "4:1-3", "seed": 7, "transport": "tcp"},
    {"network": "marx-2019-jitter", "send_buffer_kb": 14, "handshake": False},
    {
        "loss": 0.02,
        "mean_loss_burst": 5,
        "rtt_ms": 50,
        "handshake": "0-rtt",
        "retransmission_order": "priority",
    },
    {"network": "4g", "transport_profile": "linux-tcp", "cc": "bbr", "queue_bytes": 30_000},
    {"network": "sander-2mbps-100ms-2pct", "transport_profile": "quicly", "seed": 3},
    {"browser": "parse", "cpu_slowdown": 4, "max_concurrent_requests": 6, "preload_scanner": False},
    {
        "browser": BrowserModel(mode=BrowserMode.PARSE, tight_mode=TightMode.CHROME_95),
        "rtt_ms": 33.3,
    },
    {"interval_ms": 3.7, "packet_bytes": 999},
    {"network": "4g", "loss": 0.03, "header_compression": "qpack"},
    {"network": "cable", "transport": "http1", "max_connections_per_host": 1},
]


@pytest.mark.parametrize("config", SETTINGS, ids=str)
def test_a_saved_load_runs_again_byte_for_byte(config: Any) -> None:
    load = h3sim.simulate(PAGE, scheme="bucket-html", **config)
    text = json.dumps(load.to_dict(order=True))
    saved = load_from_dict(json.loads(text))
    again = saved.run()
    assert json.dumps(again.to_dict(order=True)) == text
    assert again.trace == load.trace
    assert again.configuration == load.configuration
    assert saved.differences(again) == []


@pytest.mark.parametrize("config", SETTINGS, ids=str)
def test_the_configuration_has_every_setting_that_was_requested(config: Any) -> None:
    configuration = h3sim.simulate(PAGE, **config).configuration
    for key, value in config.items():
        if key in ("browser", "network") and not isinstance(value, str):
            continue
        if key == "network":
            assert configuration[key].startswith(value)
        else:
            assert configuration[key] == ("none" if key == "handshake" and not value else value)


def test_the_configuration_names_every_option_of_a_load() -> None:
    named = set(h3sim.simulate(PAGE).configuration)
    assert set(h3sim.LoadConfig.__dataclass_fields__) <= named


def test_a_changed_network_is_called_so() -> None:
    load = h3sim.simulate(PAGE, loss=0.02, mean_loss_burst=5, rtt_ms=50)
    assert load.network.name == "marx-2019 with rtt_ms=50, loss=0.02, mean_loss_burst=5"
    assert "no loss" not in load.network.title
    assert h3sim.simulate(PAGE, cc="newreno").network.name == "marx-2019 with cc=newreno"
    assert h3sim.simulate(PAGE, rtt_ms=0).network == h3sim.load_network("marx-2019")
    assert h3sim.simulate(PAGE, rtt_ms=50.0).network == h3sim.simulate(PAGE, rtt_ms=50).network


def test_other_outputs_state_what_was_run(tmp_path: Path) -> None:
    load = h3sim.simulate(PAGE, loss=0.02, mean_loss_burst=5, rtt_ms=50, handshake="0-rtt")
    write_load_qlog(load, tmp_path / "load.qlog")
    log = json.loads((tmp_path / "load.qlog").read_text(encoding="utf-8"))
    shown = (log["description"], load._repr_html_(), load.plot.figure().get_suptitle())
    for text in shown:
        for part in ("1.12 Mbit/s", "RTT 50 ms", "2 % loss in bursts of 5", "0-RTT handshake"):
            assert part in text.replace("\n", " ")
        assert f"h3sim {h3sim.__version__}" in text.replace("\n", " ")
    attributes = load.to_pandas().attrs
    assert attributes["configuration"] == load.configuration
    assert attributes["page_digest"] == PAGE.digest
    compared = h3sim.compare(PAGE, schemes="rr", network="4g")
    assert compared.to_pandas().attrs["configuration"]["network"] == "4g"
    assert compared.to_dict()["page_digests"] == {"page": PAGE.digest}
    assert "RTT 60 ms" in compared.describe()


def test_the_command_line_runs_a_saved_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = page_file(tmp_path, ROOT, IMAGE)
    assert main(["run", path, "--scheme", "fifo", "--loss", "2%", "--rtt-ms", "50", "--json"]) == 0
    saved = tmp_path / "load.json"
    saved.write_text(capsys.readouterr().out, encoding="utf-8")
    # From itself: the page file need not be there any more.
    (tmp_path / "mine.json").unlink()
    assert main(["run", str(saved), "--json"]) == 0
    assert capsys.readouterr().out == saved.read_text(encoding="utf-8")
    assert main(["run", str(saved)]) == 0
    assert "fifo over marx-2019 with rtt_ms=50, loss=0.02" in capsys.readouterr().out


def test_a_saved_load_brings_its_own_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "load.json"
    saved.write_text(json.dumps(h3sim.simulate(PAGE).to_dict()), encoding="utf-8")
    assert main(["run", str(saved), "--scheme", "rr", "--json"]) == 2  # what it is anyway
    assert "--scheme: does not go with a saved load" in capsys.readouterr().err
    assert main(["run", str(saved), "--rtt-ms", "5", "--scheme", "fifo"]) == 2
    complained = capsys.readouterr().err
    assert "--rtt-ms: does not go with a saved load" in complained
    assert "--scheme: does not go with a saved load" in complained


def test_a_load_of_another_version_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "load.json"
    document = h3sim.simulate(PAGE).to_dict() | {"version": "0.0.1"}
    document |= {DIGEST: json_digest(document)}
    saved.write_text(json.dumps(document), encoding="utf-8")
    assert main(["run", str(saved)]) == 0
    assert "saved by h3sim 0.0.1" in capsys.readouterr().err


def test_a_file_that_was_edited_is_refused_unless_it_has_no_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "load.json"
    document = h3sim.simulate(PAGE).to_dict()
    saved.write_text(json.dumps(document, indent=1), encoding="utf-8")
    assert h3sim.read_load(saved).config.seed == 0
    saved.write_text(json.dumps(document | {"seed": 1}), encoding="utf-8")
    for command, more in (("run", ()), ("report", ("-o", str(tmp_path / "report.html")))):
        assert main([command, str(saved), *more]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"h3sim {command}: {saved}: digest: differs")
    del document[DIGEST]
    saved.write_text(json.dumps(document | {"seed": 1}), encoding="utf-8")
    assert h3sim.read_load(saved).config.seed == 1


def test_what_differs_is_named() -> None:
    saved = load_from_dict(h3sim.simulate(PAGE).to_dict())
    assert saved.differences(h3sim.simulate(PAGE, seed=1)) == ["seed", "configuration"]


def test_a_scheduler_that_is_code_must_be_given_again() -> None:
    load = h3sim.simulate(PAGE, scheduler=FifoScheduler)
    saved = load_from_dict(load.to_dict())
    with pytest.raises(SavedLoadError, match=r"inputs\.scheme: was defined in code"):
        saved.run()
    assert saved.run(scheme=FifoScheduler).trace == load.trace


def broken(**changes: Any) -> Any:
    document = copy.deepcopy(h3sim.simulate(PAGE).to_dict())
    for path, value in changes.items():
        *parents, last = path.split("__")
        position = document
        for name in parents:
            position = position[name]
        if value is None:
            del position[last]
        else:
            position[last] = value
    return document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "must be a table"),
        ({"format": "h3sim-page/1"}, "format: must be 'h3sim-load/2'"),
        ({"format": "h3sim-load/2"}, "version: is missing"),
        (broken(inputs=[]), "inputs: "),
        (broken(inputs__network=None), r"inputs\.network: is missing"),
        (broken(inputs__page=5), r"inputs\.page: .*is 5"),
        (broken(inputs__page__resources=[]), r"inputs\.page\.resources"),
        (broken(inputs__network__rtt_ms="x"), r"inputs\.network\.rtt_ms: "),
        (broken(page_digest="0"), "page_digest: differs from the digest of inputs.page"),
        (broken(seed="x"), "seed: .*is 'x'"),
        (broken(transport="udp"), "transport: 'udp' .*quic, tcp"),
        (
            broken(configuration__browser="lynx"),
            r"configuration\.browser: 'lynx' .*replay",
        ),
        (
            broken(inputs=None),
            "inputs: is missing: a load that was computed from a log cannot be run again",
        ),
        (broken(configuration__seed=[]), r"configuration\.seed: must be one value, is \[\]"),
        (
            broken(configuration__send_buffer_kb="x"),
            r"configuration\.send_buffer_kb: .*is 'x'",
        ),
    ],
)
def test_a_document_that_cannot_run_again_is_refused(document: Any, message: Any) -> None:
    with pytest.raises(SavedLoadError, match=message):
        load_from_dict(document)


@pytest.mark.parametrize("config", SETTINGS[:5], ids=str)
def test_a_saved_load_is_as_its_schema_states(config: Any) -> None:
    document = h3sim.simulate(PAGE, **config).to_dict()
    assert schema_problems(document) == []
    document["inputs"]["network"]["rtt_ms"] = "soon"
    document["byte_index_ms"]["all"] = "soon"
    assert len(schema_problems(document)) == 2


def test_the_document_of_a_log_is_as_the_schema_of_loads_states(tmp_path: Path) -> None:
    write_load_qlog(h3sim.simulate(PAGE), tmp_path / "load.qlog")
    measured = h3sim.read_qlog(tmp_path / "load.qlog").to_dict()
    assert schema_problems(measured) == []
    with pytest.raises(SavedLoadError) as caught:
        load_from_dict(measured)
    assert str(caught.value).startswith(
        "load: inputs: is missing: a load that was computed from a log"
    )


def test_every_error_of_a_saved_load_is_reported_at_once() -> None:
    document = broken(inputs__network__rtt_ms="x", inputs__page__name=5, configuration=3)
    with pytest.raises(SavedLoadError) as caught:
        load_from_dict(document | {"transport": "udp", "seed": -1})
    keys = [problem.key for problem in caught.value.problems]
    assert keys == [
        *("transport", "seed", "configuration", "inputs.page.name", "inputs.network.rtt_ms"),
    ]


@pytest.mark.parametrize("text", ["", "[", '{"format": "h3sim-load/2"', "[" * 100_000])
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, text: Any) -> None:
    path = tmp_path / "load.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SavedLoadError):
        h3sim.read_load(path)


def test_a_recording_states_what_it_is_loaded_over() -> None:
    hosts = replace(PAGE, provenance={"source": "x.har", "hosts": "264"})
    notes = h3sim.simulate(hosts).notes
    assert notes[0] == "264 hosts of the recording share one connection here"
    assert "constant 1.12 Mbit/s with RTT 0 ms (marx-2019)" in notes[1]
    assert h3sim.simulate(hosts, network="4g").notes == notes[:1]
    assert h3sim.simulate(replace(hosts, provenance={"hosts": "1"}), network="4g").notes == []
    assert h3sim.simulate(PAGE).notes == []
    assert h3sim.simulate(hosts).to_dict()["notes"] == notes
    assert h3sim.compare(hosts, schemes="rr").to_dict()["notes"] == {"page": notes}


def test_the_command_line_states_it_of_every_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.json"
    path.write_text(replace(PAGE, provenance={"hosts": "264"}).to_json(), encoding="utf-8")
    for command in (["run", str(path)], ["compare", str(path), "--scheme", "rr"]):
        assert main(command) == 0
        assert "264 hosts of the recording share one connection" in capsys.readouterr().out


def test_a_seed_that_is_refused_is_reported_once() -> None:
    with pytest.raises(SavedLoadError) as raised:
        load_from_dict(broken(seed=-4))
    assert [problem.key for problem in raised.value.problems] == ["seed"]


@pytest.mark.parametrize("classes", [True, 1, 1.5, None, "x", [True], {"x": True}])
def test_classes_of_another_type_are_an_error_of_the_scheme(classes: Any) -> None:
    document = broken()
    document["inputs"]["scheme"]["classes"] = classes
    with pytest.raises(SavedLoadError) as raised:
        load_from_dict(document)
    keys = [problem.key for problem in raised.value.problems]
    assert any(key.startswith("inputs.scheme.classes") for key in keys)


def test_a_load_of_another_format_is_refused_with_the_name_of_its_format() -> None:
    document = h3sim.simulate(PAGE).to_dict() | {"format": "h3sim-load/1"}
    with pytest.raises(SavedLoadError, match=r"format: .*h3sim-load/1"):
        load_from_dict(document)

"""What readers of the papers try first: names alone, words of the field, percentages, changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.papers.findings import list_findings
from h3sim.papers.reproduce import chosen_experiments
from h3sim.transport.congestion import NewRenoController
from h3sim.values.errors import InputError, UnknownNameError, UnknownOptionError

if TYPE_CHECKING:
    from pathlib import Path


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Return what a command prints, to standard error if it fails."""
    assert main([*arguments]) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def test_findings_experiments_and_metrics_are_listed_and_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for kind, name in (
        ("finding", "marx-2"),
        ("experiment", "marx-2019-table-2"),
        ("metric", "hol_stream_bytes"),
    ):
        assert f"\n{name} " in output_of(capsys, "list", f"{kind}s")
        shown = output_of(capsys, "show", kind, name)
        assert shown.startswith(f"{name}: ")
        assert output_of(capsys, "show", name) == shown
    shown = output_of(capsys, "show", "finding", "marx-2", "--no-truncate")
    (finding,) = (each for each in list_findings() if each.id == "marx-2")
    for text in (finding.statement, finding.source, finding.study, "at least 0.7"):
        assert text in shown
    assert "marx-2" in output_of(capsys, "show", "experiment", finding.study, "--no-truncate")


def test_every_finding_experiment_and_metric_can_be_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(list_findings()) > 50
    for finding in list_findings():
        assert output_of(capsys, "show", "finding", finding.id).startswith(finding.id)


def test_a_name_alone_is_found_where_it_is_unique(capsys: pytest.CaptureFixture[str]) -> None:
    for kind, name in (("scheme", "nghttp3"), ("network", "cable"), ("page", "http2rulez")):
        assert output_of(capsys, "show", name) == output_of(capsys, "show", kind, name)
    ambiguous = output_of(capsys, "show", "davies-meenan", code=2)
    assert "`h3sim show page davies-meenan`" in ambiguous
    assert "`h3sim show experiment davies-meenan`" in ambiguous
    assert "nghttp3" in output_of(capsys, "show", "nghtp3", code=2)
    assert "h3sim list schemes" in output_of(capsys, "show", "scheme", code=2)
    assert "must be one of page, scheme" in output_of(capsys, "show", "shceme", "rr", code=2)
    assert "--toml: does not go with a metric" in output_of(
        capsys, "show", "metric", "page_load_ms", "--toml", code=2
    )


def test_a_paper_stands_for_its_experiments_and_findings() -> None:
    chosen = chosen_experiments(["marx-2019"])
    of_paper = [name for name in h3sim.papers.experiment_names() if name.startswith("marx-2019-")]
    assert {*of_paper} <= {*chosen}
    # Its hypothesis about loss is judged by an experiment of another name.
    assert "loss-map" in chosen
    assert not [name for name in chosen if name.startswith("sander")]
    assert {*chosen_experiments(["koshiba-2016"])} == {"koshiba-2016"}
    with pytest.raises(UnknownNameError):
        chosen_experiments(["marx-2018"])


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("bandwidth", "rate-mbps"),
        ("bandwidth-kbps", "rate-mbps"),
        ("throughput", "rate-mbps"),
        ("latency", "rtt-ms"),
        ("delay-ms", "rtt-ms"),
        ("packet-loss", "loss"),
        ("congestion-control", "cc"),
        ("protocol", "transport"),
        ("strategy", "scheme"),
    ],
)
def test_a_word_of_the_field_leads_to_the_option(
    word: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["run", "creative", f"--{word}", "5"])
    assert exited.value.code == 2
    assert f" --{option}?" in capsys.readouterr().err
    options: dict[str, Any] = {word.replace("-", "_"): 5}
    with pytest.raises(UnknownOptionError, match=f" {option.replace('-', '_')}[ ?]"):
        h3sim.simulate("creative", **options)


def test_a_word_leads_to_a_setting_where_the_option_is_rare(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["recommend", "creative", "--mtu", "5"])
    assert " --set packet_bytes=VALUE?" in capsys.readouterr().err


def test_a_word_of_the_field_leads_to_the_metric(capsys: pytest.CaptureFixture[str]) -> None:
    for word, metric in (("lcp_ms", "largest_paint_ms"), ("PLT", "page_load_ms")):
        message = output_of(capsys, "compare", "creative", "--metric", word, code=2)
        assert f"did you mean {metric}?" in message


def test_a_misspelt_table_of_a_key_leads_to_the_table() -> None:
    axes = {"profil.quic.ack_every": [2, 10], "bandwidth": [1, 2]}
    with pytest.raises(UnknownOptionError) as caught:
        h3sim.study.load_study("creative").with_axes(axes)
    messages = [problem.message.partition("; ")[2] for problem in caught.value.problems]
    assert messages == ["did you mean profile.quic.ack_every?", "did you mean rate_mbps?"]


def test_what_the_command_line_varies_has_a_row_per_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        'format = "h3sim-study/1"\npages = ["creative"]\nschemes = ["rr"]\n'
        'axes.network = ["cable"]\n'
    )
    options = ("--vary", "profile.quic.ack_every=2,10", "--vary", "rtt_ms=20")
    shown = output_of(capsys, "sweep", str(study), *options)
    heading = next(line for line in shown.splitlines() if line.startswith("network"))
    assert heading.split()[:4] == ["network", "profile.quic.ack_every", "rtt_ms", "scheme"]
    assert [line.split()[1:3] for line in shown.splitlines() if line.startswith("cable")] == [
        ["2", "20"],
        ["10", "20"],
    ]


def test_a_share_is_a_number_or_a_percentage() -> None:
    loads = [
        h3sim.simulate("creative", network="cable", loss=loss) for loss in ("2%", 0.02, "0.07%")
    ]
    assert [load.configuration["loss"] for load in loads] == [0.02, 0.02, 0.0007]
    assert loads[0].trace == loads[1].trace
    for wrong in ("x%", "%", "2", "200%", "-1%", "nan%"):
        with pytest.raises(InputError, match="loss: must be"):
            h3sim.simulate("creative", network="cable", loss=wrong)
    results = h3sim.sweep(
        "creative", schemes="rr", network="cable", loss=["2%", 0.02], executor="serial"
    )
    assert set(results.column("loss")) == {0.02}


def test_a_network_can_be_changed_as_by_the_options_of_a_load() -> None:
    changed = h3sim.load_network("cable").with_(rate_mbps=5, rtt_ms=80, loss="1%")
    load = h3sim.simulate("creative", network=changed)
    same = h3sim.simulate("creative", network="cable", rate_mbps=5, rtt_ms=80, loss=0.01)
    assert load.trace == same.trace
    assert load.network.name == same.network.name
    assert h3sim.load_network("cable").with_(rtt_ms=80, name="far").name == "far"
    with pytest.raises(
        UnknownOptionError, match=r"bandwidth: is no argument of with_; did you mean rate_mbps\?"
    ):
        changed.with_(bandwidth=3)
    with pytest.raises(InputError) as caught:
        changed.with_(rtt_ms=-1, loss=3)
    assert [problem.key for problem in caught.value.problems] == ["rtt_ms", "loss"]


class Own(NewRenoController):
    """A controller of one's own."""


def test_a_profile_can_be_changed() -> None:
    default = h3sim.load_profile("default")
    changed = default.with_(cc="newreno", initial_window_bytes=20_000)
    assert (changed.cc, changed.initial_window_bytes) == ("newreno", 20_000)
    assert changed.name == "default with cc=newreno, initial_window_bytes=20000"
    assert default.with_(cc=Own).controller is Own
    assert default.with_(name="mine", hystart=True).name == "mine"
    small = default.with_(quic={"datagram_bytes": 1200})
    assert (small.quic.datagram_bytes, small.quic_client.datagram_bytes) == (1200, 1200)
    load = h3sim.simulate("creative", network="cable", transport_profile=changed)
    assert load.configuration["cc"] == "newreno"
    for wrong in ({"congestion": 3}, {"quic": {"datagrams": 3}}):
        with pytest.raises(UnknownOptionError, match="is no argument of with_"):
            default.with_(**wrong)
    with pytest.raises(InputError, match="beta: "):
        default.with_(beta=3)
    with pytest.raises(UnknownNameError, match="no controller is called 'nope'"):
        default.with_(cc="nope")


def test_a_scheme_shown_by_its_name_alone_names_the_client_that_has_it_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["show", "firefox"]) == 0
    shown, said = capsys.readouterr()
    assert shown.startswith("firefox: ")
    assert "h3sim show client firefox" in said
    assert main(["show", "rr"]) == 0
    assert capsys.readouterr().err == ""

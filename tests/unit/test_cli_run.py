"""`h3sim run` and `h3sim list`: what they print, and the exit code."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import h3sim
from h3sim.catalog.resources import root
from h3sim.cli import main
from h3sim.cli import run as run_command
from h3sim.cli.main import COMMANDS
from h3sim.schema.files import json_digest
from h3sim.values.errors import StalledError
from h3sim.values.versions import build
from tests.effort import HANG_S
from tests.helpers import page_file
from tests.logs import NO_UPLINK
from tests.schemas import schema_problems

ROOT = {"id": "/", "kind": "document", "bytes": 2800}


# Of a load with no options but --seed 7: what a constant rate has not is null.
CONFIGURATION = {
    "network": "marx-2019",
    "transport": "quic",
    "transport_profile": None,
    "cc": None,
    "ecn": None,
    "rate_mbps": 1.12,
    "interval_ms": 10,
    "packet_bytes": 1400,
    "rtt_ms": 0,
    "loss": None,
    "mean_loss_burst": None,
    "queue_bdp": None,
    "queue_bytes": None,
    "queue_packets": None,
    "queue_discipline": None,
    "reorder": None,
    "send_buffer_kb": 0,
    "send_buffer_refill": None,
    "retransmission_order": None,
    "packet_threshold": None,
    "time_threshold": None,
    "max_placeholders": None,
    "closed_stream_retention_ms": 500,
    "signalling": "none",
    "handshake": "1-rtt",
    "seed": 7,
    "browser": "replay",
    "cpu_slowdown": None,
    "max_concurrent_requests": None,
    "preload_scanner": None,
    "tight_mode": None,
    "commit_ms": None,
    "paint_ms": None,
    "paint": None,
    "image_update_ms": None,
    "max_concurrent_requests_per_host": None,
    "max_connections_per_host": None,
    "stylesheets_block_parser": None,
    "hidden_at_ms": None,
    "header_compression": None,
    "connections": "single",
    "dns_ms": None,
    "cross_traffic": None,
    "time_limit_s": None,
}


def child(id_: str, n_bytes: int, **keys: Any) -> dict[str, Any]:
    discovered = {"by": "/", "at": "complete"}
    return {"id": id_, "kind": "image", "bytes": n_bytes, "discovered": discovered} | keys


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command, which must succeed and complain of nothing; return what it prints."""
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_json_is_a_load_of_the_documented_format_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = page_file(tmp_path, ROOT, child("a", 1400, above_the_fold=True))
    out = printed(capsys, "run", path, "--scheme", "fifo", "--json", "--order", "--seed", "7")
    # "/" is complete at 20, brings "a", and that is complete at 30. ByteIndex: (2800 * 20 +
    # 1400 * 30) / 4200 = 23.33; sampled at 100.
    assert out.count("\n") == 1
    document = json.loads(out)
    assert document.pop("digest") == json_digest(document)
    identity = {key: document.pop(key) for key in ("version", "build", "notes", "page_digest")}
    assert identity == {
        "version": h3sim.__version__,
        "build": build(),
        "notes": [],
        "page_digest": h3sim.page.read_page(path).digest,
    }
    assert document.pop("inputs")["page"] == json.loads(Path(path).read_text(encoding="utf-8"))
    index = document.pop("byte_index_ms")
    assert index == {"all": pytest.approx(70 / 3, rel=1e-12), "atf": 30}  # float of a third
    assert document == {
        "format": "h3sim-load/2",
        "page": "mine",
        "scheme": "fifo",
        "network": "marx-2019",
        "transport": "quic",
        "seed": 7,
        "configuration": CONFIGURATION,
        "above_the_fold": {"resources": 1, "bytes": 1400, "from": "page"},
        "byte_index_sampled_ms": {"all": 100, "atf": 100},
        "page_load_ms": 30,
        "first_paint_ms": None,
        "speed_index_ms": None,
        "visual": None,
        "image_index_ms": 30,
        "multiplexing": {
            # Runs of two packets and of one: 1 - (4 + 1) / 9.
            "interleaving": pytest.approx(4 / 9),
            "mean_run_packets": 1.5,
            "window_ms": 140,
            "streams_in_flight": pytest.approx((1 + 1 + 2) / 3),
            "jain_index": None,
            "inversion_bytes": None,
            "reprioritization_delay_ms": None,
            "ttfb_slope_ms": 0,
            "loss_bursts": {},
        },
        "priority_frames": {"sent": 0, "bytes": 0},
        "hol": {
            "stream_bytes": 0,
            "stream_delay_ms": 0,
            "connection_bytes": 0,
            "connection_delay_ms": 0,
            "sander_stream_bytes": 0,
            "sander_connection_bytes": 0,
            "stack_histogram": {"1": 3},
        },
        "packets": {"sent": 3, "sent_bytes": 4200, "lost": 0, "retransmitted": 0, "queue_drops": 0}
        | NO_UPLINK,
        "resources": [
            {
                "id": "/",
                "stream_id": 0,
                "requested_ms": 0,
                "first_byte_ms": 10,
                "finished_ms": 20,
                "bytes": 2800,
            },
            {
                "id": "a",
                "stream_id": 4,
                "requested_ms": 20,
                "first_byte_ms": 30,
                "finished_ms": 30,
                "bytes": 1400,
            },
        ],
        "order": [0, 0, 4],
    }


def test_json_without_order_has_no_order(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, "run", "davies-meenan", "--json"))
    assert "order" not in document
    assert document == h3sim.simulate("davies-meenan").to_dict()


def test_what_cannot_be_given_is_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = page_file(tmp_path, ROOT | {"bytes": 0})
    document = json.loads(printed(capsys, "run", path, "--json"))
    assert document["byte_index_ms"] == {"all": None, "atf": None}
    assert document["byte_index_sampled_ms"] == {"all": None, "atf": None}
    assert document["page_load_ms"] == 10


def test_the_table_shows_each_resource_and_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "run", "davies-meenan", "--scheme", "fifo", "--order")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    # From the hand-drawn timeline of the page.
    assert "28 hero.jpg image 104,484 yes 390.0 3,120.0 3,860.0" in lines
    assert "page load 4,580.0 ms" in lines
    assert "downlink packets 458 sent, 0 lost, 0 retransmitted" in lines
    assert not [line for line in lines if line.startswith(("HOL", "delivery batches"))]
    assert [line for line in lines if "--loss 1%" in line]
    assert lines[-1] == "0x3 4x36 8x76 12x76 16x76 20x35 24x9 28x75 32x72"


def test_a_page_without_anything_above_the_fold_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "run", page_file(tmp_path, ROOT))
    (line,) = [line for line in out.splitlines() if line.startswith("ByteIndex, above the fold")]
    assert line.endswith("unknown: the page has no labels")


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ([ROOT | {"viewport": 0}], "no resource of the page is labelled"),
        ([ROOT, child("a", 0, above_the_fold=True)], "the labelled resources have no bytes"),
    ],
)
def test_none_and_zero_are_not_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], resources: list[dict[str, Any]], why: str
) -> None:
    path = page_file(tmp_path, *resources)
    assert f"ByteIndex, above the fold  {why}\n" in printed(capsys, "run", path)
    assert f"above the fold: {why}\n" in printed(capsys, "compare", path, "--scheme", "rr")


def test_every_override_reaches_the_load(capsys: pytest.CaptureFixture[str]) -> None:
    overrides = {
        "--scheme": "bucket",
        "--network": "marx-2019-jitter",
        "--transport": "tcp",
        "--interval-ms": "5",
        "--packet-bytes": "1200",
        "--rtt-ms": "30",
        "--reorder": "5:2",
        "--send-buffer-kb": "14",
        "--seed": "3",
    }
    options = [part for pair in overrides.items() for part in pair]
    out = printed(capsys, "run", "davies-meenan", "--json", "--order", "--no-handshake", *options)
    load = h3sim.simulate(
        "davies-meenan",
        scheme="bucket",
        network="marx-2019-jitter",
        transport="tcp",
        interval_ms=5,
        packet_bytes=1200,
        rtt_ms=30,
        reorder="5:2",
        send_buffer_kb=14,
        seed=3,
        handshake=False,
    )
    assert json.loads(out) == load.to_dict(order=True)


def test_a_rate_reaches_the_load(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(
        capsys, "run", "davies-meenan", "--json", "--rate-mbps", "2.24", "--cc", "constant"
    )
    # Twice the pace: the 458 packets leave every 5 ms, with no pause under rr.
    assert json.loads(out)["page_load_ms"] == 2290


def test_ten_thousand_resources_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = page_file(tmp_path, ROOT, *(child(f"r{n}", 10) for n in range(9_999)))
    document = json.loads(printed(capsys, "run", path, "--scheme", "fifo", "--json"))
    assert len(document["resources"]) == 10_000
    # 2 packets of the root and one for each of the others.
    assert document["page_load_ms"] == 10 * (2 + 9_999)


def test_a_resource_of_100_mb_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = page_file(tmp_path, ROOT | {"bytes": 10**8})
    document = json.loads(printed(capsys, "run", path, "--scheme", "fifo", "--json"))
    # 10^8 / 1400 = 71 428.6 packets.
    assert document["packets"]["sent"] == 71_429
    assert document["page_load_ms"] == 714_290


def test_the_shipped_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    def names(what: str) -> list[str]:
        _, _, body = printed(capsys, "list", what).partition("---\n")
        return [line.split()[0] for line in body.splitlines() if not line.startswith(" ")]

    words = printed(capsys, "list", "schemes").replace(",", " ").split()
    assert {scheme.name for scheme in h3sim.list_schemes()} <= {*words}
    assert names("networks") == [network.name for network in h3sim.list_networks()]
    assert names("profiles") == [profile.name for profile in h3sim.list_profiles()]
    files = [page.name for page in h3sim.list_pages()]
    assert names("pages") == [*files, *(h3sim.catalog.page_set("web") or ())]
    assert names("sets")[:4] == ["marx-2019", "sander-2022", "servers", "browsers"]


def test_the_schemes_are_listed_in_groups_on_one_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = printed(capsys, "list", "schemes").splitlines()
    assert len(lines) < 24
    heads = [line.split()[0] for line in lines if not line.startswith(" ") and line]
    assert heads[:5] == ["marx-2019", "sander-2022", "servers", "browsers", "others"]


def test_lists_are_json_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    def rows(what: str) -> dict[str, Any]:
        document = json.loads(printed(capsys, "list", what, "--json"))
        assert schema_problems(document) == []
        assert (document["of"], document["version"]) == (what, h3sim.__version__)
        return {row.pop("name"): row for row in document["rows"]}

    assert [*rows("schemes")] == [scheme.name for scheme in h3sim.list_schemes()]
    assert rows("schemes")["rr"]["mechanism"] == "round-robin"
    cable = {"down_mbps": 5.0, "up_mbps": 1.0, "rtt_ms": 28.0, "loss": 0.0}
    assert cable.items() <= rows("networks")["cable"].items()
    assert rows("networks")["sander-2mbps-100ms-2pct"]["loss"] == 0.02
    assert "up_mbps" not in rows("networks")["marx-2019"]
    assert rows("pages")["davies-meenan"]["bytes"] == 634_522
    assert rows("sets")["papers"] == {"of": "pages", "names": ["http2rulez", "davies-meenan"]}
    assert rows("profiles")["linux-tcp"]["transport"] == "tcp"
    assert rows("controllers")["cubic"]["from"] == "h3sim"
    assert rows("schedulers")


@pytest.mark.parametrize("what", ["controllers", "schedulers"])
def test_no_two_parts_have_the_same_description(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, "list", what, "--no-truncate").splitlines()[2:]
    message = [line.split(maxsplit=1)[1] for line in lines]
    assert len(set(message)) == len(message)


@pytest.mark.parametrize("command", ["run", "compare"])
def test_no_name_reaches_the_terminal_raw(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "a\x1b[2J\nb\x07"
    scheme = (root("models") / "schemes" / "fifo.toml").read_text("utf-8")
    name = json.dumps(hostile)
    scheme = scheme.replace('name = "fifo"', f"name = {name}\ncaveat = {name}")
    (tmp_path / "scheme.toml").write_text(scheme, "utf-8")
    resource = {"id": hostile, "kind": "document", "bytes": 10}
    page = {"format": "h3sim-page/1", "name": hostile, "resources": [resource]}
    (tmp_path / "page.json").write_text(json.dumps(page), "utf-8")
    out = printed(
        capsys, command, str(tmp_path / "page.json"), "--scheme", str(tmp_path / "scheme.toml")
    )
    assert r"a\x1b[2J\nb\x07" in out
    assert [char for char in out if not char.isprintable() and char != "\n"] == []


def test_the_list_of_pages_reports_their_size(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in printed(capsys, "list", "pages").splitlines()]
    # 635 kB: 634.5; 1 611 kB: 1610.6.
    assert ["davies-meenan", "9", "635", "4"] in [row[:4] for row in rows]
    assert ["http2rulez", "32", "1,611", "11"] in [row[:4] for row in rows]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_has_an_example_and_is_as_wide_as_the_terminal(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as exited:
        main([*command, "--help"])
    assert exited.value.code == 0
    out = capsys.readouterr().out
    assert f"examples:\n  h3sim {' '.join(command)}" in out
    # Examples can be copied as they stand; all else is folded to the terminal.
    assert "%%" not in out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("  h3sim "))


def test_the_version_and_the_build_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["--version"])
    assert exited.value.code == 0
    shown = re.fullmatch(
        r"h3sim (\S+) \(commit ([0-9a-f]{10}(?:-dirty)?|unknown), (\w+)[^)]*\)\n",
        capsys.readouterr().out,
    )
    assert (shown[1], shown[3]) == (h3sim.__version__, build())


def test_a_run_that_fails_exits_with_1_and_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: Any) -> None:
        raise StalledError(["late.js", "hero.jpg"])

    monkeypatch.setattr(run_command, "run_spec", fail)
    assert main(["run", "davies-meenan"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "late.js, hero.jpg" in err


def test_an_interrupt_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "run_spec", interrupt)
    assert main(["run", "davies-meenan"]) == 130
    assert capsys.readouterr().err.count("\n") == 1


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "h3sim", "run", "http2rulez", "--json", "--order"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()  # long before the load is done
    process.stdout = None
    _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (1, b"")


SHIPPED = Path(__file__).parents[2] / "validation" / "drivers" / "shipped.py"
DRIVER = shlex.join([sys.executable, str(SHIPPED), "eps"])


def test_a_driver_schedules_in_the_place_of_the_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "davies-meenan", "--scheme", "chrome-eps", "--order"]
    assert main(command) == 0
    own = capsys.readouterr().out
    assert main([*command, "--scheduler-process", DRIVER]) == 0
    driven = capsys.readouterr().out
    assert driven.startswith("davies-meenan: eps over ")
    assert driven.splitlines()[-1] == own.splitlines()[-1]
    # Round robin for the same clients: the option is looked at.
    assert main([*command, "--scheduler-process", DRIVER.replace(" eps", " round-robin")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] != own.splitlines()[-1]


def test_a_driver_is_compared_with_schemes(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "davies-meenan", "--scheme", "chrome-eps,fifo", "--send-buffer-kb", "0"]
    assert main([*command, "--scheduler-process", DRIVER]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    found = {row[0]: row[1:] for row in rows if row and row[0] in ("chrome-eps", "fifo", "eps")}
    assert found["eps"] == found["chrome-eps"] != found["fifo"]


def test_a_driver_that_cannot_be_started_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "davies-meenan", "--scheduler-process", "./no-such-driver"]) == 2
    assert "cannot be started" in capsys.readouterr().err

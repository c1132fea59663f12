"""Sweeps over header lists: on workers, kept in a store, and resumed, as those over pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.headers import CodecSettings, HeaderCompression
from h3sim.headers.base import Exchange, HeaderLists, TimedSection
from h3sim.load import LoadConfig
from h3sim.study import read_results, sweep
from h3sim.study.header_study import header_rows
from h3sim.values.errors import InputError
from h3sim.values.units import ms
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.study import Results

FIELDS = ((b":method", b"GET"), (b":path", b"/"), (b"x-trace", b"7"))
SECTIONS = [TimedSection(ms(5 * n), (*FIELDS, (b"x-n", b"%d" % (n % 7)))) for n in range(30)]
LISTS = HeaderLists.of(SECTIONS, "lists")
ARGUMENTS: dict[str, Any] = {
    "schemes": "rr",
    "header_compression": ["hpack", "qpack", "qcram"],
    "rtt_ms": [20, 100],
    "loss": [0.0, 0.1],
    "seeds": 3,
    "resources": True,
}
N_RUNS = 36


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "headers.db"


def study(lists: HeaderLists = LISTS, **changed: Any) -> Results:
    return sweep(lists, **(ARGUMENTS | {"executor": "serial"} | changed))


@pytest.fixture(scope="module")
def serial() -> Results:
    return study()


def test_processes_give_the_rows_of_one(serial: Results) -> None:
    found = study(executor="processes", workers=2)
    assert list(found) == list(serial)
    assert list(found.resources()) == list(serial.resources())


def test_what_is_finished_is_reused_and_only_the_rest_runs(store: Path, serial: Results) -> None:
    assert study(store=store, seeds=2, header_compression=["qcram", "hpack"]).counts == (0, 16, 0)
    more = study(store=store)
    assert more.counts == (16, N_RUNS - 16, 0)
    assert list(more) == list(serial)


def with_settings(codec: str, **settings: int) -> HeaderCompression:
    return HeaderCompression(codec=codec, settings=CodecSettings(**settings))


@pytest.mark.parametrize(
    "other",
    [
        {
            "header_compression": HeaderCompression(
                codec="hpack", settings=CodecSettings(table_bytes=256)
            )
        },
        {
            "header_compression": HeaderCompression(
                codec="qpack", settings=CodecSettings(blocked_streams=0)
            )
        },
        {"seeds": [3, 4]},
        {"rtt_ms": [21, 101]},
        {"loss": [0.01, 0.11]},
        {"header_compression": ["static", "early-qpack"]},
        {"network": "4g", "handshake": False, "rtt_ms": 20, "header_compression": "static"},
    ],
)
def test_another_parameter_is_another_cell(store: Path, other: dict[str, Any]) -> None:
    study(store=store)
    found = study(store=store, **other).counts
    assert found is not None
    assert found.reused == 0


def test_other_lists_are_other_cells(store: Path) -> None:
    study(store=store)
    edited = [*SECTIONS[:-1], SECTIONS[-1]._replace(at_ns=ms(1000))]
    answer = ((b":status", b"200"),)
    both = tuple(
        Exchange(requested_at_ns=at_ns, request=fields, response=answer)
        for at_ns, fields in SECTIONS
    )
    for lists in (
        HeaderLists.of(edited, "lists"),
        HeaderLists.of(SECTIONS, "others"),
        HeaderLists(name="lists", exchanges=both, of_responses=True),
    ):
        assert study(lists, store=store).counts == (0, N_RUNS, 0)


def test_the_store_has_a_row_a_run_and_one_for_each_list_that_waited(store: Path) -> None:
    found = study(store=store, header_compression="hpack")
    rows = read_results(store)
    assert rows.axes == ("rtt_ms", "loss", "seed")
    assert [row["seed"] for row in rows] == [0, 1, 2] * 4
    worst = header_rows(found, found.resources())[3]
    lossy = [row for row in rows if (row["rtt_ms"], row["loss"]) == (100, 0.1)]
    assert sum(row["hol_total_ms"] for row in lossy) / 3 == pytest.approx(worst.hol_total_ms)
    waits = [
        wait["hol_ns"] for wait in rows.resources() if (wait["rtt_ms"], wait["loss"]) == (100, 0.1)
    ]
    assert len(waits) == sum(row["blocked"] for row in lossy) > 0
    assert max(waits) == ms(worst.hol_max_ms)


def test_tables_of_two_sizes_are_rows_of_their_own() -> None:
    settings = [CodecSettings(table_bytes=size) for size in (64, 4096)]
    codecs = [HeaderCompression(codec="hpack", settings=each) for each in settings]
    found = study(header_compression=codecs, rtt_ms=100, loss=0.1)
    rows = header_rows(found, found.resources())
    assert [row.runs for row in rows] == [3, 3]
    assert rows[0].ratio > rows[1].ratio


def test_every_error_is_reported_before_anything_runs(store: Path) -> None:
    def issues(subject: Any, **changed: Any) -> set[str]:
        with pytest.raises(InputError) as caught:
            study(subject, store=store, **changed)
        return {problem.key for problem in caught.value.problems}

    assert issues(LISTS, header_compression=["hpack", "hpak"]) == {"header_compression"}
    assert issues(LISTS, header_compression="none") == {"header_compression"}
    assert issues(LISTS, loss=1.0) == {"loss"}
    assert issues(LISTS, cc="bbr", queue_bdp=2) == {"cc", "queue_bdp"}
    assert issues([LISTS, LISTS]) == {"pages"}
    assert issues([LISTS, "creative"]) == {"pages"}
    assert issues(HeaderLists(exchanges=LISTS.exchanges, of_responses=True)) == {"pages"}
    assert not store.exists()


def test_a_page_cannot_be_loaded_over_independent_packets() -> None:
    with pytest.raises(InputError, match="network: carries only header lists"):
        h3sim.simulate("creative", network="frindell-2017")
    config = LoadConfig(network="frindell-2017", rtt_ms=7, loss=0.25, header_compression="static")
    spec = h3sim.load.resolve(LISTS, h3sim.load_scheme("rr"), config)
    path = spec.network
    assert path.rtt_ns == ms(7)
    assert path.independent_packets is not None
    assert path.independent_packets.loss == 0.25
    assert json.dumps(h3sim.transport.network_to_dict(path))


# The command line


@pytest.fixture
def command(tmp_path: Path, store: Path) -> list[str]:
    path = tmp_path / "lists.qif"
    path.write_bytes(b":method\tGET\n:path\t/\nx-trace\t7\n\n" * 30)
    arguments = ["--schemes", "hpack,static", "--rtt-ms", "10,100", "--loss", "5%"]
    return ["header-compression", str(path), *arguments, "--store", str(store)]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_command_prints_the_same_bytes_with_any_workers_and_resumed(
    command: list[str], store: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    assert main([*command[:-2], *form]) == 0
    plain = capsys.readouterr()
    assert plain.err == ""
    for workers, counts in (("1", "reused 0, ran 20"), ("2", "reused 20, ran 0")):
        assert main([*command, *form, "-j", workers]) == 0
        out, err = capsys.readouterr()
        assert out == plain.out
        assert err == f"h3sim header-compression: 20 runs: {counts}, failed 0\n"
    store.unlink()
    assert main([*command, *form, "-j", "2"]) == 0
    assert capsys.readouterr().out == plain.out


def test_a_command_of_which_runs_failed_ends_with_1(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    changed = ["--model", "quic", "--schemes", "static", "--loss", "0,0.999", "--runs", "1"]
    assert main([*command, *changed, "--rtt-ms", "10"]) == 1
    out, err = capsys.readouterr()
    assert "RTT 10 ms, loss 0 %" in out
    assert "loss 99.9 %" not in out
    assert "2 runs: reused 0, ran 1, failed 1" in err
    assert "failed: lists.qif, rr, " in err
    assert (
        "header_compression=static, rtt_ms=10.0, loss=0.999, network=4g, seed 0: StalledError"
        in err
    )


def test_an_interrupted_command_states_what_is_kept(
    command: list[str],
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("h3sim.study.runner.Driver.run", interrupt)
    monkeypatch.setattr("h3sim.study.runner.Driver.try_some", lambda *_: False)
    for argv, reported in ((command, f"kept in {store}"), (command[:-2], "lost: use a store")):
        main(argv)
        assert reported in capsys.readouterr().err


# Headers as an axis of page loads


def test_headers_are_an_axis_of_sweeps(store: Path) -> None:
    root = {"id": "/", "kind": "document", "bytes": 28_000}
    image = {
        "id": "a",
        "kind": "image",
        "bytes": 14_000,
        "discovered": {"by": "/", "at": "request"},
    }
    arguments: dict[str, Any] = {"schemes": "rr", "network": "4g", "loss": 0.1, "seeds": 2}
    both: dict[str, Any] = {"header_compression": ["none", "hpack", "static"], **arguments}
    found = sweep(page_of(root, image), store=store, executor="serial", **both)
    assert found.axes == ("header_compression", "seed")
    assert [(row["header_compression"], row["seed"]) for row in found] == [
        (codec, seed) for codec in ("none", "hpack", "static") for seed in (0, 1)
    ]
    for number, codec in enumerate(both["header_compression"]):
        alone = sweep(
            page_of(root, image), header_compression=codec, executor="serial", **arguments
        )
        assert list(alone) == list(found)[2 * number : 2 * number + 2]
    assert len({row["byte_index_all_ms"] for row in found.filter(seed=0)}) == 3
    on_workers = sweep(page_of(root, image), executor="processes", workers=2, **both)
    assert list(on_workers) == list(found)
    again = sweep(
        page_of(root, image), store=store, **(both | {"header_compression": ["hpack", "qpack"]})
    )
    assert again.counts == (2, 2, 0)

"""Studies of header compression where sweeps run: on workers, kept in a store, and resumed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.cli import main
from h3sim.compression import CodecSettings
from h3sim.compression.exchanges import Exchange, TimedSection
from h3sim.errors import UnknownNameError
from h3sim.study import Store, read_results, sweep
from h3sim.study.header_cells import OverModel
from h3sim.study.header_study import header_loads, header_study
from h3sim.units import ms
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.compression.header_run import HeaderRun
    from h3sim.study.header_cells import HeaderCell
    from h3sim.study.header_study import HeaderRows

FIELDS = ((b":method", b"GET"), (b":path", b"/"), (b"x-trace", b"7"))
SECTIONS = [TimedSection(ms(5 * n), (*FIELDS, (b"x-n", b"%d" % (n % 7)))) for n in range(30)]
PATHS: dict[str, Any] = {
    "schemes": ["hpack", "qpack", "qcram"], "rtts_ms": [20, 100], "losses": [0.0, 0.1], "runs": 3
}  # fmt: skip
N_RUNS = 36


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "headers.db"


def study(**changed: Any) -> HeaderRows:
    return header_study(SECTIONS, **(PATHS | {"executor": "serial"} | changed))


@pytest.fixture(scope="module")
def serial() -> HeaderRows:
    return study()


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_give_the_rows_of_one(serial: HeaderRows, workers: int) -> None:
    found = study(executor="processes", workers=workers)
    assert found.rows == serial.rows
    assert found.counts == (0, N_RUNS, 0)


def test_any_executor_and_none_give_the_same_rows(serial: HeaderRows) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert study(executor=executor).rows == serial.rows
    assert study(executor=None).rows == serial.rows


def test_what_is_finished_is_reused_and_only_the_rest_runs(store: Path, serial: HeaderRows) -> None:
    fewer = study(store=store, runs=2, schemes=["qcram", "hpack"])
    assert fewer.counts == (0, 16, 0)
    assert [row.scheme for row in fewer] == ["qcram"] * 4 + ["hpack"] * 4
    more = study(store=store)
    assert more.counts == (16, N_RUNS - 16, 0)
    assert more.rows == serial.rows
    assert study(store=store).counts == (N_RUNS, 0, 0)


def test_a_study_that_was_interrupted_goes_on(store: Path, serial: HeaderRows) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        assert total == N_RUNS
        if done >= 5:
            raise StopError

    with pytest.raises(StopError):
        study(store=store, progress=stop)
    with Store(store, may_write=False) as kept:
        (known,) = kept.studies()
    assert 5 <= known.done < N_RUNS
    rest = study(store=store, executor="processes", workers=2)
    assert rest.counts == (known.done, N_RUNS - known.done, 0)
    assert rest.rows == serial.rows


@pytest.mark.parametrize(
    "other",
    [
        {"settings": CodecSettings(table_bytes=256)},
        {"settings": CodecSettings(blocked_streams=0)},
        {"seed": 3},
        {"rtts_ms": [21, 101]},
        {"losses": [0.01, 0.11]},
        {"schemes": ["static", "early-qpack"]},
        {"name": "others"},
    ],
)
def test_another_parameter_is_another_cell(store: Path, other: dict[str, Any]) -> None:
    study(store=store)
    assert study(store=store, **other).counts.reused == 0


def test_other_lists_and_another_path_are_other_cells(store: Path) -> None:
    study(store=store)
    edited = [*SECTIONS[:-1], SECTIONS[-1]._replace(at_ns=ms(1000))]
    assert header_study(edited, store=store, executor="serial", **PATHS).counts.reused == 0
    answer = ((b":status", b"200"),)
    exchanges = [
        Exchange(requested_at_ns=at_ns, request=fields, response=answer)
        for at_ns, fields in SECTIONS
    ]
    path: dict[str, Any] = {
        "schemes": ["hpack"],
        "rtts_ms": [20],
        "losses": [0.1],
        "runs": 1,
        "store": store,
    }
    overs: tuple[dict[str, Any], ...] = ({}, {"of_responses": True}, {"network": "cable"})
    for over in overs:
        found = header_loads(exchanges, settings=CodecSettings(), **path, **over)
        assert found.counts == (0, 1, 0)
    assert header_loads(exchanges, settings=CodecSettings(), **path).counts == (1, 0, 0)


def test_the_code_of_the_study_is_part_of_what_a_cell_is(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(store=store)
    monkeypatch.setattr("h3sim.study.header_cells._code", lambda: "edited")
    assert study(store=store).counts.reused == 0


def test_a_run_that_raises_keeps_its_error_and_its_row_is_left_out(
    store: Path, serial: HeaderRows
) -> None:
    arguments: dict[str, Any] = {
        "schemes": ["qpack"],
        "losses": [0.1, 1.0],
        "store": store,
        "name": "lists",
    }
    found = study(**arguments)
    assert found.counts == (0, 6, 6)
    assert found.rows == tuple(row for row in serial if (row.scheme, row.loss) == ("qpack", 0.1))
    assert len(found.errors) == 6
    assert found.errors[0] == (
        "lists, qpack, rtt_ms=20, loss=1, seed 0: ValueError: loss must be at least 0 and below 1,"
        " is 1.0"
    )
    again = study(**arguments)
    assert (again.counts, again.errors) == ((6, 0, 6), found.errors)


def test_a_row_of_which_one_run_failed_is_left_out_and_is_there_once_it_ran(
    store: Path, serial: HeaderRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: OverModel, cell: HeaderCell, settings: CodecSettings) -> HeaderRun:
        if (cell.loss, cell.seed) == (0.1, 1):
            raise ValueError("odd")
        return carry(path, cell, settings)

    carry = OverModel.carry
    with monkeypatch.context() as patched:
        patched.setattr(OverModel, "carry", fail)
        found = study(store=store)
    assert found.counts == (0, N_RUNS - 6, 6)
    assert found.rows == tuple(row for row in serial if row.loss == 0)
    assert study(store=store).counts == (N_RUNS - 6, 0, 6)
    again = study(store=store, retry_failed=True)
    assert (again.counts, again.rows) == ((N_RUNS - 6, 6, 0), serial.rows)


def test_a_scheme_that_is_not_known_is_told_before_anything_runs(store: Path) -> None:
    with pytest.raises(UnknownNameError, match="hpak"):
        study(schemes=["hpack", "hpak"], store=store)
    assert not store.exists()


def test_the_store_has_a_row_a_run_and_one_for_each_list_that_waited(store: Path) -> None:
    found = study(store=store, schemes=["hpack"])
    rows = read_results(store)
    assert rows.axes == ("rtt_ms", "loss", "seed")
    assert [row["seed"] for row in rows] == [0, 1, 2] * 4
    lossy = [row for row in rows if (row["rtt_ms"], row["loss"]) == (100, 0.1)]
    assert sum(row["hol_total_ms"] for row in lossy) / 3 == pytest.approx(found[3].hol_total_ms)
    waits = [
        wait["hol_ns"] for wait in rows.resources() if (wait["rtt_ms"], wait["loss"]) == (100, 0.1)
    ]
    assert len(waits) == sum(row["blocked"] for row in lossy) > 0
    assert max(waits) == ms(found[3].hol_max_ms)


# The command line


@pytest.fixture
def command(tmp_path: Path, store: Path) -> list[str]:
    path = tmp_path / "lists.qif"
    path.write_bytes(b":method\tGET\n:path\t/\nx-trace\t7\n\n" * 30)
    arguments = ["--schemes", "hpack,static", "--rtt-ms", "10,100", "--loss", "5%"]
    return ["headers", str(path), *arguments, "--store", str(store)]


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
        assert err == f"h3sim headers: 20 runs: {counts}, failed 0\n"
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
    assert "failed: lists.qif, static, rtt_ms=10, loss=0.999, seed 0: StalledError" in err


def test_an_interrupted_command_says_what_is_kept(
    command: list[str],
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("h3sim.cli.headers.header_study", interrupt)
    for argv, told in ((command, f"is kept in {store}"), (command[:-2], "is lost: give --store")):
        main(argv)
        assert told in capsys.readouterr().err


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
    assert len({row["byte_index_exact_all_ms"] for row in found.filter(seed=0)}) == 3
    on_workers = sweep(page_of(root, image), executor="processes", workers=2, **both)
    assert list(on_workers) == list(found)
    again = sweep(
        page_of(root, image), store=store, **(both | {"header_compression": ["hpack", "qpack"]})
    )
    assert again.counts == (2, 2, 0)

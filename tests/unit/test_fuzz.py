"""What `make fuzz` does, in small: readers take what is whole, and refuse what is not in lines."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from h3sim.study import read_results
from h3sim.values.errors import InputError
from tests.effort import HANG_S, scaled
from tests.fuzz.mutating import mutated
from tests.fuzz.readers import READERS, Reader, check
from tests.helpers import unworded

CHECKOUT = Path(__file__).resolve().parents[2]
ONCE_FAILED = CHECKOUT / "tests/fuzz/once_failed"
TRIES = 60


ONCE = [
    (folder.name, path)
    for folder in sorted(ONCE_FAILED.iterdir())
    for path in sorted(folder.iterdir())
]


@pytest.mark.parametrize("name", READERS)
def test_what_fuzzing_begins_with_is_read(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    samples = list(reader.samples())
    assert samples
    for sample in samples:
        path = tmp_path / reader.file_name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(sample)
        reader.read(path)


@pytest.mark.parametrize("name", READERS)
def test_broken_inputs_are_read_or_refused_in_lines(name: str, tmp_path: Path) -> None:
    rng, samples = random.Random(name), list(READERS[name].samples())
    # Studies take longest: they name pages, which are read.
    tries = scaled(TRIES // 6 if name == "study" else TRIES)
    broken = [mutated(rng, samples) for _ in range(tries)]
    assert len(set(broken)) > tries / 2
    for data in broken:
        check(READERS[name], data, tmp_path)


@pytest.mark.parametrize(("name", "path"), ONCE, ids=[path.name for _, path in ONCE])
def test_what_once_failed_is_refused(name: str, path: Path, tmp_path: Path) -> None:
    check(READERS[name], path.read_bytes(), tmp_path)
    assert path.stat().st_size < 10_000


def test_a_reader_that_raises_anything_else_is_found(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        json.loads(path.read_bytes())

    reader = Reader(file_name="x.json", read=read, samples=lambda: [b"{}"])
    check(reader, b"[1]", tmp_path)
    with pytest.raises(ValueError, match="Expecting"):
        check(reader, b"[1", tmp_path)


def test_an_error_without_a_word_is_found(tmp_path: Path) -> None:
    def read(path: Path) -> None:
        raise InputError([])

    reader = Reader(file_name="x.json", read=read, samples=lambda: [b"{}"])
    with pytest.raises(AssertionError):
        check(reader, b"", tmp_path)


def test_every_error_in_saved_rows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"format": "h3sim-results/2", "axes": "seed"}\n{"a": 1}\n[2]\nx\n{}', "utf-8")
    with pytest.raises(InputError) as caught:
        read_results(path)
    assert unworded(line.partition(": ")[2] for line in caught.value.lines()) == [
        "axes: is 'seed'",
        "line 3: is [2]",
        "line 4: is not JSON: Expecting value at line 1, column 1",
    ]


def test_blind_fuzzing_states_how_much_it_read(tmp_path: Path) -> None:
    # A finder that finds no atheris stands for an installation without it.
    code = (
        "import importlib.util as u, sys; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'atheris' else find(name, *a)\n"
        "from tests.fuzz.one import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "Priority field", "0.2", str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    message = dict(line.split() for line in done.stdout.splitlines())
    assert message.keys() == {"read", "slowest", "peak"}
    assert int(message["read"]) > 0

"""Hostile files of every format, small ones: what `python -m tests.hostile` reads at full size."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.effort import some
from tests.fuzz.readers import READERS
from tests.hostile.files import FILES
from tests.hostile.one import names_of

_BYTES = 30_000


_PROCESSES = 2
"""Importing all readers takes as long as reading the files of a few."""
(_STEP,) = some([8], [1])
"""Every eighth file of each reader stands for all."""


@pytest.mark.parametrize("number", range(_PROCESSES))
def test_files_made_to_take_time_and_memory_are_read_or_refused(number: int) -> None:
    """Each in a fork of its own, which ends where a file takes more than 500 MB or 10 s."""
    readers = [*FILES][number::_PROCESSES]
    command = [sys.executable, "-m", "tests.hostile.one", str(_BYTES), str(_STEP), *readers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    read = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines()]
    assert read == [f"{reader}: {name}" for reader in readers for name in names_of(reader, _STEP)]


def test_a_file_beyond_a_limit_ends_the_process() -> None:
    filled = (
        "import tests.hostile.one as one; from tests.fuzz.readers import Reader;"
        "one.FILES['x'] = {{'y': lambda n: b''}};"
        "one.READERS['x'] = Reader(file_name='x', samples=list, read={read});"
        "one.read('x', 'y', 1)"
    )
    for read, message in (
        ("lambda _: bytes(6 * 10**8)", "MemoryError"),
        ("lambda _: 1 // 0", "Zero"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", filled.format(read=read)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert message in done.stderr


def test_there_are_hostile_files_for_every_reader() -> None:
    assert set(READERS) == set(FILES)

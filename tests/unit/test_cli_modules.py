"""What a command imports: what it needs, so that a small page is loaded in no time."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from h3sim.cli import main

_PROBE = """\
import sys
from h3sim.cli import main
try:
    main({arguments!r})
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""
HEAVY = {"numpy", "matplotlib", "pandas", "networkx", "tqdm", "hypothesis", "sqlite3"}
"""What takes longer to import than a small page takes to load."""
NAMES = {"browser", "catalog", "cli", "page", "schedulers", "schema", "schemes", "signals", "trace"}
"""The rooms that know the shipped files by name, beside transport and values."""
SIMULATOR = {"engine", "export", "http", "load", "metrics", "qlog"}


def modules_of(*arguments: str) -> set[str]:
    """Return what is imported once the command is through."""
    probe = _PROBE.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "rooms"),
    [
        (("--version",), {"cli", "schema", "values"}),
        (("run", "davies-meenan"), NAMES | SIMULATOR | {"transport", "values"}),
        (("list", "pages"), NAMES | {"transport", "values"}),
        (("list", "networks"), NAMES | {"transport", "values"}),
        (("show", "scheme", "rr"), NAMES | {"transport", "values"}),
    ],
)
def test_a_command_imports_the_rooms_that_it_needs(
    arguments: tuple[str, ...], rooms: set[str]
) -> None:
    imported = modules_of(*arguments)
    assert "h3sim.cli.main" in imported
    assert not imported & HEAVY
    assert ("simpy" in imported) == ("engine" in rooms)
    inside = {name.split(".")[1] for name in imported if name.startswith("h3sim.")}
    assert inside - {"_version"} <= rooms


def test_whoever_calls_the_command_line_as_a_function_keeps_its_garbage_collector() -> None:
    n_frozen, was_enabled = gc.get_freeze_count(), gc.isenabled()
    assert main(["list", "sets"]) == 0
    # Objects that the tests froze may be freed meanwhile; the command freezes none.
    assert gc.get_freeze_count() <= n_frozen
    assert gc.isenabled() == was_enabled


def test_a_function_goes_before_the_module_of_its_name() -> None:
    code = (
        "import h3sim.study.compare as module; from h3sim.study import compare;"
        "import h3sim.study; print(callable(compare), h3sim.study.compare is compare, module)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert done.startswith("True True")

"""One declaration of the options of a load, and one value that they resolve to."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim import catalog
from h3sim.load.load_config import LoadConfig
from h3sim.load.network_path import ResolvedPath
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.transport import Network

_ADDED = """
import dataclasses, inspect

# As one more line in LoadConfig would, before any other module has looked at the class.
def dataclass(*classes, **how):
    def made(cls):
        if cls.__name__ == "LoadConfig":
            from h3sim.load.options import option
            from h3sim.schema.values import Number

            cls.__annotations__["think_ms"] = "float"
            cls.think_ms = option(Number(low=0), "time that a server thinks", "MS", default=1.5)
        return original(cls, **how)
    return made(*classes) if classes else made

original, dataclasses.dataclass = dataclasses.dataclass, dataclass

import h3sim
from h3sim.cli.main import main
from h3sim.study.study_file import study_from_dict

assert inspect.signature(h3sim.simulate).parameters["think_ms"].default == 1.5
assert inspect.signature(h3sim.compare).parameters["think_ms"].default == 1.5
assert inspect.signature(h3sim.sweep).parameters["think_ms"].default == 1.5
assert "think_ms: time that a server thinks" in inspect.getdoc(h3sim.LoadConfig)
try:
    h3sim.simulate("davies-meenan", think_ms=-1)
except h3sim.values.errors.InputError as error:
    assert "think_ms: must not be negative" in str(error), error
else:
    raise AssertionError("a value out of range was taken")
study = study_from_dict(
    {"format": "h3sim-study/1", "pages": "davies-meenan", "axes": {"think_ms": [1, 2]}}
)
assert study.axes[0] == "think_ms"
assert main(["run", "davies-meenan", "--think-ms", "-1"]) == 2
"""


def test_an_option_is_declared_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ADDED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--think-ms: must not be negative" in done.stderr


def test_every_option_of_a_load_is_written_as_resolved() -> None:
    for load in (
        h3sim.simulate("davies-meenan", scheme="fifo"),
        h3sim.simulate("davies-meenan", scheme="fifo", network="cable"),
    ):
        assert {field.name for field in fields(LoadConfig)} <= set(load.configuration)


@pytest.mark.parametrize("options", [{}, {"cc": "cubic", "rtt_ms": 50}, {"network": "cable"}])
def test_a_load_resolves_its_network_once(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ResolvedPath] = []
    make = ResolvedPath.__new__

    def counted(cls: Any, *values: Any) -> ResolvedPath:
        made.append(make(cls, *values))
        return made[-1]

    monkeypatch.setattr(ResolvedPath, "__new__", counted)
    load = h3sim.simulate("davies-meenan", scheme="fifo", **options)
    assert len(made) == 1
    assert load.network is made[0].network


def test_a_network_in_a_file_is_read_once_per_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'format = "h3sim-network/1"\nname = "mine"\nrtt_ms = 20\ndown = { rate_mbps = 10 }\n'
    )
    read: list[Network] = []

    def counted(name: Any) -> Network:
        read.append(load_network(name))
        return read[-1]

    load_network = catalog.load_network
    monkeypatch.setattr(catalog, "load_network", counted)
    h3sim.simulate("davies-meenan", scheme="fifo", network=path, loss=0.01)
    assert len(read) == 1


def test_simulate_changes_the_configuration_that_it_is_given() -> None:
    config = LoadConfig(rtt_ms=40, transport="tcp")
    load = h3sim.simulate("davies-meenan", config=config, rtt_ms=80)
    assert load.configuration["rtt_ms"] == 80
    assert load.configuration["transport"] == "tcp"
    wrong: Any = {"rtt_ms": 80}
    with pytest.raises(InputError, match="config: must be a LoadConfig"):
        h3sim.simulate("davies-meenan", config=wrong)

"""A store never returns loads of code that was edited: own modules, edited on disk, run afresh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

EDITED = """
import os

K = {edited}
KEYS = {{"first", "second", "third", {edited}}}
def k():
    return {edited}
def cached_k():
    return {edited}
"""
"""A module whose values are edited; `own` below names them in as many ways as there are tests."""

OWN = """
import functools
from h3sim.schedulers import FifoScheduler
from h3sim.transport.congestion import NewRenoController
import edited_part
import own_package.inner
from edited_part import K, KEYS, k, cached_k

REGISTRY = {"mine": k}
cached = functools.lru_cache(cached_k)

class Base(FifoScheduler):
    def pick(self):
        return super().pick()

def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        k()
        return function(*arguments)
    return wrapper

class Plain(Base):
    names = {"p", "q", "r"}
    def open(self, stream_id, signal):
        super().open(stream_id, signal)
        assert stream_id not in {"a", "b", "c"}

class Lambda(Base):
    def pick(self):
        return min([super().pick()], key=lambda s: K)
class Comprehension(Base):
    def pick(self):
        [K for _ in range(2)]
        return super().pick()
class Nested(Base):
    def pick(self):
        def inner():
            class Local:
                value = K
            return Local
        inner()
        return super().pick()
class ModuleFunction(Base):
    def pick(self):
        edited_part.k()
        return super().pick()
class ModuleValue(Base):
    def pick(self):
        edited_part.K
        return super().pick()
class ModuleSet(Base):
    def pick(self):
        edited_part.KEYS
        return super().pick()
class Package(Base):
    def pick(self):
        own_package.inner.k()
        return super().pick()
class Computed(Base):
    def pick(self):
        getattr(edited_part, "k" * 1)()
        return super().pick()
class Registered(Base):
    def pick(self):
        REGISTRY["mine"]()
        return super().pick()
class ClassAttribute(Base):
    value = K
class InheritedAttribute(ClassAttribute):
    pass
class Default(Base):
    def pick(self, value=K):
        return super().pick()
class Decorated(Base):
    @decorated
    def pick(self):
        return super().pick()
class Cached(Base):
    def pick(self):
        cached()
        return super().pick()
class Imported(Base):
    def pick(self):
        from edited_part import k as function
        function()
        return super().pick()
class ImportedPart(Base):
    def pick(self):
        from own_package import inner
        inner.k()
        return super().pick()
class Property(Base):
    @property
    def value(self):
        return K

def closure():
    value = K
    def make():
        value
        return Base()
    return make
closed = closure()

class Holder:
    def __init__(self):
        self.value = [K, {"k": k}]
    def make(self):
        return Base()
method = Holder().make
part = functools.partial(lambda value: Base(), K)

class Controller(NewRenoController):
    def on_ack(self, *arguments, **keys):
        [edited_part.k() for _ in range(1)]
        return super().on_ack(*arguments, **keys)

UNEDITED = ["Plain"]
EDITED = [
    "Lambda", "Comprehension", "Nested", "ModuleFunction", "ModuleValue", "ModuleSet", "Package",
    "Computed", "Registered", "ClassAttribute", "InheritedAttribute", "Default", "Decorated",
    "Cached", "Imported", "ImportedPart", "Property", "closed", "method", "part",
]
"""

PROGRAM = """
import json, sys, warnings
warnings.simplefilter("error")
import h3sim
import own_part

PAGE, store = "davies-meenan", sys.argv[1]
reused = {
    name: h3sim.sweep(
        PAGE, scheduler=getattr(own_part, name), executor="serial", store=store, progress=False
    ).counts.reused
    for name in [*own_part.UNEDITED, *own_part.EDITED]
}
for cc in ("Controller",):
    reused[cc] = h3sim.sweep(
        PAGE, schemes="rr", network="cable", cc=getattr(own_part, cc), executor="serial",
        store=store, progress=False
    ).counts.reused
print(json.dumps(reused))
"""


def _run(folder: Path, *, edited: int, hash_seed: int) -> dict[str, int]:
    """Write the modules, and return the numbers of reused loads by scheduler."""
    (folder / "own_package").mkdir(exist_ok=True)
    (folder / "own_package" / "__init__.py").touch()
    (folder / "own_package" / "inner.py").write_text(EDITED.format(edited=edited))
    (folder / "edited_part.py").write_text(EDITED.format(edited=edited))
    (folder / "own_part.py").write_text(OWN)
    variables = {
        "PYTHONPATH": str(folder),
        "PYTHONHASHSEED": str(hash_seed),
        # Two files of one size, written in the same second, would share their bytecode.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "store.db")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )
    assert ran.returncode == 0, ran.stderr
    reused: dict[str, int] = json.loads(ran.stdout)
    return reused


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, int]]:
    """Reused loads of a first run, of one with another hash seed, and of one after an edit."""
    folder = tmp_path_factory.mktemp("own")
    settings = ((1, 1), (1, 2), (2, 2))
    return [_run(folder, edited=edited, hash_seed=seed) for edited, seed in settings]


def test_loads_of_unedited_code_are_reused_by_other_processes(runs: list[dict[str, int]]) -> None:
    first, again, _ = runs
    assert set(first.values()) == {0}
    assert [name for name, n in again.items() if not n] == []


def test_loads_of_edited_code_are_not_reused(runs: list[dict[str, int]]) -> None:
    _, _, edited = runs
    assert [name for name, n in edited.items() if n] == ["Plain"]

"""By what schedulers that are code are known again in a store: source, and what made them."""

from __future__ import annotations

import abc
import enum
import functools
import importlib
import importlib.metadata
import linecache
import logging
import re
import sys
import threading
from collections import OrderedDict, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from h3sim.conformance import ReferenceRounds
from h3sim.schedulers import DriverScheduler, FifoScheduler
from h3sim.study import cache_key, sweep
from h3sim.study.code_identity import CodeDigests, source_digest
from h3sim.values.errors import NotReusedWarning
from tests.helpers import scripted_page

if TYPE_CHECKING:
    from pathlib import Path


def digest_of(code: Any) -> str:
    """Return the digest of some code, as another process would compute it."""
    return CodeDigests().digest_of(code, "mine")


PAGE = scripted_page([(0, "document", 1), (5, "image", 4), (5, "image", 9), (5, "image", 2)])
NEWEST = True


class EitherEnd(FifoScheduler):
    """Sends the oldest stream, or the newest."""

    def __init__(self, *, is_newest: bool = False) -> None:
        super().__init__()
        self.is_newest = is_newest

    def pick(self) -> int | None:
        return (max if self.is_newest else min)(self._active._entries, default=None)

    def new(self) -> EitherEnd:
        return EitherEnd(is_newest=self.is_newest)


def closure(*, is_newest: bool) -> Any:
    return lambda: EitherEnd(is_newest=is_newest)


def preset(*, is_newest: bool) -> Any:
    def make(is_newest: bool = is_newest) -> EitherEnd:
        return EitherEnd(is_newest=is_newest)

    return make


WAYS: dict[str, Any] = {
    "object": EitherEnd,
    "partial": lambda *, is_newest: partial(EitherEnd, is_newest=is_newest),
    "closure": closure,
    "default": preset,
    "method": lambda *, is_newest: EitherEnd(is_newest=is_newest).new,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_store_distinguishes_schedulers_of_one_class_by_their_arguments(
    way: Any, tmp_path: Path
) -> None:
    found = {}
    for is_newest in (False, True, False):
        scheduler = WAYS[way](is_newest=is_newest)
        results = sweep(PAGE, schemes=scheduler, executor="serial", store=tmp_path / "store.db")
        found[is_newest] = (results.counts[0], results.column("object_index_all_ms"))
    assert [found[is_newest][0] for is_newest in (True, False)] == [0, 1]
    assert found[True][1] != found[False][1]


def test_a_global_that_a_function_names_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> EitherEnd:
        return EitherEnd(is_newest=NEWEST)

    before = digest_of(make)
    assert digest_of(make) == before
    monkeypatch.setitem(globals(), "NEWEST", False)
    assert digest_of(make) != before


def test_what_calls_itself_has_a_digest() -> None:
    def make(n: int = 3) -> Any:
        return make(n - 1) if n else EitherEnd()

    assert digest_of(make) == digest_of(make)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module of somebody else's, and returns it as it is now."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(source: str) -> Any:
        monkeypatch.delitem(sys.modules, "own_part", raising=False)
        (tmp_path / "own_part.py").write_text(source, encoding="utf-8")
        importlib.invalidate_caches()
        linecache.clearcache()
        return importlib.import_module("own_part")

    return write


BASE = """
class Base:
    turns = {turns}

class Mine(Base):
    pass
"""


@pytest.mark.parametrize("held", [None, 3, max, re.compile("a"), np.int64(3), FifoScheduler])
def test_what_python_brings_along_may_be_held(held: Any) -> None:
    parts = digest_of(partial(EitherEnd, is_newest=held))
    assert parts == digest_of(partial(EitherEnd, is_newest=held))
    assert parts != digest_of(partial(EitherEnd, is_newest=True))


def test_the_classes_that_a_class_derives_from_count(module: Any) -> None:
    parts = [digest_of(module(BASE.format(turns=turns)).Mine) for turns in (10, 200)]
    assert parts[0] != parts[1]


def test_loads_of_what_cannot_be_followed_are_not_reused_unless_it_has_a_version(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store.db"
    scheduler: Any = EitherEnd()
    scheduler.lock = threading.Lock()

    def reused() -> int:
        factory = partial(_copied, scheduler)
        if version is not None:
            factory.code_version = version  # type: ignore[attr-defined]
        return sweep(PAGE, schemes=factory, executor="serial", store=store).counts.reused

    version: str | None = None
    for _ in range(2):
        with pytest.warns(NotReusedWarning, match="_copied uses a lock .*not reused.*code_version"):
            assert reused() == 0
    for version, expected in (("1", 0), ("1", 1), ("2", 0), ("2", 1)):  # noqa: B007 - read above
        assert reused() == expected


def _copied(scheduler: EitherEnd) -> EitherEnd:
    return EitherEnd(is_newest=scheduler.is_newest)


def test_no_warning_about_a_store_is_given_without_one() -> None:
    scheduler: Any = EitherEnd()
    scheduler.lock = threading.Lock()
    results = sweep(PAGE, schemes=partial(_copied, scheduler), executor="serial")
    assert results.counts == (0, 1, 0)


def test_a_plug_in_that_is_edited_is_another_one_whatever_its_version(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "own_part-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own-part\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text("[h3sim.schedulers]\nmine = own_part:Mine\n")
    reported = []
    for turns in (10, 200, 10):
        module(BASE.format(turns=turns))
        reported += [
            found for found in cache_key._dependencies() if found.startswith("own-part 1.2 ")
        ]
    assert reported[0] == reported[2] != reported[1]


def test_the_source_of_a_package_is_that_of_all_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_package").mkdir()
    inner = tmp_path / "own_package" / "inner.py"
    (tmp_path / "own_package" / "__init__.py").write_text("raise RuntimeError")
    inner.write_text("TURNS = 1")
    importlib.invalidate_caches()
    before = source_digest("own_package.inner")
    inner.write_text("TURNS = 2")
    assert source_digest("own_package.inner") != before
    assert source_digest("no_such_package_at_all") == source_digest("nor_this_one")


UNFOLLOWED = """
import importlib
import os
import pathlib
from os import environ
from h3sim.schedulers import FifoScheduler

class Opens(FifoScheduler):
    def pick(self):
        with open("weights.txt"):
            return super().pick()

class Reads(FifoScheduler):
    def pick(self):
        pathlib.Path("weights.txt").read_text()
        return super().pick()

class Evaluates(FifoScheduler):
    def pick(self):
        return eval("super().pick()")

class ImportsByName(FifoScheduler):
    name = "math"
    def pick(self):
        importlib.import_module(self.name)
        return super().pick()

class ReadsEnvironment(FifoScheduler):
    def pick(self):
        os.getenv("TURNS")
        return super().pick()

class NamesEnvironment(FifoScheduler):
    turns = property(lambda self: environ["TURNS"])

class OnlyHasMethods(FifoScheduler):
    def open(self, stream_id, signal):
        super().open(stream_id, signal)

class Vouched(Opens):
    code_version = "3"
"""


def test_code_that_depends_on_more_than_code_is_reported(module: Any) -> None:
    found = module(UNFOLLOWED)
    reported: dict[str, str] = {}
    classes = "Opens", "Reads", "Evaluates", "ImportsByName", "OnlyHasMethods", "Vouched"
    for name in (*classes, "ReadsEnvironment", "NamesEnvironment"):
        digests = CodeDigests()
        digests.digest_of(getattr(found, name), name)
        reported |= digests.not_reused
    assert reported == {
        "Opens": "open() in Opens.pick",
        "Reads": "read_text() in Reads.pick",
        "Evaluates": "eval() in Evaluates.pick",
        "ImportsByName": "import_module() in ImportsByName.pick",
        "ReadsEnvironment": "getenv() in ReadsEnvironment.pick",
        "NamesEnvironment": "the environment",
    }


def test_the_program_of_a_driver_counts_as_code_that_may_read_more(tmp_path: Path) -> None:
    program = tmp_path / "driver.py"
    drivers = []
    for text in ("print(1)", "print(2)"):
        program.write_text(text)
        driver: Any = DriverScheduler([sys.executable, str(program)])
        digests = CodeDigests()
        digests.digest_of(driver, "driver")
        assert list(digests.not_reused) == ["driver"]
        driver.code_version = "1"
        drivers.append(digest_of(driver))
        assert digest_of(driver) == drivers[-1]
    assert drivers[0] != drivers[1]


def test_schedulers_of_the_conformance_laws_are_followed() -> None:
    # They are no part of the model, so a digest by name alone would not change with an edit.
    before = digest_of(ReferenceRounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReferenceRounds, "pick", lambda self: None)
        assert digest_of(ReferenceRounds) != before


@dataclass
class Settings:
    """Settings with defaults."""

    turns: int = 3
    names: list[str] = field(default_factory=list)


class Level(enum.Enum):
    """Levels."""

    LOW = 1
    HIGH = 2


class Abstract(abc.ABC):
    """A class with an abstract property, and one that is computed once."""

    @property
    @abc.abstractmethod
    def turns(self) -> int: ...

    @functools.cached_property
    def twice(self) -> int:
        return 2 * self.turns


class Pair(NamedTuple):
    """A pair."""

    left: int
    right: int = 2


@pytest.mark.parametrize(
    "used",
    [
        Settings,
        Settings(4),
        Level,
        Level.HIGH,
        Abstract,
        Pair(1),
        logging.getLogger("own"),
        itemgetter(1),
        deque([1]),
        OrderedDict(a=1),
        list[int],
        np.arange(3),
        functools.lru_cache(closure),
        contextmanager(lambda: iter([1])),
        range(3),
        lambda: Settings(),
    ],
    ids=lambda used: type(used).__name__,
)
def test_ordinary_python_can_be_followed(used: Any) -> None:
    digests = CodeDigests()
    digests.digest_of(partial(EitherEnd, is_newest=used), "mine")
    assert digests.not_reused == {}
    assert digest_of(partial(EitherEnd, is_newest=used)) == digest_of(
        partial(EitherEnd, is_newest=used)
    )

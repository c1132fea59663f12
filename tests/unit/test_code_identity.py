"""By what schedulers that are code are known again in a store: source, and what made them."""

from __future__ import annotations

import importlib
import importlib.metadata
import linecache
import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from h3sim.errors import InputError
from h3sim.schedulers import FifoScheduler
from h3sim.study import cache_key, sweep
from h3sim.study.cache_key import code_parts, source_digest
from tests.helpers import scripted_page

if TYPE_CHECKING:
    from pathlib import Path

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

    before = code_parts(make, "mine")
    assert code_parts(make, "mine") == before
    monkeypatch.setitem(globals(), "NEWEST", False)
    assert code_parts(make, "mine") != before


def test_what_calls_itself_is_described_once() -> None:
    def make(n: int = 3) -> Any:
        return make(n - 1) if n else EitherEnd()

    reported = [part for part in code_parts(make, "mine") if "return make(n - 1)" in part]
    assert len(reported) == 1


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
    parts = code_parts(partial(EitherEnd, is_newest=held), "mine")
    assert parts == code_parts(partial(EitherEnd, is_newest=held), "mine")
    assert parts != code_parts(partial(EitherEnd, is_newest=True), "mine")


def test_the_classes_that_a_class_derives_from_count(module: Any) -> None:
    parts = [code_parts(module(BASE.format(turns=turns)).Mine, "Mine") for turns in (10, 200)]
    assert parts[0] != parts[1]


def test_what_cannot_be_written_down_is_refused_by_name(tmp_path: Path) -> None:
    scheduler = EitherEnd()
    scheduler.is_newest = lambda: True  # type: ignore[assignment]
    with pytest.raises(InputError) as caught:
        sweep(PAGE, schemes=scheduler, executor="serial", store=tmp_path / "store.db")
    assert str(caught.value).startswith(
        "schemes: EitherEnd is made with a value that cannot be pickled ("
    )
    assert str(caught.value).endswith("): its results cannot be stored and found again")


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

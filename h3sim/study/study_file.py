"""Study files (`h3sim-study/1`)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.catalog import load_network, load_profile
from h3sim.documents import parse_toml, read_text
from h3sim.documents.declared import keys_of, read_document, says, settle
from h3sim.documents.nested import NumbersByPath, Table
from h3sim.documents.values import (
    Choice,
    Flag,
    ListOf,
    Number,
    OneOrMore,
    Scalar,
    TableOf,
    Text,
    ValueType,
    Whole,
)
from h3sim.errors import InputError, Problem, UnknownNameError
from h3sim.results.figures import ON_DEMAND
from h3sim.study.arguments import N_SAMPLES, SAMPLING, SEED
from h3sim.study.design import Range
from h3sim.study.recorded_network import RECORDED
from h3sim.study.run import resolve_pages, resolve_schemes
from h3sim.study.sequential import SEEDS_ARE_ADDED
from h3sim.study.stopping import StoppingRule
from h3sim.study.sweep import study_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from h3sim.study.sweep import Study

__all__ = ["FORMAT", "Quick", "Samples", "StudyError", "StudyFile", "read_study", "study_from_dict"]

FORMAT = "h3sim-study/1"
_FINDS: dict[str, Callable[[str], object]] = {
    "pages": resolve_pages,
    "schemes": resolve_schemes,
    "network": load_network,
    "transport_profile": load_profile,
}
"""What may name files, which are looked for beside the study, and how each is found."""
_NAMES = OneOrMore(Text(), "names")


class StudyError(InputError):
    """A study's file cannot be used."""


class _Seeds(ValueType):
    """How many from 0 on, or which."""

    _count, _list = Whole(low=1), ListOf(Whole(low=0), "whole numbers")

    def accept(self, value: Any) -> Any:
        return (self._list if isinstance(value, list | tuple) else self._count).accept(value)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self._count.schema(), self._list.schema()]}


class _RangeTable(Table):
    """A table, or the two ends in a list."""

    def read(self, given: Any) -> Any:
        if isinstance(given, list) and len(given) == 2:
            given = dict(zip(("low", "high"), given, strict=True))
        return super().read(given)

    def schema(self) -> dict[str, Any]:
        ends = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
        return {"anyOf": [ends, super().schema()]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Settings that are drawn from ranges.

    Raises:
        StudyError: listing every value that is out of range.
    """

    n: int = field(metadata=says(N_SAMPLES, "how many settings are drawn"))
    method: str = field(
        default="latin-hypercube", metadata=says(SAMPLING, "`latin-hypercube` or `sobol`")
    )
    seed: int = field(default=0, metadata=says(SEED, "what the drawing begins with"))
    ranges: Mapping[str, Range] = field(
        default_factory=dict,
        metadata=says(
            TableOf(_RangeTable(Range, noun="[low, high] or a table", is_kept=True)),
            "of each option its range, as a table or as `[low, high]`",
        ),
    )

    def __post_init__(self) -> None:
        settle(self, StudyError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        if not self.ranges:
            yield Problem(key="ranges", message="at least one is needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    """How `h3sim reproduce` reduces a study: every n-th page by size, and at most so many seeds."""

    every: int = field(default=1, metadata=says(Whole(low=1), "every n-th page by size"))
    seeds: int | None = field(default=None, metadata=says(Whole(low=1), "so many seeds at most"))

    def __post_init__(self) -> None:
        settle(self, StudyError)

    def __str__(self) -> str:
        nth = {2: "second", 3: "third"}.get(self.every, f"{self.every}th")
        pages = "all pages" if self.every == 1 else f"every {nth} page by size"
        return (
            pages if self.seeds is None else f"{pages}, {self.seeds:,} seed{'s' * (self.seeds > 1)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile:
    """A study as its file says it.

    Raises:
        StudyError: listing every value that cannot be.
    """

    name: str = field(default="", metadata=says(Text(), "what lists call it"))
    pages: tuple[str, ...] = field(
        metadata=says(
            _NAMES,
            'pages, sets of them (`"corpus:small"`), or files, which are looked for beside the'
            " study",
        )
    )
    schemes: tuple[str, ...] = field(
        default=("marx-2019",), metadata=says(_NAMES, "schemes, sets of them, or files")
    )
    seeds: int | tuple[int, ...] | None = field(
        default=None, metadata=says(_Seeds(), "how many, from 0 on (else 1); or a list of them")
    )
    resources: bool = field(default=False, metadata=says(Flag(), "keep a row a resource as well"))
    metrics: tuple[str, ...] = field(
        default=(),
        metadata=says(
            OneOrMore(Choice(ON_DEMAND), "figures"),
            "figures that take longer, as [columns](studies.md#rows)",
        ),
    )
    timeout_s: float | None = field(
        default=None,
        metadata=says(
            Number(low=0, is_above=True),
            "a load that takes longer fails. Not in threads (dask's workers), which cannot be"
            " stopped",
        ),
    )
    settings: Mapping[str, Any] = field(
        default_factory=dict,
        metadata=says(
            TableOf(Scalar("what varies is in axes")), "options that are the same in all loads"
        ),
    )
    axes: Mapping[str, tuple[Any, ...]] = field(
        default_factory=dict,
        metadata=says(
            TableOf(ListOf(Scalar(), "values (what is fixed is in settings)")),
            "options with a list of values each; all are combined",
        ),
    )
    cells: tuple[Mapping[str, Any], ...] | None = field(
        default=None,
        metadata=says(
            ListOf(TableOf(Scalar()), "tables"),
            "a list of settings that go together, `[[cells]]`; combined with the axes",
        ),
    )
    samples: Samples | None = field(
        default=None,
        metadata=says(Table(Samples, is_kept=True), "settings that are drawn from ranges"),
    )
    until: StoppingRule | None = field(
        default=None,
        metadata=says(
            Table(StoppingRule),
            "in place of `seeds`: add them"
            " [until intervals are narrow](studies.md#how-many-seeds-are-enough)",
        ),
    )
    title: str = field(default="", metadata=says(Text(), "a line about what is reproduced"))
    source: str = field(default="", metadata=says(Text(), "where that was published"))
    paper: Mapping[str, float] = field(
        default_factory=dict, metadata=says(NumbersByPath(), "the numbers there, by figure")
    )
    quick: Quick = field(
        default_factory=Quick,
        metadata=says(Table(Quick), "how `h3sim reproduce` reduces it without `--full`"),
    )

    def __post_init__(self) -> None:
        settle(self, StudyError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        if self.until is not None and self.seeds is not None:
            yield Problem(key="seeds", message=SEEDS_ARE_ADDED)
        told = dict.fromkeys(keys_of(StudyFile), "is no option of a load: it stands outside")
        for table, names, message in (
            ("settings", self.settings, "is fixed in settings"),
            ("axes", self.axes, "varies in axes"),
            ("samples.ranges", () if self.samples is None else self.samples.ranges, ""),
        ):
            for name in names:
                if name in told:
                    yield Problem(key=f"{table}.{name}", message=told[name])
                told[name] = message

    def study(self, folder: Path | None = None, *, source: str = "study") -> Study:
        """Return what is to be loaded; files that it names are looked for in *folder* at first.

        Raises:
            StudyError: listing every mistake in it.
        """
        arguments = self._arguments(folder or Path())
        try:
            study = study_of(**arguments)
        except UnknownNameError as error:
            # The first of them; whoever wrote the file wants to know of all.
            unknown = [*self._unknown(arguments)] or [Problem(key="", message=str(error))]
            raise StudyError(unknown, source) from error
        except InputError as error:
            # It says which file it is about: a page that the study names, not the study.
            if error.source:
                raise
            raise StudyError(error.problems, source) from error
        return replace(study, stopping=self.until)

    def _arguments(self, folder: Path) -> dict[str, Any]:
        """Return the arguments of `study_of`."""

        def named(key: str, value: Any) -> Any:
            if key not in _FINDS or not isinstance(value, str):
                return value
            path = str(folder / value)
            # os.path, unlike pathlib, says no to what cannot be a path at all.
            return path if os.path.isfile(path) else value  # noqa: PTH113

        drawn: dict[str, Any] = {}
        if self.samples is not None:
            drawn = {"samples": self.samples.n, "sampling": self.samples.method}
            drawn |= {"sampling_seed": self.samples.seed, **self.samples.ranges}
        return {
            "pages": [named("pages", name) for name in self.pages],
            "schemes": [named("schemes", name) for name in self.schemes],
            "seeds": 1 if self.seeds is None else self.seeds,
            **{key: getattr(self, key) for key in ("name", "resources", "metrics", "timeout_s")},
            "cells": self.cells
            and [{key: named(key, value) for key, value in cell.items()} for cell in self.cells],
            **{key: named(key, value) for key, value in self.settings.items()},
            **{key: [named(key, value) for value in values] for key, values in self.axes.items()},
            **drawn,
        }

    def _unknown(self, arguments: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield what is wrong with each name in arguments of `study_of`, or with its file."""
        above = dict.fromkeys(self.settings, "settings.") | dict.fromkeys(self.axes, "axes.")
        keys = [(f"{above.get(key, '')}{key}", key, arguments.get(key)) for key in _FINDS]
        for number, cell in enumerate(arguments["cells"] or ()):
            keys += [(f"cells[{number}].{key}", key, cell.get(key)) for key in _FINDS]
        for told, key, given in keys:
            names = given if isinstance(given, list) else [given]
            for number, name in enumerate(names):
                try:
                    if isinstance(name, str) and name != RECORDED:
                        _FINDS[key](name)
                except (UnknownNameError, InputError) as error:
                    index = f"[{number}]" if names is given else ""
                    for line in str(error).splitlines():
                        yield Problem(key=f"{told}{index}", message=line)


def read_study(path: str | Path) -> Study:
    """Return the study that the file at *path* describes.

    Raises:
        StudyError: if the file cannot be read, or listing every mistake in it.
    """
    document = parse_toml(read_text(path, StudyError), StudyError, source=str(path))
    return study_from_dict(document, source=str(path), folder=Path(path).parent)


def study_from_dict(
    document: dict[str, Any], *, source: str = "study", folder: Path | None = None
) -> Study:
    """Return the study that *document*, a parsed study file, describes.

    The files that it names are looked for in *folder* at first.

    Raises:
        StudyError: listing every mistake in it.
    """
    file = read_document(StudyFile, document, StudyError, source=source, format_=FORMAT)
    return file.study(folder, source=source)

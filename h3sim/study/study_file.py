"""Study files (`h3sim-study/1`): reading and validating them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from h3sim import catalog
from h3sim.load.figures import ON_DEMAND
from h3sim.load.load_config import LoadConfig
from h3sim.load.options import N_SAMPLES, SAMPLING, SEED, file_key
from h3sim.load.selection import resolve_pages, resolve_schemes
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schema import parse_toml, read_text
from h3sim.schema.errors import RejectedValueError, collected
from h3sim.schema.fields import NumbersByPath, Record, fields_of, keys_of, read_document, validate
from h3sim.schema.values import (
    Choice,
    Flag,
    Integer,
    ListOf,
    Number,
    OneOrMore,
    Scalar,
    TableOf,
    Text,
    ValueType,
)
from h3sim.study.design import OPTIONS, Range, StoppingRule, StudyPart, is_axis, unknown_axis
from h3sim.study.sweep import SEEDS_ARE_ADDED, Study, load_study
from h3sim.transport.congestion import controller_named
from h3sim.values.errors import InputError, UnknownNameError, ValidationIssue

FORMAT = "h3sim-study/1"
_RESOLVER_BY_KEY: dict[str, Callable[[str], object]] = {
    "pages": resolve_pages,
    "schemes": resolve_schemes,
    "network": lambda name: name == RECORDED_NETWORK or catalog.load_network(name),
    "transport_profile": catalog.load_profile,
    "cc": controller_named,
}
"""Functions that resolve names, by key."""
_FILE_KEYS = tuple(key for key in _RESOLVER_BY_KEY if key != "cc")
"""Keys that may name files, which are looked up next to the study file."""
_TYPE_BY_OPTION = {entry.attribute: entry.kind for entry in fields_of(LoadConfig)}
_NAMES = OneOrMore(Text(), "names")


class StudyError(InputError):
    """Study file that cannot be used."""


class _Seeds(ValueType):
    """Field type of seeds: a number of seeds from 0 on, or a list of seeds."""

    _count, _list = Integer(low=1), ListOf(Integer(low=0), "whole numbers")

    def accept(self, value: Any) -> Any:
        return (self._list if isinstance(value, list | tuple) else self._count).accept(value)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self._count.schema(), self._list.schema()]}


class _Part(Text):
    """Field type of a part of a study."""

    def accept(self, value: Any) -> str:
        try:
            StudyPart.parse(value)
        except InputError as error:
            raise RejectedValueError(error.problems[0].message) from error
        return super().accept(value)


class _Setting(Scalar):
    """Field type of a setting: a single value, or a table if the option allows one."""

    def accept(self, value: Any) -> Any:
        return value if isinstance(value, Mapping) else super().accept(value)

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean", "object"]}


class _RangeTable(Record):
    """Field type of a range: a table, or a list of its two ends."""

    def read(self, given: Any) -> Any:
        if isinstance(given, list) and len(given) == 2:
            given = dict(zip(("low", "high"), given, strict=True))
        return super().read(given)

    def schema(self) -> dict[str, Any]:
        ends = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
        return {"anyOf": [ends, super().schema()]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Settings sampled from ranges.

    Raises:
        StudyError: listing every value that is out of range.
    """

    n: int = file_key(N_SAMPLES, "number of settings to draw")
    method: str = file_key(SAMPLING, "`latin-hypercube` or `sobol`", default="latin-hypercube")
    seed: int = file_key(SEED, "random seed of the sample", default=0)
    ranges: Mapping[str, Range] = file_key(
        TableOf(_RangeTable(Range, noun="[low, high] or a table", keeps_partial=True)),
        "range of each option, as a table or as `[low, high]`",
        default_factory=dict,
    )

    def __post_init__(self) -> None:
        validate(self, StudyError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield issues between its values."""
        if not self.ranges:
            yield ValidationIssue(key="ranges", message="at least one is needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    """Reduction of a study by `h3sim reproduce`: every n-th page by size, and a limit on seeds."""

    every: int = file_key(Integer(low=1), "every n-th page by size", default=1)
    seeds: int | None = file_key(Integer(low=1), "maximum number of seeds", default=None)

    def __post_init__(self) -> None:
        validate(self, StudyError)

    def __str__(self) -> str:
        nth = {2: "second", 3: "third"}.get(self.every, f"{self.every}th")
        pages = "all pages" if self.every == 1 else f"every {nth} page by size"
        return (
            pages if self.seeds is None else f"{pages}, {self.seeds:,} seed{'s' * (self.seeds > 1)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile:
    """Contents of a study file.

    Raises:
        StudyError: listing every invalid value.
    """

    name: str = file_key(Text(), "display name of the study", default="")
    pages: tuple[str, ...] = file_key(
        _NAMES,
        'pages, sets of them (`"corpus:small"`), or files, which are looked up next to the'
        " study file",
    )
    schemes: tuple[str, ...] = file_key(
        _NAMES, "prioritization schemes, sets of them, or files", default=("marx-2019",)
    )
    seeds: int | tuple[int, ...] | None = file_key(
        _Seeds(), "number of seeds from 0 on (default: 1), or a list of seeds", default=None
    )
    resources: bool = file_key(Flag(), "also keep one row per resource", default=False)
    metrics: tuple[str, ...] = file_key(
        OneOrMore(Choice(ON_DEMAND), "figures"),
        "metrics that take longer to compute, as [columns](../studies.md#rows)",
        default=(),
    )
    timeout_s: float | None = file_key(
        Number(low=0, is_above=True),
        "time limit of a load in seconds; longer loads fail. Not enforced in threads"
        " (Dask workers)",
        default=None,
    )
    part: str | None = file_key(
        _Part(),
        "run only [this part](../studies.md#where-loads-run) of the loads, such as `3/16`",
        default=None,
    )
    settings: Mapping[str, Any] = file_key(
        TableOf(_Setting("put options that vary into axes")),
        "options with one value for all loads",
        default_factory=dict,
    )
    axes: Mapping[str, tuple[Any, ...]] = file_key(
        TableOf(ListOf(_Setting(), "values (put options with one value into settings)")),
        "options with a list of values each; all combinations are loaded",
        default_factory=dict,
    )
    cells: tuple[Mapping[str, Any], ...] | None = file_key(
        ListOf(TableOf(_Setting()), "tables"),
        "combinations of settings, `[[cells]]`, each combined with the axes",
        default=None,
    )
    samples: Samples | None = file_key(
        Record(Samples, keeps_partial=True), "settings sampled from ranges", default=None
    )
    until: StoppingRule | None = file_key(
        Record(StoppingRule),
        "instead of `seeds`: add seeds"
        " [until intervals are narrow](../studies.md#how-many-seeds-are-enough)",
        default=None,
    )
    title: str = file_key(Text(), "one-line title of the reproduced result", default="")
    source: str = file_key(Text(), "publication of the result", default="")
    paper: Mapping[str, float] = file_key(
        NumbersByPath(), "published numbers, by metric", default_factory=dict
    )
    quick: Quick = file_key(
        Record(Quick), "how `h3sim reproduce` reduces it without `--full`", default_factory=Quick
    )

    def __post_init__(self) -> None:
        validate(self, StudyError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield issues between its values."""
        if self.until is not None and self.seeds is not None:
            yield ValidationIssue(key="seeds", message=SEEDS_ARE_ADDED)
        # Messages about the options that a table must not have: those of tables before it, too.
        refusals = dict.fromkeys(
            keys_of(StudyFile), "is not an option of a load: move it to the top level"
        )
        ranges = () if self.samples is None else self.samples.ranges
        for table, names, refusal_in_later_tables in (
            ("settings", self.settings, "is fixed in settings"),
            ("axes", self.axes, "varies in axes"),
            ("samples.ranges", ranges, ""),
            *((f"cells[{n}]", cell, "") for n, cell in enumerate(self.cells or ())),
        ):
            for name in names:
                if name in refusals:
                    yield ValidationIssue(key=f"{table}.{name}", message=refusals[name])
                elif not is_axis(name):
                    unknown = unknown_axis(name, keys_of(StudyFile))
                    yield ValidationIssue(key=f"{table}.{name}", message=unknown.message)
                if refusal_in_later_tables:
                    refusals[name] = refusal_in_later_tables
        _, problems = collected(
            (key, _TYPE_BY_OPTION[name].accept, value)
            for key, name, value in self._option_values()
            if name in OPTIONS
        )
        yield from problems

    def study(self, folder: Path | None = None, *, source: str = "study") -> Study:
        """Return the study; files that it names are looked up in *folder* first.

        Raises:
            StudyError: listing every error in it.
        """
        folder = folder or Path()
        try:
            study = load_study(**self._arguments(folder))
        except (UnknownNameError, InputError) as error:
            issues = getattr(error, "problems", ()) or [ValidationIssue(key="", message=str(error))]
            # The same issues of names, with the keys of this file.
            unknown = self.unknown_names(folder)
            # If only a file that the study names is wrong, the error already has its keys.
            if getattr(error, "source", "") and len(unknown) <= len(issues):
                raise
            replaced_keys = ("", *_RESOLVER_BY_KEY) if unknown else ()
            others = (issue for issue in issues if issue.key not in replaced_keys)
            raise StudyError([*unknown, *others], source) from error
        return replace(study, stopping=self.until)

    def _option_values(self) -> Iterator[tuple[str, str, Any]]:
        """Yield key path, option and value of each option."""
        for name, value in self.settings.items():
            yield f"settings.{name}", name, value
        for name, values in self.axes.items():
            for number, value in enumerate(values):
                yield f"axes.{name}[{number}]", name, value
        for number, cell in enumerate(self.cells or ()):
            for name, value in cell.items():
                yield f"cells[{number}].{name}", name, value

    def _arguments(self, folder: Path) -> dict[str, Any]:
        """Return the arguments of `load_study`."""

        def located(key: str, value: Any) -> Any:
            return _in_folder(folder, key, value)

        sampling: dict[str, Any] = {}
        if self.samples is not None:
            sampling = {"samples": self.samples.n, "sampling": self.samples.method}
            sampling |= {"sampling_seed": self.samples.seed, **self.samples.ranges}
        return {
            "pages": [located("pages", name) for name in self.pages],
            "schemes": [located("schemes", name) for name in self.schemes],
            "seeds": 1 if self.seeds is None else self.seeds,
            "name": self.name,
            "part": self.part,
            "resources": self.resources,
            "metrics": self.metrics,
            "timeout_s": self.timeout_s,
            "cells": self.cells
            and [{key: located(key, value) for key, value in cell.items()} for cell in self.cells],
            **{key: located(key, value) for key, value in self.settings.items()},
            **{key: [located(key, value) for value in values] for key, values in self.axes.items()},
            **sampling,
        }

    def unknown_names(self, folder: Path) -> list[ValidationIssue]:
        """Return an issue for each unknown name or invalid file that the study names."""
        subjects = [
            (f"{key}[{number}]", key, name)
            for key, names in (("pages", self.pages), ("schemes", self.schemes))
            for number, name in enumerate(names)
        ]
        issues: list[ValidationIssue] = []
        for path, key, name in (*subjects, *self._option_values()):
            if key not in _RESOLVER_BY_KEY or not isinstance(name, str):
                continue
            try:
                _RESOLVER_BY_KEY[key](_in_folder(folder, key, name))
            except (UnknownNameError, InputError) as error:
                issues += (
                    ValidationIssue(key=path, message=line) for line in str(error).splitlines()
                )
        return issues


def _in_folder(folder: Path, key: str, value: Any) -> Any:
    """Return the path of the file of that name in *folder*, or *value* if there is none."""
    if key not in _FILE_KEYS or not isinstance(value, str):
        return value
    path = str(folder / value)
    # os.path, unlike pathlib, returns False for invalid paths.
    return path if os.path.isfile(path) else value  # noqa: PTH113


def read_study(path: str | Path) -> Study:
    """Read the study file at *path*.

    Raises:
        StudyError: if the file cannot be read, or listing every error in it.
    """
    document = parse_toml(read_text(path, StudyError), StudyError, source=str(path))
    return study_from_dict(document, source=str(path), folder=Path(path).parent)


def study_from_dict(
    document: dict[str, Any], *, source: str = "study", folder: Path | None = None
) -> Study:
    """Return the study described by *document*, a parsed study file.

    Files that it names are looked up in *folder* first.

    Raises:
        StudyError: listing every error in it.
    """
    folder = folder or Path()
    file = read_document(
        StudyFile,
        document,
        StudyError,
        source=source,
        format_=FORMAT,
        also=lambda file: file.unknown_names(folder),
    )
    return file.study(folder, source=source)

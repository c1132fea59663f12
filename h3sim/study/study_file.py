"""Reads studies from TOML: `docs/studies.md` has all keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.documents import DocumentReader, parse_toml, read_text
from h3sim.documents.declared import read_table
from h3sim.documents.refused import RefusedError
from h3sim.errors import InputError, Problem, UnknownNameError
from h3sim.study.design import Range
from h3sim.study.sequential import SEEDS_ARE_ADDED
from h3sim.study.stopping import StoppingRule
from h3sim.study.sweep import study_of

if TYPE_CHECKING:
    from h3sim.study.sweep import Study

__all__ = ["StudyError", "read_study", "study_from_dict"]

FORMAT = "h3sim-study/1"
_KEYS = (
    *("format", "name", "pages", "schemes", "seeds", "resources", "metrics", "timeout_s"),
    *("settings", "axes", "cells", "samples", "until"),
    *("title", "source", "paper", "quick"),
)
"""The last four say what is reproduced: `h3sim.findings.experiments` reads them."""
_SAMPLES = ("n", "method", "seed", "ranges")
_RANGE = ("low", "high", "log", "whole")
_PATHS = ("pages", "schemes", "network", "transport_profile")
"""What may name files, which are looked for beside the study."""


class StudyError(InputError):
    """A study's file cannot be used."""


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
    reader = _Reader(folder or Path())
    arguments = reader.arguments(document)
    stopping = reader.stopping(document)
    # Not before both were read, so that all mistakes are told at once.
    if reader.problems:
        raise StudyError(reader.problems, source)
    try:
        return replace(study_of(**arguments), stopping=stopping)
    except UnknownNameError as error:
        raise StudyError([Problem(key="", message=str(error))], source) from error
    except InputError as error:
        # It says which file it is about: a page that the study names, not the study.
        if error.source:
            raise
        raise StudyError(error.problems, source) from error


class _Reader(DocumentReader):
    """Turns a document into the arguments of `study_of`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def arguments(self, document: dict[str, Any]) -> dict[str, Any]:
        if document.get("format") != FORMAT:
            self.report("format", f"must be {FORMAT!r}, is {document.get('format')!r}")
        self.keys("", document, _KEYS)
        if "pages" not in document:
            self.report("pages", "is missing")
        found: dict[str, Any] = {
            key: [self._named(key, name) for name in self.texts(key, document[key])]
            for key in ("pages", "schemes")
            if key in document
        }
        found["name"] = self.text("name", document.get("name", ""))
        for key in ("title", "source"):
            self.text(key, document.get(key, ""))
        for key in ("paper", "quick"):
            self.table(key, document.get(key, {}))
        found["seeds"] = self._seeds(document.get("seeds", 1))
        found["resources"] = self.flag("resources", document.get("resources", False))
        if "metrics" in document:
            found["metrics"] = self.texts("metrics", document["metrics"])
        if "timeout_s" in document:
            found["timeout_s"] = self.number("timeout_s", document["timeout_s"])
        if "cells" in document:
            found["cells"] = [
                {key: self._named(key, value) for key, value in cell.items()}
                for cell in self.tables("cells", document["cells"])
            ]
        return found | self._axes(document) | self._samples(document)

    def _seeds(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self.whole(f"seeds[{n}]", seed, low=0) for n, seed in enumerate(value))
        return self.whole("seeds", value, low=1)

    def stopping(self, document: dict[str, Any]) -> StoppingRule | None:
        """Return when there are seeds enough, where the study adds them by itself."""
        if "until" not in document:
            return None
        if "seeds" in document:
            self.report("seeds", SEEDS_ARE_ADDED)
        try:
            return read_table(StoppingRule, document["until"])
        except RefusedError as refused:
            self.add(refused.under("until"))
            return None

    def _axes(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return what is fixed, and what varies, each option once."""
        settings = self.table("settings", document.get("settings", {}))
        axes = self.table("axes", document.get("axes", {}))
        for name in settings:
            if name in axes:
                self.report(f"axes.{name}", "is fixed in settings")
            if isinstance(settings[name], (list, dict)):
                self.report(f"settings.{name}", "must be one value: what varies is in axes")
        for name, values in axes.items():
            if not isinstance(values, list):
                self.report(f"axes.{name}", "must be a list: what is fixed is in settings")
        return {
            name: [self._named(name, v) for v in values]
            if isinstance(values, list)
            else self._named(name, values)
            for name, values in {**settings, **axes}.items()
        }

    def _samples(self, document: dict[str, Any]) -> dict[str, Any]:
        if "samples" not in document:
            return {}
        table = self.table("samples", document["samples"])
        self.keys("samples", table, _SAMPLES)
        ranges = self.table("samples.ranges", table.get("ranges", {}))
        if not ranges:
            self.report("samples.ranges", "at least one is needed")
        return {
            "samples": self.whole("samples.n", table.get("n"), low=1),
            "sampling": self.text("samples.method", table.get("method", "latin-hypercube")),
            "sampling_seed": self.whole("samples.seed", table.get("seed", 0), low=0),
            **{name: self._range(f"samples.ranges.{name}", ranges[name]) for name in ranges},
        }

    def _range(self, key: str, value: Any) -> Range:
        # Goes on in place of a wrong one, so that mistakes behind it are found as well.
        stand_in = Range(low=0, high=1)
        if isinstance(value, list) and len(value) == 2:
            value = dict(zip(("low", "high"), value, strict=True))
        table = self.table(key, value)
        self.keys(key, table, _RANGE)
        try:
            return Range(**{name: table[name] for name in _RANGE if name in table})
        except InputError as error:
            self.add(
                Problem(key=f"{key}.{problem.key}", message=problem.message)
                for problem in error.problems
            )
        except TypeError:
            self.report(key, "needs low and high")
        return stand_in

    def _named(self, key: str, name: Any) -> Any:
        """Return the path of a file that stands beside the study, or what was given."""
        if key in _PATHS and isinstance(name, str) and (self._folder / name).is_file():
            return str(self._folder / name)
        return name

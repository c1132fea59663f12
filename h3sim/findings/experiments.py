"""The experiments of the papers: study files with the papers' numbers, in `models/studies`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.capture.header_lists import read_exchanges
from h3sim.catalog.roots import root
from h3sim.documents import DocumentReader, parse_toml, read_text
from h3sim.documents.shown import is_quantity, shown
from h3sim.errors import Problem, UnknownNameError
from h3sim.findings.headers import HeaderExperiment
from h3sim.study.study_file import StudyError, study_from_dict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.study import Study

__all__ = ["Experiment", "Quick", "experiment_names", "load_experiment", "numbered", "page_files"]

HEADER_FORMAT = "h3sim-header-study/1"
_HEADER_KEYS = (
    *("format", "name", "title", "source", "lists", "interval_ms", "rtts_ms", "losses"),
    *("runs", "table_bytes", "paper"),
)
_CORPUS = "corpus"


@dataclass(frozen=True, slots=True)
class Quick:
    """How the quick variant is reduced: every n-th page by size, and at most so many seeds."""

    every: int = 1
    seeds: int | None = None

    def __str__(self) -> str:
        pages = "all pages" if self.every == 1 else f"every {_nth(self.every)} page by size"
        seeds = "" if self.seeds is None else f", {numbered(self.seeds, 'seed')}"
        return f"{pages}{seeds}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment: what was published, and the study that does it again."""

    name: str
    title: str
    source: str
    paper: Mapping[str, float]
    """The paper's own numbers by the names of the figures that stand beside them."""
    quick: Quick
    document: dict[str, Any] = field(repr=False)
    path: Path = field(repr=False)

    @property
    def is_about_headers(self) -> bool:
        """Whether it compresses headers; else it loads pages."""
        return bool(self.document["format"] == HEADER_FORMAT)

    @property
    def takes_pages(self) -> bool:
        """Whether it may be done over other pages: where its own are the shipped corpus."""
        return bool(self.document.get("pages") == [_CORPUS])

    def study(self, *, full: bool = False, pages: Sequence[str] | None = None) -> Study:
        """Return the loads: all of them with *full*, else as `quick` says.

        *pages* are files that take the place of the corpus, where the experiment is over that.

        Raises:
            InputError: listing every mistake of the study, or of a page.
        """
        document = dict(self.document)
        if pages is not None and self.takes_pages:
            document["pages"] = list(pages)
        study = study_from_dict(document, source=str(self.path), folder=self.path.parent)
        if full:
            return study
        design = study.design
        by_size = sorted(design.pages, key=lambda page: (page.total_bytes, page.name))
        chosen = {page.name for page in by_size[:: self.quick.every]}
        kept = tuple(page for page in design.pages if page.name in chosen)
        seeds = tuple(design.seeds)[: self.quick.seeds]
        return replace(study, design=replace(design, pages=kept, seeds=seeds))

    def headers(self) -> HeaderExperiment:
        """Return the runs of a study of headers, the same quick or full."""
        document = self.document
        folder = root("corpora") / "headers"
        lists = [
            exchange.request
            for name in document["lists"]
            for exchange in read_exchanges(Path(str(folder / f"{name}.req.qif")), interval_ns=0)
            if exchange.request is not None
        ]
        return HeaderExperiment(
            lists=tuple(lists),
            interval_ms=document["interval_ms"],
            rtts_ms=tuple(document["rtts_ms"]),
            losses=tuple(document["losses"]),
            runs=document["runs"],
            table_bytes=document["table_bytes"],
        )


def experiment_names() -> tuple[str, ...]:
    """Return the names of the experiments, in order.

    >>> experiment_names()[:2]
    ('davies-meenan', 'frindell-2017')
    """
    files = (file.name for file in (root("models") / "studies").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml")))


def load_experiment(name: str) -> Experiment:
    """Return the experiment of that name.

    Raises:
        UnknownNameError: if there is none.
        StudyError: listing every mistake of its file.

    >>> load_experiment("marx-2019-table-2").paper["atf.fifo"]
    1.93
    """
    if name not in experiment_names():
        raise UnknownNameError("experiment", name, experiment_names(), "h3sim reproduce --list")
    path = Path(str(root("models") / "studies" / f"{name}.toml"))
    document = parse_toml(read_text(path, StudyError), StudyError, source=str(path))
    reader = _Reader()
    experiment = reader.experiment(document, path)
    if reader.problems:
        raise StudyError(reader.problems, str(path))
    return experiment


def page_files(folder: str | Path) -> list[str]:
    """Return the page files in *folder*, by name.

    Raises:
        StudyError: if there is no such folder, or no page file in it.
    """
    given = Path(folder)
    found = sorted(map(str, given.glob("*.json"))) if given.is_dir() else []
    if not found:
        told = "has no page file (*.json)" if given.is_dir() else "is no folder"
        raise StudyError([Problem(key="--pages", message=f"{shown(str(folder))} {told}")])
    return found


class _Reader(DocumentReader):
    """Reads what an experiment says beside its study; the study itself is read by its reader."""

    def experiment(self, document: dict[str, Any], path: Path) -> Experiment:
        if document.get("format") == HEADER_FORMAT:
            self._headers(document)
        quick = self.table("quick", document.get("quick", {}))
        self.keys("quick", quick, ("every", "seeds"))
        paper: dict[str, float] = {}
        self._paper("paper", self.table("paper", document.get("paper", {})), paper)
        return Experiment(
            name=self.text("name", document.get("name")),
            title=self.text("title", document.get("title")),
            source=self.text("source", document.get("source")),
            paper=paper,
            quick=Quick(
                every=self.whole("quick.every", quick.get("every", 1), low=1),
                seeds=self.whole("quick.seeds", quick["seeds"], low=1)
                if "seeds" in quick
                else None,
            ),
            document=document,
            path=path,
        )

    def _optional(self, key: str, value: Any) -> int | None:
        return None if value is None else self.whole(key, value, low=1)

    def _headers(self, document: dict[str, Any]) -> None:
        self.keys("", document, _HEADER_KEYS)
        for key in _HEADER_KEYS:
            if key not in document:
                self.report(key, "is missing")
        self.texts("lists", document.get("lists", []))
        self.number("interval_ms", document.get("interval_ms", 0))
        for key in ("rtts_ms", "losses"):
            for index, value in enumerate(document.get(key, [])):
                self.number(f"{key}[{index}]", value)
        self.whole("runs", document.get("runs", 1), low=1)
        self.whole("table_bytes", document.get("table_bytes", 0), low=0)

    def _paper(self, key: str, table: Mapping[str, Any], found: dict[str, float]) -> None:
        """Note every number of nested tables by its path, without the word paper."""
        for name, value in table.items():
            inner = f"{key}.{name}"
            if isinstance(value, dict):
                self._paper(inner, value, found)
            elif is_quantity(value):
                found[inner.removeprefix("paper.")] = value
            else:
                self.report(inner, f"must be a number, is {shown(value)}")


def numbered(number: int, noun: str) -> str:
    """Return the number with its noun.

    >>> numbered(1, "page"), numbered(1200, "load")
    ('1 page', '1,200 loads')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _nth(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")

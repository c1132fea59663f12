"""The experiments of the papers: study files with the papers' numbers, in `models/studies`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.catalog.roots import root
from h3sim.documents import parse_toml, read_text
from h3sim.documents.declared import read_document
from h3sim.documents.shown import shown
from h3sim.errors import Problem, UnknownNameError
from h3sim.findings import headers
from h3sim.findings.headers import HeaderExperiment
from h3sim.study import study_file
from h3sim.study.study_file import Quick, StudyError, StudyFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.study import Study

__all__ = ["Experiment", "experiment_names", "load_experiment", "numbered", "page_files"]

_CORPUS = "corpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment: what was published, and the study that does it again."""

    file: StudyFile | HeaderExperiment = field(repr=False)
    """What its file says."""
    path: Path = field(repr=False)
    name: str
    title: str
    source: str
    paper: Mapping[str, float]
    """The paper's own numbers by the names of the figures that stand beside them."""
    quick: Quick

    @property
    def is_about_headers(self) -> bool:
        """Whether it compresses headers; else it loads pages."""
        return isinstance(self.file, HeaderExperiment)

    @property
    def takes_pages(self) -> bool:
        """Whether it may be done over other pages: where its own are the shipped corpus."""
        return isinstance(self.file, StudyFile) and self.file.pages == (_CORPUS,)

    def study(self, *, full: bool = False, pages: Sequence[str] | None = None) -> Study:
        """Return the loads: all of them with *full*, else as `quick` says; of headers always all.

        *pages* are files that take the place of the corpus, where the experiment is over that.

        Raises:
            InputError: listing every mistake of the study, or of a page.
        """
        file = self.file
        if isinstance(file, HeaderExperiment):
            return file.study()
        if pages is not None and self.takes_pages:
            file = replace(file, pages=tuple(pages))
        study = file.study(self.path.parent, source=str(self.path))
        if full:
            return study
        design = study.design
        by_size = sorted(design.pages, key=lambda page: (page.total_bytes, page.name))
        chosen = {page.name for page in by_size[:: self.quick.every]}
        kept = tuple(page for page in design.pages if page.name in chosen)
        seeds = tuple(design.seeds)[: self.quick.seeds]
        return replace(study, design=replace(design, pages=kept, seeds=seeds))


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
    is_about_headers = document.get("format") == headers.FORMAT
    cls: type[StudyFile | HeaderExperiment] = HeaderExperiment if is_about_headers else StudyFile
    format_ = headers.FORMAT if is_about_headers else study_file.FORMAT
    file = read_document(cls, document, StudyError, source=str(path), format_=format_)
    return Experiment(
        file=file,
        path=path,
        name=file.name,
        title=file.title,
        source=file.source,
        paper=file.paper,
        quick=file.quick if isinstance(file, StudyFile) else Quick(),
    )


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


def numbered(number: int, noun: str) -> str:
    """Return the number with its noun.

    >>> numbered(1, "page"), numbered(1200, "load")
    ('1 page', '1,200 loads')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

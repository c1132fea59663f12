"""Prepares what the documentation site is built from: `python -m tools.docs_site`.

The files of the repository keep their paths, so that links between them hold; the index and the
references of the API and the command line are generated from the package.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import h3sim
from h3sim.cli.main import COMMANDS, make_parser
from h3sim.reporting.output import alt_text, save_figure
from tools.documented import GENERATED
from tools.figures import drawn
from tools.notebooks import NOTEBOOKS, SITE_SIZE, executed, read_notebook, write_notebook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

__all__ = ["SECTIONS", "main", "sections", "write_source"]

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "build" / "docs" / "source"
PLAYGROUND = ROOT / "build" / "playground"
"""Part of the site, below play/, if it was built before (`make test-playground`)."""
_EXTRA = SOURCE.parent / "extra"

SECTIONS = {
    "Tutorials: learn by doing": (
        *("README", "docs/tour"),
        *("notebooks/01-prioritization", "notebooks/02-head-of-line-blocking"),
        *("notebooks/03-eleven-schemes", "notebooks/04-when-round-robin-wins"),
        *("notebooks/05-your-own-page", "notebooks/06-own-scheduler", "notebooks/07-study"),
        *("notebooks/08-header-compression", "notebooks/09-how-far-from-optimal"),
        *("notebooks/10-processes", "notebooks/11-ten-jobs"),
    ),
    "How-to: one question each": (
        *("docs/how-to", "docs/hints", "docs/teaching", "docs/lesson", "notebooks/lesson-slides"),
        *("docs/install", "docs/importing", "docs/recording", "docs/studies", "docs/learning"),
        *("docs/testing-schedulers", "docs/scheduler-in-ci"),
        *("docs/conformance-protocol", "docs/priority-vectors"),
        *("docs/processes", "docs/figures", "docs/releasing"),
        *("CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT"),
    ),
    "Reference: look it up": (
        *("reference/cli", "reference/api", "docs/schemes", "docs/networks", "docs/metrics"),
        *("docs/page-format", "docs/formats", "docs/corpus", "docs/glossary"),
        *("docs/references", "docs/README", "CHANGELOG"),
    ),
    "Explanation: how and why": (
        *("docs/scope", "docs/architecture", "docs/reading", "docs/browsers", "docs/signalling"),
        *("docs/schedulers", "docs/hosts", "docs/cross-traffic", "docs/headers"),
        *(
            "docs/validation",
            "docs/web",
            "docs/results",
            "docs/artifact",
            "validation/data/README",
        ),
        *("validation/data/pages/README", "validation/data/schedules/README"),
        "validation/data/stacks/README",
    ),
    "Generated: what commands wrote": (
        "docs/generated/README",
        *(f"docs/generated/{p.stem}" for p in sorted(GENERATED.glob("[!R]*.md"))),
    ),
}
"""The pages of the site by what a reader comes for; a page that is in none stands at the end."""

PACKAGES = (
    *("page", "catalog", "importers", "schemes", "signals", "schedulers", "conformance"),
    *("transport", "engine", "browser", "headers", "load", "export", "metrics", "trace"),
    *("study", "advice", "identification", "papers", "reporting", "qlog"),
    *("values.errors", "values.units", "values.rng"),
)
"""The modules whose names users import beside those of `h3sim` itself."""

_INDEX = """
![The test page of Davies and Meenan through four schemes](docs/images/davies-meenan.png)

Each row is a load of one page with one scheme, each rectangle a packet in the colour of its
resource ([how to read it](docs/tour.md#how-to-read-the-figure)). h3sim is pure Python, needs no
browser, server or socket, and gives the same results on every machine. From a checkout:

```console
$ pip install .
$ h3sim compare http2rulez davies-meenan --plot schemes.png
```

## Where to start

- **Teach**: the [playground](#playground) has a lesson of five steps, and eleven notebooks are a
  [course](docs/teaching.md) with exercises that check their answers.
- **Study**: [a study in fifteen lines](notebooks/07-study.ipynb), then all about
  [studies](docs/studies.md), [metrics](docs/metrics.md) and [networks](docs/networks.md).
- **Test a scheduler**: [write one](notebooks/06-own-scheduler.ipynb), hold it to
  [laws](docs/testing-schedulers.md), and check it [in CI](docs/scheduler-in-ci.md).
- **Look at my page**: [from a HAR to the best scheme](notebooks/05-your-own-page.ipynb), by
  [importing](docs/importing.md) or [recording](docs/recording.md) it.

[Start here](README.md) is the overview, and [How do I ...?](docs/how-to.md) answers one question
each. [Scope](docs/scope.md) lists what is modelled and what is not,
[validation](docs/validation.md) how far to trust it; the [glossary](docs/glossary.md) explains
words.

## Playground

"""
_EMBEDDED = """
h3sim runs in this page: move a slider, and compare with the state before.

```{raw} html
<p><a href="play/">Open it alone</a> for the lesson, or with a recording of your own.</p>
<iframe src="play/" title="h3sim playground" loading="lazy"
  style="width: 100%; height: 46rem; border: 1px solid #8a8a8a; border-radius: 6px"></iframe>
```
"""
_NOT_EMBEDDED = (
    "`make playground` builds and serves it; a site that is built after that has it here."
)
_HELP_COLUMNS = "88"
"""What a block of the site shows without scrolling."""


_SCHEME_PAGES = ("docs/generated/schemes.md", "docs/generated/servers.md")
_PICTURES = "docs/images/schemes"
_FIGURE_PAGE = "docs/figures.md"
_FIGURES = "docs/images/figures"
_EXAMPLE = "davies-meenan"


def main() -> None:
    """Write the source of the site into build/docs/source, with a picture of each scheme."""
    with tempfile.TemporaryDirectory() as made:
        write_source(SOURCE, write_pictures(Path(made)), read=executed)
        shutil.copytree(made, SOURCE / _PICTURES)
    _EXTRA.mkdir(exist_ok=True)
    if PLAYGROUND.is_dir():
        shutil.copytree(PLAYGROUND, _EXTRA / "play", dirs_exist_ok=True)
    figures = (ROOT / _FIGURE_PAGE).read_text("utf-8")
    _write(SOURCE / _FIGURE_PAGE, figures + gallery(write_figures(SOURCE / _FIGURES)))


def write_source(
    folder: Path,
    pictures: Mapping[str, str],
    *,
    read: Callable[[Path], Any] = read_notebook,
) -> None:
    """Write what Sphinx reads into *folder*, which is emptied before.

    *pictures* says in words what the picture of each scheme shows; those stand in no file here.
    *read* returns a notebook, with outputs if the site is to show them.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for path in _pages():
        _copy(path, folder)
        for linked in _linked_files(path):
            _copy(linked, folder)
    for page in _SCHEME_PAGES:
        _write(folder / page, scheme_page((ROOT / page).read_text("utf-8"), pictures))
    for path in NOTEBOOKS:
        _copy(path, folder / "downloads")
        page = notebook_page(path.name, read(path))
        write_notebook(page, folder / "notebooks" / path.name)
    _write(folder / "index.md", index_page())
    _write(folder / "reference" / "cli.md", cli_page())
    _write(folder / "reference" / "api.md", api_index())
    for name in ("h3sim", *(f"h3sim.{package}" for package in PACKAGES)):
        _write(folder / "reference" / f"{name}.md", api_page(name))


def write_pictures(folder: Path) -> dict[str, str]:
    """Draw what each shipped scheme makes of one page into *folder*; return it in words."""
    folder.mkdir(parents=True, exist_ok=True)
    words = {}
    for scheme in h3sim.list_schemes():
        card = h3sim.simulate(_EXAMPLE, scheme=scheme).plot.scheme_card()
        save_figure(card, folder / f"{scheme.name}.png")
        words[scheme.name] = alt_text(card)
    return words


def scheme_page(text: str, pictures: Mapping[str, str]) -> str:
    """Return a page of schemes or servers with a picture of `_EXAMPLE` below each in *pictures*."""
    for name, words in pictures.items():
        picture = f"![{_EXAMPLE}: {words}](../images/schemes/{name}.png)"
        text = text.replace(f"\n## {name}\n", f"\n## {name}\n\n{picture}\n")
    return text


def write_figures(folder: Path) -> dict[str, str]:
    """Draw every figure of one page and its loads into *folder*; return them in words."""
    folder.mkdir(parents=True, exist_ok=True)
    words = {}
    for name, figure in drawn(h3sim.load_page(_EXAMPLE)):
        save_figure(figure, folder / f"{name}.png")
        words[name] = alt_text(figure)
    return words


def gallery(figures: Mapping[str, str]) -> str:
    """Return a section that shows *figures*, which `write_figures` drew."""
    shown = [
        f"### {name.replace('_', ' ')}\n\n![{words}](images/figures/{name}.png)"
        for name, words in figures.items()
    ]
    return "\n\n".join([f"\n## Each figure of {_EXAMPLE}", *shown]) + "\n"


def _pages() -> list[Path]:
    folders = ("", "docs", "docs/generated", "notebooks", "validation/data", "validation/data/*")
    return [path for folder in folders for path in sorted(ROOT.glob(f"{folder}/*.md".lstrip("/")))]


def _linked_files(page: Path) -> Iterator[Path]:
    """Yield the files other than pages that *page* links to: figures, schemas, the licence."""
    for target in re.findall(r"\]\(([^)\s#:]+)\)", page.read_text("utf-8")):
        path = (page.parent / target).resolve()
        if path.suffix != ".md" and path.is_file():
            yield path


def _copy(path: Path, folder: Path) -> None:
    copy = folder / path.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def notebook_page(name: str, notebook: Any) -> Any:
    """Return *notebook*, the file *name*, as a page: answers and predicted results are folded."""
    title = notebook.cells[0]
    heading, _, text = title.source.partition("\n")
    size = " ".join(f"{key}={value}" for key, value in SITE_SIZE.items())
    of_study = f" The outputs are those of `{size}`." if "`SEEDS`" in text else ""
    note = f"{{download}}`Run it yourself </downloads/notebooks/{name}>`.{of_study}"
    title.source = f"{heading}\n\n{note}\n{text}"
    for before, cell in itertools.pairwise(notebook.cells):
        if cell.cell_type == "code":
            cell.metadata["tags"] = _tags(before, cell)
    return notebook


def _tags(before: Any, cell: Any) -> list[str]:
    """Return what MyST-NB folds of *cell*."""
    if cell.metadata.get("jupyter", {}).get("source_hidden"):
        return ["hide-cell"]
    is_predicted = before.cell_type == "markdown" and "**Predict.**" in before.source
    return ["hide-output"] if is_predicted else []


def index_page() -> str:
    """Return the first page: what h3sim is, and the pages by what a reader comes for."""
    first, *_ = (h3sim.__doc__ or "").splitlines()
    playground = _EMBEDDED if PLAYGROUND.is_dir() else _NOT_EMBEDDED
    lines = [f"# h3sim {h3sim.__version__}", "", first, _INDEX, playground]
    for caption, pages in sections().items():
        lines += ["", *_toctree(pages, f":caption: {caption}", ":maxdepth: 1")]
    return "\n".join(lines) + "\n"


def sections() -> dict[str, tuple[str, ...]]:
    """Return `SECTIONS`, and behind them the pages of `docs/` and notebooks that are in none."""
    listed = {page for pages in SECTIONS.values() for page in pages}
    files = [*_pages(), *NOTEBOOKS]
    found = (path.relative_to(ROOT).with_suffix("").as_posix() for path in files)
    more = tuple(page for page in found if page not in listed)
    return SECTIONS | {"More": more} if more else dict(SECTIONS)


def _toctree(names: Iterable[str], *options: str) -> list[str]:
    # From the root: names are the same wherever the page stands. The title of the README is the
    # name of the project, which says nothing in a list of pages.
    entries = (f"Start here </{name}>" if name == "README" else f"/{name}" for name in names)
    return ["```{toctree}", *options, "", *entries, "```"]


def cli_page() -> str:
    """Return the help of every command, as `--help` prints it."""
    with mock.patch.dict(os.environ, {"COLUMNS": _HELP_COLUMNS}):
        return _cli_page()


def _cli_page() -> str:
    lines = ["# Command line", "", "What `--help` prints, command by command.", ""]
    lines += [_fenced(make_parser(()).format_help(), "text")]
    for command in COMMANDS:
        parser = _commands_of(make_parser((command,)))[command]
        lines += ["", *_help_of(parser, level=2)]
    return "\n".join(lines) + "\n"


def _help_of(parser: argparse.ArgumentParser, level: int) -> list[str]:
    lines = ["#" * level + f" {parser.prog}", "", _fenced(parser.format_help(), "text")]
    for below in _commands_of(parser).values():
        lines += ["", *_help_of(below, level + 1)]
    return lines


def _commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands below one; argparse has no public way to them."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def api_index() -> str:
    """Return the page that leads to the public names, module by module."""
    names = ["h3sim", *(f"h3sim.{package}" for package in PACKAGES)]
    lines = ["# Python API", "", "`import h3sim` has what most need; the rest is in its packages."]
    return "\n".join([*lines, "", *_toctree(f"reference/{name}" for name in names)]) + "\n"


def _is_of_another_page(module: ModuleType, name: str) -> bool:
    """Return whether *name* belongs to another package, which has it among its public names.

    >>> from h3sim import engine, results
    >>> _is_of_another_page(engine, "LoadSpec"), _is_of_another_page(results, "LoadSpec")
    (True, False)
    """
    home = ".".join(str(getattr(getattr(module, name), "__module__", "")).split(".")[:2])
    if not home.startswith("h3sim.") or module.__name__.startswith(home):
        return False
    return name in getattr(importlib.import_module(home), "__all__", ())


def api_page(name: str) -> str:
    """Return the page of a module: its public names, each described on one page only."""
    module = importlib.import_module(name)
    names = [each for each in module.__all__ if not each.startswith("_")]
    if name != "h3sim":
        names = [each for each in names if each not in h3sim.__all__]
        names = [each for each in names if not _is_of_another_page(module, each)]
    lines = [f"# {name}", "", "```{eval-rst}", f".. automodule:: {name}"]
    lines += [f"   :members: {', '.join(names)}", "   :imported-members:", "   :undoc-members:"]
    return "\n".join([*lines, "```"]) + "\n"


if __name__ == "__main__":
    main()

"""`h3sim report`: loads, a comparison, a study or a log as a single output.HTML file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim.cli import output, shared
from h3sim.cli.command import Argument, Options, command, refuse
from h3sim.export import is_saved_load, read_load
from h3sim.load import resolve, run_spec
from h3sim.page import Page
from h3sim.schema import open_input
from h3sim.study import check_names, read_results
from h3sim.values.errors import InputError
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.export import SavedLoad


_LOG_SUFFIXES = (".qlog", ".sqlog", ".qlog.gz", ".sqlog.gz")
_SQLITE_MAGIC = b"SQLite format 3\0"
_RESULTS_PREFIX = b'{"format": "h3sim-results/'
"""The first bytes of a study's store, and of a file of its results."""


def _read_subject(name: str, options: Options) -> Any:
    """Return pages to load, saved results, or for a saved load a function that runs it again."""
    reader = _reader_of(name)
    return shared.read_pages(name, options) if reader is None else reader(name)


def _read_log(name: str) -> Any:
    from h3sim.load.qlog_metrics import read_qlog  # lazy: few reports are of logs

    return read_qlog(name)


def _read_saved_load(name: str) -> Any:
    saved: SavedLoad = read_load(name)
    return partial(saved.run, record_packets=True)


def _reader_of(name: str) -> Callable[[str], Any] | None:
    """Return the reader for a file of saved results, or None for a page to load."""
    if name.lower().endswith(_LOG_SUFFIXES):
        return _read_log
    if is_saved_load(name):
        return _read_saved_load
    try:
        with open_input(name, InputError) as file:
            head = file.read(max(len(_SQLITE_MAGIC), len(_RESULTS_PREFIX)))
    except InputError:  # the name of a shipped page, or an error reported later
        return None
    return read_results if head.startswith((_SQLITE_MAGIC, _RESULTS_PREFIX)) else None


def _check_loads(options: Options) -> None:
    """Refuse options of a load if nothing is loaded: saved results have their own settings."""
    pages = [subject for subject in options.subjects if isinstance(subject, Page)]
    check_names(pages=pages, schemes=options.schemes)
    if not pages and len(options.subjects):
        keys = sorted(options.given - {"subjects", "out", "title", "baseline"})
        names = ("set" if key == "settings" else key.replace("_", "-") for key in keys)
        refuse((f"--{name}", "is valid only with a page to load") for name in names)


@command(
    "report",
    Argument(
        "WHAT",
        "pages or page sets to load; or saved results: loads (h3sim run --json), the store"
        " or saved results of a study, qlogs",
        dest="subjects",
        nargs="+",
        many="words",
        read=_read_subject,
    ),
    shared.schemes("rr"),
    shared.Halves(),
    Argument("--baseline NAME", "reference scheme (default: rr if present, else the first)"),
    Argument("--title TEXT", "the title of the report"),
    shared.marks(),
    shared.LoadOptions(),
    Argument("-o --out FILE", "FILE.html", required=True, output=output.HTML),
    checks=(_check_loads,),
)
def _run_report(options: Options, progress: output.Progress | None) -> None:
    """Write a report of loads, a study or a log, with findings, figures and tables.

    Examples:
      h3sim report davies-meenan --scheme dfifo -o report.html
      h3sim report http2rulez davies-meenan --scheme rr,fifo,bucket-html -o report.html
      h3sim report my-page.json --scheme chrome-h2,chrome-eps --network cable --loss 1% -o report.html
      h3sim run davies-meenan --json > load.json && h3sim report load.json -o report.html
      h3sim report study.db --baseline fifo -o report.html
      h3sim report client.qlog -o report.html

    The report is self-contained: findings in words, figures with their data in tables, and all
    settings.
    """  # noqa: E501 - examples are lines of a shell
    subjects = options.subjects
    pages = [subject for subject in subjects if isinstance(subject, Page)]
    cells = [(page, scheme) for page in pages for scheme in options.schemes]
    loads = []
    for number, (page, scheme) in enumerate(cells, start=1):
        loads.append(run_spec(resolve(page, scheme, options.config), record_packets=True))
        if progress is not None:
            progress(number, len(cells))
    saved = [subject for subject in subjects if not isinstance(subject, Page)]
    loads += (subject() if isinstance(subject, partial) else subject for subject in saved)
    made = output.save_report(
        options.out, options, loads, baseline=options.baseline, title=options.title
    )
    for sentence in made.verdict:
        print(escape_control(sentence))

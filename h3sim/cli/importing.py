"""`h3sim import` and `h3sim record`: page files from recordings, sites and Chromium."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.browser.above_the_fold import HEURISTIC
from h3sim.cli.options import add_marks, check_choice, with_choice
from h3sim.cli.parsing import (
    STANDARD_OUTPUT,
    ErrorList,
    Parser,
    RawHelp,
    check_file,
    check_outputs_differ,
    progress_bar,
    put_file,
)
from h3sim.cli.tables import add_wide, fitted, in_ms, terminal_width
from h3sim.errors import InputError, ValidationIssue
from h3sim.importers import DIALECTS, import_page
from h3sim.page import page_to_dict
from h3sim.schema import check_output, write_whole
from h3sim.study.fidelity import IMPORT_REPORT, fidelity
from h3sim.table import Table
from h3sim.text import plural

if TYPE_CHECKING:
    import argparse

    from h3sim.importers import ImportedPage
    from h3sim.importers.chromium import PageRecording, RecordedSource
    from h3sim.page import Page


_INDENT = "  "
_MOST_REPLAYED = 2000
"""Most resources of a page whose replay is checked; larger ones take too long to load."""
_EPILOG = """\
examples:
  h3sim import shop.har -o shop.json && h3sim run shop.json
  h3sim import shop.har.gz --host www.shop.example --strict -o shop.json
  h3sim import site/index.html -o site.json
  h3sim import site/pages/about.html --root site -o about.json
  h3sim import devtoolslog.json -o - | less
  h3sim import shop.har --above-the-fold seen.txt -o shop.json

A page file contains no cookies, no header values and no query strings. The report lists observed
and inferred values; without -o only the report is printed.
"""


def add_import(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "import",
        help=summary,
        description="Convert a HAR, a DevTools log, a WProf graph or a static site into a page.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "file", metavar="FILE", help="a recording (may be gzipped), or the HTML file of a site"
    )
    parser.add_argument(
        "-o", "--output", metavar="PAGE", help="write the page file here; - is standard output"
    )
    parser.add_argument(
        "--dialect", metavar="NAME", help=f"require this format: {', '.join(DIALECTS)}"
    )
    parser.add_argument(
        "--host", metavar="HOST", help="keep only requests to this host (default: all)"
    )
    parser.add_argument(
        "--page",
        type=int,
        default=1,
        metavar="N",
        help="page load to import, if there are several (default: 1)",
    )
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="root folder of a site's paths (default: its document's folder)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="reject a file if any part of it cannot be used"
    )
    add_marks(parser, usual=HEURISTIC)
    parser.add_argument("--json", action="store_true", help="print the report as h3sim-import/1")
    add_wide(parser)
    parser.set_defaults(command=_import)


def _import(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    mistakes.collect(lambda: _check_output(options))
    mistakes.collect(lambda: check_outputs_differ(options, output="-o"))
    imported = mistakes.collect(
        lambda: import_page(
            options.file,
            dialect=options.dialect,
            host=options.host,
            page=options.page,
            root=options.root,
            strict=options.strict,
            above_the_fold=options.above_the_fold,
        )
    )
    if imported is not None and not mistakes.lines and options.output is not None:
        mistakes.collect(lambda: _write(imported, options.output))
    if imported is None or mistakes.lines:
        return mistakes.tell("import")
    _print_report(imported, options)
    return 0


def _check_output(options: argparse.Namespace) -> None:
    if options.output == STANDARD_OUTPUT and options.json:
        message = "the page and --json cannot both go to standard output"
        raise InputError([ValidationIssue(key="-o", message=message)])
    if options.output is not None:
        check_file(options.output)


def _write(imported: ImportedPage, output: str) -> None:
    text = json.dumps(page_to_dict(imported.page), indent=1, ensure_ascii=False, allow_nan=False)
    put_file(output, f"{text}\n")


def _print_report(imported: ImportedPage, options: argparse.Namespace) -> None:
    """Print the report, to standard error if the page itself went to standard output."""
    page = imported.page
    judged = fidelity(page) if len(page.resources) <= _MOST_REPLAYED else None
    if options.json:
        print(json.dumps(IMPORT_REPORT.write(imported, fidelity=judged), allow_nan=False))
        return
    file = sys.stderr if options.output == STANDARD_OUTPUT else sys.stdout
    width = terminal_width(options)
    for line in (*(() if judged is None else judged.lines()), *imported.lines()):
        print(_hanging(line, width), file=file)


def _hanging(line: str, width: int | None) -> str:
    """Return a line wrapped to *width* cells with a hanging indent."""
    first, *rest = fitted(line, width).split("\n")
    if width is None or not rest or width <= len(_INDENT):
        return "\n".join([first, *rest])
    words = fitted(" ".join(rest), width - len(_INDENT)).split("\n")
    return "\n".join([first, *(f"{_INDENT}{text}" for text in words)])


_RECORD_EPILOG = """\
examples:
  h3sim record site/ -o page.json
  h3sim record site/shop/index.html --root site -o shop.json --repeat 3
  h3sim record https://www.example.org/ -o example.json --log example-load.json

A folder or file is served locally, with all other hosts blocked. Requires Chromium (--chromium,
$CHROMIUM, or on the search path) and pip install 'h3sim[record]'.
"""


def add_record(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "record",
        help=summary,
        description="Load a page in an installed Chromium and write it as a page file.",
        epilog=_RECORD_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("what", metavar="URL|DIR|FILE.html", help="the page to load")
    parser.add_argument("-o", "--output", required=True, metavar="PAGE.json", help="the page file")
    parser.add_argument("--root", metavar="DIR", help="serve this folder, which contains FILE.html")
    parser.add_argument("--name", default="", help="the page's name (default: from the address)")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="load N times and use median times"
    )
    parser.add_argument(
        "--compression",
        choices=("gzip", "br", "none"),
        default="gzip",
        help="HTTP version that serves a folder (default: %(default)s)",
    )
    parser.add_argument("--chromium", metavar="PATH", help="the Chromium executable")
    parser.add_argument(
        "--headers",
        action="store_true",
        help="also write header lists to PAGE.req.qif and PAGE.resp.qif",
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="also write times, Chrome's priorities and stack traces as JSON",
    )
    add_marks(parser, shown="what Chromium rendered")
    parser.add_argument("--source", metavar="TEXT", help="provenance: origin of the page")
    parser.add_argument("--licence", metavar="TEXT", help="provenance: the page's licence")
    parser.add_argument("--notes", metavar="TEXT", help="provenance: other notes")
    parser.set_defaults(command=_record)


def _record(options: argparse.Namespace) -> int:
    # On use: other commands need none of it.
    from h3sim.importers.chromium import RecordedSource, record

    mistakes = ErrorList()
    source: RecordedSource | None = mistakes.collect(
        lambda: RecordedSource.of(options.what, options.root)
    )
    mistakes.collect(lambda: _check_repeat(options.repeat))
    mistakes.collect(lambda: check_choice(options.above_the_fold))
    for key, path in _outputs(options):
        mistakes.collect(lambda key=key, path=path: check_output(path, key=key))  # type: ignore[misc]
    mistakes.collect(lambda: check_outputs_differ(options, output="--output", log="--log"))
    if source is None or mistakes.lines:
        return mistakes.tell("record")
    said = {"source": options.source, "licence": options.licence, "notes": options.notes}
    with progress_bar("load") as progress:
        recording = record(
            source,
            name=options.name,
            repeat=options.repeat,
            compression=options.compression,
            chromium=options.chromium,
            provenance={key: text for key, text in said.items() if text},
            progress=progress,
        )
    page = with_choice(recording.page, options.above_the_fold)
    write_page(page, Path(options.output))
    _write_more(recording, options)
    _show(page, recording)
    return 0


def _check_repeat(repeat: int) -> None:
    if repeat < 1:
        raise InputError(
            [ValidationIssue(key="--repeat", message=f"must be at least 1, is {repeat}")]
        )


def _outputs(options: argparse.Namespace) -> list[tuple[str, str | Path]]:
    """Return the output files, each with the option that requests it."""
    outputs: list[tuple[str, str | Path]] = [("--output", options.output)]
    if options.log is not None:
        outputs.append(("--log", options.log))
    if options.headers and Path(options.output).name:
        outputs += [("--headers", _list_path(options.output, kind)) for kind in ("req", "resp")]
    return outputs


def _list_path(output: str, kind: str) -> Path:
    """Return the path of the header lists of that kind, next to the page."""
    return Path(output).with_name(f"{Path(output).stem}.{kind}.qif")


def write_page(page: Page, path: Path) -> None:
    """Write a page file with one line per resource."""
    document = page_to_dict(page)
    rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in document["resources"])
    head = {key: value for key, value in document.items() if key != "resources"}
    text = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    write_whole(path, f'{text},\n "resources": [\n{rows}\n ]\n}}\n')


def _write_more(recording: PageRecording, options: argparse.Namespace) -> None:
    from h3sim.importers.header_lists import request_lists, response_lists, to_qif

    if options.log is not None:
        text = json.dumps(recording.load.to_dict(), indent=1)
        write_whole(options.log, f"{text}\n", key="--log")
    if options.headers:
        exchanges = recording.load.exchanges
        for kind, lists in (("req", request_lists), ("resp", response_lists)):
            write_whole(_list_path(options.output, kind), to_qif(lists(exchanges)))


def _show(page: Page, recording: PageRecording) -> None:
    load = recording.load
    kilobytes = page.total_bytes / 1000
    print(f"{page.name}: {plural(len(page.resources), 'resource')}, {kilobytes:,.0f} kB")
    print(f"load event after {in_ms(load.onload_ms)} ms in {load.browser}\n")
    counts = Counter(resource.kind for resource in page.resources)
    rows = []
    for kind, count in counts.most_common():
        of_kind = [resource for resource in page.resources if resource.kind is kind]
        size = sum(resource.size_bytes for resource in of_kind) / 1000
        visible = sum(resource.above_the_fold for resource in of_kind)
        rows.append((kind.value, str(count), f"{size:,.1f}", str(visible)))
    print(Table(("kind", "resources", "kB", "above the fold"), rows))
    for note in load.notes:
        print(f"h3sim record: {note}", file=sys.stderr)
    for line in recording.differences:
        print(f"h3sim record: differs between recordings: {line}", file=sys.stderr)

"""`h3sim record`: a page as an installed Chromium loads it, as a page file."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli.outputs import check_outputs_differ
from h3sim.cli.parsing import Mistakes, Parser, RawHelp, progress_bar
from h3sim.cli.subjects import add_marks, check_choice, with_choice
from h3sim.cli.tables import in_ms, plural, table
from h3sim.documents import check_output, write_whole
from h3sim.errors import InputError, Problem
from h3sim.page import page_to_dict

if TYPE_CHECKING:
    import argparse

    from h3sim.capture.chromium import PageRecording, RecordedSource
    from h3sim.page import Page

__all__ = ["add_command", "write_page"]

_EPILOG = """\
examples:
  h3sim record site/ -o page.json
  h3sim record site/shop/index.html --root site -o shop.json --repeat 3
  h3sim record https://www.example.org/ -o example.json --log example-load.json

A folder or a file is served on this machine and loaded with every other host blocked. It needs
Chromium (--chromium, $CHROMIUM, or on the search path) and pip install 'h3sim[record]'.
"""


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "record",
        help=summary,
        description="Load a page in an installed Chromium and write what it consists of.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("what", metavar="URL|DIR|FILE.html", help="what to load")
    parser.add_argument("-o", "--output", required=True, metavar="PAGE.json", help="the page file")
    parser.add_argument("--root", metavar="DIR", help="serve this folder, in which FILE.html lies")
    parser.add_argument("--name", default="", help="the page's name (default: from the address)")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="load N times and take median times"
    )
    parser.add_argument(
        "--compression",
        choices=("gzip", "br", "none"),
        default="gzip",
        help="how a folder is served (default: %(default)s)",
    )
    parser.add_argument("--chromium", metavar="PATH", help="the browser to run")
    parser.add_argument(
        "--headers",
        action="store_true",
        help="also write the header lists, to PAGE.req.qif and PAGE.resp.qif",
    )
    parser.add_argument(
        "--log", metavar="FILE", help="also write times, Chrome's priorities and stacks, as JSON"
    )
    add_marks(parser, shown="what Chromium saw")
    parser.add_argument("--source", metavar="TEXT", help="provenance: where the page comes from")
    parser.add_argument("--licence", metavar="TEXT", help="provenance: the page's licence")
    parser.add_argument("--notes", metavar="TEXT", help="provenance: what else to know")
    parser.set_defaults(command=_record)


def _record(options: argparse.Namespace) -> int:
    # On use: other commands need none of it.
    from h3sim.capture.chromium import RecordedSource, record

    mistakes = Mistakes()
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
        raise InputError([Problem(key="--repeat", message=f"must be at least 1, is {repeat}")])


def _outputs(options: argparse.Namespace) -> list[tuple[str, str | Path]]:
    """Return the files that will be written, each with the option that asks for it."""
    outputs: list[tuple[str, str | Path]] = [("--output", options.output)]
    if options.log is not None:
        outputs.append(("--log", options.log))
    if options.headers and Path(options.output).name:
        outputs += [("--headers", _list_path(options.output, kind)) for kind in ("req", "resp")]
    return outputs


def _list_path(output: str, kind: str) -> Path:
    """Return where the header lists of that kind go: next to the page."""
    return Path(output).with_name(f"{Path(output).stem}.{kind}.qif")


def write_page(page: Page, path: Path) -> None:
    """Write a page file with a line for each resource."""
    document = page_to_dict(page)
    rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in document["resources"])
    head = {key: value for key, value in document.items() if key != "resources"}
    text = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    write_whole(path, f'{text},\n "resources": [\n{rows}\n ]\n}}\n')


def _write_more(recording: PageRecording, options: argparse.Namespace) -> None:
    from h3sim.capture.header_lists import request_lists, response_lists, to_qif

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
    print(table(("kind", "resources", "kB", "above the fold"), rows))
    for note in load.notes:
        print(f"h3sim record: {note}", file=sys.stderr)
    for line in recording.differences:
        print(f"h3sim record: not the same in all recordings: {line}", file=sys.stderr)

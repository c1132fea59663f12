"""Page files: `h3sim import`, `h3sim record`, `h3sim transform` and `h3sim annotate`."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.browser.above_the_fold import HEURISTIC
from h3sim.cli import common, output, shared
from h3sim.cli.command import FAILED, Argument, Options, call_with, command, refuse
from h3sim.cli.output import write_output
from h3sim.importers import DIALECTS, RecordingError, import_page, read_archive
from h3sim.importers.crux import NetworkShare, NotCruxError, read_crux
from h3sim.importers.formats.archive import is_archive
from h3sim.load.run import resolve_page
from h3sim.page import transforms
from h3sim.page.model import MarksFrom, ids_that_match, marked
from h3sim.schema import check_output, shown_path, write_atomically
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.values import Integer
from h3sim.study.fidelity import IMPORT_REPORT, fidelity
from h3sim.transport import network_to_toml
from h3sim.values.errors import InputError, StalledError
from h3sim.values.text import escape_control, plural
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from h3sim.importers import ImportedPage
    from h3sim.importers.chromium import PageRecording, RecordedSource
    from h3sim.page import Page, Resource


_FILE_OR_STDOUT = (output.STANDARD_OUTPUT,)
"""Suffixes that allow any file, and `-` for standard output."""
_HANGING_INDENT = "  "
_MAX_REPLAYED_RESOURCES = 2000
"""Most resources of a page whose replay is checked; larger ones take too long to load."""


class _PageOrFolder(Argument):
    """Argument that is a page file to write, or a folder for the pages of an archive."""

    def _read_value(self, value: Any, options: Options) -> Any:
        return value if _is_folder(value) else super()._read_value(value, options)


def _is_folder(output: str | None) -> bool:
    return output is not None and (output.endswith(("/", os.sep)) or Path(output).is_dir())


def _read_import(name: str, options: Options) -> ImportedPage | Path | tuple[NetworkShare, ...]:
    """Return the imported page; if the output is a folder, an archive's path or CrUX's networks."""
    if _is_folder(options.output):
        try:
            return Path(name) if is_archive(name) else read_crux(name)
        except NotCruxError:
            message = f"is a folder, but {shown_path(name)} has no rows of the HTTP Archive or CrUX"
            raise InputError.at("--output", message) from None
    imported: ImportedPage = call_with(import_page, options, path=name)
    return imported


def _check_streams(options: Options) -> None:
    if options.output == output.STANDARD_OUTPUT and options.json:
        raise InputError.at("--output", "the page and --json cannot both go to standard output")


def _check_folder(options: Options) -> None:
    """Refuse options that do not go with a folder as output."""
    if _is_folder(options.output):
        names = ("dialect", "host", "page", "root", "json")
        message = "does not go with a folder as --output"
        problems = [(f"--{name}", message) for name in names if name in options.given]
        try:
            Path(options.output).mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            problems.append(("--output", f"cannot be made a folder: {error}"))
        refuse(problems)


def _import_archive(path: Path, options: Options) -> int:
    """Write a page file for each page of an archive, and a line of report for each."""
    folder, n_failed, n_written = Path(options.output), 0, 0
    pages = read_archive(path, strict=options.strict, above_the_fold=options.above_the_fold)
    try:
        for name, result in pages:
            if isinstance(result, RecordingError):
                n_failed += 1
                print(escape_control(f"h3sim import: {name}: {result}"), file=sys.stderr)
            else:
                write_atomically(folder / f"{name}.json", result.page.to_json())
                n_written += 1
                print(result.lines()[0])
    except RecordingError as error:  # a file that is cut off
        if not n_written:
            raise
        n_failed += 1
        for line in error.lines():
            print(escape_control(f"h3sim import: {line}"), file=sys.stderr)
    return FAILED if n_failed else 0


def _write_networks(shares: Sequence[NetworkShare], options: Options) -> int:
    """Write a network file for each class of connections, and a line of report for each."""
    for found in shares:
        file = Path(options.output) / f"{found.network.name}.toml"
        write_output(str(file), network_to_toml(found.network))
        rtt_ms = to_ms(found.network.rtt_ns)
        print(f"{found.title}: RTT {rtt_ms:g} ms, {shown_path(file)}")
    return 0


def _print_report(imported: ImportedPage, options: Options) -> None:
    """Print the report, to standard error if the page itself went to standard output."""
    page, judged = imported.page, None
    if len(page.resources) <= _MAX_REPLAYED_RESOURCES:
        try:
            judged = fidelity(page)
        except StalledError as error:  # the page is imported all the same
            print(f"h3sim import: the page cannot be replayed: {error}", file=sys.stderr)
    if options.json:
        output.print_json(IMPORT_REPORT.write(imported, fidelity=judged))
        return
    file = sys.stderr if options.output == output.STANDARD_OUTPUT else sys.stdout
    width = options.width
    fidelity_lines = [] if judged is None else judged.lines()
    for line in (*fidelity_lines, *imported.lines()):
        print(_wrap_hanging(line, width), file=file)


def _wrap_hanging(line: str, width: int | None) -> str:
    """Return a line wrapped to *width* cells with a hanging indent."""
    first, *rest = output.fitted(line, width).split("\n")
    if width is None or not rest or width <= len(_HANGING_INDENT):
        return "\n".join([first, *rest])
    words = output.fitted(" ".join(rest), width - len(_HANGING_INDENT)).split("\n")
    return "\n".join([first, *(f"{_HANGING_INDENT}{text}" for text in words)])


def _read_source(name: str, options: Options) -> RecordedSource:
    # On use: other commands need none of it.
    from h3sim.importers.chromium import RecordedSource

    return RecordedSource.of(name, options.root)


def _check_lists(options: Options) -> None:
    if options.headers and options.output is not None and Path(options.output).name:
        for kind in ("req", "resp"):
            check_output(_list_path(options.output, kind), key="--headers")


def _list_path(output: str, kind: str) -> Path:
    """Return the path of the header lists of that kind, next to the page."""
    return Path(output).with_name(f"{Path(output).stem}.{kind}.qif")


def _write_recorded_files(recording: PageRecording, options: Options) -> None:
    """Write the protocol log and the header lists, if requested."""
    from h3sim.importers.header_lists import request_lists, response_lists, to_qif

    if options.log is not None:
        text = json.dumps(recording.load.to_dict(), indent=1)
        write_atomically(options.log, f"{text}\n", key="--log")
    if options.headers:
        exchanges = recording.load.exchanges
        for kind, lists in (("req", request_lists), ("resp", response_lists)):
            write_atomically(_list_path(options.output, kind), to_qif(lists(exchanges)))


def _print_recording(page: Page, recording: PageRecording) -> None:
    """Print what was recorded, by kind of resource."""
    load = recording.load
    kilobytes = page.total_bytes / 1000
    print(f"{page.name}: {plural(len(page.resources), 'resource')}, {kilobytes:,.0f} kB")
    print(f"load event after {output.in_ms(load.onload_ms)} ms in {load.browser}\n")
    by_kind: dict[Any, list[Resource]] = {}
    for resource in page.resources:
        by_kind.setdefault(resource.kind, []).append(resource)
    shown = output.of(
        sorted(by_kind.values(), key=lambda resources: -len(resources)),
        ("kind", lambda resources: resources[0].kind.value),
        ("resources", len),
        ("kB", lambda resources: f"{sum(each.size_bytes for each in resources) / 1000:,.1f}"),
        ("above the fold", lambda resources: sum(each.above_the_fold for each in resources)),
    )
    output.show(None, shown)
    for note in load.notes:
        print(f"h3sim record: {note}", file=sys.stderr)
    for line in recording.differences:
        print(f"h3sim record: differs between recordings: {line}", file=sys.stderr)


def _without(page: Page, ids: list[str]) -> Page:
    for id_ in ids:
        page = page.without(id_)
    return page


def _with_pages(page: Page, pages: list[str]) -> Page:
    for text in pages:
        name, after_ms, opened = _parse_opened_page(text)
        page = transforms.merge_pages(page, resolve_page(name), after_ms=after_ms, opened=opened)
    return page


def _parse_opened_page(text: str) -> tuple[str, float, transforms.OpenMode]:
    """Parse PAGE@MS,HOW into the page, the time when it is opened in ms, and the open mode."""
    name, sign, how = text.rpartition("@")
    if not sign:
        return text, 0.0, transforms.OpenMode.CONCURRENT
    after_ms, comma, mode = how.partition(",")
    try:
        opened = transforms.OpenMode(mode) if comma else transforms.OpenMode.CONCURRENT
        return name, float(after_ms), opened
    except ValueError:
        known = ", ".join(each.value for each in transforms.OpenMode)
        message = f"must be PAGE@MS, or PAGE@MS,HOW, HOW one of {known}; is {text!r}"
        raise InputError.at("--with-page", message) from None


def _with_settings(page: Page, texts: list[str]) -> Page:
    """Set keys of a page file: each text is KEY=VALUE@WHAT."""
    return _with_changes(page, (partial(_with_setting, text=text) for text in texts))


def _with_changes(page: Page, changes: Iterable[Callable[[Page], Page]]) -> Page:
    """Apply *changes* in order, and report the errors of all; a failed one changes nothing."""
    with ErrorCollector() as errors:
        for change in changes:
            page = errors.collect("", partial(change, page), default=page)
    return page


def _with_setting(page: Page, text: str) -> Page:
    key, value, what = _read_setting(text)
    for index in transforms.selected(page, what):
        page = page.with_(page.resources[index].id, **{key: value})
    return page


def _read_setting(text: str) -> tuple[str, Any, str]:
    """Return key, value and resources of KEY=VALUE@WHAT; a value is JSON, or else text."""
    key, sign, rest = text.partition("=")
    value, at, what = rest.partition("@")
    if not (sign and at and what):
        raise InputError.at("--set", f"must be KEY=VALUE@WHAT, is {text!r}")
    try:
        return key, json.loads(value), what
    except ValueError:
        return key, value, what


def _with_preloads(page: Page, names: list[str]) -> Page:
    for index in transforms.selected(page, names):
        page = page.with_(page.resources[index].id, preload=True)
    return page


def _with_preconnects(page: Page, hosts: list[str]) -> Page:
    for host in hosts:
        page = transforms.with_preconnect(page, host)
    return page


_RESOURCE_TRANSFORMS: dict[str, tuple[Callable[[Page, list[str]], Page], str]] = {
    "--push": (transforms.with_push, "push these with the response to the document's request"),
    "--early-hints": (
        transforms.with_early_hints,
        "hint at these before the response (103 Early Hints)",
    ),
    "--preload": (_with_preloads, "request these by preload links at the start of the document"),
    "--inline": (transforms.with_inlined, "inline these into the document, where it names them"),
    "--same-host": (transforms.with_same_host, "serve these from the document's host"),
    "--preconnect": (_with_preconnects, "connect to this host with the document's first bytes"),
    "--set": (
        _with_settings,
        "KEY=VALUE@WHAT: set a key of the page file, e.g. fetchpriority=high@hero.jpg; null"
        " removes it",
    ),
    "--cached": (transforms.with_cached, "serve these from the browser's cache (fresh)"),
    "--revalidated": (transforms.with_revalidated, "revalidate these in the browser's cache (304)"),
    "--remove": (_without, "remove these and everything that they request"),
    "--with-page": (
        _with_pages,
        "load another PAGE over the same connection MS later: PAGE@500 side by side,"
        " PAGE@500,background in a background tab, PAGE@500,front in the foreground",
    ),
}
"""Transforms of some resources, by option, with its help."""
_PAGE_TRANSFORMS: dict[str, tuple[Callable[[Page], Page], str]] = {
    "--staged-hints": (transforms.with_staged_hints, "hint at all dependencies, in stages (Vroom)"),
    "--inlined-styles": (
        transforms.with_inlined_styles,
        "inline the head's styles into the document and load scripts last (Shandian)",
    ),
    "--first-layout": (
        transforms.with_first_layout,
        "raise the priority of visible images at first layout",
    ),
}
"""Transforms of a whole page, by option, with its help."""


def _option_with_value(option: str, what: str) -> tuple[str, str]:
    """Return the option with its value: all transforms share a list, which keeps their order."""
    return option, what


def _check_changes(options: Options) -> None:
    """Apply the changes in the order given; repeated options make one change."""
    page = options.page
    if page is None:
        return
    names_by_option: dict[str, list[str]] = {}
    for option, what in options.changes or ():
        names_by_option.setdefault(option, []).append(what)
    with ErrorCollector() as errors:
        for option, names in names_by_option.items():
            if option in _RESOURCE_TRANSFORMS:
                transform_resources, _ = _RESOURCE_TRANSFORMS[option]
                change = partial(transform_resources, page, names)
            else:
                transform_page, _ = _PAGE_TRANSFORMS[option]
                change = partial(transform_page, page)
            page = errors.collect("", change, default=page)
        options.changed = page.with_resources(page.resources, name=options.name)


def _read_annotated(name: str, options: Options) -> Page:
    """Return the page with the marks that the options set."""
    options.source = name
    page = catalog.load_page(name)
    if options.output is None and options.given & {"set", "clear", "above_the_fold"}:
        if not Path(name).is_file():
            message = f"is required: {name} is a shipped page and cannot be overwritten"
            raise InputError.at("--output", message)
        output.check_output_path(name, (), key="--output")
    options.changed = _apply_marks(page, options)
    return page


def _apply_marks(page: Page, options: Options) -> Page:
    """Return the page with marks set and cleared."""
    page = shared.with_marks(page, options.above_the_fold)
    if not options.set and not options.clear:
        return page
    to_set = [("--set", pattern) for pattern in options.set or ()]
    to_clear = [("--clear", pattern) for pattern in options.clear or ()]
    ids_that_match(page, to_set + to_clear)  # reports the errors of both options at once
    ids = {resource.id for resource in page.resources if resource.above_the_fold}
    ids |= set(ids_that_match(page, to_set))
    return marked(page, ids.difference(ids_that_match(page, to_clear)), MarksFrom.HAND)


_OUTPUT_HELP = "write the page file here; - is standard output"
_TRANSFORM_ARGUMENTS = (
    *(
        Argument(
            f"{option} WHAT",
            about,
            dest="changes",
            action="append",
            type=partial(_option_with_value, option),
        )
        for option, (_, about) in _RESOURCE_TRANSFORMS.items()
    ),
    *(
        Argument(option, about, dest="changes", action="append_const", const=(option, ""))
        for option, (_, about) in _PAGE_TRANSFORMS.items()
    ),
)


@command(
    "import",
    _PageOrFolder(
        "-o --output PAGE",
        f"{_OUTPUT_HELP}; FOLDER/ for rows of the HTTP Archive",
        output=_FILE_OR_STDOUT,
    ),
    Argument("--dialect NAME", f"require this format: {', '.join(DIALECTS)}"),
    Argument("--host HOST", "keep only requests to this host (default: all)"),
    Argument("--page N", "page load to import, if there are several", type=int, default=1),
    Argument("--root DIR", "root folder of a site's paths (default: its document's folder)"),
    Argument("--strict", "reject a file if any part of it cannot be used"),
    shared.marks(HEURISTIC),
    Argument(
        "FILE",
        "a recording (may be packed with gzip or zip), or the HTML file of a site",
        read=_read_import,
    ),
    common.JSON("print the report as h3sim-import/1"),
    common.NO_TRUNCATE,
    checks=(_check_streams, _check_folder),
)
def _run_import(options: Options) -> int:
    """Convert a HAR, a trace, a test result or a static site into a page.

    Examples:
      h3sim import shop.har -o shop.json && h3sim run shop.json
      h3sim import shop.har.gz --host www.shop.example --strict -o shop.json
      h3sim import site/index.html -o site.json
      h3sim import site/pages/about.html --root site -o about.json
      h3sim import Trace-20260301T101112.json.gz -o shop.json
      h3sim import requests.jsonl.gz -o corpus/
      h3sim import crux.json -o networks/
      h3sim import devtoolslog.json -o - | less
      h3sim import shop.har --above-the-fold seen.txt -o shop.json

    A page file contains no cookies, no header values and no query strings. The report lists
    observed and inferred values; without -o only the report is printed.
    """
    imported = options.file
    if isinstance(imported, Path):
        return _import_archive(imported, options)
    if isinstance(imported, tuple):
        return _write_networks(imported, options)
    if options.output is not None:
        write_output(options.output, imported.page.to_json())
    _print_report(imported, options)
    return 0


@command(
    "record",
    Argument("--root DIR", "serve this folder, which contains FILE.html"),
    Argument("URL|DIR|FILE.html", "the page to load", dest="what", read=_read_source),
    Argument("--name NAME", "the page's name (default: from the address)"),
    Argument("--repeat N", "load N times and use median times", Integer(low=1), default=1),
    Argument(
        "--compression NAME",
        "HTTP compression of a served folder",
        default="gzip",
        choices=("gzip", "br", "none"),
    ),
    Argument("--chromium PATH", "the Chromium executable"),
    shared.marks(shown="what Chromium rendered"),
    Argument("-o --output PAGE.json", "the page file", required=True, output=()),
    Argument(
        "--log FILE", "also write times, Chrome's priorities and stack traces as JSON", output=()
    ),
    Argument("--headers", "also write header lists to PAGE.req.qif and PAGE.resp.qif"),
    Argument("--source TEXT", "provenance: origin of the page"),
    Argument("--licence TEXT", "provenance: the page's licence"),
    Argument("--notes TEXT", "provenance: other notes"),
    checks=(shared.check_marks, _check_lists),
)
def _run_record(options: Options) -> None:
    """Load a page in an installed Chromium and write it as a page file.

    Examples:
      h3sim record site/ -o page.json
      h3sim record site/shop/index.html --root site -o shop.json --repeat 3
      h3sim record https://www.example.org/ -o example.json --log example-load.json

    A folder or file is served locally, with all other hosts blocked. Requires Chromium (--chromium,
    $CHROMIUM, or on the search path) and pip install 'h3sim[record]'.
    """
    from h3sim.importers.chromium import record

    provenance = {key: getattr(options, key) for key in ("source", "licence", "notes")}
    recording = call_with(
        record,
        options,
        source=options.what,
        provenance={key: text for key, text in provenance.items() if text},
    )
    page = shared.with_marks(recording.page, options.above_the_fold)
    write_atomically(options.output, page.to_json())
    _write_recorded_files(recording, options)
    _print_recording(page, recording)


@command(
    "transform",
    Argument(
        "PAGE",
        "a shipped page or a page file (.json)",
        read=lambda name, _: catalog.load_page(name),
    ),
    *_TRANSFORM_ARGUMENTS,
    Argument("--name NAME", "name of the new page (default: the page's name and a digest)"),
    Argument("-o --output FILE", _OUTPUT_HELP, required=True, output=_FILE_OR_STDOUT),
    checks=(_check_changes,),
)
def _run_transform(options: Options) -> None:
    """Write a page with changed delivery of its resources.

    Examples:
      h3sim transform shop.json --early-hints stylesheet --early-hints 'fonts/*' -o hinted.json
      h3sim transform shop.json --set fetchpriority=high@hero.jpg --preload 'fonts/*' -o faster.json
      h3sim compare shop.json faster.json --browser parse
      h3sim transform shop.json --cached script --cached stylesheet -o second-visit.json
      h3sim transform shop.json --with-page news.json@500,background -o tabs.json
      h3sim transform http2rulez --staged-hints -o staged.json && h3sim compare http2rulez staged.json

    WHAT is the id of a resource, a kind (stylesheet, script, font, image, ...) or a glob of ids.
    Quote globs to protect them from the shell. Changes are applied in the order given.
    """  # noqa: E501 - examples are lines of a shell
    page, changed = options.page, options.changed
    write_output(options.output, changed.to_json())
    after, before = (
        f"{plural(len(each.resources), 'resource')}, {each.total_bytes:,} bytes"
        for each in (changed, page)
    )
    print(escape_control(f"{changed.name}: {after} ({page.name}: {before})"), file=sys.stderr)


@command(
    "annotate",
    Argument(
        "--set ID", "mark the resources that match this id or glob (repeatable)", action="append"
    ),
    Argument("--clear ID", "unmark these (takes precedence over --set)", action="append"),
    shared.marks(),
    Argument(
        "-o --output FILE",
        "write the page here; - is standard output (default: overwrite PAGE)",
        output=_FILE_OR_STDOUT,
    ),
    Argument("PAGE", "a page file (.json) or a shipped page", read=_read_annotated),
    common.NO_TRUNCATE,
)
def _run_annotate(options: Options) -> None:
    """Show which resources are above the fold, or change the marks.

    Examples:
      h3sim annotate shop.json
      h3sim annotate shop.json --set hero.jpg --set 'fonts/*' --clear 'ads/*'
      h3sim annotate shop.json --above-the-fold heuristic --set logo.svg -o marked.json
      h3sim annotate shop.json --above-the-fold none

    Without changes the resources are listed. With changes the page file is rewritten, or a new one
    written with -o. Quote globs to protect them from the shell.
    """
    page, target = options.changed, options.output or options.source
    if options.output or options.given & {"set", "clear", "above_the_fold"}:
        write_output(target, page.to_json())
        if target == output.STANDARD_OUTPUT:
            return
        output.report_written(target)
    seen = [resource for resource in page.resources if resource.above_the_fold]
    n_bytes = sum(resource.size_bytes for resource in seen)
    how = f"by {page.above_the_fold_from.value}" if page.knows_above_the_fold else "unknown"
    size = f"{plural(len(page.resources), 'resource')}, {page.total_bytes:,} bytes"
    print(escape_control(f"{page.name}: {size}"))
    print(f"above the fold: {len(seen):,} of them, {n_bytes:,} bytes ({how})\n")
    shown = output.of(
        page.resources,
        ("resource", "id"),
        ("kind", lambda resource: resource.kind.value),
        ("bytes", "size_bytes"),
        ("above fold", output.marked("above_the_fold")),
    )
    output.show(options.width, shown)

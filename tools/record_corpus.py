"""`make record-corpus`: records the pages of tools/corpus.toml again, from the registries.

It can be interrupted: what is recorded stays in the cache, and the next run goes on behind it. With
names as arguments only these pages are recorded. With --priorities the pages stay as they are, and
only get what the browser says of priorities when they are loaded again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli.main import exits_on_sigterm
from h3sim.importers.chromium import RecordedSource, record
from h3sim.page import page_to_dict, read_page
from h3sim.schema import write_atomically
from h3sim.values.errors import H3SimError
from tools.registries import FetchError, tools_of
from tools.sites import PageSource, build, read_sources

if TYPE_CHECKING:
    from h3sim.page import Page

CHECKOUT = Path(__file__).resolve().parents[1]
CORPORA = CHECKOUT / "corpora"


def write_page(page: Page, path: Path) -> None:
    """Write a page file with one line per resource, so that a corpus has short diffs."""
    document = page_to_dict(page)
    rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in document["resources"])
    head = {key: value for key, value in document.items() if key != "resources"}
    text = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    write_atomically(path, f'{text},\n "resources": [\n{rows}\n ]\n}}\n')


def main(argv: list[str]) -> int:
    """Record; return 1 if a page could not be recorded."""
    parser = argparse.ArgumentParser(prog="record-corpus", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="only these pages")
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".corpus-cache")
    parser.add_argument("--repeat", type=int, default=3, help="loads per page")
    parser.add_argument("--again", action="store_true", help="also those that are recorded")
    parser.add_argument(
        "--priorities", action="store_true", help="add recorded priorities, change nothing else"
    )
    options = parser.parse_args(argv)
    known = {page.name: page for page in read_sources()}
    unknown = [name for name in options.pages if name not in known]
    if unknown:
        parser.error(f"tools/corpus.toml has no page {', '.join(unknown)}")
    sources = [known[name] for name in options.pages or known]
    missing = [tool for page in sources for tool in _missing_tools(page)]
    for tool in dict.fromkeys(missing):
        print(f"record-corpus: {tool} is not installed; pages that need it are left out")
    with exits_on_sigterm():
        return _record_all(sources, options)


def _record_all(sources: list[PageSource], options: argparse.Namespace) -> int:
    recorded = before = failed = 0
    for page in sources:
        if _missing_tools(page):
            continue
        folder = "priorities" if options.priorities else "recorded"
        done = options.cache / folder / f"{page.name}.json"
        if done.exists() and not options.again:
            before += 1
            continue
        try:
            if options.priorities:
                _add_priorities(page, options.cache, done)
            else:
                _record(page, options.cache, done, options.repeat)
            recorded += 1
        except (FetchError, H3SimError, OSError) as error:
            print(f"record-corpus: {page.name}: {error}", file=sys.stderr)
            failed += 1
    print(f"record-corpus: {recorded} recorded, {before} before this run, {failed} failed")
    return 1 if failed else 0


def _missing_tools(page: PageSource) -> list[str]:
    registries = dict.fromkeys(package.split()[0] for package in page.site.packages)
    tools = (tool for registry in registries for tool in tools_of(registry))
    return [tool for tool in tools if shutil.which(tool) is None]


def _record(page: PageSource, cache: Path, done: Path, repeat: int) -> None:
    root, vendored = build(page, cache)
    recording = record(
        RecordedSource(root=root, path=page.path),
        name=page.name,
        repeat=repeat,
        provenance={"source": page.source, "licence": page.site.licence},
    )
    notes = list(recording.load.notes)
    if vendored:
        notes.append(f"other hosts replaced by npm packages: {', '.join(vendored)}")
    if recording.differences:
        notes.append(f"{len(recording.differences)} resources differed between loads")
    provenance = dict(recording.page.provenance)
    provenance.pop("notes", None)
    if notes:
        provenance["notes"] = "; ".join(notes)
    recorded = replace(recording.page, provenance=provenance)
    done.parent.mkdir(parents=True, exist_ok=True)
    log = json.dumps(recording.load.to_dict())
    done.with_suffix(".log").write_text(log, encoding="utf-8")
    write_page(recorded, done)
    shutil.copyfile(done, CORPORA / done.name)
    kilobytes = recorded.total_bytes / 1000
    print(f"{page.name}: {len(recorded.resources)} resources, {kilobytes:,.0f} kB", flush=True)
    for line in recording.differences:
        print(f"  not the same in all recordings: {line}", flush=True)


def _add_priorities(page: PageSource, cache: Path, done: Path) -> None:
    """Load a page once more, and add what the browser said of priorities to the shipped file."""
    root, _ = build(page, cache)
    recording = record(RecordedSource(root=root, path=page.path), name=page.name)
    shipped = read_page(CORPORA / done.name)
    merged, missing = with_priorities(shipped, recording.page)
    on = recording.page.provenance["recorded"]
    text = f"{recording.load.browser}, {on}, matched by id"
    if missing:
        text += f"; not asked for in that load: {', '.join(missing)}"
    merged = replace(merged, provenance={**shipped.provenance, "priorities": text})
    done.parent.mkdir(parents=True, exist_ok=True)
    write_page(merged, done)
    shutil.copyfile(done, CORPORA / done.name)
    n = len(shipped.resources)
    print(f"{page.name}: priorities of {n - len(missing)} of {n} resources", flush=True)
    for id_ in missing:
        print(f"  not asked for in this load: {id_}", flush=True)


def with_priorities(shipped: Page, again: Page) -> tuple[Page, list[str]]:
    """Return *shipped* with what was recorded of priorities in *again*, and the ids it lacks.

    Resources are matched by their ids. What has no match keeps what it had.
    """
    message = {resource.id: resource.recorded for resource in again.resources}
    resources = tuple(
        replace(resource, recorded=message[resource.id]) if resource.id in message else resource
        for resource in shipped.resources
    )
    missing = [resource.id for resource in shipped.resources if resource.id not in message]
    return replace(shipped, resources=resources), missing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

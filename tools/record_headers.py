"""`make record-headers`: records the header lists that are shipped, from the registries.

They are those of a few pages of tools/corpus.toml, each of one load in Chromium: QIF files in
corpora/headers, with times. The site's address becomes https://h3sim.example, as the server's port
is another in each load; there are no cookies, credentials and query strings.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli.main import exits_on_sigterm
from h3sim.importers.chromium import RecordedSource, record
from h3sim.importers.header_lists import request_lists, response_lists
from h3sim.schema import write_atomically
from tools.record_corpus import CHECKOUT, CORPORA
from tools.sites import build, read_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.importers.formats.devtools import RecordedExchange

PAGES = ("creative", "gentelella-index", "material-dashboard", "sneat-cards", "tabler-gallery")
HEADERS = CORPORA / "headers"
_ADDRESS = "h3sim.example"

Timed = tuple[float, list[tuple[str, str]]]


def main(argv: Sequence[str]) -> int:
    """Record."""
    parser = argparse.ArgumentParser(prog="record-headers", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", default=PAGES)
    parser.add_argument("--cache", type=Path, default=CHECKOUT / ".corpus-cache")
    options = parser.parse_args(argv)
    known = {page.name: page for page in read_sources()}
    with exits_on_sigterm():
        for name in options.pages:
            root, _ = build(known[name], options.cache)
            source = RecordedSource(root=root, path=known[name].path)
            exchanges = record(source, name=name, repeat=1).load.exchanges
            write_lists(name, exchanges)
            print(f"{name}: {len(exchanges)} requests", flush=True)
    return 0


def write_lists(name: str, exchanges: Sequence[RecordedExchange]) -> None:
    """Write the lists of requests and of responses, with times from the first request on."""
    zero_ms = exchanges[0].requested_ms
    asked = [entry.requested_ms - zero_ms for entry in exchanges]
    answered = [(entry.first_byte_ms or entry.requested_ms) - zero_ms for entry in exchanges]
    for kind, times, lists in (
        ("req", asked, request_lists(exchanges)),
        ("resp", answered, response_lists(exchanges)),
    ):
        timed = list(zip(times, lists, strict=True))
        write_atomically(HEADERS / f"{name}.{kind}.qif", _qif(timed, _authority(exchanges)))


def _authority(exchanges: Sequence[RecordedExchange]) -> str:
    return exchanges[0].url.split("/")[2]


def _qif(timed: Iterable[Timed], authority: str) -> str:
    lists = []
    for at_ms, fields in timed:
        lines = [f"# at_ms {at_ms:.3f}"]
        for name, value in fields:
            plain = value.replace(f"http://{authority}", f"https://{_ADDRESS}")
            plain = plain.replace(authority, _ADDRESS)
            lines.append(f"{name}\t{'https' if name == ':scheme' else plain}")
        lists.append("\n".join(lines) + "\n")
    return "\n".join(lists)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Checks what `--qlog-dialect draft` writes against the CDDL of the qlog drafts.

    python -m validation.qlog_drafts FOLDER

FOLDER holds the drafts as the working group keeps them, `draft-ietf-quic-qlog-*.md` of quicwg/qlog
at the commit in question; they are not part of this repository. Each event is checked against the
type of its name, and each file against the type of its schema.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cbor2
import pycddl

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.qlog.container import RECORD_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DRAFTS = ("main-schema", "quic-events", "h3-events")
LOADS: tuple[dict[str, Any], ...] = (
    {"scheme": "chrome-eps", "network": "sander-2mbps-100ms-2pct"},
    {"scheme": "firefox-eps", "network": "4g", "header_compression": "qpack"},
    {"scheme": "dfifo", "network": "cable"},
    {"scheme": "rr", "network": "cable", "transport": "tcp"},
    {"scheme": "fifo"},
)
_BLOCK = re.compile(r"~~~+ *cddl\n(.*?)~~~", re.DOTALL)
_RULE = re.compile(r"^(\$?\w+) *=", re.MULTILINE)
_UNWRAPPED = re.compile(r"~(\w+)")
_ABBREVIATIONS = {"quic": "QUIC", "http3": "HTTP3"}


def cddl_of(texts: Iterable[str]) -> str:
    """Return the CDDL blocks of drafts as one text, each rule once.

    The drafts on QUIC and on HTTP/3 both define `Initiator`, in the same way.
    """
    kept: list[str] = []
    seen: dict[str, None] = {}
    for text in texts:
        for block in _BLOCK.findall(text):
            name = _RULE.search(block)
            if name is None or name[1] not in seen:
                kept.append(block)
            seen.update(dict.fromkeys(_RULE.findall(block)))
    return _UNWRAPPED.sub(lambda found: _fields_of(found[1], "\n".join(kept)), "\n".join(kept))


def _fields_of(name: str, cddl: str) -> str:
    """Return what stands between the braces of a rule: the validator does not know `~name`."""
    body = re.search(rf"^{name} = \{{(.*?)^\}}", cddl, re.DOTALL | re.MULTILINE)
    if body is None:
        raise ValueError(f"no rule of the drafts is called {name}")
    return body[1]


def type_of(event: str) -> str:
    """Return the CDDL type of the data of an event.

    >>> type_of("quic:packet_sent"), type_of("http3:priority_updated")
    ('QUICPacketSent', 'HTTP3PriorityUpdated')
    """
    namespace, _, name = event.partition(":")
    return _ABBREVIATIONS[namespace] + "".join(word.capitalize() for word in name.split("_"))


class Checker:
    """Checks parts of logs against the types of a text of CDDL."""

    def __init__(self, cddl: str) -> None:
        self._cddl = cddl
        self._schemas: dict[str, pycddl.Schema] = {}

    def error(self, kind: str, value: object) -> str | None:
        """Return the first reason why *value* is not of type *kind*, None where it is."""
        if kind not in self._schemas:
            self._schemas[kind] = pycddl.Schema(f"checked = {kind}\n{self._cddl}")
        try:
            self._schemas[kind].validate_cbor(cbor2.dumps(value))
        except pycddl.ValidationError as error:
            return str(error).splitlines()[0]
        return None

    def errors(self, path: Path) -> Iterator[tuple[str, str | None]]:
        """Yield each part of the log at *path* by name, with what is wrong with it.

        The parts are the file without its events, and each event and each QUIC frame by itself: so
        an error names the part, and not every alternative of a choice.
        """
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".sqlog":
            head, *events = (json.loads(part) for part in text.split(RECORD_SEPARATOR)[1:])
            yield "file (sequential)", self.error("QlogFileSeq", head)
            yield "trace (sequential)", self.error("TraceSeq", head["trace"])
        else:
            head = json.loads(text)
            events = [event for trace in head["traces"] for event in trace["events"]]
            for trace in head["traces"]:
                trace["events"] = []
                yield "trace (contained)", self.error("Trace", trace)
            yield "file (contained)", self.error("QlogFile", head)
        for event in events:
            data = event["data"]
            for frame in data.pop("frames", ()):
                name = f"{frame['frame_type']} frame"
                yield name, self.error(f"{frame['frame_type'].capitalize()}Frame", frame)
            yield event["name"], self.error(type_of(event["name"]), data)


def main(arguments: list[str]) -> int:
    """Write logs of several loads and print how many of their events are as the drafts say."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    drafts = [folder / f"draft-ietf-quic-qlog-{name}.md" for name in DRAFTS]
    checker = Checker(cddl_of(path.read_text(encoding="utf-8") for path in drafts))
    checked: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, options in enumerate(LOADS):
            load = h3sim.simulate("davies-meenan", record_packets=True, **options)
            for suffix in (".qlog", ".sqlog"):
                path = Path(scratch) / f"{number}{suffix}"
                write_load_qlog(load, path, dialect="draft")
                for name, error in checker.errors(path):
                    checked[name] += 1
                    if error is not None:
                        wrong.setdefault(name, error)
    for name, count in sorted(checked.items()):
        print(f"{name:32} {count:6,}  {wrong.get(name, 'as the drafts say')}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

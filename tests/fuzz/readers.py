"""Every reader of files, each with small inputs to begin with, and what must hold for any input."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.catalog import load_network, load_page, load_profile, load_scheme
from h3sim.export import read_load
from h3sim.export.qlog_file import write_load_qlog
from h3sim.headers.base import read_qif
from h3sim.http.priority_field import parse_priority
from h3sim.importers import import_page, read_archive
from h3sim.importers.crux import read_crux
from h3sim.importers.header_lists import read_exchanges
from h3sim.page import page_from_dict, page_to_dict
from h3sim.page.model import read_marks
from h3sim.papers.experiments import FORMAT as HEADER_STUDY
from h3sim.papers.experiments import HeaderExperiment
from h3sim.papers.findings import FindingsError, findings_from_dict
from h3sim.schema import parse_toml, read_text
from h3sim.schema.fields import read_document
from h3sim.schemes import scheme_from_dict, scheme_to_dict
from h3sim.study import Store, read_results
from h3sim.study.study_file import StudyError, read_study
from h3sim.transport import (
    network_from_dict,
    network_to_dict,
    profile_from_dict,
    profile_to_dict,
)
from h3sim.values.errors import H3SimError
from h3sim.values.units import ms
from tests.fuzz import laws
from tests.fuzz.plugged import list_plugins, load_with_controller, load_with_scheduler
from tests.helpers import page_of
from tests.recordings import SAMPLES, archive_lines, entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.importers import ImportedPage

__all__ = ["READERS", "Reader", "check"]

CHECKOUT = Path(__file__).resolve().parents[2]
_SMALL_BYTES = 2500
_TRACED = (
    'format = "h3sim-network/1"\nname = "x"\nrtt_ms = 20\n[down]\nmahimahi = "trace.txt"\n[up]\n'
)


_DOCUMENT = "<!doctype html><link rel=stylesheet href=a.css><p class=a>text<b>bold</b>" * 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What reads a file called *file_name*; *samples* gives whole inputs."""

    file_name: str
    read: Callable[[Path], object]
    samples: Callable[[], Iterable[bytes]]


def check(reader: Reader, data: bytes, folder: Path) -> None:
    """Read *data* as a file: it is read, or an error of h3sim's says why not, in whole lines."""
    path = folder / reader.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    try:
        reader.read(path)
    except H3SimError as error:
        message = str(error)
    else:
        return
    assert message.strip()
    assert all(line.isprintable() for line in message.splitlines())


def _shipped(pattern: str) -> Callable[[], Iterable[bytes]]:
    def samples() -> Iterable[bytes]:
        files = sorted(CHECKOUT.glob(pattern), key=lambda path: path.stat().st_size)
        return [path.read_bytes() for path in files if path.stat().st_size <= _SMALL_BYTES]

    return samples


def _recorded(*names: str) -> Callable[[], Iterable[bytes]]:
    return lambda: [json.dumps(SAMPLES[name]).encode() for name in names]


def _and_back(
    read: Callable[[Any], Any], to: Callable[[Any], Any], of: Callable[[Any], Any]
) -> Any:
    """Return a reader that also writes what it read, as JSON, and reads that."""

    def checked(path: Path) -> None:
        value = read(path)
        assert of(json.loads(json.dumps(to(value), allow_nan=False))) == value

    return checked


def _archived(path: Path) -> None:
    """Read every page of an archive, and one of them as from any recording."""
    list(read_archive(path))
    _imported(path)


def _imported(path: Path) -> None:
    laws.check_a_page_or_a_line_comes(path.read_bytes(), path.name)


@cache
def _load() -> Any:
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 900},
        {
            "id": "a.css",
            "kind": "stylesheet",
            "bytes": 700,
            "discovered": {"by": "/", "at": "complete"},
        },
    )
    return h3sim.simulate(page, scheme="rr")


def _pages() -> Iterable[bytes]:
    yield json.dumps(page_to_dict(_load().page)).encode()
    yield from _shipped("corpora/*.json")()


def _logs() -> Iterable[bytes]:
    import tempfile

    for name in ("load.qlog", "load.sqlog"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            write_load_qlog(_load(), path)
            yield path.read_bytes()


def _saved_loads() -> Iterable[bytes]:
    yield json.dumps(_load().to_dict()).encode()


def _results(name: str) -> Callable[[], Iterable[bytes]]:
    def samples() -> Iterable[bytes]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            store, lines = Path(folder) / "study.db", Path(folder) / "rows.jsonl"
            results = h3sim.sweep(
                pages=[_load().page], schemes=["rr", "fifo"], store=store, workers=1
            )
            results.save(lines)
            del results  # what is in its log comes into the store when that is closed
            yield (store if name == "study.db" else lines).read_bytes()

    return samples


def _read_rows(path: Path) -> None:
    list(read_results(path))


def _read_store(path: Path) -> None:
    with Store(path, may_write=False) as store:
        store.verify()
        for study in store.studies():
            list(store.rows(study.id))
    _read_rows(path)


def _read_trace(path: Path) -> None:
    network = path.with_name("network.toml")
    network.write_text(_TRACED, "utf-8")
    load_network(network)


def _read_priority(path: Path) -> None:
    # A field's value comes as Latin-1 (RFC 9110 § 5.5).
    parse_priority(path.read_bytes().decode("latin-1"))


def _read_findings(path: Path) -> None:
    text = read_text(path, FindingsError)
    findings_from_dict(parse_toml(text, FindingsError, source=str(path)), source=str(path))


def _read_header_study(path: Path) -> None:
    document = parse_toml(read_text(path, StudyError), StudyError, source=str(path))
    read_document(HeaderExperiment, document, StudyError, source=str(path), format_=HEADER_STUDY)


def _read_marked(path: Path) -> None:
    read_marks(path, _load().page)


def _read_site(path: Path) -> None:
    laws.check_a_page_or_a_line_comes(path.read_bytes(), path.name, _site_of)


def _site_of(sheet: Path) -> ImportedPage:
    sheet.with_name("index.html").write_text(_DOCUMENT, "utf-8")
    return import_page(sheet.parent)


_HARS = tuple(name for name in SAMPLES if name.startswith("har"))
READERS: dict[str, Reader] = {
    "page": Reader(
        file_name="page.json",
        read=_and_back(load_page, page_to_dict, page_from_dict),
        samples=_pages,
    ),
    "network": Reader(
        file_name="network.toml",
        read=_and_back(load_network, network_to_dict, network_from_dict),
        samples=_shipped("models/networks/*.toml"),
    ),
    "Mahimahi trace": Reader(
        file_name="trace.txt", read=_read_trace, samples=lambda: [b"1\n5\n5\n9\n", b"0\n1"]
    ),
    "profile": Reader(
        file_name="profile.toml",
        read=_and_back(load_profile, profile_to_dict, profile_from_dict),
        samples=_shipped("models/profiles/*.toml"),
    ),
    "scheme": Reader(
        file_name="scheme.toml",
        read=_and_back(load_scheme, scheme_to_dict, scheme_from_dict),
        samples=_shipped("models/schemes/*.toml"),
    ),
    "study": Reader(
        file_name="study.toml",
        read=read_study,
        samples=lambda: [
            b'format = "h3sim-study/1"\nname = "x"\npages = ["davies-meenan"]\n'
            b'schemes = ["rr", "fifo"]\nseeds = 2\n[axes]\nrtt_ms = [10, 20.5]\n',
            b'format = "h3sim-study/1"\npages = ["http2rulez"]\nschemes = ["rr"]\n'
            b'[settings]\nnetwork = "cable"\n[samples]\nn = 3\n'
            b"[samples.ranges]\nrtt_ms = {low = 1, high = 9}\n",
        ],
    ),
    "findings": Reader(
        file_name="findings.toml",
        read=_read_findings,
        samples=lambda: [
            b'format = "h3sim-findings/1"\n[[findings]]\nid = "a-1"\nsource = "A 2020"\n'
            b'says = "rr is slow"\nstudy = "marx-2019-table-2"\n'
            b'claims = [{ says = "least", figure = "least-mean", above = 1 }]\n',
            b'format = "h3sim-findings/1"\n[[findings]]\nid = "a-2"\nsource = "A 2020"\n'
            b'says = "users saw it"\ncannot = "there are no users"\n',
        ],
    ),
    "study of headers": Reader(
        file_name="study.toml",
        read=_read_header_study,
        samples=_shipped("models/studies/frindell-2017.toml"),
    ),
    "list of marks": Reader(
        file_name="fold.txt", read=_read_marked, samples=lambda: [b"# seen\n/\na.*\n", b"a.css"]
    ),
    "HAR": Reader(file_name="recording.har", read=_imported, samples=_recorded(*_HARS)),
    "DevTools log": Reader(file_name="log.json", read=_imported, samples=_recorded("devtools-log")),
    "Chrome trace": Reader(
        file_name="trace.json", read=_imported, samples=_recorded("chrome-trace")
    ),
    "network log": Reader(file_name="netlog.json", read=_imported, samples=_recorded("net-log")),
    "WebPageTest result": Reader(
        file_name="result.json", read=_imported, samples=_recorded("webpagetest")
    ),
    "Lighthouse result": Reader(
        file_name="lhr.json", read=_imported, samples=_recorded("lighthouse")
    ),
    "HTTP Archive": Reader(
        file_name="rows.jsonl",
        read=_archived,
        samples=lambda: [archive_lines(entry("/", 0, 60, mime="text/html")).encode()],
    ),
    "CrUX": Reader(
        file_name="crux.json",
        read=read_crux,
        samples=lambda: [
            b'{"record": {"metrics": {"round_trip_time": {"histogram": [{"start": 0, "end": 75,'
            b' "density": 0.4}, {"start": 75, "end": 275, "density": 0.5}, {"start": 275}]}}}}',
            b'{"record": {"metrics": {"round_trip_time": {"histogramTimeseries": [{"start": 0,'
            b' "end": 75, "densities": [0.4, "NaN"]}, {"start": 75, "end": 275,'
            b' "densities": [0.5, null]}]}}}}',
            b'{"yyyymm": 202502, "low_rtt": "0.1", "medium_rtt": 0.2, "high_rtt": null}\n'
            b'{"yyyymmdd": "2025-02-01", "_4GDensity": 0.6, "slow2GDensity": 0.1}',
        ],
    ),
    "HTML and CSS": Reader(
        file_name="index.html",
        read=_imported,
        samples=lambda: [
            b"<!doctype html><link rel=stylesheet href=a.css><img src=1.png><script src=x.js>",
            b"<style>@import 'a.css';@font-face{font-family:x;src:url(x.woff)}p{font:x}</style><p>",
        ],
    ),
    "stylesheet of a site": Reader(
        file_name="a.css",
        read=_read_site,
        samples=lambda: [
            b"@import 'b.css' print;@font-face{font-family:x;src:url(x.woff)}p{font:9px x}",
            b".a>b{background:url(a.png)}@media (min-width:1px){p{background:url('b.png')}}",
        ],
    ),
    "qlog": Reader(file_name="load.qlog", read=h3sim.read_qlog, samples=_logs),
    "header lists": Reader(
        file_name="lists.qif",
        read=read_qif,
        samples=lambda: [b"# at_ms 2.5\n:method\tGET\nx\t\n\n:method\tPOST\n"],
    ),
    "header lists of a HAR": Reader(
        file_name="lists.har",
        read=lambda path: read_exchanges(path, interval_ns=ms(1)),
        samples=_recorded(*_HARS),
    ),
    "saved load": Reader(file_name="load.json", read=read_load, samples=_saved_loads),
    "saved rows": Reader(file_name="rows.jsonl", read=_read_rows, samples=_results("rows.jsonl")),
    "store of studies": Reader(
        file_name="study.db", read=_read_store, samples=_results("study.db")
    ),
    "entry points of a plug-in": Reader(
        file_name="fuzzed-1.dist-info/entry_points.txt",
        read=list_plugins,
        samples=lambda: [
            b"[h3sim.schedulers]\nnewest = tests.fuzz.plugged:Newest\nrr = json:loads\n",
            b"[h3sim.schedulers]\na = tests.fuzz.plugged:_WRONG\nb = nowhere\n[x]\ny = z\n",
        ],
    ),
    "scheduler plug-in": Reader(
        file_name="answers.bin", read=load_with_scheduler, samples=lambda: [b"", b"a" * 9]
    ),
    "controller plug-in": Reader(
        file_name="answers.bin", read=load_with_controller, samples=lambda: [b"", b"a" * 9]
    ),
    "Priority field": Reader(
        file_name="field.txt",
        read=_read_priority,
        samples=lambda: [b"u=5, i", b"u=1;x=2, i=?0, y=(a b)", b'x="a\\"b", z=:YQ==:, u=-1.5'],
    ),
}
"""By the name that the table in docs/generated/broken-inputs.md has."""

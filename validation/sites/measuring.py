"""Loads of the sites in Chromium: recorded once without throttling, and measured over links."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from validation.http2_site import flag_of_certificate, site_certificate
from validation.sites.link import CLIENT, HOST, LINKS, SERVER, linked, namespaces, served, within
from validation.sites.packages import BUILD, DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from validation.sites.packages import Site

MEASURED = DATA / "measured.csv"
N_LOADS = 3
"""Loads of a site over a link; their spread is the machine's noise."""
_CHROME_HAR = "chrome-har@1.3.1"
_HAR_PROGRAM = """
const { harFromMessages } = await import("chrome-har");
const { readFileSync, writeFileSync } = await import("node:fs");
const [events, out] = process.argv.slice(2);
const settings = { includeTextFromResponseBody: true };
writeFileSync(out, JSON.stringify(harFromMessages(JSON.parse(readFileSync(events)), settings)));
"""


class Measurement(NamedTuple):
    """One load of a site over a link; the SpeedIndex is of a load of its own, with screenshots."""

    site: str
    link: str
    load: int
    fcp_ms: str
    lcp_ms: str
    load_ms: str
    speed_index_ms: str
    requests: str
    load_average: str


def measurements() -> list[Measurement]:
    """Return all measurements so far."""
    if not MEASURED.exists():
        return []
    with MEASURED.open(encoding="utf-8") as file:
        return [
            Measurement(**{**row, "load": int(row["load"])})  # type: ignore[arg-type]
            for row in csv.DictReader(file)
        ]


def measure(sites: Sequence[Site]) -> None:
    """Measure what is missing: `N_LOADS` loads of each site and link, then one with screenshots."""
    done = {(each.site, each.link, each.load) for each in measurements()}
    todo = [
        (site, link, range(first, last))
        for first, last in ((0, N_LOADS), (N_LOADS, N_LOADS + 1))
        for site in sites
        for link in LINKS
    ]
    with measuring_environment() as flag:
        for site, link, numbers in todo:
            missing = [n for n in numbers if (site.name, link, n) not in done]
            if not missing:
                continue
            with linked(link), served(site.folder, run_folder()):
                for n in missing:
                    what = "frames" if n == N_LOADS else "times"
                    found = load_site(site, flag, what, CLIENT)
                    if found is not None:
                        _append(site, link, n, found)


def record(sites: Sequence[Site], *, is_again: bool) -> None:
    """Record each site without throttling: `h3sim record`, a HAR and a Chrome trace."""
    with measuring_environment() as flag:
        for site in sites:
            if (site.recordings / "record.json").exists() and not is_again:
                continue
            site.recordings.mkdir(parents=True, exist_ok=True)
            page = str(site.folder / site.page)
            words = ("record", page, "--root", str(site.folder), "--name", site.name)
            out = ("-o", str(site.recordings / "record.json"))
            program = ("chrt", "-r", "5", sys.executable, "-m", "h3sim", *words, *out)
            subprocess.run(program, check=False, stdout=subprocess.DEVNULL)  # noqa: S603
            with linked(""), served(site.folder, run_folder()):
                har = load_site(site, flag, "har", SERVER)
                trace = load_site(site, flag, "trace", SERVER)
            if har is None or trace is None:
                continue
            _write_har(har.pop("events"), site.recordings / "load.har")
            with gzip.open(site.recordings / "trace.json.gz", "wt", encoding="utf-8") as file:
                json.dump({"traceEvents": trace.pop("trace")}, file)
            shown = {"har": har, "trace": trace}
            (site.recordings / "unthrottled.json").write_text(json.dumps(shown), encoding="utf-8")
            print(f"{site.name}: recorded", flush=True)


def run_folder() -> Path:
    """Return the folder of what a run needs: certificates, and the server's configuration."""
    folder = BUILD / "run"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def measuring_environment() -> Iterator[str]:
    """Make namespaces and a certificate; yield the flag with which Chromium accepts it."""
    certificate, key, _ = site_certificate()
    (run_folder() / "certificate.pem").write_bytes(certificate)
    (run_folder() / "key.pem").write_bytes(key)
    with ExitStack() as stack:
        stack.enter_context(namespaces())
        yield flag_of_certificate()


def load_site(site: Site, flag: str, what: str, namespace: str) -> dict[str, Any] | None:
    """Return one load, with real-time priority; None, and a line, if it failed."""
    out = run_folder() / "load.json"
    out.unlink(missing_ok=True)
    program = (sys.executable, "-m", "validation.sites.load")
    url = f"https://{HOST}/{site.page}"
    words = (*within(namespace), "chrt", "-r", "5", *program, url, flag, str(out), what)
    ended = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603
    if ended.returncode or not out.exists():
        reason = (ended.stderr.strip().splitlines() or ["no reason"])[-1]
        print(f"{site.name}: {what} failed: {reason}", flush=True)
        return None
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def _append(site: Site, link: str, n: int, found: dict[str, Any]) -> None:
    is_new = not MEASURED.exists()
    times = (found.get(f"{name}_ms") for name in ("fcp", "lcp", "load", "speed_index"))
    texts = ["" if time_ms is None else f"{time_ms:.0f}" for time_ms in times]
    row = (site.name, link, n, *texts, found["requests"], f"{found['load_average']:.1f}")
    with MEASURED.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(Measurement._fields)
        writer.writerow(row)
    print(*row, flush=True)


def _write_har(events: list[dict[str, Any]], out: Path) -> None:
    """Write the HAR that chrome-har makes of DevTools events, as browsertime and others do."""
    tools = BUILD / "tools"
    if not (tools / "node_modules").exists():
        tools.mkdir(parents=True, exist_ok=True)
        words = ("npm", "install", "--silent", "--prefix", str(tools), _CHROME_HAR)
        subprocess.run(words, check=True, capture_output=True)  # noqa: S603
    program, file = tools / "har.mjs", tools / "events.json"
    program.write_text(_HAR_PROGRAM, encoding="utf-8")
    file.write_text(json.dumps(events), encoding="utf-8")
    subprocess.run(("node", str(program), str(file), str(out)), check=True)  # noqa: S603, S607

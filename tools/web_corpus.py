"""Writes the set `web`: `python -m tools.web_corpus FOLDER`, a folder of fact tables of page loads.

The rules that choose the tables, and what is inferred for them, are in docs/corpus.md. The facts
go into corpora/web-YEARS.jsonl.gz, one page per line; the distributions from which a load draws
what no recording has, estimated from the tables that have it, into models/web.toml.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.catalog.web import PERIODS, RANKS, rank_class
from h3sim.page import Kind
from h3sim.values.errors import PageError
from validation.fact_table import facts_from_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CHECKOUT = Path(__file__).resolve().parents[1]
MAX_PAGES = 400
MIN_SIZES, MIN_PARENTS, MIN_FIRST_BYTES = 0.85, 0.5, 0.5
"""Least shares of requests whose size, parent and first byte are known."""
MAX_REQUESTS = 400
MIN_DOCUMENT_BYTES = 1000
INSERTED_AFTER_MS = 100.0
"""A request this long after its document has ended was inserted by a script or a stylesheet."""
_GRADES = "ABCD"
UNFIT = frozenset(
    """
    365ofertas.com 777juegos.com badoo.com best365online.com birigol.com bolavip.com
    cinecalidad.ec enbocadetodoshd.com.ar espacioapk.com fanmtl.com ferozo.email
    gamesgx.net gana-encasa.com ganaencasa.la ganamos.co getmyapp.store goodkidsgame.com
    healthphreaks.com insta-stories-viewer.com jihadwatch.org jugamos.fun jugavip.club
    lectulandia.com leercapitulo.co librefutboltv.su liveplay365.com loteriasantafe.gov.ar
    loteriasmundiales.com.ar magistv-pc.app mewingzone.com mystake4.com notube.im
    pelota-libre.net peppagame.com politicususa.com portablenorthpole.com
    quini-6-resultados.com.ar quiniela22.com reycomix.com reydereyes.club rt.com
    savefrom.net seriesturcastv.to stonkstutors.com storiesig.info taba.club thorpro.vip
    tikitakabv.com.ar turfpremium.com.ar yiv.com
    """.split()  # noqa: SIM905 - a list of names
)
"""Sites with bets, dating, copied works, impostors or partisan campaigns: no lecture shows them."""
_EVIDENCE = ("initiator", "redirect", "chain", "none")
"""Bases of parents that the browser recorded."""
_LEVELS = ("Idle", "VeryLow", "Low", "Medium", "High", "VeryHigh")
_MIN_IMAGE_BYTES = 500


def hash_of(site: str) -> str:
    """Return the hash that orders sites where a rule takes only some of them."""
    return hashlib.sha256(site.encode()).hexdigest()


def tables(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the fact tables in *folder*, by the names of their files."""
    for path in sorted(folder.glob("*.json.gz")):
        yield json.loads(gzip.decompress(path.read_bytes()))


def left_out(table: dict[str, Any]) -> str:
    """Return why a table is not chosen, "" if it may be."""
    coverage, rows = table["coverage"], table["resources"]
    document = next((r for r in rows if r["id"] == table["main_document"]), rows[0])
    reasons = {
        "grade": table["grade"] not in _GRADES,
        "site unfit for a lecture": table["site"] in UNFIT,
        "sizes": coverage["size"] < MIN_SIZES,
        "parents": coverage["parent"] < MIN_PARENTS,
        "first bytes": coverage["first_byte"] < MIN_FIRST_BYTES,
        "load event": not table["page"].get("onload_ms"),
        "number of requests": len(rows) > MAX_REQUESTS,
        "document": (document.get("body_bytes") or 0) < MIN_DOCUMENT_BYTES,
    }
    return next((reason for reason, is_met in reasons.items() if is_met), "")


def chosen(found: Iterable[dict[str, Any]], counts: Counter[str]) -> list[dict[str, Any]]:
    """Return the chosen tables by site: one per site, the best grade and then the newest.

    Of more than `MAX_PAGES` those of the best grades remain, and of the last of these grades the
    ones whose sites have the least hashes. *counts* gets the reasons against the others.
    """
    best: dict[str, dict[str, Any]] = {}
    for table in found:
        reason = left_out(table)
        counts[reason or "complete"] += 1
        other = best.get(table["site"])
        if not reason and (other is None or _preference(table) < _preference(other)):
            best[table["site"]] = table
    by_grade = sorted(best.values(), key=lambda each: (each["grade"], hash_of(each["site"])))
    return sorted(by_grade[:MAX_PAGES], key=lambda each: each["site"])


def _preference(table: dict[str, Any]) -> tuple[str, int, str]:
    return table["grade"], -table["year"], table["name"]


def with_causes(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table in which what was inserted late has the script or stylesheet that did it.

    Only for requests whose parent the browser did not record: that is then the last script to end
    before the request; for fonts and images the last script or stylesheet.
    """
    rows = [dict(row) for row in table["resources"]]
    by_id = {row["id"]: row for row in rows}
    same_site = {host["id"]: host["same_site"] for host in table["hosts"]}
    addresses = {host["id"]: host.get("ip") for host in table["hosts"]}
    for index, row in enumerate(rows):
        parent = by_id.get(row["parent"])
        host = row.get("host")
        if row.get("connection") is None and same_site.get(host) and addresses[host] is not None:
            # Names of a site at one address: their certificate is taken to be valid for both.
            row["connection"] = f"site-{addresses[host]}"
        if parent is None or row.get("parent_basis") in _EVIDENCE or parent["type"] != "html":
            continue
        if row["start_ms"] < parent.get("end_ms", math.inf) + INSERTED_AFTER_MS:
            continue
        kinds = ("js", "css") if row["type"] in ("font", "image") else ("js",)
        causes = [
            each
            for each in rows[:index]
            if each["type"] in kinds and each.get("end_ms", math.inf) <= row["start_ms"]
        ]
        if causes:
            cause = max(causes, key=lambda each: each["end_ms"])
            row["parent"], row["parent_basis"] = cause["id"], "inserted"
    hosts = {row["host"] for row in rows if row.get("host")}
    names = {each: f"{'site' if same_site.get(each) else 'third'}-{each}" for each in hosts}
    return table | {"resources": [row | {"host": names.get(row.get("host"), "")} for row in rows]}


def document_of(table: dict[str, Any]) -> dict[str, Any]:
    """Return the line of a table: its page, and what the recording says of CPU and visibility.

    Raises:
        PageError: if the table has no valid page.
    """
    given = with_causes(table)
    page = facts_from_dict(given, source=table["name"]).page
    document = page.to_dict()
    hosts = _host_names(given)
    recorded = {row["id"]: row for row in given["resources"]}
    ids = {resource.id for resource in page.resources}
    for resource, built in zip(document["resources"], page.resources, strict=True):
        row = recorded[resource["id"]]
        resource.pop("response_offsets", None)
        if "image_format" not in resource and resource["kind"] != "image":
            resource.pop("mime", None)
        if "host" in resource:
            resource["host"] = hosts[resource["host"]]
        if row.get("first_byte_ms") is not None:
            resource["server_ms"] = round(built.server_ns / 1e6, 1)
        if built.kind is Kind.IMAGE and is_visible(row, table) is not None:
            resource["above_the_fold"] = bool(is_visible(row, table))
        if row["id"] == table["page"].get("lcp_resource"):
            resource["hero"] = resource["above_the_fold"] = True
    # Round trips and look-ups are those of a VPN or a shaped link: the simulated network's count.
    known = document.pop("hosts", {})
    shared = {
        hosts[name]: {key: f"c{host[key]}" for key in ("certificate", "server") if key in host}
        for name, host in known.items()
    }
    document["hosts"] = {name: keys for name, keys in shared.items() if len(keys) == 2}
    if not document["hosts"]:
        del document["hosts"]
    document.pop("url", None)
    onload_ms = table["page"]["onload_ms"]
    names = {"fcp_ms": "fcp_ms", "lcp_ms": "largest_paint_ms", "speed_index_ms": "speed_index_ms"}
    document["recorded_load"] = {
        "load_event_ms": round(onload_ms),
        **{
            key: round(table["page"][name])
            for name, key in names.items()
            if table["page"].get(name)
        },
        "completed_ms": {
            row["id"]: math.ceil(row["end_ms"])
            for row in given["resources"]
            if 0 < row.get("end_ms", 0) <= onload_ms and row["id"] in ids
        },
    }
    year = table["year"]
    document["name"] = f"{table['site']}-{year}"
    document["provenance"]["licence"] = table["licence"]
    if table["device"]:
        document["provenance"]["device"] = table["device"]
    cpu = table["page"].get("cpu_by_event_ms") or {}
    line = {"page": document}
    if cpu:
        line["cpu_ms"] = {kind: round(time_ms, 1) for kind, time_ms in _cpu(cpu).items()}
    return line


def _host_names(table: dict[str, Any]) -> dict[str, str]:
    """Return the names of hosts by those that the reader of fact tables gives them."""
    in_order = dict.fromkeys(row["host"] for row in table["resources"] if row["host"])
    return {f"host-{number}": name for number, name in enumerate(in_order, 1)}


def is_visible(row: dict[str, Any], table: dict[str, Any]) -> bool | None:
    """Return whether Chrome saw an image in the viewport; None if the recording does not show it.

    After the first layout Chrome raises the priority of visible images that have not arrived.
    """
    first, last = row.get("priority_initial"), row.get("priority_final")
    paint_ms = table["page"].get("first_paint_ms") or table["page"].get("fcp_ms")
    if first not in _LEVELS or last not in _LEVELS or not row.get("in_main_frame"):
        return None
    if _LEVELS.index(last) > _LEVELS.index(first):
        return True
    return False if paint_ms is not None and row.get("end_ms", 0) > paint_ms else None


def _cpu(by_event: dict[str, float]) -> dict[str, float]:
    """Return main-thread times by what the model of a browser spends them on."""
    return {
        "js": by_event.get("scriptEvaluation", 0) + by_event.get("scriptParseCompile", 0),
        "css": by_event.get("styleLayout", 0),
        "html": by_event.get("parseHTML", 0),
    }


def _body_kb(table: dict[str, Any]) -> dict[str, float]:
    sizes: dict[str, float] = defaultdict(float)
    for row in table["resources"]:
        sizes[row["type"]] += (row.get("body_bytes") or 0) / 1000
    return sizes


def _lognormal(values: Iterable[float]) -> list[float]:
    logs = [math.log(value) for value in values if value > 0]
    return [round(math.exp(statistics.fmean(logs)), 3), round(statistics.stdev(logs), 2)]


def _power_law(points: list[tuple[float, float]]) -> list[float]:
    """Return the time at 1 kB, the exponent of the size, and the spread of the logarithm."""
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    rest = [y - intercept - slope * x for x, y in points]
    return [round(math.exp(intercept), 2), round(slope, 2), round(statistics.stdev(rest), 2)]


def distributions(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the distributions by name, with the number of values behind each."""
    times: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for table in found:
        sizes, cpu = _body_kb(table), _cpu(table["page"].get("cpu_by_event_ms") or {})
        for kind in ("js", "css", "html"):
            if cpu[kind] and sizes[kind] > 1:
                times[kind].append((math.log(sizes[kind]), math.log(cpu[kind])))
    seen: list[list[bool]] = [[] for _ in RANKS]
    for table in found:
        images = [row for row in table["resources"] if _is_image_of_page(row)]
        for rank, row in enumerate(images):
            visible = is_visible(row, table)
            if visible is not None:
                seen[rank_class(rank)].append(visible)
    scripts, shares = _of_templates()
    think = [
        resource.get("server_ms")
        for line in map(_line_or_none, found)
        if line
        for resource in line["page"]["resources"]
    ]
    return {
        "script_ms": (_power_law(times["js"]), len(times["js"])),
        "style_ms": (_power_law(times["css"]), len(times["css"])),
        "parse_ms": (_power_law(times["html"]), len(times["html"])),
        "script_spread": (_lognormal(scripts)[1], len(scripts)),
        "viewport_per_mb": (_lognormal(shares), len(shares)),
        "visible_by_rank": (
            [round(statistics.fmean(each), 2) for each in seen],
            sum(map(len, seen)),
        ),
        "server_ms": (
            [round(v, 1) for v in statistics.quantiles([t for t in think if t is not None], n=20)],
            sum(t is not None for t in think),
        ),
    }


def _line_or_none(table: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return None if left_out(table) else document_of(table)
    except PageError:
        return None


def _is_image_of_page(row: dict[str, Any]) -> bool:
    is_large = (row.get("body_bytes") or 0) >= _MIN_IMAGE_BYTES
    return row["type"] == "image" and is_large and row.get("in_main_frame", True)


def _of_templates() -> tuple[list[float], list[float]]:
    """Return ms per byte of scripts, and shares of the viewport per MB of images, of `sites`."""
    scripts: list[float] = []
    shares: list[float] = []
    for name in catalog.page_set("sites") or ():
        for each in catalog.load_page(name).resources:
            run_ns = each.parse_ns + each.execute_ns
            if each.kind is Kind.SCRIPT and each.size_bytes >= 1000 and run_ns:
                scripts.append(run_ns / each.size_bytes)
            if each.kind is Kind.IMAGE and each.viewport and each.size_bytes >= _MIN_IMAGE_BYTES:
                shares.append(each.viewport / each.size_bytes * 1e6)
    return scripts, shares


_MEANINGS = {
    "script_ms": "parsing and running scripts, by the kB of a page's scripts",
    "style_ms": "style and layout, by the kB of a page's stylesheets",
    "parse_ms": "parsing HTML, by the kB of a page's documents",
    "script_spread": "standard deviation of the logarithm of a script's rate within its page",
    "viewport_per_mb": "share of the viewport that a visible image covers, per MB of it",
    "visible_by_rank": "share of images in view, by their number in order of request (catalog.web)",
    "server_ms": "think times of servers: quantiles, 5 to 95 per cent",
}


def toml_of(values: dict[str, Any]) -> str:
    """Return models/web.toml: each distribution below what it is and how many values it has."""
    head = (
        "# Distributions from which a page of the set `web` draws what no recording has.\n"
        "# Written by `python -m tools.web_corpus`; pairs are a median and the standard\n"
        "# deviation of the logarithm (log-normal), triples a factor, the exponent of the kB and\n"
        "# that deviation.\n"
    )
    parts = (
        f"\n# {_MEANINGS[name]} (n = {number})\n{name} = {json.dumps(value)}\n"
        for name, (value, number) in values.items()
    )
    return head + "".join(parts)


def main(
    argv: list[str] | None = None, *, write: Callable[[Path, bytes], Any] = Path.write_bytes
) -> int:
    """Write the files and print how many tables were chosen, and why others were not."""
    folder = Path((sys.argv[1:] if argv is None else argv)[0])
    found, counts = list(tables(folder)), Counter[str]()
    lines: dict[str, list[dict[str, Any]]] = {name: [] for name in PERIODS}
    for table in chosen(found, counts):
        try:
            line = document_of(table)
        except PageError:
            counts["not a page"] += 1
            continue
        period = next(name for name, years in PERIODS.items() if table["year"] in years)
        lines[period].append(line)
    write(CHECKOUT / "models" / "web.toml", toml_of(distributions(found)).encode())
    for period, pages in lines.items():
        text = "".join(json.dumps(page, separators=(",", ":")) + "\n" for page in pages)
        data = gzip.compress(text.encode(), 9, mtime=0)
        write(CHECKOUT / "corpora" / f"web-{period}.jsonl.gz", data)
        print(f"web-{period}: {len(pages)} pages, {len(data) / 1e6:.2f} MB")
    print(", ".join(f"{reason} {number}" for reason, number in counts.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

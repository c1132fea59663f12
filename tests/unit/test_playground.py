"""What the playground asks of h3sim, here; `make test-playground` runs all of it in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import h3sim
from h3sim.page import page_from_dict, page_to_dict
from playground import simulator
from tests.recordings import entry, har
from tools.playground import catalogue, first_requests

SOURCE = Path(__file__).resolve().parents[2] / "playground"


def load(scheme: str, page: Any = "davies-meenan", **options: Any) -> dict[str, Any]:
    request = {"page": page, "scheme": scheme, "options": options}
    answer: dict[str, Any] = json.loads(simulator.simulate(json.dumps(request)))
    return answer


def test_an_answer_has_the_figures_of_the_load() -> None:
    expected = h3sim.simulate("davies-meenan", scheme="rr", transport="tcp", reorder="4:1-3")
    answer = load("rr", transport="tcp", reorder="4:1-3")
    assert answer["byte_index_ms"] == expected.byte_index()
    assert answer["byte_index_above_the_fold_ms"] == expected.byte_index("atf")
    assert answer["blocked_bytes"] == answer["blocked_in_one_order"] == 314_019
    assert answer["blocked_in_stream_order"] == 15_400
    assert len(answer["boxes"]) == expected.packets.sent
    assert max(box[3] + 1 for box in answer["boxes"]) == max(expected.hol.stack_histogram)


def test_mistakes_are_lines_and_no_failure() -> None:
    wrong = load("rr", rate_mbps=-1, rtt_ms="x")
    assert [line.partition(":")[0] for line in wrong["problems"]] == ["rate_mbps", "rtt_ms"]
    assert "no page is called 'nowhere'" in load("rr", page="nowhere")["problems"][0]


def test_a_page_without_anything_above_the_fold_says_why_it_has_no_figure() -> None:
    document = {"id": "index.html", "bytes": 5000, "kind": "document"}
    answer = load("rr", {"format": "h3sim-page/1", "name": "plain", "resources": [document]})
    assert answer["byte_index_above_the_fold_ms"] is None
    assert answer["above_the_fold_at_ms"] is None
    assert answer["why_not_above_the_fold"]


def test_files_are_read_by_what_they_hold() -> None:
    recording = har(entry("/", 0, 50, mime="text/html"), entry("/a.css", 60, 40))
    imported = json.loads(simulator.read_page("../../shop.har", json.dumps(recording)))
    assert "found: requests 2" in "\n".join(imported["lines"])
    again = json.loads(simulator.read_page("shop.json", json.dumps(imported["page"])))
    assert again == {"page": imported["page"], "lines": [], "network": imported["network"]}
    assert page_from_dict(again["page"]).name == "shop.example"
    broken = json.loads(simulator.read_page("shop.har", "{"))
    assert broken["problems"][0].startswith("shop.har: ")


def test_a_recording_brings_its_estimated_network_and_a_page_without_one_none() -> None:
    page = page_to_dict(h3sim.load_page("kicad-eeschema"))
    known = page["recorded_load"] = {"rtt_ms": 40, "rate_mbps": 7.5}
    answer = json.loads(simulator.read_page("page.json", json.dumps(page)))
    assert answer["network"] == {"rate": known["rate_mbps"], "rtt": known["rtt_ms"]}
    plain = page_to_dict(h3sim.load_page("davies-meenan"))
    assert json.loads(simulator.read_page("page.json", json.dumps(plain)))["network"] is None


def test_a_broken_page_file_says_line_and_column() -> None:
    text = '{"format": "h3sim-page/1",\n "name": "shop",\n "resources": [}'
    (problem,) = json.loads(simulator.read_page("shop.json", text))["problems"]
    assert problem.startswith("shop.json: ")
    assert "line 3, column 16" in problem


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_the_first_state_and_the_lesson_are_computed_when_the_site_is_built() -> None:
    requests = [json.loads(request) for request in first_requests()]
    first = {"page": "davies-meenan", "scheme": "rr"}
    assert first.items() <= requests[0].items()
    assert len(requests) > 4
    assert all("problems" not in load(r["scheme"], r["page"], **r["options"]) for r in requests)


LINKS = """
import { deflateRawSync } from "node:zlib";
import { DEFAULTS, fragmentOf, stateOf } from "./state.mjs";
const packed = (text) => deflateRawSync(Buffer.from(text)).toString("base64url");
const links = [packed("null"), packed("[]"), packed("5"), "@", packed(" ".repeat(3e7) + "{}")];
const catalogue = { pages: [], schemes: [{ name: "rr" }] };
Object.assign(catalogue, { clients: ["safari"], servers: ["quic-go"] });
const taken = [];
for (const data of links) taken.push((await stateOf(`data=${data}`, catalogue)).ignored.length);
const { text } = await fragmentOf({ schemes: [], document: { name: "mine" } });
const { state, ignored } = await stateOf(text, catalogue);
const ofData = ignored.filter((each) => each.startsWith("data"));
const link = "rate=-5&rtt=28.5&loss=99&cc=vegas&lesson=9&seed=1.5&lecture=2";
const odd = await stateOf(link, catalogue);
const numbers = [odd.ignored.map((each) => each.split("=")[0]), odd.state.rate, odd.state.rtt];
const chosen = ["rr", "safari before quic-go"];
const pair = (await fragmentOf({ ...DEFAULTS, schemes: chosen })).text;
const again = await stateOf(pair, catalogue);
const unknown = await stateOf("schemes=rr+safari~nginx", catalogue);
const pairs = [again, unknown].flatMap((each) => [each.state.schemes, each.ignored.length]);
console.log(JSON.stringify([taken, state.document, ofData, numbers, pairs]));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_a_link_with_no_page_in_it_is_told_and_one_with_a_page_is_taken(tmp_path: Path) -> None:
    shutil.copyfile(SOURCE / "state.js", tmp_path / "state.mjs")
    (tmp_path / "links.mjs").write_text(LINKS, encoding="utf-8")
    command = ["node", str(tmp_path / "links.mjs")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *pages, (ignored, rate, rtt), pairs = json.loads(done.stdout)
    assert pages == [[1, 1, 1, 1, 1], {"name": "mine"}, []]
    # What cannot be is left as it is by default, and named; what can be is taken as it is.
    assert ignored == ["rate", "loss", "cc", "lesson", "seed", "lecture"]
    assert (rate, rtt) == (1.12, 28.5)
    # A pair is in a link, too (its page is not known to this catalogue); unknown parties are told.
    assert pairs == [["rr", "safari before quic-go"], 1, ["rr"], 1]


def test_everything_shipped_can_be_chosen() -> None:
    offered = catalogue()
    assert [page["name"] for page in offered["pages"]] == [p.name for p in h3sim.list_pages()]
    schemes = [scheme["name"] for scheme in offered["schemes"]]
    assert schemes == [scheme.name for scheme in h3sim.list_schemes()]
    assert {"chrome", "safari"} < {*offered["clients"]}
    assert {"quic-go", "haproxy"} < {*offered["servers"]}
    assert {"Marx 2019", "Sander 2022", "Servers"} < {s["group"] for s in offered["schemes"]}


def test_the_page_names_no_other_host_and_writes_no_markup_from_data() -> None:
    for path in SOURCE.glob("*.*"):
        text = path.read_text("utf-8")
        assert re.findall(r"https?://[a-z]", text) == [], path
        assert re.findall(r"innerHTML|insertAdjacentHTML|document\.write", text) == [], path

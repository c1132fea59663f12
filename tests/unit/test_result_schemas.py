"""What `to_dict` of results over many loads returns is as the schema of its format says."""

from __future__ import annotations

import ast
import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import h3sim
from h3sim import simulate
from h3sim.advice import prioritization_test, validate_scheme
from h3sim.advice.live_server import LiveTest, OrderRow, Updates
from h3sim.cli import main
from h3sim.cli.conform_reports import json_of, outcomes_of
from h3sim.conformance import check_vectors
from h3sim.export.qlog_file import write_load_qlog
from h3sim.headers import CodecSettings
from h3sim.headers.base import HeaderLists, TimedSection
from h3sim.importers import import_page
from h3sim.load.milestones import RootRow
from h3sim.papers import reproduce
from h3sim.schema.output import COUNT, ObjectType, Property, rows_of
from h3sim.schemes.halves import Over
from h3sim.study import sweep
from h3sim.study.fidelity import IMPORT_REPORT, fidelity
from h3sim.study.header_study import header_rows, rows_to_dict
from h3sim.trace import Rows
from tests.helpers import page_of
from tests.recordings import SAMPLES, write_recording
from tests.schemas import SCHEMAS, schema_problems
from tests.unit.test_recorder_making import made
from tools.formats import result_schemas

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = {"id": "/", "kind": "document", "bytes": 9000, "parse_ms": 3}
STYLE = {
    "id": "a.css",
    "kind": "stylesheet",
    "bytes": 3000,
    "render_blocking": True,
    "discovered": {"by": "/", "at": "offset", "offset_bytes": 300},
    "recorded": [{"browser": "chrome", "urgency": 1, "incremental": False}],
}
AT_THE_END = {"by": "/", "at": "complete"}
PAGE = page_of(ROOT, STYLE)


def _headers() -> dict[str, Any]:
    sections = [TimedSection(0, ((b":method", b"GET"), (b"x", b"y")))]
    found = sweep(
        HeaderLists.of(sections), schemes="rr", header_compression="hpack", resources=True
    )
    rows = header_rows(found, found.resources())
    return rows_to_dict(rows, source="made up", settings=CodecSettings(), seed=0)


def _import() -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        imported = import_page(write_recording(Path(folder), SAMPLES["har"]))
    return IMPORT_REPORT.write(imported, fidelity=fidelity(imported.page))


def _identification() -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        log = Path(folder) / "load.qlog"
        write_load_qlog(simulate(PAGE, network="cable"), log)
        return h3sim.identify(log).to_dict()


def _list() -> dict[str, Any]:
    with redirect_stdout(StringIO()) as printed:
        assert main(["list", "networks", "--json"]) == 0
    document: dict[str, Any] = json.loads(printed.getvalue())
    return document


MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "h3sim-advice/2": lambda: h3sim.recommend(PAGE, n_seeds=4, network_within=1).to_dict(),
    "h3sim-comparison/2": lambda: h3sim.compare(PAGE, schemes=["rr", "fifo"]).to_dict(),
    "h3sim-conformance-report/1": lambda: json.loads(
        json_of("eps", outcomes_of(check_vectors("eps")))
    ),
    "h3sim-found/1": lambda: h3sim.search(PAGE, which="all", networks=[]).to_dict(),
    "h3sim-headers/1": _headers,
    "h3sim-hints/1": lambda: h3sim.hints(PAGE, network="cable", n_seeds=3).to_dict(),
    "h3sim-identification/1": _identification,
    "h3sim-import/1": _import,
    "h3sim-list/1": _list,
    "h3sim-live-test/1": lambda: LiveTest(
        url="http://h/",
        protocol=Over.HTTP2,
        server=None,
        rows=Rows(OrderRow, [OrderRow("p", ("u=1",), (1,), ("rr",))]),
        updates=Updates.IGNORED,
    ).to_dict(),
    "h3sim-optimality/1": lambda: h3sim.optimality(PAGE, schemes=["rr", "fifo"]).to_dict(),
    "h3sim-prediction/1": lambda: h3sim.predict(PAGE).to_dict(),
    "h3sim-recording/1": lambda: made().to_dict(),
    "h3sim-rule-check/1": lambda: validate_scheme(PAGE).to_dict(),
    "h3sim-seed-comparison/1": lambda: h3sim.compare(PAGE, schemes=["fifo"], seeds=3).to_dict(),
    "h3sim-server-check/1": lambda: prioritization_test("fifo").to_dict(),
    "h3sim-what-if/1": lambda: h3sim.advice.what_if(PAGE).to_dict(),
}


PROTOCOLS = {"h3sim-conformance/1", "h3sim-controller/1"}
"""What is no document: its schema is that of a line."""


def test_every_format_that_is_named_in_the_code_has_a_schema() -> None:
    named = {
        node.value
        for path in Path(h3sim.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"h3sim-[a-z-]+/\d+", node.value)
    }
    assert named - PROTOCOLS == set(SCHEMAS)


def test_every_format_of_results_is_made_here() -> None:
    assert [*MADE] == sorted(result_schemas())


@pytest.mark.parametrize("format_", MADE)
def test_a_document_is_as_its_schema_states(format_: str) -> None:
    document = MADE[format_]()
    assert document["format"] == format_
    assert schema_problems(document) == []
    assert schema_problems(document | {"more": 1})
    del document[[*document][1]]
    assert schema_problems(document)


LOADS: dict[str, dict[str, Any]] = {
    "replayed": {},
    "computed": {"browser": "parse", "network": "cable"},
    "several connections": {
        "connections": "per-host",
        "network": "cable",
        "cross_traffic": "cubic",
    },
}


@pytest.mark.parametrize("name", LOADS)
def test_the_schema_of_loads_names_all_that_their_documents_have(name: str) -> None:
    page = page_of(ROOT, {**STYLE, "host": "cdn"}, {**ROOT, "id": "tab", "discovered": AT_THE_END})
    document = simulate(page, **LOADS[name]).to_dict(order=True)
    schema = SCHEMAS["h3sim-load/2"]
    assert schema_problems(document) == []
    assert set(document) <= set(schema["properties"])
    assert schema_problems(document | {"resources": [{"id": "/"}]})


def test_a_key_that_is_left_out_where_there_is_none_may_be_given_empty() -> None:
    only = ObjectType(
        Property("roots", rows_of(RootRow), is_optional=True), Property("n", COUNT, of="a.b")
    )
    assert only.write(SimpleNamespace(a=SimpleNamespace(b=2))) == {"n": 2}
    assert only.write({"n": 2}, roots=()) == {"roots": [], "n": 2}


def test_the_document_of_a_reproduction_is_as_its_schema_states() -> None:
    document = reproduce("marx-2019-case-study-1", executor="serial").to_dict()
    assert schema_problems(document) == []


@pytest.mark.parametrize("format_", SCHEMAS)
def test_every_schema_is_a_schema(format_: str) -> None:
    schema = SCHEMAS[format_]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:h3sim:schema:{format_.replace('/', '-')}"

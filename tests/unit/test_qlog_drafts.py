"""What `--qlog-dialect draft` writes, against the CDDL of the qlog drafts."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.signals import Eps
from h3sim.trace import Delivery, SignalSent, Trace
from tests.effort import some
from tests.logs import qlog_document
from validation.qlog_drafts import DRAFTS, LOADS, Checker, cddl_of

OWN = Path(__file__).with_name("qlog_draft.cddl")
ENVIRONMENT = "H3SIM_QLOG_DRAFTS"


@pytest.fixture(scope="module")
def checker() -> Checker:
    """Return a checker for the drafts that $H3SIM_QLOG_DRAFTS has, or else for our part of them."""
    folder = os.environ.get(ENVIRONMENT)
    if folder is None:
        return Checker(OWN.read_text(encoding="utf-8"))
    paths = [Path(folder) / f"draft-ietf-quic-qlog-{name}.md" for name in DRAFTS]
    return Checker(cddl_of(path.read_text(encoding="utf-8") for path in paths))


EACH = list(itertools.product([".qlog", ".sqlog"], LOADS))


@pytest.mark.parametrize(
    ("suffix", "options"),
    some(EACH[: len(LOADS) + 1], EACH),
    ids=lambda value: value if isinstance(value, str) else value["scheme"],
)
def test_each_part_of_a_log_is_as_the_drafts_describe_it(
    suffix: str, options: dict[str, Any], checker: Checker, tmp_path: Path
) -> None:
    load = h3sim.simulate("davies-meenan", record_packets=True, **options)
    write_load_qlog(load, tmp_path / f"load{suffix}", dialect="draft")
    checked = dict(checker.errors(tmp_path / f"load{suffix}"))
    assert {name: error for name, error in checked.items() if error} == {}
    assert {"stream frame", "quic:packet_received", "http3:frame_created"} <= set(checked)


def test_what_the_drafts_do_not_know_is_an_error(checker: Checker, tmp_path: Path) -> None:
    load = h3sim.simulate("davies-meenan", scheme="fifo", record_packets=True)
    path = tmp_path / "load.qlog"
    write_load_qlog(load, path, dialect="draft")
    document = json.loads(path.read_text(encoding="utf-8"))
    sent = next(
        event for event in document["traces"][0]["events"] if event["name"] == "quic:packet_sent"
    )
    sent["data"]["packet_size"] = 1200  # a member that was dropped long ago
    document["traces"][0]["protocol_type"] = ["QUIC"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert {name for name, error in checker.errors(path) if error} == {
        "trace (contained)",
        "quic:packet_sent",
    }


def test_the_server_logs_each_priority_and_what_it_was_before() -> None:
    signals = (
        SignalSent(1_000_000, 0, Eps(urgency=0)),
        SignalSent(2_000_000, 4, Eps()),
        SignalSent(3_000_000, 0, Eps(urgency=5, incremental=True)),
    )
    trace = Trace(delivery=Delivery.STREAM, requests=(), signals=signals)
    server = qlog_document(trace, title="t", dialect="draft")["traces"][0]["events"]
    cause = {"trigger": "client_signal_received", "reason": "client_signal_only"}
    updated = [event for event in server if event["name"] == "http3:priority_updated"]
    assert [(event["time"], event["data"]) for event in updated] == [
        (1.0, {"stream_id": 0, "new": "u=0", **cause}),
        (2.0, {"stream_id": 4, "new": "u=3", **cause}),
        (3.0, {"stream_id": 0, "old": "u=0", "new": "u=5, i", **cause}),
    ]
    older = qlog_document(trace, title="t")["traces"][0]["events"]
    assert not any("priority_updated" in event["name"] for event in older)

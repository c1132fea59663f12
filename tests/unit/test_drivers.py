"""Schedulers in other processes: the protocol, bad drivers, and what becomes of processes."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import Phase, given, settings

import h3sim
from h3sim.cli import main
from h3sim.conformance import (
    BrokenLawError,
    Candidate,
    Law,
    NonIncrementalFirst,
    OneByOneInUrgency,
    RoundRobinInUrgency,
    UrgencyOrder,
    check_law,
    check_scheduler,
    event_scripts,
    signals,
)
from h3sim.conformance.call_sequences import RecordingScheduler
from h3sim.schedulers import DriverScheduler, EpsScheduler, close_drivers
from h3sim.schedulers.driver import SIGNAL_TYPES, protocol_schema
from h3sim.signals import Eps
from h3sim.values.errors import InputError, SchedulerError, SchedulerTimeoutError
from tests.effort import scaled

SHIPPED = [sys.executable, str(Path(__file__).parents[2] / "validation/drivers/shipped.py")]
PRELUDE = """\
import json, os, sys, time
def say(answer):
    print(json.dumps(answer), flush=True)
active, n_picks = [], 0
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "hello":
        say({"protocol": request["protocol"]})
    elif request["op"] == "reset":
        active = []
    elif request["op"] == "activate" and request["stream"] not in active:
        active.append(request["stream"])
    elif request["op"] in ("deactivate", "close") and request["stream"] in active:
        active.remove(request["stream"])
    elif request["op"] == "pick":
        n_picks += 1
        """
FIFO = 'say({"stream": min(active, default=None)})'
ECHO = """\
import json, sys
for line in sys.stdin:
    print(line, end="", file=sys.stderr, flush=True)
    request = json.loads(line)
    if request["op"] == "hello":
        print(json.dumps({"protocol": request["protocol"]}), flush=True)
    elif request["op"] == "pick":
        print('{"stream":null}', flush=True)
"""


FEW = settings(max_examples=10, derandomize=True, database=None, phases=[Phase.generate])


def driver(body: str, **options: Any) -> DriverScheduler:
    """Return a driver that keeps a list of active streams, and does *body* at a pick."""
    return DriverScheduler([sys.executable, "-c", PRELUDE + body], **options)


def first_pick(scheduler: DriverScheduler) -> int | None:
    scheduler.open(4, Eps(urgency=1))
    scheduler.activate(4)
    return scheduler.pick()


def picked_twice(scheduler: DriverScheduler) -> None:
    first_pick(scheduler)
    scheduler.pick()


def write_without_end(scheduler: DriverScheduler) -> None:
    for number in range(100_000):
        scheduler.activate(number)


@pytest.fixture(autouse=True)
def no_driver_left() -> Any:
    before = children()  # of other tests: pools of processes that stay
    yield
    gc.collect()  # an error that a test has caught holds its scheduler in a cycle
    close_drivers()
    assert children() <= before


def children() -> set[str]:
    """Return the ids of the processes that this one has started and that still run."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == os.getpid() and words[0] != "Z":
            found.add(path.parent.name)
    return found


def test_a_driver_picks_what_its_scheduler_picks_in_this_process() -> None:
    near, far = RecordingScheduler(EpsScheduler()), RecordingScheduler(DriverScheduler(SHIPPED))
    for number, signal in enumerate([Eps(), Eps(incremental=True), Eps(urgency=0)]):
        for scheduler in (near.scheduler, far.scheduler):
            scheduler.open(4 * number, signal)
            scheduler.activate(4 * number)
    assert far.pick() == near.pick() == 8
    for scheduler in (near.scheduler, far.scheduler):
        scheduler.close(8)
        scheduler.update(4, Eps(urgency=1))
    assert far.pick() == near.pick() == 4
    far.scheduler = None  # type: ignore[assignment]


def test_a_driver_keeps_the_laws_that_its_scheduler_keeps() -> None:
    claims = [UrgencyOrder(), OneByOneInUrgency(), RoundRobinInUrgency(), NonIncrementalFirst()]
    report = check_scheduler(
        DriverScheduler(SHIPPED), claims=claims, signals=signals(Eps), settings=FEW
    )
    elsewhere = {law for law, why in report.skipped.items() if "another process" in why}
    assert elsewhere == {Law.FREES_MEMORY, Law.PICKLES, Law.CHEAP_PICKS}
    assert {claim.law for claim in claims} <= set(report.passed)


def test_a_broken_order_is_found_in_a_driver() -> None:
    candidate = Candidate(factory=driver(FIFO), claims=(UrgencyOrder(),), signals=signals(Eps))
    with pytest.raises(BrokenLawError) as caught:
        check_law(candidate, Law.STRICT_ORDER)
    assert caught.value.law is Law.STRICT_ORDER
    assert len(caught.value.history) == 5


BAD: dict[str, tuple[str, list[str]]] = {
    "ends": ("print('no room', file=sys.stderr); sys.exit(3)", ["exit code 3", "no room"]),
    "is killed": ("os.kill(os.getpid(), 9)", ["SIGKILL"]),
    "raises": ("raise KeyError(7)", ["exit code 1", "KeyError: 7"]),
    "prints rubbish": ("print('starting up...', flush=True)", ["starting up...", "not JSON"]),
    "answers no id": ("say({'stream': 'four'})", ["four"]),
    "answers a number": ("say(4)", ["4"]),
    "answers true": ("say({'stream': True})", ["True"]),
    "prints twice": ('print(\'{"stream":4}\\n{"stream":4}\', flush=True)', ["no request"]),
    "prints without end": ("sys.stdout.write('x' * 200_000); sys.stdout.flush()", ["65536"]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_driver_is_an_error_of_one_line(name: str) -> None:
    body, words = BAD[name]
    scheduler = driver(body)
    with pytest.raises(SchedulerError) as caught:
        picked_twice(scheduler)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("name", ["ends", "prints rubbish", "answers no id"])
def test_a_bad_driver_is_a_finding(name: str) -> None:
    with pytest.raises(BrokenLawError) as caught:
        check_law(Candidate(factory=driver(BAD[name][0])), Law.WORK_CONSERVING, settings=FEW)
    assert caught.value.law is Law.NEVER_RAISES
    assert BAD[name][1][0] in caught.value.sentence


def test_a_bad_driver_ends_a_load_with_its_own_words() -> None:
    with pytest.raises(SchedulerError) as caught:
        h3sim.simulate("http2rulez", scheduler=driver(BAD["ends"][0]), scheme="chrome-eps")
    assert "raised" not in str(caught.value)
    assert str(caught.value).count("exit code 3") == 1
    assert str(caught.value).endswith("' ends with exit code 3: 'no room'")


def test_the_command_names_a_driver_that_picks_a_wrong_stream(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = PRELUDE.replace('"protocol": request["protocol"]', '**request, "name": "mine"')
    command = shlex.join([sys.executable, "-c", f'{program}say({{"stream": 4000}})'])
    words = ["run", "http2rulez", "--scheme", "chrome-eps", "--scheduler-process", command]
    assert main(words) == 1
    assert "'mine' picks stream 4000" in capsys.readouterr().err


def test_an_id_that_is_no_stream_is_a_finding() -> None:
    body = 'say({"stream": 4000 if active else None})'
    with pytest.raises(BrokenLawError) as caught:
        check_law(Candidate(factory=driver(body)), Law.PICKS_ONLY_READY)
    assert caught.value.law is Law.PICKS_ONLY_READY
    assert "4000" in caught.value.sentence


def test_a_driver_that_hangs_is_found_with_one_wait() -> None:
    body = "time.sleep(3600)"
    scheduler = driver(body, timeout_s=0.5)
    with pytest.raises(SchedulerTimeoutError):
        first_pick(scheduler)
    for law in (Law.WORK_CONSERVING, Law.NEVER_RAISES):
        with pytest.raises(BrokenLawError) as caught:
            check_law(Candidate(factory=driver(body, timeout_s=0.5)), law)
        assert caught.value.law is Law.NEVER_RAISES
        assert isinstance(caught.value.__cause__, SchedulerTimeoutError)


def test_a_driver_that_does_not_read_is_found() -> None:
    program = 'import time\nprint(\'{"protocol":"h3sim-conformance/1"}\', flush=True)\n'
    scheduler = DriverScheduler([sys.executable, "-c", f"{program}time.sleep(3600)"], timeout_s=0.5)
    with pytest.raises(SchedulerTimeoutError, match="reads nothing"):
        write_without_end(scheduler)


def test_one_process_serves_schedulers_one_after_the_other_and_no_two_at_a_time() -> None:
    body = 'say({"stream": os.getpid()})'
    first, second = driver(body), driver(body)
    pids = {first.pick(), second.pick()}
    assert len(pids) == 2
    del first, second
    assert {driver(body).pick() for _ in range(5)} <= pids


def test_a_copy_begins_anew() -> None:
    scheduler = driver(FIFO)
    assert first_pick(scheduler) == 4
    assert copy.deepcopy(scheduler).pick() is None
    assert pickle.loads(pickle.dumps(scheduler)).pick() is None
    assert scheduler.pick() == 4


def test_a_command_that_cannot_be_started_is_bad_input() -> None:
    with pytest.raises(InputError, match="cannot be started"):
        DriverScheduler(["/no/such/driver"]).pick()
    with pytest.raises(InputError, match="empty"):
        DriverScheduler("")


def test_another_protocol_is_refused() -> None:
    answer = json.dumps({"protocol": "h3sim-conformance/9"})
    with pytest.raises(SchedulerError, match="h3sim-conformance/9"):
        DriverScheduler(["sh", "-c", f"echo '{answer}'; cat"]).start()


def test_every_type_of_signal_reaches_a_driver_as_its_schema_requires(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(protocol_schema())
    log, program = tmp_path / "lines", tmp_path / "echo.py"
    program.write_text(ECHO)
    command = ["sh", "-c", f"'{sys.executable}' {program} 2>>{log}"]

    def play(history: Any) -> None:
        RecordingScheduler(DriverScheduler(command)).play(history)

    for name, kind in SIGNAL_TYPES.items():
        few = settings(max_examples=scaled(5), derandomize=True, deadline=None, database=None)
        few(given(event_scripts(signals(kind), placeholders=2))(play))()
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert any((line.get("signal") or {}).get("type") == name for line in lines)
    for line in {json.dumps(line) for line in lines}:
        validator.validate(json.loads(line))
    assert {line["op"] for line in lines} == {
        *("hello", "reset", "open", "update", "activate", "deactivate", "close", "charge", "pick")
    }


@pytest.mark.parametrize(
    ("signal", "too_low"),
    [
        ({"type": "eps", "urgency": 0, "incremental": False}, "urgency"),
        ({"type": "bucket", "bucket": 0, "level": 1}, "bucket"),
        ({"type": "bucket", "bucket": 0, "level": 1}, "level"),
        ({"type": "strict", "weight": 1, "strict": 0, "depends_on": None}, "weight"),
        ({"type": "strict", "weight": 1, "strict": 0, "depends_on": None}, "strict"),
        ({"type": "h2", "weight": 0, "depends_on": None, "exclusive": False}, "weight"),
    ],
)
def test_the_schema_has_the_lowest_value_of_each_key(signal: Any, too_low: str) -> None:
    validator = jsonschema.Draft202012Validator(protocol_schema())
    validator.validate({"op": "open", "stream": 4, "signal": signal})
    lower = signal | {too_low: signal[too_low] - 1}
    assert not validator.is_valid({"op": "open", "stream": 4, "signal": lower})


@pytest.mark.parametrize(("n_bytes", "is_valid"), [(0, True), (-1, False), (0.5, False)])
def test_the_schema_charges_a_number_of_bytes(n_bytes: float, is_valid: bool) -> None:
    validator = jsonschema.Draft202012Validator(protocol_schema())
    assert validator.is_valid({"op": "charge", "stream": 4, "bytes": n_bytes}) is is_valid


@pytest.mark.parametrize("line", ['{"op":"open","stream":4}', '{"op":"fly"}', '{"stream":"x"}'])
def test_the_schema_refuses_what_is_no_line(line: str) -> None:
    validator = jsonschema.Draft202012Validator(protocol_schema())
    assert not validator.is_valid(json.loads(line))


def test_the_command_states_what_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["conform", "--profile", "quick", "--claim", "urgency-order", "--", sys.executable]
    assert main([*words, "-c", PRELUDE + FIFO]) == 1
    out = capsys.readouterr().out
    assert "strict-order" in out
    assert "pick() -> 0" in out


def test_the_name_of_a_driver_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    named = PRELUDE.replace(
        'say({"protocol": request["protocol"]})',
        'say({"protocol": request["protocol"], "name": "mi\\x1b]0;t\\x07ne\\u202e" + "n" * 9000})',
    )
    words = ["conform", "--profile", "quick", "--", sys.executable, "-c", named + FIFO]
    main(words)
    printed = capsys.readouterr()
    assert all(line.isprintable() for line in (printed.out + printed.err).splitlines())
    assert "mi\\x1b]0;t\\x07ne\\u202e" in printed.out
    assert max(map(len, printed.out.splitlines())) < 500


def test_an_answer_that_is_nested_too_deeply_is_no_json() -> None:
    with pytest.raises(SchedulerError, match="is not JSON"):
        first_pick(driver("print('[' * 60_000, flush=True)"))


def test_the_command_suggests_claims(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["conform", "--profile", "quick", "--suggest", "--signals", "bucket", "--"]
    assert main([*words, sys.executable, "-c", PRELUDE + FIFO]) == 0
    kept = [line for line in capsys.readouterr().out.splitlines() if "keeps" in line]
    assert [line.split()[1] for line in kept] == ["first-in-first-out"]


def test_a_driver_that_fails_has_no_claims_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["conform", "--profile", "quick", "--suggest", "--", sys.executable, "-c"]
    assert main([*words, PRELUDE + BAD["ends"][0]]) == 1
    out = capsys.readouterr().out
    assert "exit code 3" in out
    assert "breaks" not in out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--claim", "urgncy-order", "--", "cat"], 2),
        (["--claim", "urgency-order", "--suggest", "--", "cat"], 2),
        (["--", "/no/such/driver"], 2),
        (["--", "false"], 1),
        ([], 2),
    ],
)
def test_the_command_ends_with_a_code_and_no_traceback(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        ended = main(["conform", *words])
    except SystemExit as exit_:
        ended = int(str(exit_.code))
    assert ended == code
    assert "Traceback" not in capsys.readouterr().err

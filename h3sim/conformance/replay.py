"""Failing histories as lines of the protocol, which drivers in any language read, and back."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any

from h3sim.conformance.laws import HistoryLine
from h3sim.schedulers.driver import PROTOCOL, SIGNAL_TYPES, DriverProcess, signal_to_json
from h3sim.schema import read_text, write_atomically
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from h3sim.conformance.laws import BrokenLawError, ConformanceReport

_SIGNALS = {each.__name__: each for each in SIGNAL_TYPES.values()}
_DEMANDS = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.BinOp, ast.Sub, ast.Div, ast.UnaryOp),
    *(ast.USub, ast.Compare, ast.Eq, ast.NotEq, ast.Gt, ast.LtE, ast.In, ast.Is, ast.IsNot),
    *(ast.Call, ast.Attribute, ast.Subscript, ast.Slice, ast.List, ast.Constant, ast.Name),
    ast.Load,
)
"""The parts of which laws make their demands."""


def as_lines(broken: BrokenLawError) -> str:
    """Return the history of a broken law as requests of the protocol, a JSON object a line.

    The first line, `hello`, has the law, a sentence, and what the law demands of `picks`; a pick
    has the stream that *was* picked, and a charge behind it is of whatever is picked. Drivers
    ignore these keys. It is empty if the picks alone do not show that the law is broken.
    """
    if not broken.as_test():
        return ""
    told = {"law": broken.law.value, "broken": broken.sentence, "demand": broken.demand}
    requests: list[dict[str, Any]] = [{"op": "hello", "protocol": PROTOCOL, **told}]
    requests.append({"op": "reset"})
    for line in map(HistoryLine.of, broken.history):
        requests += _requests_of(line) * line.n_times
    return "".join(f"{json.dumps(each, separators=(',', ':'))}\n" for each in requests)


def write_failures(report: ConformanceReport, folder: Path) -> None:
    """Write a file of `as_lines` for each broken law, LAW.jsonl."""
    folder.mkdir(parents=True, exist_ok=True)
    for broken in report.broken:
        if lines := as_lines(broken):
            write_atomically(folder / f"{broken.law.value}.jsonl", lines, key="--failures")


def _requests_of(line: HistoryLine) -> list[dict[str, Any]]:
    if line.picked:
        was = None if line.picked == "an error" else ast.literal_eval(line.picked)
        charge = {"op": "charge", "stream": was, "bytes": line.n_bytes}
        return [{"op": "pick", "was": was}, *([charge] if line.n_bytes is not None else [])]
    call = ast.parse(line.call, mode="eval").body
    assert isinstance(call, ast.Call)  # noqa: S101 - as the suite writes it
    assert isinstance(call.func, ast.Name)  # noqa: S101
    stream_id, *rest = map(_value, call.args)
    keys = ("bytes",) if call.func.id == "charge" else ("signal",)
    return [{"op": call.func.id, "stream": stream_id, **dict(zip(keys, rest, strict=False))}]


def _value(node: ast.expr) -> Any:
    """Return the value of an argument: a number, None, or a signal as the protocol has it."""
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    assert isinstance(node.func, ast.Name)  # noqa: S101 - as the suite writes it
    values = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    return signal_to_json(_SIGNALS[node.func.id](**values))


def _is_demand(node: ast.AST) -> bool:
    """Return whether a part of an expression cannot do anything but ask for numbers of picks."""
    name = getattr(node, "attr", getattr(node, "id", "picks"))
    return isinstance(node, _DEMANDS) and name in ("picks", "abs", "count")


def still_broken(path: Path, command: Sequence[str], *, timeout_s: float = 5.0) -> str | None:
    """Play a file of `as_lines` to a driver; return what is broken, None if nothing is.

    Raises:
        InputError: if it is no such file, or the driver cannot be started.
        SchedulerError: if the driver fails.
    """
    text = read_text(path, InputError)
    try:
        head, *requests = [json.loads(line) for line in text.splitlines()]
        demand = ast.parse(head["demand"] or "True", mode="eval")
        sentence = f"{head['law']}: {head['broken']}"
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        message = f"{path} is no history that --failures has written"
        raise InputError.at("--replay", message) from error
    if not all(map(_is_demand, ast.walk(demand))):
        raise InputError.at("--replay", f"{path} demands what no law does: {head['demand']}")
    picks: list[int | None] = []
    process = DriverProcess(tuple(command), timeout_s)
    try:
        process.greet()
        lines, was = "", None
        for request in requests:
            is_pick = request["op"] == "pick"
            if request["op"] == "charge" and was == request["stream"]:
                # As the suite does: what is picked is charged, and a turn without a pick is lost.
                request = {**request, "stream": picks[-1]}
            was = request.get("was") if is_pick else None
            if request.get("stream", 0) is not None:
                lines += f"{json.dumps(request, separators=(',', ':'))}\n"
            if is_pick:
                picks.append(process.ask(lines, "pick")["stream"])
                lines = ""
        process.send(lines)
    finally:
        process.finish()
    names = {"__builtins__": {}, "picks": picks, "abs": abs}
    is_kept = eval(compile(demand, str(path), "eval"), names)  # noqa: S307 - only _DEMANDS
    return None if is_kept else sentence

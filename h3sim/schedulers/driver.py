"""Schedulers in other processes: the line protocol `h3sim-conformance/1` and its Python side."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
import tempfile
import time
import weakref
from typing import TYPE_CHECKING, Any

from h3sim.schema.fields import schema_id
from h3sim.schema.output import ObjectType, Property
from h3sim.schema.values import Flag, Integer, Number, OrNone, Text
from h3sim.signals import MAX_URGENCY, BucketPriority, Eps, H2Priority, Rank, StrictPriority
from h3sim.values.errors import InputError, SchedulerError, SchedulerTimeoutError
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from h3sim.signals import Signal

PROTOCOL = "h3sim-conformance/1"
"""Name and version of the protocol, as sent in `hello`."""

_ID, _ID_OR_NULL = Integer(), OrNone(Integer(), none=None)
_SIGNAL_FORMATS: dict[type, tuple[str, ObjectType]] = {
    Eps: (
        "eps",
        ObjectType(
            Property("urgency", Integer(low=0), "0 to 7, 0 first (RFC 9218 § 4.1)"),
            Property("incremental", Flag(), "whether the response may share (RFC 9218 § 4.2)"),
        ),
    ),
    H2Priority: (
        "h2",
        ObjectType(
            Property("weight", Integer(low=0), "1 to 256 (RFC 7540 § 5.3.2)"),
            Property("depends_on", _ID_OR_NULL, "parent's id, null for the root"),
            Property("exclusive", Flag(), "RFC 7540 § 5.3.1"),
        ),
    ),
    BucketPriority: (
        "bucket",
        ObjectType(
            Property("bucket", Integer(low=0), "0 to 63, 63 first"),
            Property("level", Integer(low=1), "3 exclusive, 2 sequential, 1 shared"),
        ),
    ),
    StrictPriority: (
        "strict",
        ObjectType(
            Property("weight", Integer(low=1), "1 to 256"),
            Property("strict", Integer(low=0), "0 to 255, 255 first"),
            Property("depends_on", _ID_OR_NULL, "placeholder's id, null for the root"),
        ),
    ),
    Rank: ("rank", ObjectType(Property("value", Number(), "lower first"))),
}
"""The name and the keys of each type of signal, in the order in which they are written."""

SIGNAL_TYPES: dict[str, type] = {name: kind for kind, (name, _) in _SIGNAL_FORMATS.items()}
"""The types of signals by their names in the protocol."""

_STREAM = Property("stream", _ID, "id of a stream; below 0 of a placeholder")
_FIELD = Property("field", OrNone(Text(), none=None), "text of a field or frame, null without one")
_REQUEST_FORMATS: dict[str, tuple[str, tuple[Property, ...]]] = {
    "hello": ("begins; answered", (Property("protocol", Text(), "this protocol and its version"),)),
    "reset": ("creates a new, empty scheduler; all earlier streams are gone", ()),
    "open": ("opens a stream or placeholder, which is not active", (_STREAM,)),
    "update": ("replaces the signal of an open element, from the next pick on", (_STREAM,)),
    "activate": ("the stream has bytes to send; it may already be active", (_STREAM,)),
    "deactivate": ("the stream has none, or is blocked; it may already be inactive", (_STREAM,)),
    "close": ("the stream is gone, whether it was active or not", (_STREAM,)),
    "charge": (
        "that many bytes of an active stream were sent",
        (_STREAM, Property("bytes", Integer(low=0))),
    ),
    "pick": ("requests the stream to send from; answered, has no side effects", ()),
    "request": ("a request with that Priority field arrives", (_STREAM, _FIELD)),
    "frame": ("a PRIORITY_UPDATE frame with that text arrives", (_STREAM, _FIELD)),
    "response": ("the origin's response has that Priority field", (_STREAM, _FIELD)),
    "priority": ("requests the priority that a stream has now; answered", (_STREAM,)),
}
"""Meaning and keys of each request to a driver; `open` and `update` also have a `signal`.

The last four only go to drivers that say in `hello` that they read fields.
"""

_ANSWER_FORMATS: dict[str, ObjectType] = {
    "hello": ObjectType(
        Property("protocol", Text(), "the same"),
        Property("name", Text(), "of the scheduler", is_optional=True),
        Property("fields", Flag(), "whether it reads fields and frames", is_optional=True),
    ),
    "priority": _SIGNAL_FORMATS[Eps][1],
    "pick": ObjectType(Property("stream", _ID_OR_NULL, "an active stream's id, null without one")),
}
"""The keys of each answer; a driver answers no other request."""


def protocol_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of the protocol, in either direction.

    >>> list(protocol_schema()["$defs"])[:3]
    ['signal', 'hello', 'reset']
    """
    signals = [_tagged("type", name, table.schema()) for name, table in _SIGNAL_FORMATS.values()]
    definitions: dict[str, Any] = {"signal": {"anyOf": [*signals, {"type": "null"}]}}
    for name, (about, keys) in _REQUEST_FORMATS.items():
        table = _tagged("op", name, ObjectType(*keys).schema()) | {"description": about}
        if name in ("open", "update"):
            table["properties"]["signal"] = {"$ref": "#/$defs/signal"}
            table["required"].append("signal")
        definitions[name] = table
    for name, answer in _ANSWER_FORMATS.items():
        definitions[f"{name}-answer"] = answer.schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_id(PROTOCOL),
        "title": "A line between h3sim and the driver of a scheduler",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in definitions if name != "signal"],
        "$defs": definitions,
    }


def _tagged(key: str, name: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object in which *key*, always *name*, comes before other keys."""
    return {
        **table,
        "properties": {key: {"const": name}, **table["properties"]},
        "required": [key, *table["required"]],
    }


def signal_to_json(signal: Signal | None) -> dict[str, Any] | None:
    """Return the JSON form of a signal in the protocol.

    >>> signal_to_json(Eps(urgency=1))
    {'type': 'eps', 'urgency': 1, 'incremental': False}
    """
    if signal is None:
        return None
    name, table = _SIGNAL_FORMATS[type(signal)]
    return {"type": name, **table.write(signal)}


_MAX_ANSWER_BYTES = 1 << 16
"""The longest answer that is read: a faulty driver may print without end."""
_MAX_BATCH_LINES = 1000
"""The events that may wait for the next pick: a bound of memory."""
_MAX_IDLE_PROCESSES = 4
"""The drivers of one command that are kept for later schedulers."""
_MAX_QUOTED_CHARACTERS = 80
"""The part of an invalid answer that is quoted in an error."""
_EXIT_TIMEOUT_S = 1.0
"""The time that a driver has to end after its input was closed; then it is killed."""


class DriverProcess:
    """A running driver process, with its pipes."""

    def __init__(self, command: tuple[str, ...], timeout_s: float) -> None:
        self._name, self._timeout_s = shlex.join(command), timeout_s
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - the command is the user's own
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                process_group=0,  # so that processes started by a wrapper end with it
            )
        except OSError as error:
            self._errors.close()
            message = f"{command[0]} cannot be started: {error.strerror or error}"
            raise InputError.at("command", message) from error
        assert self._popen.stdin is not None  # noqa: S101 - it is a pipe
        assert self._popen.stdout is not None  # noqa: S101 - it is a pipe
        self._in, self._out = self._popen.stdin.fileno(), self._popen.stdout.fileno()
        os.set_blocking(self._in, False)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._out, select.POLLIN)
        self._writable.register(self._in, select.POLLOUT)
        self._unread = b""
        """Output of the driver after its last answer."""
        self.is_usable = True
        """False once the process was stopped."""
        self.pid = self._popen.pid

    def greet(self, protocol: str = PROTOCOL) -> dict[str, Any]:
        """Send `hello`, and return the answer."""
        request = json.dumps({"op": "hello", "protocol": protocol}, separators=(",", ":"))
        answer = self.ask(f"{request}\n", "hello")
        if not isinstance(answer, dict) or answer.get("protocol") != protocol:
            raise self._failed(
                f"answers hello with {_quoted(answer)}, without {{'protocol': {protocol!r}}}"
            )
        return answer

    def ask(self, lines: str, request: str) -> Any:
        """Write *lines*, the last of which is that *request*, and return its answer."""
        self.send(lines)
        if self._unread:
            raise self._failed(f"prints {_quoted(self._unread)}, which answers no request")
        deadline = time.monotonic() + self._timeout_s
        while b"\n" not in self._unread:
            remaining_ms = (deadline - time.monotonic()) * 1000
            if remaining_ms <= 0 or not self._readable.poll(remaining_ms):
                raise self._timed_out(f"does not answer {request} within {self._timeout_s:g} s")
            received = os.read(self._out, _MAX_ANSWER_BYTES)
            if not received:
                raise self._exited()
            self._unread += received
            if len(self._unread) > _MAX_ANSWER_BYTES:
                raise self._failed(f"answers {request} with more than {_MAX_ANSWER_BYTES} bytes")
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            message = f"answers {request} with {_quoted(line)}, which is not JSON"
            raise self._failed(message) from None

    def send(self, lines: str) -> None:
        """Write all *lines*."""
        data = lines.encode()
        deadline = time.monotonic() + self._timeout_s
        try:
            while data:
                try:
                    data = data[os.write(self._in, data) :]
                except BlockingIOError:
                    remaining_ms = max(deadline - time.monotonic(), 0) * 1000
                    if not self._writable.poll(remaining_ms):
                        raise self._timed_out(f"reads nothing for {self._timeout_s:g} s") from None
        except BrokenPipeError:
            raise self._exited() from None

    def failed(self, request: str, answer: Any, expected: str) -> SchedulerError:
        """Return the error for an invalid answer to a request."""
        return self._failed(f"answers {request} with {_quoted(answer)}, not {expected}")

    def _failed(self, failure: str) -> SchedulerError:
        """Stop the driver, and return the error to raise."""
        self.stop()
        return SchedulerError(self._name, failure)

    def _timed_out(self, failure: str) -> SchedulerError:
        """Stop the driver, and return the error to raise."""
        self.stop()
        return SchedulerTimeoutError(self._name, failure)

    def _exited(self) -> SchedulerError:
        """Return the error for a driver that has ended, with the last line of its stderr."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_EXIT_TIMEOUT_S)
        code = self._popen.returncode
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last_line = f": {_quoted(lines[-1])}" if lines else ""
        if code is None:
            failure = "closes its pipes"
        elif code < 0:
            failure = f"is ended by {signal.Signals(-code).name}"
        else:
            failure = f"ends with exit code {code}"
        return self._failed(failure + last_line)

    def stop(self) -> None:
        """Kill the process, and all processes that it started."""
        if not self.is_usable:
            return
        self.is_usable = False
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        self._close_pipes()

    def finish(self) -> None:
        """Close its input, which ends a driver; one that continues is killed."""
        if self.is_usable and self._popen.stdin is not None:
            self._popen.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(_EXIT_TIMEOUT_S)
        self.stop()

    def _close_pipes(self) -> None:
        """Wait for the end of the process, and close its pipes."""
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout, self._errors):
            if pipe is not None:
                pipe.close()


def _shown(value: Any) -> Any:
    r"""Return a value of a driver's answer so that it can be shown on a terminal.

    >>> print(_shown("mine\x1b[31m"), _shown({"by": "a\nb"}), _shown(5))
    mine\x1b[31m {'by': 'a\\nb'} 5
    """
    if isinstance(value, dict):
        return {_shown(key): _shown(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_shown(entry) for entry in value]
    if not isinstance(value, str):
        return value
    text = escape_control(value)
    is_short = len(text) <= _MAX_QUOTED_CHARACTERS
    return text if is_short else f"{text[:_MAX_QUOTED_CHARACTERS]}..."


def _quoted(answer: Any) -> str:
    """Return an answer as a message shows it: bytes decoded, long ones cut."""
    text = answer.decode(errors="replace").strip() if isinstance(answer, bytes) else answer
    quoted = repr(text)
    is_short = len(quoted) <= _MAX_QUOTED_CHARACTERS
    return quoted if is_short else f"{quoted[:_MAX_QUOTED_CHARACTERS]}..."


class _Pool:
    """The idle drivers of one command, kept for later schedulers: starting a process is slow."""

    def __init__(self, command: tuple[str, ...], timeout_s: float) -> None:
        self._command, self._timeout_s = command, timeout_s
        self._idle: list[DriverProcess] = []
        self._owner_pid = os.getpid()
        self._is_shut = False
        atexit.register(self._shut)

    def take(self) -> DriverProcess:
        """Return an idle driver, or a new one."""
        if self._owner_pid != os.getpid():  # after a fork, the idle ones belong to the parent
            self._idle, self._owner_pid = [], os.getpid()
        if self._idle:
            return self._idle.pop()
        process = DriverProcess(self._command, self._timeout_s)
        try:
            process.greet()
        except BaseException:
            process.stop()
            raise
        return process

    def put(self, process: DriverProcess) -> None:
        """Take back a driver whose scheduler is gone."""
        if self._owner_pid != os.getpid():
            return
        if process.is_usable and len(self._idle) < _MAX_IDLE_PROCESSES and not self._is_shut:
            self._idle.append(process)
        else:
            process.finish()

    def _shut(self) -> None:
        """End all drivers at the end of the program, and from then on those that are returned."""
        self._is_shut = True
        self.close()

    def close(self) -> None:
        """End all idle drivers."""
        if self._owner_pid == os.getpid():
            while self._idle:
                self._idle.pop().finish()


_POOLS: dict[tuple[tuple[str, ...], float], _Pool] = {}
"""The pools of this process, by command and timeout."""


class DriverScheduler:
    """A scheduler that *command* runs in another process, over the protocol `h3sim-conformance/1`.

    *command* is a list of arguments, or a shell-like command line. Events are written in batches
    before a pick; an answer that takes longer than *timeout_s* counts as a hang. A copy or
    unpickled instance starts as a new, empty scheduler. Processes are reused by later schedulers of
    the same command; `close_drivers` ends them, as does the end of the program.

    Raises:
        InputError: at the first pick, if the command cannot be started.
        SchedulerError: at a pick, if the driver hangs, exits, or gives an invalid answer.
    """

    def __init__(self, command: Sequence[str] | str, *, timeout_s: float = 5.0) -> None:
        words = shlex.split(command) if isinstance(command, str) else list(command)
        if not words:
            raise InputError.at("command", "must not be empty")
        self.command, self.timeout_s = tuple(words), timeout_s
        self._lines = ['{"op":"reset"}\n']
        """Events that the driver has not received yet."""
        self._encoded: dict[Any, str] = {}
        """The JSON text of each signal so far."""
        self._process: DriverProcess | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy only the command."""
        return _new_driver, (self.command, self.timeout_s)

    def start(self) -> Mapping[str, Any]:
        """Start the command once, as a test, and return its answer to `hello`.

        Texts in it can be shown: invisible characters are escaped, and long texts are cut.
        """
        process = DriverProcess(self.command, self.timeout_s)
        try:
            answer = process.greet()
        finally:
            process.finish()
        return {_shown(key): _shown(value) for key, value in answer.items()}

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""
        self._add(f'{{"op":"open","stream":{stream_id},"signal":{self._encode(signal)}}}\n')

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal."""
        self._add(f'{{"op":"update","stream":{stream_id},"signal":{self._encode(signal)}}}\n')

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        self._add(f'{{"op":"activate","stream":{stream_id}}}\n')

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream."""
        self._add(f'{{"op":"deactivate","stream":{stream_id}}}\n')

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self._add(f'{{"op":"close","stream":{stream_id}}}\n')

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Account for bytes that were sent."""
        self._add(f'{{"op":"charge","stream":{stream_id},"bytes":{n_bytes}}}\n')

    def pick(self) -> int | None:
        """Return the driver's answer."""
        process = self._running_process()
        self._lines.append('{"op":"pick"}\n')
        lines, self._lines = "".join(self._lines), []
        answer = process.ask(lines, "pick")
        if isinstance(answer, dict) and "stream" in answer:
            stream_id = answer["stream"]
            if stream_id is None or type(stream_id) is int:  # `isinstance` would accept true
                return stream_id
        raise process.failed("pick", answer, "{'stream': id or null}")

    def on_request(self, stream_id: int, field: str | None) -> None:
        """Pass on a request with that Priority field; only to a driver that reads fields."""
        self._add_field("request", stream_id, field)

    def on_priority_update(self, stream_id: int, field: str) -> None:
        """Pass on the text of a PRIORITY_UPDATE frame."""
        self._add_field("frame", stream_id, field)

    def on_response(self, stream_id: int, field: str | None) -> None:
        """Pass on the Priority field of the origin's response."""
        self._add_field("response", stream_id, field)

    def priority_of(self, stream_id: int) -> Eps:
        """Return the driver's answer."""
        process = self._running_process()
        self._lines.append(f'{{"op":"priority","stream":{stream_id}}}\n')
        lines, self._lines = "".join(self._lines), []
        answer = process.ask(lines, "priority")
        if isinstance(answer, dict):
            urgency, incremental = answer.get("urgency"), answer.get("incremental")
            if type(urgency) is int and 0 <= urgency <= MAX_URGENCY and type(incremental) is bool:
                return Eps(urgency=urgency, incremental=incremental)
        raise process.failed("priority", answer, "{'urgency': 0 to 7, 'incremental': bool}")

    def _add_field(self, op: str, stream_id: int, field: str | None) -> None:
        # The text last, as the rest has a form that is known.
        self._add(f'{{"op":"{op}","stream":{stream_id},"field":{json.dumps(field)}}}\n')

    def _add(self, line: str) -> None:
        """Queue an event; a full batch is sent without waiting for the next pick."""
        self._lines.append(line)
        if len(self._lines) >= _MAX_BATCH_LINES:
            lines, self._lines = "".join(self._lines), []
            self._running_process().send(lines)

    def _running_process(self) -> DriverProcess:
        """Return the scheduler's process, taken from a pool on first use."""
        if self._process is None:
            key = (self.command, self.timeout_s)
            pool = _POOLS.get(key)
            if pool is None:
                pool = _POOLS[key] = _Pool(*key)
            self._process = pool.take()
            self._finalizer = weakref.finalize(self, pool.put, self._process)
            if _RELEASE_SCOPES:  # within a `drivers_released` block, which ends the process
                _RELEASE_SCOPES[-1].append(weakref.ref(self))
        return self._process

    def release(self) -> None:
        """Return the process to the pool; the scheduler is then empty."""
        if self._process is not None:
            self._finalizer()  # calls `_Pool.put`, now instead of when this object is collected
            self._process, self._lines = None, ['{"op":"reset"}\n']

    def _encode(self, signal: Signal) -> str:
        """Return the JSON text of a signal; schemes have few different ones."""
        text = self._encoded.get(signal)
        if text is None:
            text = json.dumps(signal_to_json(signal), separators=(",", ":"))
            self._encoded[signal] = text
        return text


_RELEASE_SCOPES: list[list[weakref.ref[DriverScheduler]]] = []
"""The schedulers started within each `drivers_released` block, the innermost last."""


@contextlib.contextmanager
def drivers_released() -> Iterator[None]:
    """Release the drivers that were started within the block, at its end.

    An exception keeps the schedulers in its traceback alive, and so would keep their processes.
    """
    _RELEASE_SCOPES.append([])
    try:
        yield
    finally:
        for reference in _RELEASE_SCOPES.pop():
            scheduler = reference()
            if scheduler is not None:
                scheduler.release()


def _new_driver(command: tuple[str, ...], timeout_s: float) -> DriverScheduler:
    """Return an unpickled scheduler; pickle itself passes no keyword arguments."""
    return DriverScheduler(command, timeout_s=timeout_s)


def close_drivers() -> None:
    """End the processes of all drivers whose schedulers are gone."""
    for pool in _POOLS.values():
        pool.close()

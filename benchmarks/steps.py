"""`python -m benchmarks.steps [profile] [controller]`: what a packet over links has Python do.

Counted are the calls of functions that are written in Python, and the instructions of bytecode that
each executes, per row of packets of one load of the reference page at 2 % loss; and, in all, the
calls of functions that are not. No clock is read, so two versions of the code can be compared on a
machine that is not idle. Instructions are not alike: a call takes as long as ten that look
something up, `min` or `max` as forty, and an object of a class of one's own as fifty.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

import h3sim
from benchmarks.options import parser_of
from benchmarks.pages import reference_page
from h3sim import engine
from h3sim.load.run import run_spec
from h3sim.transport import Protocol
from h3sim.transport.congestion.registry import controller_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

__all__ = ["steps"]

_SHOWN = 40


def steps(profile: str = "default", controller: str = "cubic") -> str:
    """Return the table."""
    stack = replace(h3sim.load_profile(profile), cc=controller)
    network, scheme = h3sim.load_network("sander-2mbps-100ms-2pct"), h3sim.load_scheme("rr")
    page = reference_page()

    def load() -> int:
        done = run_spec(
            engine.LoadSpec(
                page,
                scheme=scheme,
                network=network,
                profile=stack,
                protocol=Protocol(stack.protocol),
            )
        )
        return len(done.trace.packet_rows)

    n_rows = load()  # what is imported on use is imported now
    calls, instructions = _counted(load)
    rows = [
        ("all", calls.total() / n_rows, instructions.total() / n_rows),
        ("all that is not Python", _native_calls(load) / n_rows, 0),
    ]
    for code, count in instructions.most_common(_SHOWN):
        name = f"{code.co_filename.rpartition('h3sim/')[2]} {code.co_qualname}"
        rows.append((name, calls[code] / n_rows, count / n_rows))
    title = f"{profile}, {controller}: {n_rows} rows of packets"
    return f"{title}\n\n{tabulate(rows, ('function', 'calls', 'instructions'), floatfmt='.2f')}"


def _counted(load: Callable[[], object]) -> tuple[Counter[CodeType], Counter[CodeType]]:
    """Return how often each function is called, and how many instructions it executes."""
    calls: Counter[CodeType] = Counter()
    instructions: Counter[CodeType] = Counter()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        del argument
        code = frame.f_code
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            calls[code] += 1
        elif event == "opcode":
            instructions[code] += 1
        return trace

    sys.settrace(trace)
    load()
    sys.settrace(None)
    return calls, instructions


def _native_calls(load: Callable[[], object]) -> int:
    """Return how many functions are called that are not written in Python."""
    n_calls = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal n_calls
        del frame, argument
        n_calls += event == "c_call"

    sys.setprofile(note)
    load()
    sys.setprofile(None)
    return n_calls


if __name__ == "__main__":
    parser = parser_of(__doc__)
    names = [profile.name for profile in h3sim.list_profiles()]
    shown = "%(choices)s; default: %(default)s"
    parser.add_argument(
        "profile", nargs="?", default="default", choices=names, metavar="profile", help=shown
    )
    parser.add_argument(
        "controller",
        nargs="?",
        default="cubic",
        choices=controller_names(),
        metavar="controller",
        help=shown,
    )
    options = parser.parse_args()
    print(steps(options.profile, options.controller))

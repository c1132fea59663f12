"""Driver of a scheduler that h3sim ships: `python shipped.py [NAME]`, by default `eps`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from h3sim.http import StreamPriorities
from h3sim.schemes.registry import REGISTRY
from h3sim.signals import BucketPriority, Eps, H2Priority, Rank, StrictPriority

SIGNALS = {
    "eps": Eps,
    "h2": H2Priority,
    "bucket": BucketPriority,
    "strict": StrictPriority,
    "rank": Rank,
}


def signal_of(reported: Any) -> Any:
    """Return the signal that a request carries."""
    if reported is None:
        return None
    kind = SIGNALS[reported.pop("type")]
    return kind(**reported)


def main() -> None:
    """Answer requests until the input ends."""
    name = sys.argv[1] if len(sys.argv) > 1 else "eps"
    make = REGISTRY.named(name)
    scheduler, priorities = make(), StreamPriorities()
    for line in sys.stdin:
        request = json.loads(line)
        match request["op"]:
            case "hello":
                answer = {"protocol": request["protocol"], "name": name, "fields": True}
                print(json.dumps(answer), flush=True)
            case "pick":
                print(f'{{"stream":{json.dumps(scheduler.pick())}}}', flush=True)
            case "reset":
                scheduler, priorities = make(), StreamPriorities()
            case "request":
                priorities.on_request(request["stream"], request["field"])
            case "frame":
                priorities.on_priority_update(request["stream"], request["field"])
            case "response":
                priorities.on_response(request["stream"], request["field"])
            case "priority":
                priority = priorities.priority_of(request["stream"])
                print(json.dumps(asdict(priority)), flush=True)
            case "open" | "update" as op:
                getattr(scheduler, op)(request["stream"], signal_of(request["signal"]))
            case "charge":
                scheduler.charge(request["stream"], request["bytes"])
            case op:
                getattr(scheduler, op)(request["stream"])


if __name__ == "__main__":
    main()

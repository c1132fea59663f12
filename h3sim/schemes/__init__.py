"""Schemes: a client's policy and a server's scheduler, each a row of a table.

It may import browsers, transports, schedulers and all below them. Begin with `halves.py` (what a
client and a server are), then `policy.py` (from a request to its signal).
"""

from h3sim.schemes.halves import Client, Reads, Server, SignalClass, SignalTable
from h3sim.schemes.model import (
    RecordedBy,
    RecordedTreeClass,
    Scheme,
    recorded_class,
    scheme_from_dict,
    scheme_to_dict,
)
from h3sim.schemes.policy import make_policy
from h3sim.schemes.policy_base import Policy
from h3sim.schemes.registry import (
    CustomScheduler,
    SchedulerKind,
    SignalKind,
    new_scheduler,
    scheduler_kind_named,
    scheduler_named,
)
from h3sim.schemes.rules import Arrangement, Placeholder, PriorityClass, Rule

__all__ = [
    "Arrangement",
    "Client",
    "CustomScheduler",
    "Placeholder",
    "Policy",
    "PriorityClass",
    "Reads",
    "RecordedBy",
    "RecordedTreeClass",
    "Rule",
    "SchedulerKind",
    "Scheme",
    "Server",
    "SignalClass",
    "SignalKind",
    "SignalTable",
    "make_policy",
    "new_scheduler",
    "recorded_class",
    "scheduler_kind_named",
    "scheduler_named",
    "scheme_from_dict",
    "scheme_to_dict",
]

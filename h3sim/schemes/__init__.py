"""Schemes: a client's policy and a server's mechanism, each a row of a table."""

from h3sim.schemes.mechanism import Mechanism, OwnMechanism, new_scheduler
from h3sim.schemes.model import (
    Arrangement,
    Placeholder,
    PriorityClass,
    Rule,
    Scheme,
)
from h3sim.schemes.policy import Policy, make_policy
from h3sim.schemes.reader import read_scheme, scheme_from_dict
from h3sim.schemes.registry import mechanism_named, scheduler_named
from h3sim.schemes.writer import scheme_to_dict

__all__ = [
    "Arrangement",
    "Mechanism",
    "OwnMechanism",
    "Placeholder",
    "Policy",
    "PriorityClass",
    "Rule",
    "Scheme",
    "make_policy",
    "mechanism_named",
    "new_scheduler",
    "read_scheme",
    "scheduler_named",
    "scheme_from_dict",
    "scheme_to_dict",
]

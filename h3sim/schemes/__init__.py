"""Schemes: a client's policy and a server's mechanism, each a row of a table."""

from h3sim.schemes.model import (
    Arrangement,
    Mechanism,
    Placeholder,
    PriorityClass,
    Rule,
    Scheme,
)
from h3sim.schemes.policy import Policy, make_policy
from h3sim.schemes.reader import read_scheme, scheme_from_dict

__all__ = [
    "Arrangement",
    "Mechanism",
    "Placeholder",
    "Policy",
    "PriorityClass",
    "Rule",
    "Scheme",
    "make_policy",
    "read_scheme",
    "scheme_from_dict",
]

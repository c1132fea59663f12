"""Writes schemes as documents; reading them back gives equal schemes."""

from __future__ import annotations

import enum
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from h3sim.errors import SchemeError
from h3sim.schemes.kinds import CustomScheduler
from h3sim.schemes.model import Placeholder, PriorityClass
from h3sim.schemes.reader import FORMAT, scheme_from_dict

if TYPE_CHECKING:
    from h3sim.schemes.model import Rule, Scheme

__all__ = ["scheme_to_dict"]

_NAME = "name"


def scheme_to_dict(scheme: Scheme) -> dict[str, Any] | None:
    """Return *scheme* as a scheme file has it; None if no file can say it.

    That is so where it runs on a scheduler that was given as code and not by name.

    >>> from h3sim.schemes import scheme_from_dict
    >>> document = {
    ...     "format": "h3sim-scheme/1", "name": "x", "title": "", "source": "",
    ...     "mechanism": "fifo", "signalling": "server", "classes": {"all": {}},
    ... }
    >>> scheme_to_dict(scheme_from_dict(document)) == document | {"otherwise": "all"}
    True
    """
    document = _document(scheme)
    if isinstance(scheme.mechanism, CustomScheduler):
        try:
            is_same = scheme_from_dict(document) == scheme
        except SchemeError:
            is_same = False
        return document if is_same else None
    return document


def _document(scheme: Scheme) -> dict[str, Any]:
    turn = scheme.turn
    optional: dict[str, Any] = {
        "notes": scheme.notes,
        "caveat": scheme.caveat,
        "knows": list(scheme.knows),
        "rank_by": scheme.rank_by,
        "mixed": scheme.mixed,
        "turn_bytes": None if turn is None else turn.size_bytes,
        "turn_packets": None if turn is None or turn.size_bytes is not None else turn.packets,
        "retransmission": scheme.retransmission,
        "placeholders": [_changed(item, Placeholder) for item in scheme.placeholders],
        "rules": [_rule(rule) for rule in scheme.rules],
    }
    return {
        "format": FORMAT,
        "name": scheme.name,
        "title": scheme.title,
        "source": scheme.source,
        "mechanism": scheme.mechanism.value,
        "signalling": scheme.signalling.value,
        "classes": {item.name: _changed(item, PriorityClass, but=_NAME) for item in scheme.classes},
        "otherwise": scheme.otherwise,
        **{key: _plain(value) for key, value in optional.items() if value or value == 0},
    }


def _changed(item: Any, made_by: type[Any], *, but: str = "") -> dict[str, Any]:
    """Return the fields of *item* that differ from what they usually are."""
    return {
        field.name: _plain(getattr(item, field.name))
        for field in fields(made_by)
        if field.name != but and getattr(item, field.name) != field.default
    }


def _rule(rule: Rule) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "kind": [kind.value for kind in rule.kinds] or None,
        "any_of": list(rule.any_of) or None,
        "root": rule.root,
        "fetchpriority": rule.fetchpriority,
        "first_images": rule.first_images,
    }
    given = {key: _plain(value) for key, value in optional.items() if value is not None}
    return {"class": rule.class_name, **given, **dict(rule.flags)}


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value

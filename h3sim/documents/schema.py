"""Declarations as JSON Schemas."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from h3sim.documents.declared import declared
from h3sim.documents.nested import Named, schema_id

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["merged", "schema_of"]


def schema_of(
    cls: type,
    format_: str,
    *,
    title: str,
    about: str = "",
    rules: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the JSON Schema of files of a format; *rules* add to those of classes, by name."""
    rules = rules or {}
    definitions: dict[str, Any] = {}
    own = _table(cls, definitions, rules)
    own["properties"] = {"format": {"const": format_}, **own["properties"]}
    own["required"] = ["format", *own.get("required", [])]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_id(format_),
        "title": title,
        **({"description": about} if about else {}),
        **own,
        "$defs": definitions,
    }


def _table(
    cls: type,
    definitions: dict[str, Any],
    rules: Mapping[str, Mapping[str, Any]],
    *,
    but: str = "",
) -> dict[str, Any]:
    """Return the schema of a table, and note in *definitions* those of the tables in it."""
    fields = [field for field in declared(cls) if field.key != but]
    properties: dict[str, Any] = {}
    for field in fields:
        for part in _classes(field.kind):
            name = part.__name__.lower()
            if name not in definitions:
                definitions[name] = {}  # it stands before those that it refers to
                but = "name" if isinstance(field.kind, Named) else ""
                definitions[name] = _table(part, definitions, rules, but=but)
        schema = field.kind.schema()
        if field.kind.keys:
            properties |= schema
            continue
        if field.about and "$ref" not in schema:
            schema["description"] = field.about
        if not field.is_needed and field.default not in (None, (), {}):
            schema["default"] = _as_json(field.kind.write(field.default))
        properties[field.key] = schema
    needed = [field.key for field in fields if field.is_needed]
    table: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        **({"required": needed} if needed else {}),
        "properties": properties,
    }
    return merged(table, rules.get(cls.__name__.lower(), {}))


def _classes(kind: Any) -> list[type]:
    """Return the classes of the tables that a value consists of."""
    found = [kind.cls] if hasattr(kind, "cls") and not kind.keys else []
    return found + (_classes(kind.of) if hasattr(kind, "of") else [])


def _as_json(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def merged(table: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return *table*, to which *more* was added, in the tables within it as well."""
    for key, value in more.items():
        known = table.get(key)
        table[key] = merged(known, value) if isinstance(known, dict) else value
    return table

"""Output formats, and JSON Schemas of everything declared.

Documents and their published schemas come of the same keys.

>>> class Row(NamedTuple):
...     scheme: str
...     ratio: float | None
>>> rows = Property("rows", rows_of(Row), "one per scheme")
>>> made_up = OutputSchema("h3sim-made-up/1", "Ratios", rows)
>>> made_up.write({"rows": [Row("rr", None)]})
{'format': 'h3sim-made-up/1', 'rows': [{'scheme': 'rr', 'ratio': None}]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple

from h3sim.schema.fields import Named, fields_of, schema_id
from h3sim.schema.values import Flag, ListOf, Number, OrNone, TableOf, Text, ValueType, Whole


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
    fields = [field for field in fields_of(cls) if field.key != but]
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


TEXT, COUNT, NUMBER = Text(), Whole(low=0), Number()
TEXT_OR_NONE, NUMBER_OR_NONE = OrNone(TEXT, none=None), OrNone(NUMBER, none=None)
_OF_ANNOTATION: Mapping[str, ValueType] = {
    "str": TEXT,
    "str | None": TEXT_OR_NONE,
    "int": COUNT,
    "int | None": OrNone(COUNT, none=None),
    "float": NUMBER,
    "float | None": NUMBER_OR_NONE,
    "bool": Flag(),
    "dict[int, int]": TableOf(COUNT),
}
"""What the columns of rows hold, by how they are annotated."""


class Property(NamedTuple):
    """A key of a document: what *kind* of value it has, and what that is *about*."""

    name: str
    kind: ValueType
    about: str = ""
    of: str = ""
    """The attribute that it comes from, or a path of them ("page.name"); else its own name."""
    is_optional: bool = False
    """Whether it is left out where there is none of it, or nothing in it."""

    def found_in(self, value: Any) -> Any:
        """Return what *value* holds for it: a table under its name, an object as an attribute."""
        if isinstance(value, Mapping):
            return value.get(self.name) if self.is_optional else value[self.name]
        if self.is_optional:
            return getattr(value, self.of or self.name, None)
        return attrgetter(self.of or self.name)(value)


VERSION = Property("version", TEXT, "of h3sim")


class ObjectType(ValueType):
    """A table with these keys, in this order."""

    def __init__(self, *entries: Property) -> None:
        self.entries = entries

    def write(self, value: Any, **given: Any) -> dict[str, Any]:
        """Return the table that describes *value*; *given* is by key what that does not have."""
        table: dict[str, Any] = {}
        for key in self.entries:
            found = given[key.name] if key.name in given else key.found_in(value)
            is_nothing = found is None or (isinstance(found, Sized) and not len(found))
            if key.name in given or not (key.is_optional and is_nothing):
                table[key.name] = key.kind.write(found)
        return table

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": self.properties(),
            "required": [key.name for key in self.entries if not key.is_optional],
            "additionalProperties": False,
        }

    def properties(self) -> dict[str, Any]:
        """Return the schema of each key."""
        return {
            key.name: key.kind.schema() | ({"description": key.about} if key.about else {})
            for key in self.entries
        }


class OutputSchema(ObjectType):
    """A format of documents: its name, a title, and its keys; elsewhere a document in another."""

    def __init__(self, name: str, title: str, *entries: Property) -> None:
        super().__init__(*entries)
        self.name, self.title = name, title

    def write(self, value: Any, **given: Any) -> dict[str, Any]:
        return {"format": self.name, **super().write(value, **given)}

    def schema(self) -> dict[str, Any]:
        return {"$ref": schema_id(self.name)}

    def with_keys(self, *more: Property) -> OutputSchema:
        """Return the same format with *more* keys behind its own."""
        return OutputSchema(self.name, self.title, *self.entries, *more)

    def published(self) -> dict[str, Any]:
        """Return the JSON Schema of its documents."""
        table = super().schema()
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": schema_id(self.name),
            "title": self.title,
            **table,
            "properties": {"format": {"const": self.name}, **table["properties"]},
            "required": ["format", *table["required"]],
        }


def row_of(row: type, **kinds: ValueType) -> ObjectType:
    """Return a table with the columns of a class of rows; *kinds* are of those that say it not."""
    columns = row.__annotations__.items()
    return ObjectType(
        *(Property(name, kinds.get(name) or _OF_ANNOTATION[_written(of)]) for name, of in columns)
    )


def rows_of(row: type, **kinds: ValueType) -> ListOf:
    """Return a list of rows, as `row_of` has each."""
    return ListOf(row_of(row, **kinds), "rows")


def _written(annotation: Any) -> str:
    """Return an annotation as it stands in the code: named tuples keep a reference to that."""
    return str(getattr(annotation, "__forward_arg__", annotation))

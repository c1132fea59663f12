"""Output formats, and the JSON Schemas of all declared formats.

Documents and their published schemas are generated from the same declarations.

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
from h3sim.schema.values import Flag, Integer, ListOf, Number, OrNone, TableOf, Text, ValueType


def schema_of(
    cls: type,
    format_: str,
    *,
    title: str,
    about: str = "",
    rules: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the JSON Schema of the file format that the dataclass *cls* declares.

    *rules* are additions to the schemas of tables, by the name of their class in lower case.
    """
    rules = rules or {}
    definitions: dict[str, Any] = {}
    table = _table_schema(cls, definitions, rules)
    description = {"description": about} if about else {}
    return {**_document_schema(format_, title, table, description), "$defs": definitions}


def _document_schema(
    format_: str, title: str, table: dict[str, Any], more: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the schema of a format's documents: that of a *table* with the key "format" added."""
    table["properties"] = {"format": {"const": format_}, **table["properties"]}
    table["required"] = ["format", *table.get("required", [])]
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "$id": schema_id(format_), "title": title, **more, **table}


def _table_schema(
    cls: type,
    definitions: dict[str, Any],
    rules: Mapping[str, Mapping[str, Any]],
    *,
    omitted_key: str = "",
) -> dict[str, Any]:
    """Return the schema of a table, and add those of its nested tables to *definitions*."""
    fields = [field for field in fields_of(cls) if field.key != omitted_key]
    properties: dict[str, Any] = {}
    for field in fields:
        for table_class in _table_classes(field.kind):
            name = table_class.__name__.lower()
            if name not in definitions:
                definitions[name] = {}  # reserves its position before those it refers to
                # The name of a named table is its key in the containing table.
                omitted_key = "name" if isinstance(field.kind, Named) else ""
                definitions[name] = _table_schema(
                    table_class, definitions, rules, omitted_key=omitted_key
                )
        schema = field.kind.schema()
        if field.kind.keys:  # inline: the schema is one of several properties
            properties |= schema
            continue
        if field.about and "$ref" not in schema:
            schema["description"] = field.about
        if not field.is_needed and field.default not in (None, (), {}):
            default = field.kind.write(field.default)
            schema["default"] = default.value if isinstance(default, Enum) else default
        properties[field.key] = schema
    needed = [field.key for field in fields if field.is_needed]
    table: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        **({"required": needed} if needed else {}),
        "properties": properties,
    }
    return merged(table, rules.get(cls.__name__.lower(), {}))


def _table_classes(kind: Any) -> list[type]:
    """Return the classes of the tables in a field type."""
    classes = [kind.cls] if hasattr(kind, "cls") and not kind.keys else []
    return classes + (_table_classes(kind.of) if hasattr(kind, "of") else [])


def merged(table: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merge *more* into *table* recursively, and return *table*."""
    for key, value in more.items():
        known = table.get(key)
        table[key] = merged(known, value) if isinstance(known, dict) else value
    return table


TEXT, COUNT, NUMBER = Text(), Integer(low=0), Number()
TEXT_OR_NONE, NUMBER_OR_NONE = OrNone(TEXT, none=None), OrNone(NUMBER, none=None)
_TYPE_BY_ANNOTATION: Mapping[str, ValueType] = {
    "str": TEXT,
    "str | None": TEXT_OR_NONE,
    "int": COUNT,
    "int | None": OrNone(COUNT, none=None),
    "float": NUMBER,
    "float | None": NUMBER_OR_NONE,
    "bool": Flag(),
    "dict[int, int]": TableOf(COUNT),
}
"""Field type of a row's column, by its annotation in the row class."""


class Property(NamedTuple):
    """Key of a document, with its field type and description."""

    name: str
    kind: ValueType
    about: str = ""
    of: str = ""
    """Attribute, or path of attributes ("page.name"), that has its value; default: the key."""
    is_optional: bool = False
    """True if documents leave it out when it is None or empty."""

    def found_in(self, value: Any) -> Any:
        """Return its value in what a document describes: by key in a dict, by attribute else."""
        if isinstance(value, Mapping):
            return value.get(self.name) if self.is_optional else value[self.name]
        if self.is_optional:
            return getattr(value, self.of or self.name, None)
        return attrgetter(self.of or self.name)(value)


VERSION = Property("version", TEXT, "version of h3sim")


class ObjectType(ValueType):
    """Field type of documents: a table with these keys in this order."""

    def __init__(self, *entries: Property) -> None:
        self.entries = entries

    def write(self, value: Any, **given: Any) -> dict[str, Any]:
        """Return the table that describes *value*; *given* overrides the values of some keys."""
        table: dict[str, Any] = {}
        for key in self.entries:
            found = given[key.name] if key.name in given else key.found_in(value)
            is_empty = found is None or (isinstance(found, Sized) and not len(found))
            if key.name in given or not (key.is_optional and is_empty):
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
    """Output format: name, title and keys; also the field type of a document inside another."""

    def __init__(self, name: str, title: str, *entries: Property) -> None:
        super().__init__(*entries)
        self.name, self.title = name, title

    def write(self, value: Any, **given: Any) -> dict[str, Any]:
        return {"format": self.name, **super().write(value, **given)}

    def schema(self) -> dict[str, Any]:
        return {"$ref": schema_id(self.name)}

    def with_keys(self, *more: Property) -> OutputSchema:
        """Return the same format with *more* keys appended."""
        return OutputSchema(self.name, self.title, *self.entries, *more)

    def published(self) -> dict[str, Any]:
        """Return the JSON Schema of its documents."""
        return _document_schema(self.name, self.title, super().schema(), {})


def row_of(row: type, **kinds: ValueType) -> ObjectType:
    """Return a table type with the columns of a row class; *kinds* override annotations."""
    entries = []
    for name, annotation in row.__annotations__.items():
        # NamedTuple turns annotations that are text into forward references.
        source = str(getattr(annotation, "__forward_arg__", annotation))
        entries.append(Property(name, kinds.get(name) or _TYPE_BY_ANNOTATION[source]))
    return ObjectType(*entries)


def rows_of(row: type, **kinds: ValueType) -> ListOf:
    """Return a list type of rows, each as by `row_of`."""
    return ListOf(row_of(row, **kinds), "rows")

"""Tables in tables: fields that hold values of other declared classes, or numbers by paths."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim.documents.declared import declared, keys_of, read_table, write_table
from h3sim.documents.refused import RefusedError, TooManyProblemsError, collected, joined
from h3sim.documents.shown import shown
from h3sim.documents.values import Number, TableOf, ValueType
from h3sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Embedded", "Inline", "Named", "NumbersByPath", "Table", "schema_id"]


def schema_id(format_: str) -> str:
    """Return the name under which the schema of a format is known."""
    return f"urn:h3sim:schema:{format_.replace('/', '-')}"


class Table(ValueType):
    """A table of a file that describes a value of another declared class.

    With *is_kept* what can be made of a wrong table is kept, so that the rules of the table around
    it can be held against it; else the stand-in of the field takes its place.
    """

    def __init__(self, cls: type, *, noun: str = "a table", is_kept: bool = False) -> None:
        self.cls, self._noun, self._is_kept = cls, noun, is_kept

    def accept(self, value: Any) -> Any:
        if isinstance(value, self.cls):
            return value
        raise RefusedError(f"must be a {self.cls.__name__}, is {shown(value)}")

    def read(self, given: Any) -> Any:
        try:
            return read_table(self.cls, given, noun=self._noun)
        except RefusedError as refused:
            is_whole = self._is_kept or isinstance(refused, TooManyProblemsError)
            raise (refused if is_whole else RefusedError(refused.problems)) from refused

    def write(self, value: Any) -> dict[str, Any]:
        return write_table(value)

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.cls.__name__.lower()}"}


class Inline(Table):
    """A value whose keys stand among those of the table that has it."""

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """The keys of the value's own fields."""
        return keys_of(self.cls)

    def schema(self) -> dict[str, Any]:
        return {field.key: field.kind.schema() for field in declared(self.cls)}


class Named(ValueType):
    """A table of tables, each of which describes a value whose `name` is its key."""

    stand_in = ()

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def accept(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, list | tuple) and all(isinstance(item, self.cls) for item in value):
            return tuple(value)
        raise RefusedError(f"must be a list of {self.cls.__name__}, is {shown(value)}")

    def read(self, given: Any) -> tuple[Any, ...]:
        if not isinstance(given, Mapping):
            raise RefusedError(f"must be a table, is {shown(given)}")
        values, problems = collected(
            (name, partial(read_table, self.cls, name=name), entry) for name, entry in given.items()
        )
        if problems:
            raise RefusedError(problems, tuple(values))
        return tuple(values)

    def write(self, value: Any) -> dict[str, Any]:
        tables = {item.name: write_table(item) for item in value}
        for table in tables.values():
            table.pop("name", None)
        return tables

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": {"$ref": f"#/$defs/{self.cls.__name__.lower()}"},
        }


class Embedded(ValueType):
    """A whole document of another format, which *read* and *write* know."""

    def __init__(
        self, format_: str, read: Callable[..., Any], write: Callable[[Any], dict[str, Any] | None]
    ) -> None:
        self._format, self._read, self._write = format_, read, write

    def accept(self, value: Any) -> Any:
        return value

    def read(self, given: Any) -> Any:
        try:
            return self._read(given, source="")
        except InputError as error:
            raise RefusedError(error.problems) from error

    def write(self, value: Any) -> dict[str, Any] | None:
        return self._write(value)

    def schema(self) -> dict[str, Any]:
        return {"$ref": schema_id(self._format)}


class NumbersByPath(ValueType):
    """Numbers in a table and in tables within it; inside a plain table, by their paths.

    >>> NumbersByPath().read({"pages": 43, "all": {"rr": 1, "fifo": 1.27}})
    {'pages': 43, 'all.rr': 1, 'all.fifo': 1.27}
    """

    def accept(self, value: Any) -> dict[str, float]:
        found = TableOf(_NumberOrMore()).accept(value)
        return {
            joined(key, below): number
            for key, one in found.items()
            for below, number in (one if isinstance(one, dict) else {"": one}).items()
        }

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": ["number", "object"]}}


class _NumberOrMore(Number):
    def accept(self, value: Any) -> Any:
        return NumbersByPath().accept(value) if isinstance(value, dict) else super().accept(value)

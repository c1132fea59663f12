"""File formats as dataclasses: each field declares what it accepts, nested tables included.

A field's metadata, made by `declare`, has its key, type and description. They drive validation on
construction, reading with all errors at once, writing, and (in `h3sim.schema.output`) the published
schema and the tables of the documentation.

>>> @dataclasses.dataclass(frozen=True, kw_only=True)
... class Link:
...     rate_bps: int = dataclasses.field(metadata=declare(MegabitsPerSecond(low=1), "the rate"))
...     delay_ns: int = dataclasses.field(
...         default=0, metadata=declare(Milliseconds(low=0), "one way")
...     )
...
...     def __post_init__(self):
...         validate(self, InputError)
>>> read_table(Link, {"rate_mbps": 2, "delay_ms": 1.5})
Link(rate_bps=2000000, delay_ns=1500000)
>>> write_table(Link(rate_bps=2_000_000))
{'rate_mbps': 2.0}
>>> read_document(Link, {"delay_ms": -1, "loss": 0}, InputError, source="a.toml")
Traceback (most recent call last):
...
h3sim.values.errors.InputError: a.toml: loss: unknown key; allowed are rate_mbps, delay_ms
a.toml: rate_mbps: is missing
a.toml: delay_ms: must not be negative, is -1
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from h3sim.schema.errors import (
    ABSENT,
    MAX_PROBLEMS,
    RejectedValueError,
    TooManyProblemsError,
    collected,
    format_value,
    joined,
    unknown_key,
)
from h3sim.schema.values import MegabitsPerSecond, Milliseconds, Number, OrNone, TableOf, ValueType
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.table import RichDisplay, Table

ValueT = TypeVar("ValueT")
_UNIT_SUFFIXES = ((Milliseconds, "_ns", "_ms"), (MegabitsPerSecond, "_bps", "_mbps"))
"""Field types with a unit: the suffix of an attribute's name, and that of its key in files."""
_MAX_COMPARED_KEYS = 50
"""Unknown keys of a table for which the nearest are searched."""
_METADATA_KEY = "h3sim"
"""Key of a `FieldSpec` in the metadata of a dataclass's field."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """Declared field of a format; `declare` explains the arguments it shares."""

    kind: ValueType
    about: str
    used_by: str
    key: str
    stand_in: Any
    is_premise: bool
    attribute: str = ""
    default: Any = ABSENT
    keys: tuple[str, ...] = dataclasses.field(init=False)
    """Keys of a file that the field uses."""
    is_needed: bool = dataclasses.field(init=False)
    """True if a file must have its key. The value of an inline field is read even without keys."""
    is_optional: bool = dataclasses.field(init=False)
    """True if it has a default."""

    def __post_init__(self) -> None:
        is_required = self.default is ABSENT
        object.__setattr__(self, "keys", self.kind.keys or (self.key,))
        object.__setattr__(self, "is_needed", is_required and not self.kind.keys)
        object.__setattr__(self, "is_optional", not is_required)

    def given_in(self, table: Mapping[str, Any]) -> Any:
        """Return its value in a file's table, or ABSENT."""
        if not self.kind.keys:
            return table.get(self.key, ABSENT)
        return {key: table[key] for key in self.kind.keys if key in table} or ABSENT


def declare(
    kind: ValueType,
    about: str = "",
    *,
    used_by: str = "",
    key: str = "",
    stand_in: Any = ABSENT,
    is_premise: bool = False,
) -> dict[str, FieldSpec]:
    """Return the metadata of a field of type *kind*.

    *about* and *used_by* are documentation. The key in a file is *key*, or the name with the unit
    of files (`delay_ms` for `delay_ns`); *stand_in* replaces a wrong value while the rest is
    checked; if a field that *is_premise* is wrong, the rules in `issues()` are not checked.
    """
    spec = FieldSpec(
        kind=kind, about=about, used_by=used_by, key=key, stand_in=stand_in, is_premise=is_premise
    )
    return {_METADATA_KEY: spec}


def fields_of(cls: type) -> tuple[FieldSpec, ...]:
    """Return the declared fields of a dataclass in order."""
    if cls not in _FIELDS_BY_CLASS:
        _FIELDS_BY_CLASS[cls] = tuple(_declared_fields(cls))
    return _FIELDS_BY_CLASS[cls]


_FIELDS_BY_CLASS: dict[type, tuple[FieldSpec, ...]] = {}
"""Cache of `fields_of`, which is called for each constructed value."""


def _declared_fields(cls: type) -> Iterator[FieldSpec]:
    for field in dataclasses.fields(cls):
        declared: FieldSpec | None = field.metadata.get(_METADATA_KEY)
        if declared is None:  # an attribute that files do not have
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        is_needed = default is dataclasses.MISSING
        stand_in = declared.stand_in
        if stand_in is ABSENT:
            stand_in = declared.kind.stand_in if is_needed else default
        yield dataclasses.replace(
            declared,
            attribute=field.name,
            key=declared.key or _default_key(field.name, declared.kind),
            default=ABSENT if is_needed else default,
            stand_in=stand_in,
        )


def _default_key(name: str, kind: ValueType) -> str:
    """Return the key of an attribute: its name, with the unit of files."""
    for type_with_unit, suffix, suffix_in_files in _UNIT_SUFFIXES:
        if isinstance(kind, type_with_unit) and name.endswith(suffix):
            return name.removesuffix(suffix) + suffix_in_files
    return name


def keys_of(cls: type) -> tuple[str, ...]:
    """Return the allowed keys of a table."""
    return tuple(key for field in fields_of(cls) for key in field.keys)


# Checking


def validate(value: Any, error: type[InputError], source: str = "") -> None:
    """Validate a value during construction, and convert its fields to their types.

    A class may check rules between its fields in `issues()`.

    Raises:
        error: listing every wrong field and violated rule.
    """
    problems = validation_errors(value)
    if problems:
        raise error(problems, source if isinstance(source, str) else format_value(source))


def validation_errors(value: Any) -> list[ValidationIssue]:
    """Validate and convert like `validate`, but return the problems instead of raising."""
    problems: list[ValidationIssue] = []
    stand_ins: dict[str, Any] = {}
    for field in fields_of(type(value)):
        given = getattr(value, field.attribute)
        # A shortcut: most fields of thousands of resources have their defaults. By identity, since
        # a value that only equals the default may be of another type (True for 1).
        if given is field.default:
            continue
        if given is None and not isinstance(field.kind, OrNone):
            if field.default is not None:
                problems.append(ValidationIssue(key=field.key, message="must be given, is None"))
                stand_ins[field.attribute] = field.stand_in
            continue
        try:
            accepted = field.kind.accept(given)
        except RejectedValueError as refused:
            problems += refused.under("" if field.kind.keys else field.key)
            stand_ins[field.attribute] = _stand_in(field, refused)
        else:
            if accepted is not given:
                # The value is frozen, but this is part of its construction.
                object.__setattr__(value, field.attribute, accepted)
    if stand_ins:  # rules need valid values, but *value* itself keeps what was given
        value = copy.copy(value)
        for attribute, stand_in in stand_ins.items():
            object.__setattr__(value, attribute, stand_in)
    return _with_issues(value, problems)


def _stand_in(field: FieldSpec, refused: RejectedValueError) -> Any:
    return field.stand_in if refused.stand_in is ABSENT else refused.stand_in


def _with_issues(value: Any, problems: list[ValidationIssue]) -> list[ValidationIssue]:
    """Return *problems*, and violated rules of *value* about keys without a problem."""
    issues = getattr(value, "issues", None)
    if issues is None:
        return problems
    if not problems:
        return [*issues()]
    reported = {problem.key for problem in problems}
    if any(field.is_premise and field.key in reported for field in fields_of(type(value))):
        return problems
    return problems + [problem for problem in issues() if problem.key not in reported]


# Reading


def read_document(
    cls: type[ValueT],
    document: object,
    error: type[InputError],
    *,
    source: str,
    format_: str = "",
    noun: str = "a table",
    also: Callable[[ValueT], Iterable[ValidationIssue]] = lambda _: (),
) -> ValueT:
    """Return the value that a parsed file describes.

    *noun* names a table of this kind in messages. If there are errors, *also* yields further ones
    of the value or its stand-in, which would otherwise be found only after the first are fixed.

    Raises:
        error: listing every error in it.
    """
    problems: list[ValidationIssue] = []
    table: Any = document
    if format_ and isinstance(document, Mapping):
        if document.get("format") != format_:
            found = format_value(document["format"]) if "format" in document else "nothing"
            message = f"must be {format_!r}, is {found}"
            problems.append(ValidationIssue(key="format", message=message))
        table = _Without(document, "format")
    try:
        value = read_table(cls, table, noun=noun)
    except TooManyProblemsError as refused:
        raise error([*problems, *refused.problems], source) from None
    except RejectedValueError as refused:
        problems += refused.problems
        value = refused.stand_in
    if problems:
        raise error([*problems, *also(value)], source)
    return value


class _Without(dict[str, Any]):
    """Table without one of its keys; its duplicate keys are still in `twice`."""

    def __init__(self, table: Mapping[str, Any], key: str) -> None:
        super().__init__((name, value) for name, value in table.items() if name != key)
        self.twice = getattr(table, "twice", ())


def read_table(cls: type[ValueT], given: object, *, noun: str = "a table", **fixed: Any) -> ValueT:
    """Return the value that a table describes; *fixed* are attributes without keys.

    Raises:
        RejectedValueError: listing every error in it, with a stand-in.
    """
    if not isinstance(given, Mapping):
        stand_ins = {field.attribute: field.stand_in for field in fields_of(cls)}
        stand_in = _unchecked(cls, stand_ins | fixed)
        raise RejectedValueError(f"must be {noun}, is {format_value(given)}", stand_in)
    fields = fields_of(cls)
    if fixed:
        fields = tuple(field for field in fields if field.attribute not in fixed)
    problems = list(_key_problems(given, fields))
    values: dict[str, Any] = dict(fixed)
    for field in fields:
        found = field.given_in(given) if field.kind.keys else given.get(field.key, ABSENT)
        if found is ABSENT and field.is_optional:
            continue  # the class sets the default
        if found is ABSENT and field.is_needed:
            problems.append(ValidationIssue(key=field.key, message="is missing"))
            values[field.attribute] = field.stand_in
            continue
        try:
            # If all keys of an inline value are missing, its class reports those that it requires.
            values[field.attribute] = field.kind.read({} if found is ABSENT else found)
        except RejectedValueError as refused:
            problems += refused.under("" if field.kind.keys else field.key)
            if isinstance(refused, TooManyProblemsError):
                raise TooManyProblemsError(problems) from refused
            values[field.attribute] = _stand_in(field, refused)
    if not problems:
        try:
            return cls(**values)
        except InputError as error:
            raise RejectedValueError(error.problems, _unchecked(cls, values)) from error
    stand_in = _unchecked(cls, values)
    raise RejectedValueError(_with_issues(stand_in, problems), stand_in)


def _key_problems(
    given: Mapping[str, Any], fields: Iterable[FieldSpec]
) -> Iterable[ValidationIssue]:
    """Yield duplicated and unknown keys of a table."""
    for name in itertools.islice(getattr(given, "twice", ()), MAX_PROBLEMS):
        yield ValidationIssue(key=name, message="is duplicated in one object")
    known = [key for field in fields for key in field.keys]
    unknown = [name for name in given if name not in known]
    if len(unknown) > MAX_PROBLEMS:
        message = f"{len(unknown):,} unknown keys, the first of which follow"
        yield ValidationIssue(key="", message=message)
    for number, name in enumerate(unknown[:MAX_PROBLEMS]):
        key = name if isinstance(name, str) else format_value(name)
        # To compare each of thousands with all keys would take seconds.
        near = name if number < _MAX_COMPARED_KEYS else None
        yield ValidationIssue(key=key, message=unknown_key(near, known))


def _unchecked(cls: type[ValueT], values: Mapping[str, Any]) -> ValueT:
    """Return a stand-in for a wrong value, so that the containing value can be checked."""
    stand_in = object.__new__(cls)
    defaults = {
        field.attribute: field.stand_in if field.default is ABSENT else field.default
        for field in fields_of(cls)
    }
    # Attributes that files do not have keep their defaults.
    others = {
        field.name: field.default
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
        if field.default is not dataclasses.MISSING
    }
    for attribute, value in (others | defaults | dict(values)).items():
        object.__setattr__(stand_in, attribute, value)
    return stand_in


# Writing


def write_table(value: Any, *, include_defaults: bool = False) -> dict[str, Any]:
    """Return the table of a file that describes *value*.

    Fields equal to their default are omitted. With *include_defaults* only those are whose default
    None cannot be written.
    """
    table: dict[str, Any] = {}
    for field in fields_of(type(value)):
        item = getattr(value, field.attribute)
        can_write = item is not None or isinstance(field.kind, OrNone)
        is_default = not field.is_needed and item == field.default
        if is_default and not (include_defaults and can_write):
            continue
        written = field.kind.write(item)
        if field.kind.keys:
            table |= written
        else:
            table[field.key] = written
    return table


class FileDisplay(RichDisplay):
    """Value of a file, which a notebook shows as a table of the keys that are set."""

    def _display(self) -> Iterable[str | Table[Any]]:
        yield repr(self)
        keys = _dotted(write_table(self), but=("name", "title"))
        yield Table(("key", "value"), keys)


def _dotted(table: Mapping[str, Any], *, but: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the keys of *table* and of the tables within, with dots between them."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", each) for name, each in _dotted(value))
        elif key not in but:
            yield key, value


def schema_id(format_: str) -> str:
    """Return the URN of a format's schema."""
    return f"urn:h3sim:schema:{format_.replace('/', '-')}"


class Record(ValueType):
    """Field type: a table that describes a value of another declared class.

    With *keeps_partial*, a wrong table yields a partial value, so that rules of the containing
    table can be checked; otherwise the stand-in of the field replaces it.
    """

    def __init__(self, cls: type, *, noun: str = "a table", keeps_partial: bool = False) -> None:
        self.cls, self._noun, self._keeps_partial = cls, noun, keeps_partial

    def accept(self, value: Any) -> Any:
        if isinstance(value, self.cls):
            return value
        raise RejectedValueError(f"must be a {self.cls.__name__}, is {format_value(value)}")

    def read(self, given: Any) -> Any:
        try:
            return read_table(self.cls, given, noun=self._noun)
        except RejectedValueError as refused:
            if self._keeps_partial or isinstance(refused, TooManyProblemsError):
                raise
            raise RejectedValueError(refused.problems) from refused  # without a stand-in

    def write(self, value: Any) -> dict[str, Any]:
        return write_table(value)

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.cls.__name__.lower()}"}


class Inline(Record):
    """Field type: a value whose keys are merged into the containing table."""

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """Keys of the value's fields."""
        return keys_of(self.cls)

    def schema(self) -> dict[str, Any]:
        return {field.key: field.kind.schema() for field in fields_of(self.cls)}


class Named(ValueType):
    """Field type: a table of tables, each describing a value whose `name` is its key."""

    stand_in = ()

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def accept(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, list | tuple) and all(isinstance(item, self.cls) for item in value):
            return tuple(value)
        raise RejectedValueError(f"must be a list of {self.cls.__name__}, is {format_value(value)}")

    def read(self, given: Any) -> tuple[Any, ...]:
        if not isinstance(given, Mapping):
            raise RejectedValueError(f"must be a table, is {format_value(given)}")
        values, problems = collected(
            (name, partial(read_table, self.cls, name=name), entry) for name, entry in given.items()
        )
        if problems:
            raise RejectedValueError(problems, tuple(values))
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
    """Field type: a document of another format, handled by *read* and *write*."""

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
            raise RejectedValueError(error.problems) from error

    def write(self, value: Any) -> dict[str, Any] | None:
        return self._write(value)

    def schema(self) -> dict[str, Any]:
        return {"$ref": schema_id(self._format)}


class NumbersByPath(ValueType):
    """Field type: numbers in nested tables; in Python a flat dict by path.

    >>> NumbersByPath().read({"pages": 43, "all": {"rr": 1, "fifo": 1.27}})
    {'pages': 43, 'all.rr': 1, 'all.fifo': 1.27}
    """

    def accept(self, value: Any) -> dict[str, float]:
        numbers = TableOf(_NumberOrTable()).accept(value)
        return {
            joined(key, below): number
            for key, item in numbers.items()
            for below, number in (item if isinstance(item, dict) else {"": item}).items()
        }

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": {"type": ["number", "object"]}}


class _NumberOrTable(Number):
    def accept(self, value: Any) -> Any:
        return NumbersByPath().accept(value) if isinstance(value, dict) else super().accept(value)

"""One declaration per file format: dataclasses whose fields say what may stand in a file.

A field's metadata, made by `says`, holds its key, its type and a sentence about it. From that come
the checks of a value on construction, reading with all mistakes at once, writing, and (in
`h3sim.documents.schema`) the published schema and the tables of the documentation.

>>> @dataclasses.dataclass(frozen=True, kw_only=True)
... class Link:
...     rate_bps: int = dataclasses.field(metadata=says(MegabitsPerSecond(low=1), "the rate"))
...     delay_ns: int = dataclasses.field(default=0, metadata=says(Milliseconds(low=0), "one way"))
...
...     def __post_init__(self):
...         settle(self, InputError)
>>> read_table(Link, {"rate_mbps": 2, "delay_ms": 1.5})
Link(rate_bps=2000000, delay_ns=1500000)
>>> write_table(Link(rate_bps=2_000_000))
{'rate_mbps': 2.0}
>>> read_document(Link, {"delay_ms": -1, "loss": 0}, InputError, source="a.toml")
Traceback (most recent call last):
...
h3sim.errors.InputError: a.toml: loss: unknown key; allowed are rate_mbps, delay_ms
a.toml: rate_mbps: is missing
a.toml: delay_ms: must not be negative, is -1
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from h3sim.documents.refused import (
    ABSENT,
    MAX_PROBLEMS,
    RefusedError,
    TooManyProblemsError,
)
from h3sim.documents.shown import listed, shown
from h3sim.documents.values import MegabitsPerSecond, Milliseconds, OrNone, ValueType
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    *("Declared", "declared", "keys_of", "read_document", "read_table", "says", "settle"),
    *("settled", "write_table"),
]

ValueT = TypeVar("ValueT")
_UNITS = ((Milliseconds, "_ns", "_ms"), (MegabitsPerSecond, "_bps", "_mbps"))
_METADATA = "h3sim"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A field of a format: where it stands in a value and in a file, and what it may hold."""

    attribute: str
    key: str
    kind: ValueType
    about: str
    used_by: str
    default: Any
    stand_in: Any
    is_premise: bool
    keys: tuple[str, ...] = dataclasses.field(init=False)
    """The keys of a file that it takes up."""
    is_needed: bool = dataclasses.field(init=False)
    """Whether a file must have it."""
    is_optional: bool = dataclasses.field(init=False)
    """Whether a file may do without, and nothing is to be looked up then."""

    def __post_init__(self) -> None:
        is_required = self.default is ABSENT
        object.__setattr__(self, "keys", self.kind.keys or (self.key,))
        object.__setattr__(self, "is_needed", is_required and not self.kind.keys)
        object.__setattr__(self, "is_optional", not is_required)

    def given_in(self, table: Mapping[str, Any]) -> Any:
        """Return what a file says of it, or ABSENT."""
        if not self.kind.keys:
            return table.get(self.key, ABSENT)
        return {key: table[key] for key in self.kind.keys if key in table} or ABSENT


class _Said(NamedTuple):
    kind: ValueType
    about: str
    used_by: str
    key: str
    stand_in: Any
    is_premise: bool


def says(
    kind: ValueType,
    about: str = "",
    *,
    used_by: str = "",
    key: str = "",
    stand_in: Any = ABSENT,
    is_premise: bool = False,
) -> dict[str, _Said]:
    """Return the metadata of a field that holds a *kind* of value.

    *about*, and what it is *used_by*, are for people. Its key in a file is *key*, or its name with
    the unit of files (`delay_ms` for `delay_ns`); *stand_in* takes the place of a wrong value
    while the rest is checked; where one that *is_premise* is wrong, no rule is asked.
    """
    return {
        _METADATA: _Said(
            kind=kind,
            about=about,
            used_by=used_by,
            key=key,
            stand_in=stand_in,
            is_premise=is_premise,
        )
    }


def declared(cls: type) -> tuple[Declared, ...]:
    """Return the declared fields of a dataclass, in their order."""
    if cls not in _DECLARED:
        _DECLARED[cls] = _declared(cls)
    return _DECLARED[cls]


_DECLARED: dict[type, tuple[Declared, ...]] = {}


def _declared(cls: type) -> tuple[Declared, ...]:
    found: list[Declared] = []
    for field in dataclasses.fields(cls):
        said: _Said | None = field.metadata.get(_METADATA)
        if said is None:
            continue
        kind, stand_in = said.kind, said.stand_in
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        is_needed = default is dataclasses.MISSING
        if stand_in is ABSENT:
            stand_in = kind.stand_in if is_needed else default
        found.append(
            Declared(
                attribute=field.name,
                key=said.key or _key(field.name, kind),
                kind=kind,
                about=said.about,
                used_by=said.used_by,
                default=ABSENT if is_needed else default,
                stand_in=stand_in,
                is_premise=said.is_premise,
            )
        )
    return tuple(found)


def _key(name: str, kind: ValueType) -> str:
    for unit, inside, in_files in _UNITS:
        if isinstance(kind, unit) and name.endswith(inside):
            return name.removesuffix(inside) + in_files
    return name


def keys_of(cls: type) -> tuple[str, ...]:
    """Return the keys that a table of a file may have."""
    return tuple(key for field in declared(cls) for key in field.keys)


# Checking


def settle(value: Any, error: type[InputError], source: str = "") -> None:
    """Check a value that is being constructed, and bring its fields into the types they have.

    A class may say in `mistakes()` what must hold between its fields.

    Raises:
        error: listing every field that is wrong, and every rule that does not hold.
    """
    problems = settled(value)
    if problems:
        raise error(problems, source if isinstance(source, str) else shown(source))


def settled(value: Any) -> list[Problem]:
    """Do as `settle` does, but return the problems."""
    problems: list[Problem] = []
    stand_ins: dict[str, Any] = {}
    for field in declared(type(value)):
        given = getattr(value, field.attribute)
        # By identity: a value that only equals the default may be of another type (True for 1).
        if given is field.default:
            continue  # most are left as they are, in thousands of resources
        if given is None and not isinstance(field.kind, OrNone):
            if field.default is not None:
                problems.append(Problem(key=field.key, message="must be given, is None"))
                stand_ins[field.attribute] = field.stand_in
            continue
        try:
            accepted = field.kind.accept(given)
        except RefusedError as refused:
            problems += refused.under("" if field.kind.keys else field.key)
            stand_ins[field.attribute] = _stand_in(field, refused)
        else:
            if accepted is not given:
                # The value is frozen for all but its own construction, which this is a part of.
                object.__setattr__(value, field.attribute, accepted)
    return _with_mistakes(value if not stand_ins else _changed(value, stand_ins), problems)


def _stand_in(field: Declared, refused: RefusedError) -> Any:
    return field.stand_in if refused.stand_in is ABSENT else refused.stand_in


def _changed(value: ValueT, changes: Mapping[str, Any]) -> ValueT:
    """Return a copy of a frozen value with other fields, unchecked."""
    changed = copy.copy(value)
    for attribute, item in changes.items():
        object.__setattr__(changed, attribute, item)
    return changed


def _with_mistakes(value: Any, problems: list[Problem]) -> list[Problem]:
    """Return *problems*, and those of the rules at keys of which nothing was said yet."""
    mistakes = getattr(value, "mistakes", None)
    if mistakes is None:
        return problems
    if not problems:
        return [*mistakes()]
    reported = {problem.key for problem in problems}
    if any(field.is_premise and field.key in reported for field in declared(type(value))):
        return problems
    return problems + [problem for problem in mistakes() if problem.key not in reported]


# Reading


def read_document(
    cls: type[ValueT],
    document: object,
    error: type[InputError],
    *,
    source: str,
    format_: str = "",
    noun: str = "a table",
    also: Callable[[ValueT], Iterable[Problem]] = lambda _: (),
) -> ValueT:
    """Return the value that a parsed file describes.

    Where something is wrong, *also* is asked of the value, or of what stands in for it, what else
    is: what else reads the value would find that one only when the rest is mended.

    Raises:
        error: listing every mistake in it.
    """
    problems: list[Problem] = []
    table: Any = document
    if format_ and isinstance(document, Mapping):
        if document.get("format") != format_:
            said = shown(document["format"]) if "format" in document else "nothing"
            problems.append(Problem(key="format", message=f"must be {format_!r}, is {said}"))
        table = _Without(document, "format")
    try:
        value = read_table(cls, table, noun=noun)
    except TooManyProblemsError as refused:
        raise error([*problems, *refused.problems], source) from None
    except RefusedError as refused:
        problems += refused.problems
        value = refused.stand_in
    if problems:
        raise error([*problems, *also(value)], source)
    return value


class _Without(dict[str, Any]):
    """A table without one of its keys; it still knows which stood in it twice."""

    def __init__(self, table: Mapping[str, Any], key: str) -> None:
        super().__init__((name, value) for name, value in table.items() if name != key)
        self.twice = getattr(table, "twice", ())


def read_table(cls: type[ValueT], given: object, *, noun: str = "a table", **fixed: Any) -> ValueT:
    """Return the value that a table describes; *fixed* are attributes that no key sets.

    Raises:
        RefusedError: listing every mistake in it, with a value that stands in for it.
    """
    if not isinstance(given, Mapping):
        raise RefusedError(f"must be {noun}, is {shown(given)}", _stand_in_for(cls, fixed))
    fields = declared(cls)
    if fixed:
        fields = tuple(field for field in fields if field.attribute not in fixed)
    problems = list(_key_problems(given, fields))
    values: dict[str, Any] = dict(fixed)
    for field in fields:
        found = field.given_in(given) if field.kind.keys else given.get(field.key, ABSENT)
        if found is ABSENT and field.is_optional:
            continue
        if found is ABSENT and field.kind.keys and field.default is ABSENT:
            found = {}  # which of its keys are needed it says itself
        if found is ABSENT:
            if field.is_needed:
                problems.append(Problem(key=field.key, message="is missing"))
                values[field.attribute] = field.stand_in
            continue
        try:
            values[field.attribute] = field.kind.read(found)
        except RefusedError as refused:
            problems += refused.under("" if field.kind.keys else field.key)
            if isinstance(refused, TooManyProblemsError):
                raise TooManyProblemsError(problems) from refused
            values[field.attribute] = _stand_in(field, refused)
    if not problems:
        try:
            return cls(**values)
        except InputError as error:
            raise RefusedError(error.problems, _unchecked(cls, values)) from error
    stand_in = _unchecked(cls, values)
    raise RefusedError(_with_mistakes(stand_in, problems), stand_in)


def _key_problems(given: Mapping[str, Any], fields: Iterable[Declared]) -> Iterable[Problem]:
    for name in itertools.islice(getattr(given, "twice", ()), MAX_PROBLEMS):
        yield Problem(key=name, message="stands twice in one object")
    known = [key for field in fields for key in field.keys]
    unknown = [name for name in given if name not in known]
    if len(unknown) > MAX_PROBLEMS:
        yield Problem(key="", message=f"{len(unknown):,} unknown keys, the first of which follow")
    for name in unknown[:MAX_PROBLEMS]:
        allowed = f"allowed are {listed(known, near=name)}" if known else "none is allowed here"
        key = name if isinstance(name, str) else shown(name)
        yield Problem(key=key, message=f"unknown key; {allowed}")


def _unchecked(cls: type[ValueT], values: Mapping[str, Any]) -> ValueT:
    """Return a value that stands in for a wrong one, so that what it belongs to can be checked."""
    made = object.__new__(cls)
    defaults = {
        field.attribute: field.stand_in if field.default is ABSENT else field.default
        for field in declared(cls)
    }
    for attribute, value in (defaults | dict(values)).items():
        object.__setattr__(made, attribute, value)
    return made


def _stand_in_for(cls: type[ValueT], fixed: Mapping[str, Any]) -> ValueT:
    """Return a value that stands in for what is no table at all."""
    return _unchecked(
        cls, {field.attribute: field.stand_in for field in declared(cls)} | dict(fixed)
    )


# Writing


def write_table(value: Any, *, is_whole: bool = False) -> dict[str, Any]:
    """Return the table of a file that describes *value*.

    What has its default is left out, or with *is_whole* only what has none.
    """
    table: dict[str, Any] = {}
    for field in declared(type(value)):
        held = getattr(value, field.attribute)
        can_say_none = is_whole and isinstance(field.kind, OrNone)
        is_usual = not field.is_needed and held == field.default
        if is_usual and not (can_say_none or (is_whole and held is not None)):
            continue
        written = field.kind.write(held)
        if field.kind.keys:
            table |= written
        else:
            table[field.key] = written
    return table

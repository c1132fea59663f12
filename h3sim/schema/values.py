"""Field types: validation, reading from files, writing and JSON Schema of values.

>>> Integer(low=0).read(12.0), Milliseconds(high=1000).read(1.5), Milliseconds().write(1_500_000)
(12, 1500000, 1.5)
>>> Number(low=0, high=1, is_below=True).accept(1)
Traceback (most recent call last):
...
h3sim.schema.errors.RejectedValueError: must be at least 0 and less than 1, is 1
"""

from __future__ import annotations

from enum import Enum
from operator import index, is_
from typing import TYPE_CHECKING, Any

from h3sim.schema.errors import (
    ABSENT,
    RejectedValueError,
    collected,
    format_choices,
    format_value,
    is_quantity,
    plain_number,
)
from h3sim.values.errors import ValidationIssue
from h3sim.values.units import mbps, ms, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_MAX_SCALED = 2**63
"""Largest scaled integer that is converted to a float; no valid one comes near it."""
_MAX_NAMED_BOUND = 10**6
"""Upper bounds above this are omitted from messages about negative values: they are irrelevant."""


class ValueType:
    """Base class of field types."""

    stand_in: Any = None
    """Replacement for a wrong value while the rest is checked."""
    keys: tuple[str, ...] = ()
    """Keys of a file that a value uses instead of the field's own key (see `fields.Inline`)."""

    def accept(self, value: Any) -> Any:
        """Validate *value* and return it in the field's type.

        Raises:
            RejectedValueError: if it is invalid.
        """
        raise NotImplementedError

    def read(self, given: Any) -> Any:
        """Convert *given*, from a parsed file, to a value; raises like `accept`."""
        return self.accept(given)

    def write(self, value: Any) -> Any:
        """Convert *value* to its form in a file."""
        return value

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its form in a file."""
        raise NotImplementedError


class Text(ValueType):
    """Text of valid Unicode characters; with *is_needed* not empty."""

    stand_in = ""

    def __init__(self, *, is_needed: bool = False) -> None:
        self._is_needed = is_needed

    def accept(self, value: Any) -> str:
        if not isinstance(value, str):
            raise RejectedValueError(f"must be text, is {format_value(value)}")
        if self._is_needed and not value:
            raise RejectedValueError("must not be empty")
        # JSON's escapes can express a lone surrogate, which cannot be encoded as UTF-8.
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            requirement = "must be whole characters, not halves of them (surrogates)"
            raise RejectedValueError(f"{requirement}, is {format_value(value)}")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", **({"minLength": 1} if self._is_needed else {})}


class Flag(ValueType):
    """True or false."""

    stand_in = False

    def accept(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
            return bool(value)
        raise RejectedValueError(f"must be true or false, is {format_value(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Scalar(ValueType):
    """Single value of any type except lists and tables; *hint* adds advice to messages."""

    def __init__(self, hint: str = "") -> None:
        self._hint = f" ({hint})" if hint else ""

    def accept(self, value: Any) -> str | float:
        if isinstance(value, str | int | float):
            return value
        raise RejectedValueError(f"must be one value{self._hint}, is {format_value(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean"]}


class Number(ValueType):
    """Finite number from *low* to *high*; *is_above* excludes *low*, *is_below* *high*.

    In messages, *hint* explains the bounds and *example* the number.
    """

    stand_in: float = 0
    _noun = "a number"

    def __init__(
        self,
        *,
        low: float | None = None,
        high: float | None = None,
        is_above: bool = False,
        is_below: bool = False,
        hint: str = "",
        example: str = "",
    ) -> None:
        self.low, self.high, self.is_above, self.is_below = low, high, is_above, is_below
        self.hint = f" ({hint or example})" if hint or example else ""
        self._example = f" ({example})" if example else ""
        self.stand_in = low or 0

    def accept(self, value: Any) -> float:
        value = plain_number(value)
        if not is_quantity(value):
            if isinstance(value, int | float) and not isinstance(value, bool):  # not finite, huge
                # 1 stands for any number that is not negative.
                raise RejectedValueError(f"{self._describe_range(1)}, is {format_value(value)}")
            message = f"must be {self._noun}{self._example}, is {format_value(value)}"
            raise RejectedValueError(message)
        if not self.holds(value):
            raise RejectedValueError(f"{self._describe_range(value)}, is {format_value(value)}")
        number: float = value
        return number

    def holds(self, value: float) -> bool:
        """Return whether *value* is in the range."""
        low, high = self.low, self.high
        return (
            (low is None or value >= low)
            and (high is None or value <= high)
            and not (self.is_above and value == low)
            and not (self.is_below and value == high)
        )

    def _describe_range(self, value: float) -> str:
        """Return the requirement that *value*, which is out of range, violates."""
        low, high = self.low, self.high
        includes_bounds = not self.is_above and not self.is_below
        is_high_irrelevant = high is None or high > _MAX_NAMED_BOUND
        if low == 0 and value < 0 and includes_bounds and is_high_irrelevant:
            return "must not be negative"
        if self.is_below:
            start = "more than" if self.is_above else "at least"
            return f"must be {start} {_bound(low)} and less than {_bound(high)}{self.hint}"
        if self.is_above:
            end = "" if high is None else f", to {_bound(high)}"
            return f"must be more than {_bound(low)}{end}{self.hint}"
        if low is None:
            return "must be a finite number"
        if high is None:
            return f"must be at least {_bound(low)}{self.hint}"
        return f"must be {_bound(low)} to {_bound(high)}{self.hint}"

    def schema(self) -> dict[str, Any]:
        low = "exclusiveMinimum" if self.is_above else "minimum"
        high = "exclusiveMaximum" if self.is_below else "maximum"
        bounds = {low: self.low, high: self.high}
        return {"type": "number"} | {k: bound for k, bound in bounds.items() if bound is not None}


def _bound(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and abs(value) <= 2**30 else f"{value:g}"


class Share(Number):
    """Share from 0 to less than 1, also as the text of a percentage: "2%".

    >>> Share().accept("2%"), Share().accept(0.02)
    (0.02, 0.02)
    """

    def __init__(self) -> None:
        super().__init__(low=0, high=1, is_below=True, example="0.02, or 2%")

    def accept(self, value: Any) -> float:
        if isinstance(value, str) and value.endswith("%"):
            try:
                value = share(value)
            except ValueError:  # refused as text
                return super().accept(value)
        return super().accept(value)


def share(text: str) -> float:
    """Parse a share, "0.02" or "2%"; percentages are divided in decimal, without rounding errors.

    >>> share("2%"), share("0.02"), share("0.07%")
    (0.02, 0.02, 0.0007)
    """
    if not text.endswith("%"):
        return float(text)
    from decimal import Decimal  # lazy: keeps startup fast

    # Dividing floats would turn 0.07 % into 0.0007000000000000001, and a study that has loads with
    # 0.0007 would run them again.
    return float(Decimal(repr(float(text[:-1]))) / 100)


class Integer(Number):
    """Whole number; in a file it may be 12.0."""

    _noun = "a whole number"

    def accept(self, value: Any) -> int:
        # Not `isinstance`: True is an int in Python, but not a number here.
        if type(value) is not int:
            value = _as_int(value)
        if not self.holds(value):
            raise RejectedValueError(f"{self._describe_range(value)}, is {format_value(value)}")
        number: int = value
        return number

    def read(self, given: Any) -> int:
        if isinstance(given, float) and given.is_integer():
            given = int(given)
        return self.accept(given)

    def schema(self) -> dict[str, Any]:
        return super().schema() | {"type": "integer"}


def _as_int(value: Any) -> int:
    """Convert a whole number of another type, such as numpy's."""
    if not isinstance(value, bool) and hasattr(type(value), "__index__"):
        return index(value)
    raise RejectedValueError(f"must be a whole number, is {format_value(value)}")


class _Scaled(Number):
    """Number that in Python is a whole number of a smaller unit than in files."""

    def accept(self, value: Any) -> int:
        # `_as_int` takes numpy's integers and refuses bools, which are ints to `isinstance`.
        integer = value if type(value) is int else _as_int(value)
        # Before scaling: dividing an int beyond a float's range would overflow.
        if abs(integer) > _MAX_SCALED:
            raise RejectedValueError(f"{self._describe_range(1)}, is {format_value(integer)}")
        written = self.write(integer)
        if not self.holds(written):
            raise RejectedValueError(f"{self._describe_range(written)}, is {written:g}")
        return integer

    def read(self, given: Any) -> int:
        if not is_quantity(given):
            raise RejectedValueError(f"must be a number, is {format_value(given)}")
        value = self._scale(given)
        written = self.write(value)
        if not self.holds(written):
            # The message shows the value in the file, before rounding.
            raise RejectedValueError(f"{self._describe_range(written)}, is {format_value(given)}")
        return value

    def _scale(self, given: float) -> int:
        raise NotImplementedError


class Milliseconds(_Scaled):
    """Time: whole nanoseconds in Python, milliseconds in files and messages."""

    def _scale(self, given: float) -> int:
        return ms(given)

    def write(self, value: Any) -> float:
        return to_ms(value)


class MegabitsPerSecond(_Scaled):
    """Rate: whole bits per second in Python, Mbit/s in files and messages."""

    def _scale(self, given: float) -> int:
        return mbps(given)

    def write(self, value: Any) -> float:
        return to_mbps(value)


class Choice(ValueType):
    """Member of an enumeration, or one of several names; members may be given by name."""

    def __init__(self, options: type[Enum] | Iterable[str | Enum]) -> None:
        members: list[Any] = list(options)
        self.options: Mapping[str, Any] = {
            getattr(member, "value", member): member for member in members
        }
        self.stand_in = members[0]

    def accept(self, value: Any) -> Any:
        name = value.value if isinstance(value, Enum) else value
        if isinstance(name, str) and name in self.options:
            return self.options[name]
        raise RejectedValueError(format_choices(name, self.options))

    def write(self, value: Any) -> str:
        return str(getattr(value, "value", value))

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.options)}


class OrNone(ValueType):
    """Optional value; in a file None is *none*: a text, or null."""

    def __init__(self, kind: ValueType, *, none: str | None = "none") -> None:
        self.of, self._none = kind, none

    def accept(self, value: Any) -> Any:
        return None if value is None else self.of.accept(value)

    def read(self, given: Any) -> Any:
        return None if given == self._none else self.of.read(given)

    def write(self, value: Any) -> Any:
        return self._none if value is None else self.of.write(value)

    def schema(self) -> dict[str, Any]:
        schema = self.of.schema()
        if self._none is None and schema.keys() == {"type"} and isinstance(schema["type"], str):
            return {"type": [schema["type"], "null"]}
        return {"anyOf": [schema, {"const": self._none}]}


class ListOf(ValueType):
    """List of values of one type; in Python a tuple."""

    stand_in = ()

    def __init__(self, kind: ValueType, noun: str) -> None:
        self.of, self._noun = kind, noun

    def accept(self, value: Any) -> tuple[Any, ...]:
        return self._convert_each(value, self.of.accept)

    def read(self, given: Any) -> tuple[Any, ...]:
        return self._convert_each(given, self.of.read)

    def _convert_each(self, values: Any, convert: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Read or accept every value, collecting the errors of all."""
        if not isinstance(values, list | tuple):
            raise RejectedValueError(f"must be a list of {self._noun}, is {format_value(values)}")
        converted, problems = collected(
            (f"[{n}]", convert, value) for n, value in enumerate(values)
        )
        if problems:
            raise RejectedValueError(problems, tuple(converted))
        # An unchanged tuple is returned itself, so that values share it instead of copies.
        if isinstance(values, tuple) and all(map(is_, values, converted)):
            return values
        return tuple(converted)

    def write(self, value: Any) -> list[Any]:
        return [self.of.write(item) for item in value]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.of.schema()}


class OneOrMore(ListOf):
    """List of values; a file may write a single one without brackets."""

    def read(self, given: Any) -> tuple[Any, ...]:
        if isinstance(given, str):
            return (self.of.read(given),)
        if not isinstance(given, list):
            raise RejectedValueError(f"must be text or a list of it, is {format_value(given)}")
        try:
            return super().read(given)
        except RejectedValueError as refused:  # a single text needs no index in its message
            messages = (
                ValidationIssue(key="", message=problem.message) for problem in refused.problems
            )
            raise RejectedValueError(messages, refused.stand_in) from refused

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.of.schema(), super().schema()]}


class TableOf(ValueType):
    """Table of values of one type, under any keys."""

    def __init__(self, kind: ValueType) -> None:
        self.of = kind

    def accept(self, value: Any) -> dict[str, Any]:
        return self._convert_each(value, self.of.accept)

    def read(self, given: Any) -> dict[str, Any]:
        return self._convert_each(given, self.of.read)

    def _convert_each(self, table: Any, convert: Callable[[Any], Any]) -> dict[str, Any]:
        """Read or accept every value, collecting the errors of all."""
        if not isinstance(table, dict):
            raise RejectedValueError(f"must be a table, is {format_value(table)}", {})
        converted: dict[str, Any] = {}
        problems: list[ValidationIssue] = []
        for key, item in table.items():
            try:
                converted[Text().accept(key)] = convert(item)
            except RejectedValueError as refused:
                problems += refused.under(key if isinstance(key, str) else format_value(key))
                if refused.stand_in is not ABSENT:
                    converted[key] = refused.stand_in
        if problems:
            raise RejectedValueError(problems, converted)
        return table if all(map(is_, table.values(), converted.values())) else converted

    def write(self, value: Any) -> dict[str, Any]:
        return {str(key): self.of.write(item) for key, item in value.items()}

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.of.schema()}

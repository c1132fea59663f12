"""Validation errors, and the formatting of values and choices in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.values.errors import ValidationIssue
from h3sim.values.likeness import names_like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_MAX_QUANTITY = 10**15
"""Largest plausible number: more than any time, size or rate in files."""
_MAX_SHOWN_CHARACTERS = 60
"""Most characters of a wrong value in a message."""
_MAX_LISTED_KEYS = 8
"""Keys of a table that are all listed when another is given."""
_UNITS = {"bytes", "ms", "mbps", "is", "has", "max", "min"}
"""Words of many keys, by which none is meant."""
_MAX_LISTED_NAMES = 40
"""Most names that a message lists completely; of more, it lists the most similar ones."""
_MAX_COMPARED_NAMES = 500
"""Most names that are searched for similar ones, which takes time."""


def is_quantity(value: object) -> bool:
    """Return whether *value* is a finite number of plausible size.

    >>> is_quantity(1.5), is_quantity(True), is_quantity(float("nan")), is_quantity(10**400)
    (True, False, False, False)
    """
    return type(value) in (int, float) and -_MAX_QUANTITY <= value <= _MAX_QUANTITY  # type: ignore[operator]


def plain_number(value: Any) -> Any:
    """Return a numpy number as a Python number, and anything else unchanged."""
    if type(value) is float or type(value) is int or not hasattr(type(value), "dtype"):
        return value
    from numbers import Integral, Real  # lazy: numpy numbers are rare

    if not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def plain_values(values: Any) -> Any:
    """Return a numpy array or pandas series as a list, and anything else unchanged.

    >>> plain_values([1, 2]), plain_values(range(2)), plain_values("a")
    ([1, 2], range(0, 2), 'a')
    """
    return values.tolist() if hasattr(values, "tolist") else values


def format_value(value: object) -> str:
    """Return the display form of a wrong value, truncated if long.

    >>> format_value("soon"), format_value(10**400), format_value("a" * 100)[-5:]
    ("'soon'", 'a huge number', 'aa...')
    """
    if isinstance(value, str | bytes):  # truncated before quoting, which takes time
        value = value[: _MAX_SHOWN_CHARACTERS + 1]
    try:
        is_huge = isinstance(value, int) and abs(value) > _MAX_QUANTITY
        text = "a huge number" if is_huge else repr(value)
    # It is nested too deeply, contains a number of thousands of digits, or its `__repr__` fails.
    except Exception:  # noqa: BLE001
        return "a value too large to show"
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}..."


def format_choices(value: object, known: Iterable[str]) -> str:
    """Return the message for an unknown name; of many *known* names it lists the nearest.

    >>> format_choices("blue", ["red", "green"])
    "'blue' is not one of red, green"
    >>> format_choices("n7x", (f"n{number}" for number in range(300)))
    "'n7x' is not one of n7, n97 and 298 more"
    """
    return f"{format_value(value)} is not one of {join_words(known, near=value)}"


def join_words(known: Iterable[str], *, near: object = "") -> str:
    """Join names with commas; of many, only those *near* to one, and the number of others.

    >>> join_words([])
    '(none)'
    """
    names = tuple(known)
    if len(names) <= _MAX_LISTED_NAMES:
        return ", ".join(names) or "(none)"
    listed: Sequence[str] = ()
    if isinstance(near, str) and len(names) <= _MAX_COMPARED_NAMES:
        listed = names_like(near, names)
    listed = listed or names[:3]
    shown = ", ".join(name[:_MAX_SHOWN_CHARACTERS] for name in listed)
    return f"{shown} and {len(names) - len(listed):,} more"


def unknown_key(name: object, known: Iterable[str]) -> str:
    """Return the message for an unknown key of a table: all *known* ones if few, else the nearest.

    >>> unknown_key("rtt", ["rate", "loss"])
    'unknown key; allowed are rate, loss'
    >>> unknown_key("strem_bytes", ["stream_bytes", *"abcdefghi"])
    'unknown key; did you mean stream_bytes? (docs/formats.md has all 10)'
    """
    keys = tuple(known)
    if not keys:
        return "unknown key; none is allowed here"
    if len(keys) <= _MAX_LISTED_KEYS:
        return f"unknown key; allowed are {', '.join(keys)}"
    near = names_like(name, keys)
    if not near and isinstance(name, str):
        # Without a similar key, those that share a word with it.
        near = [key for key in keys if {*key.split("_")} & {*name.split("_")} - _UNITS]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"unknown key{hint} (docs/formats.md has all {len(keys)})"


ABSENT: Any = object()
"""Marker for a missing value, where None is a value."""
MAX_PROBLEMS = 5_000
"""Most errors collected in one list or table, to limit memory."""


class RejectedValueError(Exception):
    """A value of a field is invalid: *problems* is the message, or issues with keys relative to it.

    *stand_in* is a valid value that replaces it while the rest of the document is checked.
    """

    def __init__(self, problems: str | Iterable[ValidationIssue], stand_in: Any = ABSENT) -> None:
        if isinstance(problems, str):
            problems = [ValidationIssue(key="", message=problems)]
        self.problems = tuple(problems)
        self.stand_in = stand_in
        super().__init__(*self.problems)

    def under(self, key: str) -> list[ValidationIssue]:
        """Return the problems with *key* prefixed to their keys."""
        return [
            ValidationIssue(key=joined(key, problem.key), message=problem.message)
            for problem in self.problems
        ]


class TooManyProblemsError(RejectedValueError):
    """Rejected value with so many errors that the rest of the document is not read.

    It has no stand-in, since rules would see only a part of the document.
    """


def collected(
    entries: Iterable[tuple[str, Callable[[Any], Any], Any]],
) -> tuple[list[Any], list[ValidationIssue]]:
    """Convert values, each given as (key, converter, value); return the results and all problems.

    Wrong values are replaced by their stand-ins, if any, and left out otherwise.

    Raises:
        TooManyProblemsError: if there are more than `MAX_PROBLEMS` errors.
    """
    converted: list[Any] = []
    problems: list[ValidationIssue] = []
    for key, convert, given in entries:
        try:
            converted.append(convert(given))
        except RejectedValueError as refused:
            problems += refused.under(key)
            if isinstance(refused, TooManyProblemsError):
                raise TooManyProblemsError(problems) from refused
            if len(problems) > MAX_PROBLEMS:
                message = f"more than {MAX_PROBLEMS:,} errors: the rest is not read"
                problems.append(ValidationIssue(key=key, message=message))
                raise TooManyProblemsError(problems) from None
            if refused.stand_in is not ABSENT:
                converted.append(refused.stand_in)
    return converted, problems


def joined(key: str, below: str) -> str:
    """Return the path of *below*, a key or path relative to *key*.

    >>> joined("down", "loss"), joined("resources", "[2].id"), joined("", "name")
    ('down.loss', 'resources[2].id', 'name')
    """
    return f"{key}.{below}" if key and below and not below.startswith("[") else f"{key}{below}"

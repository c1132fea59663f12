"""How messages show what was given, and what would have been allowed: short, whatever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["is_quantity", "listed", "not_one_of", "plain_number", "plain_values", "shown"]

_LARGEST = 10**15
"""More than any time, size or rate in any unit that files use."""
_SHOWN_CHARACTERS = 60
_LISTED_NAMES = 40
"""So many names are listed whole; of more, those that are nearest."""
_COMPARED_NAMES = 500
"""Among more names than this, near ones are not looked for: it takes time for each."""


def is_quantity(value: object) -> bool:
    """Return whether *value* is a number that can be counted with: finite and not absurd.

    >>> is_quantity(1.5), is_quantity(True), is_quantity(float("nan")), is_quantity(10**400)
    (True, False, False, False)
    """
    return type(value) in (int, float) and -_LARGEST <= value <= _LARGEST  # type: ignore[operator]


def plain_number(value: Any) -> Any:
    """Return a number of numpy's as Python has it, and what is anything else as it is."""
    if type(value) is float or type(value) is int or not hasattr(type(value), "dtype"):
        return value
    from numbers import Integral, Real  # on use: few numbers are numpy's

    if not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def plain_values(given: Any) -> Any:
    """Return what numpy or pandas hold as Python has it: an array as a list, one value as it is.

    >>> plain_values([1, 2]), plain_values(range(2)), plain_values("a")
    ([1, 2], range(0, 2), 'a')
    """
    return given.tolist() if hasattr(given, "tolist") else given


def shown(value: object) -> str:
    """Return how a wrong value is shown: cut where it is long.

    >>> shown("soon"), shown(10**400), shown("a" * 100)[-5:]
    ("'soon'", 'a huge number', 'aa...')
    """
    if isinstance(value, str | bytes):  # cut before it is quoted, which takes time
        value = value[: _SHOWN_CHARACTERS + 1]
    try:
        is_huge = isinstance(value, int) and abs(value) > _LARGEST
        text = "a huge number" if is_huge else repr(value)
    except (RecursionError, ValueError):  # deep, or with a number of thousands of digits in it
        return "too much to show"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def not_one_of(value: object, known: Iterable[str]) -> str:
    """Return the message for a name that is not *known*; of many names it lists the nearest.

    >>> not_one_of("blue", ["red", "green"])
    "'blue' is not one of red, green"
    >>> not_one_of("n7x", (f"n{number}" for number in range(300)))
    "'n7x' is not one of n7, n97, n87 and 297 more"
    """
    return f"{shown(value)} is not one of {listed(known, near=value)}"


def listed(known: Iterable[str], *, near: object = "") -> str:
    """Return names in a row; of many, those *near* to one, and how many there are more.

    >>> listed([])
    '(none)'
    """
    names = tuple(known)
    if len(names) <= _LISTED_NAMES:
        return ", ".join(names) or "(none)"
    few: Sequence[str] = ()
    if isinstance(near, str) and len(names) <= _COMPARED_NAMES:
        import difflib  # on use: importing h3sim should stay quick

        few = difflib.get_close_matches(near[:_SHOWN_CHARACTERS], names, n=3)
    few = few or names[:3]
    return (
        f"{', '.join(name[:_SHOWN_CHARACTERS] for name in few)} and {len(names) - len(few):,} more"
    )

"""Validation errors, and how messages show values and choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.errors import ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


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


def format_value(value: object) -> str:
    """Return how a wrong value is shown: cut where it is long.

    >>> format_value("soon"), format_value(10**400), format_value("a" * 100)[-5:]
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


def format_choices(value: object, known: Iterable[str]) -> str:
    """Return the message for a name that is not *known*; of many names it lists the nearest.

    >>> format_choices("blue", ["red", "green"])
    "'blue' is not one of red, green"
    >>> format_choices("n7x", (f"n{number}" for number in range(300)))
    "'n7x' is not one of n7, n97, n87 and 297 more"
    """
    return f"{format_value(value)} is not one of {join_words(known, near=value)}"


def join_words(known: Iterable[str], *, near: object = "") -> str:
    """Return names in a row; of many, those *near* to one, and how many there are more.

    >>> join_words([])
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


ABSENT: Any = object()
"""Stands for no value at all, where None is one."""
MAX_PROBLEMS = 5_000
"""The most mistakes that are looked for in one list or table: each takes memory."""


class RejectedValueError(Exception):
    """A value that cannot stand where it does: the *problems* by keys below it.

    *stand_in* is what takes its place while the rest is checked.
    """

    def __init__(self, problems: str | Iterable[ValidationIssue], stand_in: Any = ABSENT) -> None:
        found = (
            [ValidationIssue(key="", message=problems)] if isinstance(problems, str) else problems
        )
        self.problems = tuple(found)
        self.stand_in = stand_in
        super().__init__(*self.problems)

    def under(self, key: str) -> list[ValidationIssue]:
        """Return the problems with *key* in front of theirs."""
        return [
            ValidationIssue(key=joined(key, problem.key), message=problem.message)
            for problem in self.problems
        ]


class TooManyProblemsError(RejectedValueError):
    """A value with so many mistakes that the rest of the document is not read.

    Nothing stands in for it: rules about all of a document would see a part only.
    """


def collected(
    entries: Iterable[tuple[str, Callable[[Any], Any], Any]],
) -> tuple[list[Any], list[ValidationIssue]]:
    """Return what each (key, what reads it, what was given) becomes, and all that is wrong.

    A stand-in, where there is one, takes the place of what is wrong.

    Raises:
        TooManyProblemsError: if more than `MAX_PROBLEMS` things are wrong.
    """
    taken: list[Any] = []
    problems: list[ValidationIssue] = []
    for key, take, given in entries:
        try:
            taken.append(take(given))
        except RejectedValueError as refused:
            problems += refused.under(key)
            if isinstance(refused, TooManyProblemsError):
                raise TooManyProblemsError(problems) from refused
            if len(problems) > MAX_PROBLEMS:
                message = f"more than {MAX_PROBLEMS:,} mistakes: the rest is not read"
                raise TooManyProblemsError(
                    [*problems, ValidationIssue(key=key, message=message)]
                ) from None
            if refused.stand_in is not ABSENT:
                taken.append(refused.stand_in)
    return taken, problems


def joined(key: str, below: str) -> str:
    """Return the key of what stands *below* a key.

    >>> joined("down", "loss"), joined("resources", "[2].id"), joined("", "name")
    ('down.loss', 'resources[2].id', 'name')
    """
    return f"{key}.{below}" if key and below and not below.startswith("[") else f"{key}{below}"

"""What is wrong with a value, before it is known in which file, and under which key, it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["ABSENT", "MAX_PROBLEMS", "RefusedError", "TooManyProblemsError", "collected", "joined"]

ABSENT: Any = object()
"""Stands for no value at all, where None is one."""
MAX_PROBLEMS = 5_000
"""The most mistakes that are looked for in one list or table: each takes memory."""


class RefusedError(Exception):
    """A value that cannot stand where it does: the *problems* by keys below it.

    *stand_in* is what takes its place while the rest is checked.
    """

    def __init__(self, problems: str | Iterable[Problem], stand_in: Any = ABSENT) -> None:
        found = [Problem(key="", message=problems)] if isinstance(problems, str) else problems
        self.problems = tuple(found)
        self.stand_in = stand_in
        super().__init__(*self.problems)

    def under(self, key: str) -> list[Problem]:
        """Return the problems with *key* in front of theirs."""
        return [
            Problem(key=joined(key, problem.key), message=problem.message)
            for problem in self.problems
        ]


class TooManyProblemsError(RefusedError):
    """A value with so many mistakes that the rest of the document is not read.

    Nothing stands in for it: rules about all of a document would see a part only.
    """


def collected(
    entries: Iterable[tuple[str, Callable[[Any], Any], Any]],
) -> tuple[list[Any], list[Problem]]:
    """Return what each (key, what reads it, what was given) becomes, and all that is wrong.

    A stand-in, where there is one, takes the place of what is wrong.

    Raises:
        TooManyProblemsError: if more than `MAX_PROBLEMS` things are wrong.
    """
    taken: list[Any] = []
    problems: list[Problem] = []
    for key, take, given in entries:
        try:
            taken.append(take(given))
        except RefusedError as refused:
            problems += refused.under(key)
            if isinstance(refused, TooManyProblemsError):
                raise TooManyProblemsError(problems) from refused
            if len(problems) > MAX_PROBLEMS:
                message = f"more than {MAX_PROBLEMS:,} mistakes: the rest is not read"
                raise TooManyProblemsError([*problems, Problem(key=key, message=message)]) from None
            if refused.stand_in is not ABSENT:
                taken.append(refused.stand_in)
    return taken, problems


def joined(key: str, below: str) -> str:
    """Return the key of what stands *below* a key.

    >>> joined("down", "loss"), joined("resources", "[2].id"), joined("", "name")
    ('down.loss', 'resources[2].id', 'name')
    """
    return f"{key}.{below}" if key and below and not below.startswith("[") else f"{key}{below}"

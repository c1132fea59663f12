"""What functions are called with, checked as the fields of files are."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from h3sim.errors import InputError, UnknownNameError, UnknownOptionError, ValidationIssue
from h3sim.schema.errors import RejectedValueError, collected, format_value
from h3sim.schema.values import ValueType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType


ValueT = TypeVar("ValueT")


def check_arguments(error: type[InputError], **given: tuple[ValueType, Any]) -> dict[str, Any]:
    """Return the arguments of a function as it takes them, numbers of numpy as Python's.

    Each is *given* as what it may hold, and what the function was called with.

    Raises:
        error: listing every one that is wrong.

    >>> from h3sim.schema.values import Text
    >>> from h3sim.errors import InputError
    >>> check_arguments(InputError, seed=(Text(), 3))
    Traceback (most recent call last):
    ...
    h3sim.errors.InputError: seed: must be text, is 3
    """
    entries = ((key, kind.accept, value) for key, (kind, value) in given.items())
    taken, problems = collected(entries)
    if problems:
        raise error(problems)
    return dict(zip(given, taken, strict=True))


class ErrorCollector:
    """Reads several things, and raises where its block ends what was wrong with any of them.

    One error is raised as it is. Several become one `InputError`, or `UnknownOptionError` where one
    of them is that, which lists the mistakes of all.

    >>> with ErrorCollector() as mistakes:
    ...     seed = mistakes.of("seed", lambda: int("7"))
    >>> seed
    7
    """

    def __init__(self) -> None:
        self._found: list[InputError | UnknownNameError] = []

    def of(self, key: str, read: Callable[[], ValueT], *, instead: Any = None) -> ValueT:
        """Return what *read* returns, or *instead* after noting what is wrong with *key*.

        What is wrong with an argument that says its own key is told by that.
        """
        try:
            return read()
        except (InputError, UnknownNameError) as error:
            error.argument = key or error.argument
            self._found.append(error)
        # Only what is read in the same block may see it: at its end there is an error.
        value: ValueT = instead
        return value

    def __enter__(self) -> ErrorCollector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is not None or not self._found:
            return
        errors = {(type(found), str(found)): found for found in self._found}
        first = next(iter(errors.values()))
        if len(errors) == 1:  # found once, or again and again
            raise first
        is_call = any(isinstance(found, UnknownOptionError) for found in errors.values())
        problems = dict.fromkeys(problem for found in self._found for problem in _told(found))
        raise (UnknownOptionError if is_call else InputError)(problems) from first


def _told(error: InputError | UnknownNameError) -> Iterator[ValidationIssue]:
    """Yield the mistakes of *error*; those of a file are told with its name."""
    if isinstance(error, InputError) and not error.source:
        yield from error.problems
    else:
        for line in error.lines() if isinstance(error, InputError) else [str(error)]:
            yield ValidationIssue(key=error.argument, message=line)


class Predicate(ValueType):
    """Any value for which *is_right* holds; *what* says in messages what that is."""

    def __init__(self, what: str, is_right: Callable[[Any], bool]) -> None:
        self._what, self._is_right = what, is_right

    def accept(self, value: Any) -> Any:
        if self._is_right(value):
            return value
        raise RejectedValueError(f"must be {self._what}, is {format_value(value)}")


PATH = Predicate("a path", lambda value: isinstance(value, str | PathLike))
CALLABLE = Predicate("something that can be called", callable)

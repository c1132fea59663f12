"""What functions are called with, checked as the fields of files are."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from h3sim.documents.refused import RefusedError, collected
from h3sim.documents.shown import shown
from h3sim.documents.values import ValueType

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.errors import InputError

__all__ = ["CALLABLE", "PATH", "Only", "check_arguments"]


def check_arguments(error: type[InputError], **given: tuple[ValueType, Any]) -> None:
    """Check the arguments of a function: what each may hold, and what it was called with.

    Raises:
        error: listing every one that is wrong.

    >>> from h3sim.documents.values import Text
    >>> from h3sim.errors import InputError
    >>> check_arguments(InputError, seed=(Text(), 3))
    Traceback (most recent call last):
    ...
    h3sim.errors.InputError: seed: must be text, is 3
    """
    _, problems = collected((key, kind.accept, value) for key, (kind, value) in given.items())
    if problems:
        raise error(problems)


class Only(ValueType):
    """Any value for which *is_right* holds; *what* says in messages what that is."""

    def __init__(self, what: str, is_right: Callable[[Any], bool]) -> None:
        self._what, self._is_right = what, is_right

    def accept(self, value: Any) -> Any:
        if self._is_right(value):
            return value
        raise RefusedError(f"must be {self._what}, is {shown(value)}")


PATH = Only("a path", lambda value: isinstance(value, str | PathLike))
CALLABLE = Only("something that can be called", callable)

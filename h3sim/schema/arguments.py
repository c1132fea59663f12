"""Validation of function arguments, with the field types of files."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from h3sim.schema.errors import RejectedValueError, collected, format_value
from h3sim.schema.values import ValueType
from h3sim.values.errors import InputError, UnknownNameError, UnknownOptionError, ValidationIssue
from h3sim.values.likeness import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType


ValueT = TypeVar("ValueT")
CallableT = TypeVar("CallableT", bound="Callable[..., Any]")


def shows_fields(
    *declarations: type | Callable[..., Any], but: Iterable[str] = (), type_: str = "{}"
) -> Callable[[CallableT], CallableT]:
    """Return a decorator that shows the `**options` of a function as the fields of dataclasses.

    Type checkers expand `Unpack[TypedDict]`, `inspect.signature` does not: so notebooks and `help`
    read the attribute `__signature__` (PEP 362), which has the fields with their defaults. *type_*
    is the template of their annotations; those in *but* are left out. A function among the
    *declarations* stands for its keyword-only parameters.
    """

    def decorate(function: CallableT) -> CallableT:
        signature = inspect.signature(function)
        own = {
            name: parameter
            for name, parameter in signature.parameters.items()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        }
        declared = {
            entry.name: entry
            for declaration in declarations
            for entry in _keyword_parameters(declaration, type_)
            if entry.name not in own and entry.name not in but
        }
        parameters = [*own.values(), *declared.values()]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


def _keyword_parameters(
    declaration: type | Callable[..., Any], type_: str
) -> Iterator[inspect.Parameter]:
    """Yield the fields of a dataclass, or the keyword-only parameters of a function."""
    kind = inspect.Parameter.KEYWORD_ONLY
    if dataclasses.is_dataclass(declaration):
        for entry in dataclasses.fields(declaration):
            annotation = type_.format(entry.type)
            yield inspect.Parameter(entry.name, kind, default=entry.default, annotation=annotation)
    else:
        yield from (
            own for own in inspect.signature(declaration).parameters.values() if own.kind is kind
        )


def check_arguments(error: type[InputError], **given: tuple[ValueType, Any]) -> dict[str, Any]:
    """Validate the arguments of a function; return them with numpy's numbers as Python's.

    Each argument is *given* by name, as a pair of its field type and its value.

    Raises:
        error: listing every invalid argument.

    >>> from h3sim.schema.values import Text
    >>> from h3sim.values.errors import InputError
    >>> check_arguments(InputError, seed=(Text(), 3))
    Traceback (most recent call last):
    ...
    h3sim.values.errors.InputError: seed: must be text, is 3
    """
    entries = ((key, kind.accept, value) for key, (kind, value) in given.items())
    values, problems = collected(entries)
    if problems:
        raise error(problems)
    return dict(zip(given, values, strict=True))


@contextlib.contextmanager
def naming(argument: str) -> Iterator[None]:
    """Name the *argument* that an error inside the block is about, unless it is named already."""
    try:
        yield
    except (InputError, UnknownNameError) as error:
        error.argument = error.argument or argument
        raise


class ErrorCollector:
    """Context manager that collects errors of several inputs and raises them all at its end.

    A single error is raised unchanged. Several become one `InputError` with all issues, or one
    `UnknownOptionError` if any of them is that.

    >>> with ErrorCollector() as errors:
    ...     seed = errors.collect("seed", lambda: int("7"))
    >>> seed
    7
    """

    def __init__(self) -> None:
        self._errors: list[InputError | UnknownNameError] = []

    def collect(self, key: str, read: Callable[[], ValueT], *, default: Any = None) -> ValueT:
        """Call *read* and return its result, or *default* after collecting an error under *key*.

        Issues that have keys of their own keep them.
        """
        try:
            return read()
        except (InputError, UnknownNameError) as error:
            error.argument = key or error.argument
            self._errors.append(error)
        # *default* is only visible inside the block, whose end raises.
        value: ValueT = default
        return value

    def __enter__(self) -> ErrorCollector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is not None or not self._errors:
            return
        first = self._errors[0]
        # The same error may have been collected repeatedly.
        if len({(type(found), str(found)) for found in self._errors}) == 1:
            raise first
        has_unknown_option = any(isinstance(found, UnknownOptionError) for found in self._errors)
        problems = dict.fromkeys(problem for found in self._errors for problem in _issues_of(found))
        raise (UnknownOptionError if has_unknown_option else InputError)(problems) from first


def _issues_of(error: InputError | UnknownNameError) -> Iterator[ValidationIssue]:
    """Yield the issues of *error*; the file they are in, if any, becomes part of the message."""
    if isinstance(error, InputError) and not error.source:
        yield from error.problems
    else:
        for line in error.lines() if isinstance(error, InputError) else [str(error)]:
            yield ValidationIssue(key=error.argument, message=line)


class Predicate(ValueType):
    """Field type: any value that satisfies *is_valid*; *noun* names such values in messages."""

    def __init__(self, noun: str, is_valid: Callable[[Any], bool]) -> None:
        self._noun, self._is_valid = noun, is_valid

    def accept(self, value: Any) -> Any:
        if self._is_valid(value):
            return value
        raise RejectedValueError(f"must be {self._noun}, is {format_value(value)}")


PATH = Predicate("a path", lambda value: isinstance(value, str | PathLike))
CALLABLE = Predicate("a callable", callable)


def refuse_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse the arguments *given* to *function* that are not among the *known*.

    The message has similar names, or all that are known.

    Raises:
        UnknownOptionError: with one issue per argument.

    >>> refuse_keywords("with_", {"cc": "bbr", "delay": 3}, ["cc", "name"])
    Traceback (most recent call last):
    ...
    h3sim.values.errors.UnknownOptionError: delay: is no argument of with_; they are cc, name
    """
    names = list(known)
    listed = f"; they are {', '.join(names)}"
    issues = [
        ValidationIssue(
            key=key,
            message=f"is no argument of {function}{did_you_mean(key, names) or listed}",
        )
        for key in given
        if key not in names
    ]
    if issues:
        raise UnknownOptionError(issues)

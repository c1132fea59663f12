"""Load options with their command-line forms, and the validation of other shared arguments."""

from __future__ import annotations

import contextlib
import inspect
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

from h3sim import transport
from h3sim.browser import BrowserModel
from h3sim.schema import format_choices, format_value, join_words
from h3sim.schema.arguments import PATH, Predicate, check_arguments
from h3sim.schema.errors import RejectedValueError
from h3sim.schema.fields import declare, fields_of, read_table, validate
from h3sim.schema.values import Choice, Flag, Integer, ListOf, Number, OrNone, Text, ValueType
from h3sim.transport import Jitter
from h3sim.transport.link_profile import MIN_HELD_SHARE, percent_text
from h3sim.values.errors import InputError, ValidationIssue


class Option(NamedTuple):
    """Command-line form of a load option, in addition to its declaration.

    Every command that runs loads has the common options; others are in `--set` or, where all are
    options, in `--help-all`.
    """

    metavar: str = ""
    group: str = "network and transport"
    switches: tuple[tuple[str, Any, str], ...] = ()
    """Flags that set the option: each with the value that it sets, and a line of help."""
    is_common: bool = False


NO_CODEC = "none"
"""Value of `header_compression` with which headers have the sizes that the page gives."""
ClassT = TypeVar("ClassT")
_DOCSTRING_COLUMNS = 96
"""Width of a generated docstring, at which help() of an indented class still fits 100 columns."""
OPTION_KEY = "option"
"""Key of the `Option` in the metadata of a field of `LoadConfig`."""


def file_key(
    kind: ValueType, about: str, *, key: str = "", is_premise: bool = False, **default: Any
) -> Any:
    """Return a field of a dataclass that declares a file; *default* is its default, if any."""
    return field(metadata=declare(kind, about, key=key, is_premise=is_premise), **default)


def option(
    kind: ValueType, about: str, metavar: str = "", *, default: Any = None, **form: Any
) -> Any:
    """Return a field of `LoadConfig`; *form* are the other fields of `Option`."""
    metadata = {**declare(kind, about), OPTION_KEY: Option(metavar=metavar, **form)}
    return field(default=default, metadata=metadata)


def common_option(kind: ValueType, about: str, metavar: str = "", **form: Any) -> Any:
    """Return an option of every command that runs loads; the arguments are those of `option`."""
    return option(kind, about, metavar, is_common=True, **form)


def of_browser(name: str, metavar: str = "", **form: Any) -> Any:
    """Return an option that sets a field of the browser, with the declaration of that field.

    A Boolean has one flag, which sets the opposite of its default.
    """
    entry = next(entry for entry in fields_of(BrowserModel) if entry.attribute == name)
    switches: tuple[tuple[str, Any, str], ...] = ()
    if isinstance(entry.kind, Flag):
        flag = f"--{'no-' * bool(entry.default)}{name.replace('_', '-')}"
        switches = ((flag, not entry.default, entry.about),)
    return option(entry.kind, entry.about, metavar, group="browser", switches=switches, **form)


def documented(cls: type[ClassT]) -> type[ClassT]:
    """Add the descriptions of its options to the docstring of *cls*.

    The command line shows the same words, so `help` and `--help` cannot differ.
    """
    if cls.__doc__ is None:  # python -OO
        return cls
    # The compiler of Python 3.13 removes the indentation of docstrings, older ones keep it.
    description, raises, errors = inspect.cleandoc(cls.__doc__).partition("Raises:\n")
    lines = [
        textwrap.fill(
            f"{entry.attribute}: {_description(entry.about, option_of(cls, entry.attribute))}",
            _DOCSTRING_COLUMNS,
            initial_indent=" " * 4,
            subsequent_indent=" " * 8,
            break_on_hyphens=False,
        )
        for entry in fields_of(cls)
    ]
    cls.__doc__ = "\n".join([f"{description}Args:", *lines, "", raises + errors])
    return cls


def _description(about: str, form: Option) -> str:
    """Return the description of an option; if it describes a flag, with the value of the flag."""
    return next((f"{value}: {about}" for _, value, text in form.switches if text == about), about)


class NameOr(ValueType):
    """Field type: a shipped name, a path, or an instance of a class of `h3sim.transport`."""

    def __init__(self, class_name: str) -> None:
        self._class_name = class_name

    def accept(self, value: Any) -> Any:
        # The class is imported (by `getattr`) only if the value may be an instance: profiles take a
        # tenth of the import time, and loads at a constant rate have none.
        if isinstance(value, str | os.PathLike):
            return value
        if isinstance(value, getattr(transport, self._class_name)):
            return value
        choices = f"a name, a path or a {self._class_name}"
        raise RejectedValueError(f"must be {choices}, is {format_value(value)}")


class _NumberOrRange(ListOf):
    """Field type: one whole number, or the two ends of a range."""

    def _convert_each(self, values: Any, convert: Callable[[Any], Any]) -> tuple[Any, ...]:
        is_range = isinstance(values, list | tuple)
        return super()._convert_each(values if is_range else (values,), convert)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reorder:
    """Table form of "4:1-3" or "25%:1-3": packets that are overtaken *by* a number of others."""

    every: int | None = file_key(Integer(low=1), "hold every n-th packet", default=None)
    share: float | None = file_key(
        Number(low=MIN_HELD_SHARE, high=1, example="0.25 is 25 %"),
        "in place of `every`: hold each packet with this probability",
        default=None,
    )
    by: tuple[int, ...] = file_key(
        _NumberOrRange(Integer(low=0), "whole numbers"),
        "number of packets that overtake it, or a range",
    )

    def __post_init__(self) -> None:
        validate(self, InputError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        if (self.every is None) == (self.share is None):
            yield ValidationIssue(key="every", message="or share is needed, and not both")

    @property
    def text(self) -> str:
        """The option's text form, such as "4:1-3"."""
        which = self.every if self.share is None else percent_text(self.share)
        return f"{which}:{'-'.join(map(str, self.by))}"


@contextlib.contextmanager
def _rejecting(key_of: Callable[[str], str]) -> Iterator[None]:
    """Turn an InputError inside the block into the rejection of the value that is being parsed.

    *key_of* converts the keys of its problems to keys relative to the option.
    """
    try:
        yield
    except InputError as error:
        raise RejectedValueError(
            ValidationIssue(key=key_of(problem.key), message=problem.message)
            for problem in error.problems
        ) from error


class ReorderOption(Text):
    """Field type of reordering: "4:1-3" or "25%:1-3", or a table; kept as text."""

    def accept(self, value: Any) -> str:
        if isinstance(value, Mapping):
            value = read_table(_Reorder, value).text
        text = super().accept(value)
        with _rejecting(lambda key: key.removeprefix("jitter").lstrip(".")):
            Jitter.parse(text)
        return text


class CrossTrafficText(Text):
    """Field type: text that `parse_cross_traffic` accepts."""

    def accept(self, value: Any) -> str:
        text = super().accept(value)
        from h3sim.transport.network import parse_cross_traffic  # lazy: few loads have any

        with _rejecting(lambda _: ""):
            parse_cross_traffic(text)
        return text


class ControllerOption(Text):
    """Field type: the name of a congestion controller, or a class or function that makes one."""

    def accept(self, value: Any) -> Any:
        if isinstance(value, str):
            return super().accept(value)
        from h3sim.transport.congestion import controller_named  # lazy: most values are text

        with _rejecting(str):
            controller_named(value)  # raises if it is no controller
        return value


class CodecName(Text):
    """Field type: the name of a header codec, "none", or a `HeaderCompression`."""

    def accept(self, value: Any) -> Any:
        from h3sim.headers import CODEC_NAMES, HeaderCompression  # lazy: few loads have any

        if isinstance(value, HeaderCompression):
            return value
        text = super().accept(value)
        if text not in (NO_CODEC, *CODEC_NAMES):
            raise RejectedValueError(format_choices(text, (NO_CODEC, *CODEC_NAMES)))
        return text


class NameOf(Choice):
    """Field type: the name of a member of an enumeration, which stays a name."""

    def accept(self, value: Any) -> Any:
        return super().accept(value).value


class HandshakeOption(NameOf):
    """Field type: a handshake mode; True and False mean "1-rtt" and "none"."""

    def accept(self, value: Any) -> Any:
        return value if isinstance(value, bool) else super().accept(value)


class BrowserOption(NameOf):
    """Field type: the name of a browser mode, or a `BrowserModel`."""

    def accept(self, value: Any) -> Any:
        return value if isinstance(value, BrowserModel) else super().accept(value)


def option_of(cls: type, attribute: str) -> Option:
    """Return the command-line form of that field of a class of options."""
    field_of_cls = next(item for item in fields(cls) if item.name == attribute)
    form: Option = field_of_cls.metadata[OPTION_KEY]
    return form


_OPTION_BY_NETWORK_KEY = {"loss_burst": "mean_loss_burst"}
"""Options by the keys of a network file that have another name."""


def flags_of(cls: type) -> dict[str, dict[str, Any]]:
    """Return the command-line flags of each field of a class of options.

    Each flag has the value that it sets, or None if a value follows it.
    """
    return {
        entry.attribute: {
            flag: str(value).lower() for flag, value, _ in option_of(cls, entry.attribute).switches
        }
        or {f"--{entry.attribute}".replace("_", "-"): None}
        for entry in fields_of(cls)
    }


def switch_of(cls: type, key: str, value: Any) -> str:
    """Return the flag that set a field of *cls*, or a key of a network, to *value*.

    >>> from h3sim import LoadConfig
    >>> switch_of(LoadConfig, "handshake", "0-rtt"), switch_of(LoadConfig, "loss_burst", 2)
    ('--zero-rtt', '--mean-loss-burst')
    """
    name = key.partition(".")[0]
    name = _OPTION_BY_NETWORK_KEY.get(name, name)
    for flag, setting in flags_of(cls).get(name, {}).items():
        if setting == str(value).lower():
            return flag
    return f"--{name}".replace("_", "-")


LEVEL = Number(low=0, high=1, is_above=True, is_below=True)
"""Confidence, significance level or power."""
NETWORK_NAMES = Predicate(
    "a list of names",
    lambda value: isinstance(value, list | tuple) and all(isinstance(name, str) for name in value),
)
"""List of names of networks."""
SEED = Integer(low=0, high=2**63 - 1, hint="2^63 - 1")
"""Random seed."""
SAMPLING = Choice(("latin-hypercube", "sobol"))
"""Sampling method."""
N_SAMPLES = Integer(low=1, high=10**6)
"""Number of samples."""
SAMPLE_MS = OrNone(Number(low=0, high=1e9, is_above=True), none=None)
"""Sampling interval of ByteIndex in ms; None for the exact integral."""


_RUNNER_ARGUMENTS: dict[str, ValueType] = {
    "store": OrNone(PATH),
    "executor": Predicate(
        "'serial', 'processes', 'auto', a concurrent.futures.Executor or a dask.distributed client",
        lambda value: (
            value is None
            or (isinstance(value, str) and value in ("serial", "processes", "auto"))
            or (hasattr(value, "submit") and not isinstance(value, type))
        ),
    ),
    "workers": OrNone(Integer(low=1)),
    "retry_failed": Flag(),
    "progress": Predicate(
        "a callable, True or False",
        lambda value: value is None or isinstance(value, bool) or callable(value),
    ),
}


def check_running(**given: object) -> dict[str, Any]:
    """Validate arguments that control how a study runs, such as its workers, and return them.

    Raises:
        InputError: listing every invalid argument.
    """
    typed = {key: (_RUNNER_ARGUMENTS[key], value) for key, value in given.items()}
    return check_arguments(InputError, **typed)


def check_known(**given: tuple[object, Iterable[object]]) -> None:
    """Refuse unknown values: each argument is *given* as a value and its allowed values.

    Raises:
        InputError: with one issue per unknown value.
    """
    issues = []
    for key, (value, values) in given.items():
        known = list(dict.fromkeys(values))
        if value not in known:
            choices = join_words(map(str, known), near=value)
            message = f"there is no {format_value(value)}; choose from {choices}"
            issues.append(ValidationIssue(key=key, message=message))
    refuse(issues)


def check_some(**given: Sequence[object]) -> None:
    """Refuse empty sequences.

    Raises:
        InputError: with one issue per empty sequence.
    """
    empty = (key for key, values in given.items() if not values)
    refuse(ValidationIssue(key=key, message="at least one is needed") for key in empty)


def refuse(issues: Iterable[ValidationIssue]) -> None:
    """Raise *issues*, if there are any.

    Raises:
        InputError: listing them.
    """
    if found := tuple(issues):
        raise InputError(found)

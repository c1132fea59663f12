"""One family of errors; every error that h3sim raises on purpose derives from `H3SimError`.

>>> issubclass(PageError, H3SimError) and issubclass(UnknownNameError, KeyError)
True
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from h3sim.values.likeness import names_like
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "ConnectionTimeoutError",
    "ControllerError",
    "H3SimError",
    "InputError",
    "MissingExtraError",
    "NetworkError",
    "NothingToMeasureError",
    "PageError",
    "SchedulerError",
    "SchemeError",
    "StalledError",
    "Terminated",
    "UnknownNameError",
    "UnknownOptionError",
    "ValidationIssue",
    "interrupt_note",
    "needing_extra",
    "raised_words",
    "require_extra",
]


_MAX_SHOWN_RESOURCES = 5
"""Most resource names in the message of a stalled load; the others are only counted."""
_MAX_SHOWN_PROBLEMS = 100
"""Most errors of an input that are listed; the others are only counted."""
_MAX_SHOWN_CHARACTERS = 200
"""Most characters of a key or name in a message: those in a file have no limit."""


class H3SimError(Exception):
    """The root of every error that h3sim raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationIssue:
    """One error in an input: its key, and a message about the value of that key.

    As text it is one line, whatever characters the key and the message contain.

    >>> print(ValidationIssue(key="resources[2].bytes", message="must not be negative, is -5"))
    resources[2].bytes: must not be negative, is -5
    """

    key: str
    message: str

    def __str__(self) -> str:
        is_short = len(self.key) <= _MAX_SHOWN_CHARACTERS
        key = self.key if is_short else f"{self.key[:_MAX_SHOWN_CHARACTERS]}..."
        return escape_control(f"{key}: {self.message}" if key else self.message)


class NotReusedWarning(UserWarning):
    """A scheduler or controller cannot be identified: a store does not reuse its loads."""


class InputError(H3SimError, ValueError):
    """Invalid input; `problems` lists every error in `source`.

    >>> issue = ValidationIssue(key="rtt_ms", message="must not be negative")
    >>> error = InputError([issue], "a.toml")
    >>> error.lines()
    ['a.toml: rtt_ms: must not be negative']
    """

    argument = ""
    """The argument that named the invalid file, if known."""

    def __init__(self, problems: Iterable[ValidationIssue], source: str = "") -> None:
        self.problems: tuple[ValidationIssue, ...] = tuple(problems)
        self.source = source if isinstance(source, str) else repr(source)[:_MAX_SHOWN_CHARACTERS]
        super().__init__("\n".join(self.lines()))

    @classmethod
    def at(cls, key: str, message: str, source: str = "") -> Self:
        """Return the error of a single issue.

        >>> InputError.at("rtt_ms", "must not be negative").lines()
        ['rtt_ms: must not be negative']
        """
        return cls([ValidationIssue(key=key, message=message)], source)

    # Workers send errors to the main process. By default pickle would pass `args`, the text only.
    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[ValidationIssue, ...], str]]:
        return type(self), (self.problems, self.source)

    def lines(self) -> list[str]:
        """Return one line per error, preceded by the source if there is one.

        Of more than a hundred errors the last line says how many more there are.
        """
        prefix = f"{escape_control(self.source)}: " if self.source else ""
        lines = [f"{prefix}{problem}" for problem in self.problems[:_MAX_SHOWN_PROBLEMS]]
        n_omitted = len(self.problems) - len(lines)
        if n_omitted:
            lines.append(f"{prefix}and {n_omitted:,} more mistake{'s' * (n_omitted > 1)}")
        return lines


class UnknownOptionError(InputError, TypeError):
    """A function was called with a keyword argument that it does not accept."""


class PageError(InputError):
    """A page cannot be loaded as it is described."""


class SchemeError(InputError):
    """A scheme's description is invalid."""


class NetworkError(InputError):
    """A network's description is invalid."""


class UnknownNameError(H3SimError, KeyError):
    """No scheme, network or page has this name; `nearest` are known names of similar spelling.

    *shown_by* is the command that lists all names, `h3sim list <kind>s` by default.

    >>> print(UnknownNameError("scheme", "buket", ["bucket", "fifo", "rr"]))
    no scheme is called 'buket'; did you mean bucket? (`h3sim list schemes` shows all)
    """

    argument = ""
    """The argument that was the unknown name, if known."""

    def __init__(
        self, kind: str, name: str, known: Sequence[str], shown_by: str | None = None
    ) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        self.shown_by = shown_by or f"h3sim list {kind}s"
        self.nearest = tuple(names_like(name, known))
        super().__init__(kind, name, self.known, self.shown_by)

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        name = repr(self.name)[:_MAX_SHOWN_CHARACTERS]
        return escape_control(
            f"no {self.kind} is called {name}{hint} (`{self.shown_by}` shows all)"
        )


class StalledError(H3SimError, RuntimeError):
    """A load could not be completed; `waiting` names the resources that did not arrive.

    *limit_ns* is the simulated time at which it was stopped, or None if no event was left;
    *n_events* the number of events by then, if it was stopped for that. *because* is the cause, if
    known.

    >>> print(StalledError(["a.css"], because="the scheduler 'mine' picks nobody"))
    nothing more can happen, still waiting for a.css: the scheduler 'mine' picks nobody
    """

    GIVEN_UP: ClassVar[str] = "given up after"
    """The start of the message of a load stopped at a limit. Studies store only the message, and
    recognize such loads by it."""
    _stopped_words: ClassVar[str] = GIVEN_UP

    def __init__(
        self,
        waiting: Sequence[str],
        limit_ns: int | None = None,
        n_events: int | None = None,
        because: str = "",
    ) -> None:
        self.waiting = tuple(waiting)
        self.limit_ns = limit_ns
        self.n_events = n_events
        self.because = because
        reason = "nothing more can happen"
        if limit_ns is not None:
            reason = f"{self._stopped_words} {limit_ns / 1e9:g} s of simulated time"
        if n_events is not None:
            reason = f"{reason} and {n_events:,} events"
        shown = ", ".join(self.waiting[:_MAX_SHOWN_RESOURCES])
        n_omitted = len(self.waiting) - _MAX_SHOWN_RESOURCES
        more = f" and {n_omitted} more" if n_omitted > 0 else ""
        cause = f": {because}" if because else ""
        super().__init__(escape_control(f"{reason}, still waiting for {shown}{more}{cause}"))

    # Workers send errors to the main process. By default pickle would pass `args`, the text only.
    def __reduce__(
        self,
    ) -> tuple[type[StalledError], tuple[tuple[str, ...], int | None, int | None, str]]:
        return type(self), (self.waiting, self.limit_ns, self.n_events, self.because)


class ConnectionTimeoutError(StalledError):
    """A connection of a load was given up by one of its ends, as its peer stayed silent.

    *limit_ns* is the simulated time at which that happened, *because* the rule.

    >>> print(ConnectionTimeoutError(["a.css"], 41 * 10**9, because="idle timeout"))
    connection timed out after 41 s of simulated time, still waiting for a.css: idle timeout
    """

    TIMED_OUT: ClassVar[str] = "connection timed out after"
    """The start of the message, as `GIVEN_UP`."""
    _stopped_words: ClassVar[str] = TIMED_OUT


class _PartError(H3SimError, RuntimeError):
    """A user's scheduler or controller *name* violated its contract; *what* is the predicate."""

    _kind: ClassVar[str]
    """The noun before the name in the message."""

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        self.what = what
        super().__init__(name, what)

    def __str__(self) -> str:
        return escape_control(f"the {self._kind} {self.name!r} {self.what}")


class SchedulerError(_PartError):
    """The user's scheduler *name* violated the contract of schedulers; *what* is the predicate.

    >>> print(SchedulerError("mine", "picks stream 8, which is not open"))
    the scheduler 'mine' picks stream 8, which is not open
    """

    _kind = "scheduler"


class SchedulerTimeoutError(SchedulerError):
    """A scheduler in another process did not answer in time."""


class ControllerError(_PartError):
    """The user's congestion controller *name* violated its contract; *what* is the predicate.

    >>> print(ControllerError("mine", "on_acked() raised KeyError: 7"))
    the controller 'mine' on_acked() raised KeyError: 7
    """

    _kind = "controller"


class NothingToMeasureError(H3SimError, ValueError):
    """A metric was requested that is undefined for this load."""


class MissingExtraError(H3SimError, ImportError):
    """An optional library is not installed; the message has the command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"this needs {package}: pip install 'h3sim[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


@contextlib.contextmanager
def needing_extra(package: str, extra: str) -> Iterator[None]:
    """Turn an ImportError inside the block into advice to install h3sim's *extra*.

    Raises:
        MissingExtraError: if *package* is not installed.

    >>> with needing_extra("scipy", "study"):
    ...     import no_such_module
    Traceback (most recent call last):
    h3sim.values.errors.MissingExtraError: this needs scipy: pip install 'h3sim[study]'
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra) from error


def require_extra(package: str, extra: str) -> None:
    """Check that *package*, of h3sim's *extra*, is installed, before long work that needs it.

    Raises:
        MissingExtraError: if *package* is not installed.
    """
    from importlib.util import find_spec  # on use: importing h3sim should stay quick

    if find_spec(package) is None:
        raise MissingExtraError(package, extra)


class Terminated(SystemExit):
    """A signal asked this process to end. Any other `SystemExit` may be an error of user code."""


@contextlib.contextmanager
def interrupt_note(note: Callable[[], str]) -> Iterator[None]:
    """Add a note to a KeyboardInterrupt, such as where finished results are.

    Python shows the note after the traceback, the command line without one.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        # A new exception has a short traceback: the place in a load where the user interrupted it
        # is of no interest, and would hide the note.
        without_traceback = KeyboardInterrupt(*interrupt.args)
        for line in (*getattr(interrupt, "__notes__", ()), note()):
            without_traceback.add_note(line)
        raise without_traceback from None


def raised_words(error: BaseException) -> str:
    """Return the type and the message of an error.

    >>> raised_words(KeyError(4)), raised_words(ValueError())
    ('KeyError: 4', 'ValueError')
    """
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

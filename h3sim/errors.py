"""One family of errors; every error that h3sim raises on purpose derives from `H3SimError`.

>>> issubclass(PageError, H3SimError) and issubclass(UnknownNameError, KeyError)
True
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from h3sim.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
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


_SHOWN = 5
"""So many names stand in a message; the rest are counted."""
_SHOWN_PROBLEMS = 100
"""So many mistakes are told; the rest are counted."""
_SHOWN_KEY = 200
"""So many characters of a key are shown, which is as long as a name in a file."""


class H3SimError(Exception):
    """The root of every error that h3sim raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationIssue:
    """One mistake in what was given: the key it stands at, and what is wrong there.

    As text it is one line, whatever stands in the key or the message.

    >>> print(ValidationIssue(key="resources[2].bytes", message="must not be negative, is -5"))
    resources[2].bytes: must not be negative, is -5
    """

    key: str
    message: str

    def __str__(self) -> str:
        key = self.key if len(self.key) <= _SHOWN_KEY else f"{self.key[:_SHOWN_KEY]}..."
        return escape_control(f"{key}: {self.message}" if key else self.message)


class InputError(H3SimError, ValueError):
    """Invalid input; `problems` lists every error in `source`.

    >>> issue = ValidationIssue(key="rtt_ms", message="must not be negative")
    >>> error = InputError([issue], "a.toml")
    >>> error.lines()
    ['a.toml: rtt_ms: must not be negative']
    """

    argument = ""
    """The argument that named the file in which it is wrong, where that is known."""

    def __init__(self, problems: Iterable[ValidationIssue], source: str = "") -> None:
        self.problems: tuple[ValidationIssue, ...] = tuple(problems)
        self.source = source if isinstance(source, str) else repr(source)[:_SHOWN_KEY]
        super().__init__("\n".join(self.lines()))

    @classmethod
    def of(cls, key: str, message: str, source: str = "") -> Self:
        """Return the error of a single mistake.

        >>> print(InputError.of("rtt_ms", "must not be negative"))
        rtt_ms: must not be negative
        """
        return cls([ValidationIssue(key=key, message=message)], source)

    # An exception is pickled with its `args`, here the text alone: workers hand errors to others.
    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[ValidationIssue, ...], str]]:
        return type(self), (self.problems, self.source)

    def lines(self) -> list[str]:
        """Return one line per mistake, with the source in front where there is one.

        Of more than a hundred mistakes the last line says how many more there are.
        """
        prefix = f"{escape_control(self.source)}: " if self.source else ""
        lines = [f"{prefix}{problem}" for problem in self.problems[:_SHOWN_PROBLEMS]]
        rest = len(self.problems) - len(lines)
        if rest:
            lines.append(f"{prefix}and {rest:,} more mistake{'s' * (rest > 1)}")
        return lines


class UnknownOptionError(InputError, TypeError):
    """A function was called with an argument that it does not have."""


class PageError(InputError):
    """A page cannot be loaded as it is described."""


class SchemeError(InputError):
    """A scheme's row cannot be used."""


class NetworkError(InputError):
    """A network's description cannot be used."""


class UnknownNameError(H3SimError, KeyError):
    """No scheme, network or page goes by this name; `nearest` holds the ones that are spelt alike.

    *shown_by* is what shows all that there are; `h3sim list` unless told otherwise.

    >>> print(UnknownNameError("scheme", "buket", ["bucket", "fifo", "rr"]))
    no scheme is called 'buket'; did you mean bucket? (`h3sim list schemes` shows all)
    """

    argument = ""
    """The argument that was given so, where that is known."""

    def __init__(
        self, kind: str, name: str, known: Sequence[str], shown_by: str | None = None
    ) -> None:
        import difflib  # on use: importing h3sim should stay quick

        self.kind = kind
        self.name = name
        self.known = tuple(known)
        self.shown_by = shown_by or f"h3sim list {kind}s"
        is_short = isinstance(name, str) and len(name) <= _SHOWN_KEY
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) if is_short else ()
        self.nearest = tuple(near)
        super().__init__(kind, name, self.known, self.shown_by)

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        name = repr(self.name)[:_SHOWN_KEY]
        return escape_control(
            f"no {self.kind} is called {name}{hint} (`{self.shown_by}` shows all)"
        )


class StalledError(H3SimError, RuntimeError):
    """A load did not come to its end; `waiting` names the resources that did not arrive.

    *limit_ns* is the time at which it was given up, or None if nothing more could happen;
    *n_events* how many events there had been by then, if that was the reason. *because* says what
    is at fault, where that is known.

    >>> print(StalledError(["a.css"], because="the scheduler 'mine' picks nobody"))
    nothing more can happen, still waiting for a.css: the scheduler 'mine' picks nobody
    """

    GIVEN_UP = "given up after"
    """The start of the message of a load stopped at its limit: rows of studies keep only that."""

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
        what = "nothing more can happen"
        if limit_ns is not None:
            what = f"{self.GIVEN_UP} {limit_ns / 1e9:g} s of simulated time"
        if n_events is not None:
            what = f"{what} and {n_events:,} events"
        shown = ", ".join(self.waiting[:_SHOWN])
        more = f" and {len(self.waiting) - _SHOWN} more" if len(self.waiting) > _SHOWN else ""
        why = f": {because}" if because else ""
        super().__init__(escape_control(f"{what}, still waiting for {shown}{more}{why}"))

    # The `args` are the text, of which it could not be made again in another process.
    def __reduce__(
        self,
    ) -> tuple[type[StalledError], tuple[tuple[str, ...], int | None, int | None, str]]:
        return type(self), (self.waiting, self.limit_ns, self.n_events, self.because)


class _PartError(H3SimError, RuntimeError):
    """A part that is not h3sim's, called *name*, did what it may not; *what* says it."""

    _kind: ClassVar[str]

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        self.what = what
        super().__init__(name, what)

    def __str__(self) -> str:
        return escape_control(f"the {self._kind} {self.name!r} {self.what}")


class SchedulerError(_PartError):
    """The scheduler *name*, which is not h3sim's, did what no scheduler may; *what* says it.

    >>> print(SchedulerError("mine", "picks stream 8, which is not open"))
    the scheduler 'mine' picks stream 8, which is not open
    """

    _kind = "scheduler"


class SchedulerTimeoutError(SchedulerError):
    """A scheduler in another process does not answer in time."""


class ControllerError(_PartError):
    """The controller *name*, which is not h3sim's, did what none may, as `SchedulerError`.

    >>> print(ControllerError("mine", "on_acked() raised KeyError: 7"))
    the controller 'mine' on_acked() raised KeyError: 7
    """

    _kind = "controller"


class NothingToMeasureError(H3SimError, ValueError):
    """A figure was asked for that this load cannot give."""


class MissingExtraError(H3SimError, ImportError):
    """An optional library is not installed; the message holds the pip line that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"this needs {package}: pip install 'h3sim[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


@contextlib.contextmanager
def needing_extra(package: str, extra: str) -> Iterator[None]:
    """Import inside what the *extra* of h3sim brings; without it, say how to install it.

    Raises:
        MissingExtraError: if *package* is not installed.

    >>> with needing_extra("scipy", "study"):
    ...     import no_such_module
    Traceback (most recent call last):
    h3sim.errors.MissingExtraError: this needs scipy: pip install 'h3sim[study]'
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra) from error


def require_extra(package: str, extra: str) -> None:
    """Refuse work whose end needs *package*, of the *extra* of h3sim, before it is begun.

    Raises:
        MissingExtraError: if *package* is not installed.
    """
    from importlib.util import find_spec  # on use: importing h3sim should stay quick

    if find_spec(package) is None:
        raise MissingExtraError(package, extra)


class Terminated(SystemExit):
    """Somebody asked this process to end; another `SystemExit` may be a mistake of what runs."""


@contextlib.contextmanager
def interrupt_note(note: Callable[[], str]) -> Iterator[None]:
    """Add a note on what is kept to a KeyboardInterrupt.

    Python shows the note after the traceback, the command line without one.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        # A new one: where in a load the interrupt came is of no use, and would hide the note.
        short = KeyboardInterrupt(*interrupt.args)
        for line in (*getattr(interrupt, "__notes__", ()), note()):
            short.add_note(line)
        raise short from None


def raised_words(error: BaseException) -> str:
    """Return what kind of error that is, and what it says.

    >>> raised_words(KeyError(4)), raised_words(ValueError())
    ('KeyError: 4', 'ValueError')
    """
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

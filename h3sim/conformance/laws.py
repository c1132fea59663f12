"""The laws of schedulers by name, what says that one is broken, and the report of a check."""

from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis import settings

    from h3sim.conformance.subject import Candidate


class Law(enum.Enum):
    """Laws that schedulers are checked against, each with name and meaning, in checking order.

    This is the list. The function, the class, the fixture and the report all read it; what looks
    at a law is the function that is marked as its `Check`.

    Those before "strict-order" follow from `h3sim.schedulers.Scheduler` and hold for every
    scheduler; so do those from "frees-memory" on, unless it is said why not. Those between are held
    only by who claims them.

    >>> Law("pure-pick").meaning
    'asking changes nothing'
    """

    meaning: str
    """The law in a sentence."""

    def __new__(cls, name: str, meaning: str) -> Law:
        """Make the name the value."""
        law = object.__new__(cls)
        law._value_ = name
        law.meaning = meaning
        return law

    WORK_CONSERVING = "work-conserving", "a stream is picked as long as one is active"
    EVERY_BYTE_ONCE = (
        "every-byte-once",
        "each response is sent to its end, and no stream is picked after that",
    )
    PICKS_ONLY_READY = "picks-only-ready", "only a stream that is open and active is picked"
    DETERMINISTIC = "deterministic", "equal histories lead to equal picks"
    PURE_PICK = "pure-pick", "asking changes nothing"
    SAME_IN_EVERY_PROCESS = (
        "same-in-every-process",
        "no hash and no address decides, so all processes pick alike",
    )
    STRICT_ORDER = "strict-order", "no stream is picked while one of a lower rank is active"
    WEIGHTED_SHARES = (
        "weighted-shares",
        "streams that are active together have turns by their weights",
    )
    BYTE_SHARES = (
        "byte-shares",
        "streams that are active together send bytes by their weights, however long packets are",
    )
    NO_STARVATION = (
        "no-starvation",
        "an active stream has its turn within a bounded number of turns",
    )
    BOUNDED_WAIT = (
        "bounded-wait",
        "while a stream waits, no other has more turns than it may",
    )
    UPDATES_AT_ONCE = (
        "updates-at-once",
        "order and shares follow the last signal, from the next pick on",
    )
    SAME_AS = "same-as", "the picks are those of the reference"
    FREES_MEMORY = "frees-memory", "what is closed takes up no memory"
    PICKLES = "pickles", "a pickled scheduler goes on as the original does"
    CHEAP_PICKS = (
        "cheap-picks",
        "ten times the streams do not take three times the work for a turn",
    )
    NEVER_RAISES = "never-raises", "no history that keeps the contract raises an exception"


@dataclass(frozen=True, slots=True)
class Check:
    """Check of *law*: called with a candidate and with how long to search.

    It raises `BrokenLawError` where the law is broken, and `NotCheckedError` where it is not
    claimed or cannot be looked at.
    """

    law: Law
    look: Callable[[Candidate, settings], None]

    def __call__(self, candidate: Candidate, budget: settings) -> None:
        """Hold *candidate* to the law."""
        __tracebackhide__ = True
        self.look(candidate, budget)


def checks(law: Law) -> Callable[[Callable[[Candidate, settings], None]], Check]:
    """Mark a function as what looks at *law*."""
    return partial(Check, law)


class BrokenLawError(AssertionError):
    """A scheduler broke *law*: in a sentence how, and the shortest history that was found.

    >>> print(BrokenLawError(Law.PURE_PICK, "picked 4, then 8", ("open(4, None)", "pick() -> 4")))
    pure-pick: picked 4, then 8
      open(4, None)
      pick() -> 4
    """

    scheduler = "make_scheduler()"
    """The expression that makes the scheduler, as far as it is known."""

    def __init__(self, law: Law, sentence: str, history: Sequence[str] = ()) -> None:
        self.law = law
        self.sentence = sentence
        self.history = tuple(history)
        super().__init__(law, sentence, self.history)

    def as_test(self) -> str:
        """Return the history as the source of a test, which fails as long as it happens.

        It has what the scheduler is told and picks, and none of the suite: where the history does
        not show by its picks that the law is broken, the test is empty text.

        >>> history = ("open(4, Eps(urgency=1))", "activate(4)", "pick() -> None")
        >>> print(BrokenLawError(Law.WORK_CONSERVING, "nobody is picked", history).as_test())
        from h3sim.signals import Eps
        <BLANKLINE>
        <BLANKLINE>
        def test_work_conserving():
            scheduler = make_scheduler()
            picks = []
            scheduler.open(4, Eps(urgency=1))
            scheduler.activate(4)
            picks.append(scheduler.pick())
            assert picks != [None], "nobody is picked"
        """
        if not self.history or self.law in _NOT_SHOWN_BY_PICKS:
            return ""
        picks: list[str] = []
        body = [line for entry in self.history for line in _statements(entry, picks)]
        if self.law is not Law.NEVER_RAISES:
            body.append(f"assert picks != [{', '.join(picks)}], {json.dumps(self.sentence)}")
        names = sorted({*re.findall(r"\b[A-Z]\w+(?=\()", "\n".join(body))} & {*_SIGNAL_NAMES})
        imports = [f"from h3sim.signals import {', '.join(names)}"] if names else []
        if self.scheduler.startswith("DriverScheduler("):
            imports.insert(0, "from h3sim.schedulers import DriverScheduler")
        imports += ["", ""] if imports else []
        head = [f"def test_{self.law.value.replace('-', '_')}():"]
        body = [f"scheduler = {self.scheduler}", "picks = []", *body]
        return "\n".join([*imports, *head, *(f"    {line}" for line in body)])

    def __str__(self) -> str:
        head = f"{self.law.value}: {self.sentence}"
        return "\n".join([head, *(f"  {line}" for line in self.history)])


_NOT_SHOWN_BY_PICKS = (
    *(Law.DETERMINISTIC, Law.SAME_IN_EVERY_PROCESS, Law.FREES_MEMORY, Law.PICKLES),
    Law.CHEAP_PICKS,
)
_SIGNAL_NAMES = ("BucketPriority", "Eps", "H2Priority", "Rank", "StrictPriority")
_PICK = re.compile(r"pick\(\) -> (.*?)(?:; charge\(.*, (\d+)\))?(?:  \((\d+) times\))?$")
_OTHER = re.compile(r"(.*?)(?:  \((\d+) times\))?$")


def _statements(line: str, picks: list[str]) -> list[str]:
    """Return what a line of a history is in Python; what it picks is added to *picks*."""
    pick = _PICK.match(line)
    if pick is None:
        other = _OTHER.match(line)
        assert other is not None  # noqa: S101 - it matches any line
        return [f"scheduler.{other[1]}"] * int(other[2] or 1)
    picked, n_bytes, count = pick[1], pick[2], int(pick[3] or 1)
    picks += [picked] * count
    statements = ["picks.append(scheduler.pick())"]
    if n_bytes is not None:
        statements.append(f"scheduler.charge(picks[-1], {n_bytes})")
    if count == 1:
        return statements
    return [f"for _ in range({count}):", *(f"    {statement}" for statement in statements)]


class NotCheckedError(Exception):
    """A law was not looked at, for the reason that the message gives."""


class HistoryEndedError(Exception):
    """A scheduler that may raise did, so that its history cannot be lived through to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawVerdict:
    """Outcome of one law: kept, or not checked for the reason in *skipped*."""

    law: Law
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped is None:
            return f"kept     {self.law.value}: {self.law.meaning}"
        return f"skipped  {self.law.value}: {self.skipped}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """The verdicts about one scheduler, in the order of `Law`."""

    scheduler: str
    verdicts: tuple[LawVerdict, ...]

    @property
    def passed(self) -> tuple[Law, ...]:
        """The laws that were checked and held."""
        return tuple(verdict.law for verdict in self.verdicts if verdict.skipped is None)

    @property
    def skipped(self) -> dict[Law, str]:
        """The laws that were not looked at, each with the reason."""
        return {v.law: v.skipped for v in self.verdicts if v.skipped is not None}

    def __str__(self) -> str:
        return "\n".join([self.scheduler, *(f"  {verdict}" for verdict in self.verdicts)])

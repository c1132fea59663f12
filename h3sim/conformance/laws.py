"""The laws of schedulers, the error that reports a broken law, and the report of a check."""

from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Law(enum.Enum):
    """Laws that schedulers are checked against, each with name and meaning, in checking order.

    The function, the class, the fixture and the report of the suite all use this list. Each law is
    checked by the function that is marked as its `Check`.

    Laws before "signals-count" follow from `h3sim.schedulers.Scheduler` and hold for every
    scheduler, and so do those from "frees-memory" on, unless they are skipped for a stated reason.
    "signals-count", "no-lasting-debt", and parts of "no-starvation" and "updates-at-once" hold for
    schedulers whose picks depend on signals. The others are checked only if they are claimed.

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
    SIGNALS_COUNT = (
        "signals-count",
        "what is more urgent or heavier goes first and has more turns, in pairs and in crowds",
    )
    NO_LASTING_DEBT = (
        "no-lasting-debt",
        "what happened before does not change shares for long",
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


class BrokenLawError(AssertionError):
    """A scheduler broke *law*: how, in a sentence, and the shortest history that was found.

    >>> print(BrokenLawError(Law.PURE_PICK, "picked 4, then 8", ("open(4, None)", "pick() -> 4")))
    pure-pick: picked 4, then 8
      open(4, None)
      pick() -> 4
    """

    scheduler = "make_scheduler()"
    """The expression that makes the scheduler, as far as it is known."""
    scheduler_import = ""
    """The import statement that the expression needs; empty if none is known."""

    def __init__(
        self, law: Law, sentence: str, history: Sequence[str] = (), kept: str = ""
    ) -> None:
        self.law = law
        self.sentence = sentence
        self.history = tuple(history)
        self.kept = kept
        """Python expression of what the law demands of the list `picks`; empty if unknown."""
        super().__init__(law, sentence, self.history, kept)

    def anew(self) -> BrokenLawError:
        """Return the same error without its traceback and its cause."""
        return BrokenLawError(self.law, self.sentence, self.history, self.kept)

    @property
    def demand(self) -> str:
        """The demand on `picks` as a Python expression; empty if only that none raises."""
        if self.law is Law.NEVER_RAISES:
            return ""
        lines = map(HistoryLine.of, self.history)
        picks = ", ".join(line.picked for line in lines for _ in range(line.n_times) if line.picked)
        return self.kept or f"picks != [{picks}]"

    def as_test(self) -> str:
        """Return the history as the source of a test, which fails as long as the law is broken.

        The test consists of calls of the scheduler and its picks, and does not need the suite. It
        demands of the picks what the law says about this history. It is empty if the picks alone do
        not show that the law is broken.

        >>> history = ("open(4, Eps(urgency=1))", "activate(4)", "pick() -> None")
        >>> broken = BrokenLawError(
        ...     Law.WORK_CONSERVING, "nobody is picked", history, kept="picks[-1] is not None"
        ... )
        >>> print(broken.as_test())
        from h3sim.signals import Eps
        <BLANKLINE>
        <BLANKLINE>
        def test_work_conserving():
            scheduler = make_scheduler()
            picks = []
            scheduler.open(4, Eps(urgency=1))
            scheduler.activate(4)
            picks.append(scheduler.pick())
            assert picks[-1] is not None, "nobody is picked"
        """
        if not self.history or self.law in _LAWS_WITHOUT_TEST:
            return ""
        lines = map(HistoryLine.of, self.history)
        body = _looped([(line.statements(), line.n_times) for line in lines])
        if self.demand:
            body.append(f"assert {self.demand}, {json.dumps(self.sentence)}")
        called_names = set(re.findall(r"\b[A-Z]\w+(?=\()", "\n".join(body)))
        signal_names = sorted(called_names.intersection(_SIGNAL_NAMES))
        imports = [f"from h3sim.signals import {', '.join(signal_names)}"] if signal_names else []
        if self.scheduler_import:
            imports.append(self.scheduler_import)
        imports = [*sorted(imports), "", ""] if imports else []
        head = [f"def test_{self.law.value.replace('-', '_')}():"]
        body = [f"scheduler = {self.scheduler}", "picks = []", *body]
        return "\n".join([*imports, *head, *(f"    {line}" for line in body)])

    def __str__(self) -> str:
        head = f"{self.law.value}: {self.sentence}"
        return "\n".join([head, *(f"  {line}" for line in _folded(self.history))])


_MOST_FOLDED = 8
"""The most lines of a cycle that is folded."""


def _folded(lines: Sequence[str]) -> list[str]:
    """Return the lines with cycles of them, as of long shares, once and with their number.

    >>> _folded(["a", "b", "a", "b", "a", "b"])
    ['a', 'b', '(these 2 lines 3 times)']
    """
    folded: list[str] = []
    index = 0
    while index < len(lines):
        for size in range(2, _MOST_FOLDED + 1):
            cycle, n_times = [*lines[index : index + size]], 1
            while [*lines[index + n_times * size : index + (n_times + 1) * size]] == cycle:
                n_times += 1
            if n_times > 2 and len(cycle) == size:
                folded += [*cycle, f"(these {size} lines {n_times} times)"]
                index += n_times * size
                break
        else:
            folded.append(lines[index])
            index += 1
    return folded


_LAWS_WITHOUT_TEST = (
    Law.DETERMINISTIC,
    Law.SAME_IN_EVERY_PROCESS,
    Law.FREES_MEMORY,
    Law.PICKLES,
    Law.CHEAP_PICKS,
)
"""Laws whose breach the picks of one scheduler do not show."""
_SIGNAL_NAMES = ("BucketPriority", "Eps", "H2Priority", "Rank", "StrictPriority")
"""Names of the signals that a test may have to import."""
_LINE = re.compile(
    r"(?:pick\(\) -> (?P<picked>.*?)(?:; charge\(.*, (?P<n_bytes>\d+)\))?|(?P<call>.*?))"
    r"(?:  \((?P<count>\d+) times\))?$"
)


class HistoryLine(NamedTuple):
    """A line of a history: a *call*, or a pick with *n_bytes* that are charged; *n_times*."""

    call: str
    picked: str
    n_bytes: int | None
    n_times: int

    @classmethod
    def of(cls, line: str) -> HistoryLine:
        """Return a line from its text.

        >>> HistoryLine.of("pick() -> 4; charge(4, 600)  (2 times)")
        HistoryLine(call='', picked='4', n_bytes=600, n_times=2)
        """
        found = _LINE.match(line)
        assert found is not None  # noqa: S101 - it matches any line
        call, picked, n_bytes, count = found.group("call", "picked", "n_bytes", "count")
        charged = None if n_bytes is None else int(n_bytes)
        return cls(call or "", picked or "", charged, int(count or 1))

    def statements(self) -> tuple[str, ...]:
        """Return it as Python statements."""
        if not self.picked:
            return (f"scheduler.{self.call}",)
        charged = self.n_bytes is not None
        charge = (f"scheduler.charge(picks[-1], {self.n_bytes})",) if charged else ()
        return ("picks.append(scheduler.pick())", *charge)


def _looped(steps: Sequence[tuple[tuple[str, ...], int]]) -> list[str]:
    """Return the lines of statements, with loops for equal ones in a row."""
    lines: list[str] = []
    for statements, equal in groupby(steps, key=itemgetter(0)):
        count = sum(n for _, n in equal)
        if count == 1 or len(statements) == 1 < count < 3:
            lines += statements * count
        else:
            lines += [f"for _ in range({count}):", *(f"    {each}" for each in statements)]
    return lines


class NotCheckedError(Exception):
    """A law was not checked, for the reason in the message."""


class HistoryEndedError(Exception):
    """A scheduler that may raise an error did, so that its history cannot be played to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawVerdict:
    """Outcome of one law: kept, *broken*, or not checked for the reason in *skipped*."""

    law: Law
    skipped: str | None = None
    broken: BrokenLawError | None = None

    def __str__(self) -> str:
        if self.broken is not None:
            return "\n  ".join(f"broken   {self.broken}".splitlines())
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
        return tuple(v.law for v in self.verdicts if v.skipped is None and v.broken is None)

    @property
    def broken(self) -> tuple[BrokenLawError, ...]:
        """The errors of the laws that were broken."""
        return tuple(v.broken for v in self.verdicts if v.broken is not None)

    @property
    def skipped(self) -> dict[Law, str]:
        """The laws that were not checked, each with the reason."""
        return {v.law: v.skipped for v in self.verdicts if v.skipped is not None}

    def __str__(self) -> str:
        return "\n".join([self.scheduler, *(f"  {verdict}" for verdict in self.verdicts)])

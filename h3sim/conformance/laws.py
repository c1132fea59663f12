"""The laws of schedulers by name, what says that one is broken, and the report of a check."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BrokenLawError", "Law", "NotCheckedError", "Report", "Verdict"]


class Law(enum.Enum):
    """What a scheduler may be held to, in the order in which it is checked.

    The first six follow from `h3sim.schedulers.Scheduler` and hold for every scheduler; so do the
    last four, unless it is said why not. Those between are held only by who claims them.
    """

    WORK_CONSERVING = "work-conserving"
    EVERY_BYTE_ONCE = "every-byte-once"
    PICKS_ONLY_READY = "picks-only-ready"
    DETERMINISTIC = "deterministic"
    PURE_PICK = "pure-pick"
    SAME_IN_EVERY_PROCESS = "same-in-every-process"
    STRICT_ORDER = "strict-order"
    WEIGHTED_SHARES = "weighted-shares"
    NO_STARVATION = "no-starvation"
    UPDATES_AT_ONCE = "updates-at-once"
    SAME_AS = "same-as"
    FREES_MEMORY = "frees-memory"
    PICKLES = "pickles"
    CHEAP_PICKS = "cheap-picks"
    NEVER_RAISES = "never-raises"

    @property
    def meaning(self) -> str:
        """The law in a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Law.WORK_CONSERVING: "a stream is picked as long as one is active",
    Law.EVERY_BYTE_ONCE: "each response is sent to its end, and no stream is picked after that",
    Law.PICKS_ONLY_READY: "only a stream that is open and active is picked",
    Law.PURE_PICK: "asking changes nothing",
    Law.DETERMINISTIC: "equal histories lead to equal picks",
    Law.SAME_IN_EVERY_PROCESS: "no hash and no address decides, so all processes pick alike",
    Law.STRICT_ORDER: "no stream is picked while one of a lower rank is active",
    Law.WEIGHTED_SHARES: "streams that are active together have turns by their weights",
    Law.NO_STARVATION: "an active stream has its turn within a bounded number of turns",
    Law.UPDATES_AT_ONCE: "order and shares follow the last signal, from the next pick on",
    Law.SAME_AS: "the picks are those of the reference",
    Law.FREES_MEMORY: "what is closed takes up no memory",
    Law.PICKLES: "a pickled scheduler goes on as the original does",
    Law.CHEAP_PICKS: "ten times the streams do not take three times the work for a turn",
    Law.NEVER_RAISES: "no history that keeps the contract raises an exception",
}


class BrokenLawError(AssertionError):
    """A scheduler broke *law*: in a sentence how, and the shortest history that was found.

    >>> print(BrokenLawError(Law.PURE_PICK, "picked 4, then 8", ("open(4, None)", "pick() -> 4")))
    pure-pick: picked 4, then 8
      open(4, None)
      pick() -> 4
    """

    def __init__(self, law: Law, sentence: str, history: Sequence[str] = ()) -> None:
        self.law = law
        self.sentence = sentence
        self.history = tuple(history)
        super().__init__(law, sentence, self.history)

    def __str__(self) -> str:
        head = f"{self.law.value}: {self.sentence}"
        return "\n".join([head, *(f"  {line}" for line in self.history)])


class NotCheckedError(Exception):
    """A law was not looked at, for the reason that the message gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one law: kept, or not looked at for the reason in *skipped*."""

    law: Law
    skipped: str | None = None

    def __str__(self) -> str:
        if self.skipped is None:
            return f"kept     {self.law.value}: {self.law.meaning}"
        return f"skipped  {self.law.value}: {self.skipped}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The verdicts about one scheduler, in the order of `Law`."""

    scheduler: str
    verdicts: tuple[Verdict, ...]

    @property
    def kept(self) -> tuple[Law, ...]:
        """The laws that were checked and held."""
        return tuple(verdict.law for verdict in self.verdicts if verdict.skipped is None)

    @property
    def skipped(self) -> dict[Law, str]:
        """The laws that were not looked at, each with the reason."""
        return {v.law: v.skipped for v in self.verdicts if v.skipped is not None}

    def __str__(self) -> str:
        return "\n".join([self.scheduler, *(f"  {verdict}" for verdict in self.verdicts)])

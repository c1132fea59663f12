"""Checks of a scheme's rules against the priorities that browsers were recorded to send."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.errors import InputError, ValidationIssue
from h3sim.page import AS_WRITTEN, Kind
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.output import COUNT, TEXT, VERSION, OutputSchema, Property, rows_of
from h3sim.schemes import RecordedBy, RecordedPlace, SignalKind, recorded_class
from h3sim.signals import Eps
from h3sim.study.run import resolve_pages, resolve_scheme, simulate
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.page import Page
    from h3sim.schemes import PriorityClass, Scheme
    from h3sim.study.run import PageLike, SchemeLike


class SchemeValidationRow(NamedTuple):
    """Of so many recorded resources of a kind the rules say of *agree* what the browser said."""

    kind: str
    recorded: int
    agree: int

    @property
    def percent(self) -> float:
        """How many agree, in per cent."""
        return 100 * self.agree / self.recorded


class Disagreement(NamedTuple):
    """What a browser said of a resource, and what the rules say."""

    page: str
    id: str
    kind: str
    recorded: str
    rules: str


RULE_CHECK = OutputSchema(
    "h3sim-rule-check/1",
    "How often a scheme's rules say what a browser said",
    VERSION,
    Property("scheme", TEXT, "whose rules were held against recordings"),
    Property("pages", COUNT, "how many there are", of="n_pages"),
    Property("recorded_pages", COUNT, "those that have recorded priorities", of="n_recorded_pages"),
    Property("changed_later", COUNT, "resources that got another priority later", of="n_changed"),
    Property("kinds", rows_of(SchemeValidationRow), "one a kind of resource", of="rows"),
    Property("disagreements", rows_of(Disagreement), "one a resource that the rules see otherwise"),
)


@dataclass(frozen=True, kw_only=True)
class SchemeValidation:
    """Rows by kind, and each disagreement in the order of requests."""

    scheme: str
    rows: Rows[SchemeValidationRow]
    disagreements: Rows[Disagreement]
    n_pages: int
    n_recorded_pages: int
    n_changed: int
    """How many resources got another priority later."""

    @property
    def total(self) -> SchemeValidationRow:
        """All kinds together."""
        recorded, agree = (
            sum(getattr(row, name) for row in self.rows) for name in SchemeValidationRow._fields[1:]
        )
        return SchemeValidationRow("all", recorded, agree)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a document, h3sim-rule-check/1."""
        return RULE_CHECK.write(self, version=__version__)

    def __repr__(self) -> str:
        total = self.total
        return f"<SchemeValidation of {self.scheme}: {total.agree} of {total.recorded} agree>"


def validate_scheme(
    pages: PageLike | Iterable[PageLike], *, scheme: SchemeLike = "chrome-eps"
) -> SchemeValidation:
    """Return how often *scheme*'s rules say what was recorded in *pages* with each request.

    Compared are the priorities of the browser after which the scheme is named, or of any. The
    first of several images and the like are counted as requests are made in a replay.

    Raises:
        InputError: if the scheme's clients say nothing that was recorded.
        UnknownNameError: if only a name is not known.

    >>> validate_scheme("davies-meenan")
    <SchemeValidation of chrome-eps: 0 of 0 agree>
    """
    with ErrorCollector() as mistakes:
        wanted = mistakes.of("scheme", lambda: _ruled(scheme))
        found = mistakes.of("pages", lambda: resolve_pages(pages))
    # What was recorded goes before rules: without it the rules speak, with it the browser.
    plain = replace(wanted, recorded=None)
    theirs = replace(wanted, recorded=_browser_of(wanted))
    counts: dict[Kind, list[int]] = {}
    disagreements: list[Disagreement] = []
    recorded_pages = 0
    for page in found:
        compared = [*_compared(page, plain, theirs)]
        recorded_pages += bool(compared)
        for kind, id_, said, ruled in compared:
            count = counts.setdefault(kind, [0, 0])
            count[0] += 1
            count[1] += said == ruled
            if said != ruled:
                disagreements.append(Disagreement(page.name, id_, kind.value, said, ruled))
    rows = [SchemeValidationRow(kind.value, *counts[kind]) for kind in Kind if kind in counts]
    return SchemeValidation(
        scheme=wanted.name,
        rows=Rows(SchemeValidationRow, rows),
        disagreements=Rows(Disagreement, disagreements),
        n_pages=len(found),
        n_recorded_pages=recorded_pages,
        n_changed=sum(
            any(entry.when is not None for entry in resource.recorded)
            for page in found
            for resource in page.resources
        ),
    )


def _ruled(scheme: SchemeLike) -> Scheme:
    """Return the scheme that is meant, which has rules for what is recorded."""
    wanted = resolve_scheme(scheme)
    if wanted.mechanism.signal_kind not in (SignalKind.EPS, SignalKind.TREE) or not wanted.rules:
        message = f"{wanted.name!r} has no rules for urgencies or a tree, which are recorded"
        raise InputError([ValidationIssue(key="scheme", message=message)])
    return wanted


def _browser_of(scheme: Scheme) -> RecordedBy:
    return next(
        (by for by in RecordedBy if by is not RecordedBy.ANY and scheme.name.startswith(by.value)),
        RecordedBy.ANY,
    )


def _compared(page: Page, plain: Scheme, theirs: Scheme) -> Iterator[tuple[Kind, str, str, str]]:
    """Yield each recorded resource: its kind and id, what was said, and what the rules say."""
    if not any(resource.recorded for resource in page.resources):
        return
    n_images = 0
    for request in simulate(page, scheme="fifo").trace.requests:
        resource = page.resources[request.resource]
        said = recorded_class(theirs, resource, AS_WRITTEN)
        # Whom a stream depends on is no matter of its class.
        if said is not None and not isinstance(said, RecordedPlace):
            ruled = plain.classify(resource, images_before=n_images)
            yield resource.kind, resource.id, _told(plain, said), _told(plain, ruled)
        n_images += resource.kind is Kind.IMAGE


def _told(scheme: Scheme, entry: PriorityClass) -> str:
    """Return what is said of a class, in a word; equal where the server is told the same."""
    if scheme.mechanism.signal_kind is SignalKind.EPS:
        # By field value, which leaves out what is the default: a class that says u=3 equals none.
        wanted = Eps(urgency=entry.urgency, incremental=entry.incremental)
        return wanted.field_value or "u=3"
    # A chain has no weights that say anything: its classes are told apart by their names.
    if entry.arrangement.is_exclusive:
        return entry.name
    return f"{entry.group or 'root'} {entry.weight}"

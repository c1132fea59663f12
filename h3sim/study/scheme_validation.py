"""Comparison of a scheme's rules with recorded browser priorities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.errors import InputError, ValidationIssue
from h3sim.page import UNCHANGED, Kind
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
    """Numbers of resources of a kind that were recorded, and whose priority the rules match."""

    kind: str
    recorded: int
    agree: int

    @property
    def percent(self) -> float:
        """Percentage of resources that agree."""
        return 100 * self.agree / self.recorded


class Disagreement(NamedTuple):
    """Resource whose recorded priority differs from that of the rules."""

    page: str
    id: str
    kind: str
    recorded: str
    rules: str


RULE_CHECK = OutputSchema(
    "h3sim-rule-check/1",
    "Agreement of a scheme's rules with recorded browser priorities",
    VERSION,
    Property("scheme", TEXT, "the scheme whose rules were compared"),
    Property("pages", COUNT, "number of pages", of="n_pages"),
    Property(
        "recorded_pages", COUNT, "number of pages with recorded priorities", of="n_recorded_pages"
    ),
    Property(
        "changed_later", COUNT, "number of resources that were reprioritized later", of="n_changed"
    ),
    Property("kinds", rows_of(SchemeValidationRow), "one per kind of resource", of="rows"),
    Property("disagreements", rows_of(Disagreement), "one per resource with a different priority"),
)


@dataclass(frozen=True, kw_only=True)
class SchemeValidation:
    """Result table: rows by kind, and all disagreements in the order of requests."""

    scheme: str
    rows: Rows[SchemeValidationRow]
    disagreements: Rows[Disagreement]
    n_pages: int
    n_recorded_pages: int
    n_changed: int
    """Number of resources that were reprioritized later."""

    @property
    def total(self) -> SchemeValidationRow:
        """Sum over all kinds."""
        recorded, agree = (
            sum(getattr(row, name) for row in self.rows) for name in SchemeValidationRow._fields[1:]
        )
        return SchemeValidationRow("all", recorded, agree)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document, h3sim-rule-check/1."""
        return RULE_CHECK.write(self, version=__version__)

    def __repr__(self) -> str:
        total = self.total
        return f"<SchemeValidation of {self.scheme}: {total.agree} of {total.recorded} agree>"


def validate_scheme(
    pages: PageLike | Iterable[PageLike], *, scheme: SchemeLike = "chrome-eps"
) -> SchemeValidation:
    """Compare *scheme*'s rules with the recorded priorities of each request in *pages*.

    Only priorities of the browser that the scheme is named after are used, or of any if there is
    none. Rules about the first of several images are evaluated in the request order of a replay.

    Raises:
        InputError: if the scheme's clients send no signals of a recorded kind.
        UnknownNameError: if the only error is an unknown name.

    >>> validate_scheme("davies-meenan")
    <SchemeValidation of chrome-eps: 0 of 0 agree>
    """
    with ErrorCollector() as mistakes:
        wanted = mistakes.of("scheme", lambda: _ruled(scheme))
        found = mistakes.of("pages", lambda: resolve_pages(pages))
    # Recorded priorities take precedence: the page without them follows the rules.
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
    """Return the scheme after checking that it has rules for recorded signals."""
    wanted = resolve_scheme(scheme)
    if wanted.mechanism.signal_kind not in (SignalKind.EPS, SignalKind.TREE) or not wanted.rules:
        message = (
            f"{wanted.name!r} has no rules for urgencies or a dependency tree, the recorded signals"
        )
        raise InputError([ValidationIssue(key="scheme", message=message)])
    return wanted


def _browser_of(scheme: Scheme) -> RecordedBy:
    return next(
        (by for by in RecordedBy if by is not RecordedBy.ANY and scheme.name.startswith(by.value)),
        RecordedBy.ANY,
    )


def _compared(page: Page, plain: Scheme, theirs: Scheme) -> Iterator[tuple[Kind, str, str, str]]:
    """Yield kind, id, recorded priority and rules' priority of each recorded resource."""
    if not any(resource.recorded for resource in page.resources):
        return
    n_images = 0
    for request in simulate(page, scheme="fifo").trace.requests:
        resource = page.resources[request.resource]
        said = recorded_class(theirs, resource, UNCHANGED)
        # The parent of a stream is not part of its class.
        if said is not None and not isinstance(said, RecordedPlace):
            ruled = plain.classify(resource, images_before=n_images)
            yield resource.kind, resource.id, _told(plain, said), _told(plain, ruled)
        n_images += resource.kind is Kind.IMAGE


def _told(scheme: Scheme, entry: PriorityClass) -> str:
    """Return a short text for a class, equal for equal signals."""
    if scheme.mechanism.signal_kind is SignalKind.EPS:
        # By field value, which omits defaults: u=3 equals no signal.
        wanted = Eps(urgency=entry.urgency, incremental=entry.incremental)
        return wanted.field_value or "u=3"
    # A chain has no meaningful weights: its classes differ by their names.
    if entry.arrangement.is_exclusive:
        return entry.name
    return f"{entry.group or 'root'} {entry.weight}"

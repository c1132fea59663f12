"""Tests of servers and schemes: urgent responses that overtake, and recorded browser priorities.

Davies and Meenan requested low-priority resources, and a little later a few of high priority, from
35 servers and CDNs: 9 sent these without delay (Marx 2019, § 2.2). Others ignored priorities, or
had already filled their buffers.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from h3sim._version import __version__
from h3sim.load.load_config import LoadConfig, refuse_unknown
from h3sim.load.options import check_some
from h3sim.load.run import PageLike, SchemeLike, resolve, resolve_scheme
from h3sim.load.selection import resolve_pages, resolve_schemes
from h3sim.page import UNCHANGED, Kind, Page, page_from_dict
from h3sim.schema.arguments import check_arguments, shows_fields
from h3sim.schema.output import COUNT, TEXT, VERSION, ObjectType, OutputSchema, Property, rows_of
from h3sim.schema.values import Choice, Number
from h3sim.schemes import RecordedBy, RecordedTreeClass, SignalKind, recorded_class
from h3sim.signals import Eps
from h3sim.study.rows import CONFIGURATION
from h3sim.study.runner import Execution, LoadRunner, LoadTask, read_options, shows_loads
from h3sim.trace import Rows
from h3sim.values.errors import InputError
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from h3sim.load import Load
    from h3sim.schemes import PriorityClass, Scheme
    from h3sim.study.study_keywords import ExecutionKeywords, StudyKeywords


LATE_KINDS = ("stylesheet", "script", "font", "image")
"""Kinds of late resources: clients rank each above images; a late image ranks high as visible."""
N_EARLY, N_LATE = 30, 2
"""Numbers of unimportant resources and of urgent ones."""
_EARLY_BYTES, _LATE_BYTES = 50_000, 30_000
_LATE_AFTER_MS = 1000
"""Delay of the urgent request: by then, the early responses are being sent."""
_MAX_EARLY_SHARE = 0.1
"""Largest share of early bytes that may precede the late ones: data already under way."""
_TOO_FAST_MESSAGE = (
    f"the network is too fast for this test: the {N_EARLY} images were complete before the late"
    f" requests, {_LATE_AFTER_MS} ms after the document, so there is nothing to overtake"
)
SURVEYED, SURVEYED_GOOD = 35, 9
"""Numbers of servers that Davies and Meenan tested, and that passed (Marx 2019, § 2.2)."""


class PrioritizationTestRow(NamedTuple):
    """Result of one server; times count from the late requests, *alone* without early images.

    *meanwhile_bytes* of early responses arrived before the late ones were complete, out of
    *waiting_bytes* missing at the time of the late requests.
    """

    scheme: str
    passes: bool
    first_byte_ms: float
    complete_ms: float
    alone_ms: float
    meanwhile_bytes: int
    waiting_bytes: int


SERVER_CHECK = OutputSchema(
    "h3sim-server-check/1",
    "Servers that let urgent responses overtake",
    VERSION,
    CONFIGURATION,
    Property("late", TEXT, "kind of the late resources"),
    Property(
        "most_meanwhile",
        Number(low=0, high=1),
        "largest share of early bytes that may arrive first",
    ),
    Property("passed", COUNT, "number of servers that pass", of="n_passed"),
    Property("rows", rows_of(PrioritizationTestRow), "one per server"),
    Property(
        "surveyed",
        ObjectType(Property("servers", COUNT), Property("passed", COUNT), Property("year", COUNT)),
        "results of Davies and Meenan (Marx 2019, § 2.2)",
    ),
)


@dataclass(frozen=True, kw_only=True)
class PrioritizationTest:
    """Rows by scheme, in the order given."""

    rows: Rows[PrioritizationTestRow]
    late: str
    version: str
    configuration: dict[str, Any]
    """Common settings of all loads, as `Load.configuration`."""
    words: dict[str, str]
    """Common settings in words."""

    @property
    def n_passed(self) -> int:
        """Number of servers that pass."""
        return sum(row.passes for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document, h3sim-server-check/1."""
        surveyed = {"servers": SURVEYED, "passed": SURVEYED_GOOD, "year": 2018}
        return SERVER_CHECK.write(self, most_meanwhile=_MAX_EARLY_SHARE, surveyed=surveyed)

    def __repr__(self) -> str:
        return f"<PrioritizationTest: {self.n_passed} of {len(self.rows)} pass>"


@shows_loads
def prioritization_test(
    schemes: SchemeLike | Iterable[SchemeLike] = "servers",
    *,
    late: str = "stylesheet",
    config: LoadConfig | None = None,
    **options: Unpack[StudyKeywords],
) -> PrioritizationTest:
    """Run the prioritization test of Davies and Meenan on servers.

    30 images are requested, and one second later two resources of kind *late*. A server passes if
    at most a tenth of the missing image bytes arrives before these are complete. Late images are
    marked as visible right after their request. *schemes* are names, paths or values; *options*
    are those of `LoadConfig`, which override *config*, and of `Execution`: with a send buffer, for
    example, many fail.

    Raises:
        InputError: listing every error in the arguments; if nothing is left to overtake.
        UnknownNameError: if the only error is an unknown name.

    >>> prioritization_test(["chrome-eps", "rr"]).rows[0].passes
    True
    """
    check_arguments(InputError, late=(Choice(LATE_KINDS), late))
    execution, base_config = read_options(prioritization_test, options, config)
    selected = resolve_schemes(schemes)
    check_some(schemes=selected)
    pages = server_test_page(late), server_test_page(late, n_early=0)
    with LoadRunner(execution, _measured) as runner:
        specs = [resolve(page, selected[0], base_config) for page in pages]
        measured = runner.run(
            [LoadTask(spec.with_scheme(scheme)) for scheme in selected for spec in specs]
        )
    of_test, of_late_alone = measured[::2], measured[1::2]
    rows = [
        _test_row(scheme.name, together, alone)
        for scheme, together, alone in zip(selected, of_test, of_late_alone, strict=True)
    ]
    if not all(row.waiting_bytes for row in rows):
        raise InputError.at("", _TOO_FAST_MESSAGE)
    return PrioritizationTest(
        rows=Rows(PrioritizationTestRow, rows),
        late=late,
        version=__version__,
        configuration=of_test[-1]["configuration"],
        words=of_test[-1]["words"],
    )


def server_test_page(late: str = "stylesheet", *, n_early: int = N_EARLY) -> Page:
    """Return the page of the test: a document, unimportant images and late resources.

    >>> server_test_page("font")
    <Page server-test: 33 resources, 1,561 kB>
    """
    entries: list[dict[str, Any]] = [{"id": "/", "kind": "document", "bytes": 1000}]
    early: dict[str, Any] = {"kind": "image", "bytes": _EARLY_BYTES}
    early["discovered"] = {"by": "/", "at": "offset", "offset_bytes": 500}
    entries += ({"id": f"early{number}.jpg", **early} for number in range(1, n_early + 1))
    for number in range(1, N_LATE + 1):
        id_ = f"late{number}"
        entry = {"id": id_, "kind": late, "bytes": _LATE_BYTES}
        entry |= dict.fromkeys(("in_head", "critical", "above_the_fold"), True)
        entry["discovered"] = {"by": "/", "at": "complete", "delay_ms": _LATE_AFTER_MS}
        if late == "image":
            # All images are requested alike: visibility is only known later, by reprioritization.
            entry["priority_changes"] = [{"when": {"by": id_, "at": "request"}, "visible": True}]
        entries.append(entry)
    return page_from_dict({"format": "h3sim-page/1", "name": "server-test", "resources": entries})


def _measured(load: Load, _: str) -> dict[str, Any]:
    """Return the times of the late responses, and the bytes of early ones that came meanwhile."""
    requested_at_ns, late_ids = _late_requests(load)
    delivered = [
        (delivered_at_ns, stream_id, n_bytes)
        for _, _, stream_id, _, n_bytes, _, delivered_at_ns in load.trace.packet_rows
        if delivered_at_ns is not None
    ]
    late_ns = [at_ns for at_ns, stream_id, _ in delivered if stream_id in late_ids]
    waiting = [
        (at_ns, n_bytes)
        for at_ns, stream_id, n_bytes in delivered
        if stream_id not in late_ids and at_ns > requested_at_ns
    ]
    return {
        "first_byte_ns": min(late_ns) - requested_at_ns,
        "complete_ns": max(late_ns) - requested_at_ns,
        "meanwhile_bytes": sum(n_bytes for at_ns, n_bytes in waiting if at_ns <= max(late_ns)),
        "waiting_bytes": sum(n_bytes for _, n_bytes in waiting),
    }


def _test_row(
    scheme: str, together: Mapping[str, Any], alone: Mapping[str, Any]
) -> PrioritizationTestRow:
    """Return the row of a scheme, from the load of the test and that of the late resources."""
    meanwhile_bytes, waiting_bytes = together["meanwhile_bytes"], together["waiting_bytes"]
    return PrioritizationTestRow(
        scheme=scheme,
        passes=meanwhile_bytes <= _MAX_EARLY_SHARE * waiting_bytes,
        first_byte_ms=to_ms(together["first_byte_ns"]),
        complete_ms=to_ms(together["complete_ns"]),
        alone_ms=to_ms(alone["complete_ns"]),
        meanwhile_bytes=meanwhile_bytes,
        waiting_bytes=waiting_bytes,
    )


def _late_requests(load: Load) -> tuple[int, set[int]]:
    """Return the time of the late requests, and their streams."""
    late = [
        request
        for request in load.trace.requests
        if load.page.resources[request.resource].id.startswith("late")
    ]
    return late[0].requested_at_ns, {request.stream_id for request in late}


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
        recorded = sum(row.recorded for row in self.rows)
        return SchemeValidationRow("all", recorded, sum(row.agree for row in self.rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document, h3sim-rule-check/1."""
        return RULE_CHECK.write(self, version=__version__)

    def __repr__(self) -> str:
        total = self.total
        return f"<SchemeValidation of {self.scheme}: {total.agree} of {total.recorded} agree>"


@shows_fields(Execution)
def validate_scheme(
    pages: PageLike | Iterable[PageLike],
    *,
    scheme: SchemeLike = "chrome-eps",
    **execution: Unpack[ExecutionKeywords],
) -> SchemeValidation:
    """Compare *scheme*'s rules with the recorded priorities of each request in *pages*.

    Only priorities of the browser that the scheme is named after are used, or of any if there is
    none. Rules about the first of several images are evaluated in the request order of a replay.
    *execution* are fields of `Execution`.

    Raises:
        InputError: if the scheme's clients send no signals of a recorded kind.
        UnknownNameError: if the only error is an unknown name.

    >>> validate_scheme("davies-meenan")
    <SchemeValidation of chrome-eps: 0 of 0 agree>
    """
    refuse_unknown(validate_scheme, execution)
    selected, resolved_pages = _scheme_with_rules(scheme), resolve_pages(pages)
    run_with = Execution(**execution)
    # A scheme uses either its rules or recorded priorities, which take precedence.
    by_rules = replace(selected, recorded=None)
    by_recording = replace(selected, recorded=_browser_of(selected))
    recorded = [page for page in resolved_pages if any(each.recorded for each in page.resources)]
    fifo = resolve_scheme("fifo")
    with LoadRunner(run_with, _requested) as runner:
        replays = runner.run([LoadTask(resolve(page, fifo, LoadConfig())) for page in recorded])
    by_page = [
        [*_priorities(page, replay["resources"], by_rules, by_recording)]
        for page, replay in zip(recorded, replays, strict=True)
    ]
    compared = [*itertools.chain(*by_page)]
    disagreements = [row for row in compared if row.recorded != row.rules]
    n_compared = Counter(row.kind for row in compared)
    n_wrong = Counter(row.kind for row in disagreements)
    rows = [
        SchemeValidationRow(kind.value, n, n - n_wrong[kind.value])
        for kind in Kind
        if (n := n_compared[kind.value])
    ]
    return SchemeValidation(
        scheme=selected.name,
        rows=Rows(SchemeValidationRow, rows),
        disagreements=Rows(Disagreement, disagreements),
        n_pages=len(resolved_pages),
        n_recorded_pages=sum(map(bool, by_page)),
        n_changed=sum(
            any(entry.when is not None for entry in resource.recorded)
            for page in resolved_pages
            for resource in page.resources
        ),
    )


def _scheme_with_rules(scheme: SchemeLike) -> Scheme:
    """Return the scheme after checking that it has rules for recorded signals."""
    selected = resolve_scheme(scheme)
    kinds = (SignalKind.EPS, SignalKind.TREE)
    if selected.mechanism.signal_kind not in kinds or not selected.rules:
        signals = "for urgencies or a dependency tree, the recorded signals"
        raise InputError.at("scheme", f"{selected.name!r} has no rules {signals}")
    return selected


def _browser_of(scheme: Scheme) -> RecordedBy:
    """Return the browser after which a scheme is named, or any if there is none."""
    return next(
        (by for by in RecordedBy if by is not RecordedBy.ANY and scheme.name.startswith(by.value)),
        RecordedBy.ANY,
    )


def _requested(load: Load, _: str) -> dict[str, Any]:
    """Return the resources of a load in the order of their requests."""
    return {"resources": [request.resource for request in load.trace.requests]}


def _priorities(
    page: Page, requested: Iterable[int], by_rules: Scheme, by_recording: Scheme
) -> Iterator[Disagreement]:
    """Yield the recorded priority of each resource that has one, and that of the rules.

    Rows with equal priorities are no disagreements.
    """
    for number in requested:
        resource = page.resources[number]
        recorded = recorded_class(by_recording, resource, UNCHANGED)
        # A class of a recorded tree cannot be compared: it lacks the parent of the stream.
        if recorded is not None and not isinstance(recorded, RecordedTreeClass):
            ruled = by_rules.classify(resource, images_before=page.images_before[resource.id])
            texts = _describe(by_rules, recorded), _describe(by_rules, ruled)
            yield Disagreement(page.name, resource.id, resource.kind.value, *texts)


def _describe(scheme: Scheme, entry: PriorityClass) -> str:
    """Return a short text for a class, equal for equal signals."""
    if scheme.mechanism.signal_kind is SignalKind.EPS:
        signal = Eps(urgency=entry.urgency, incremental=entry.incremental)
        return signal.field_value or "u=3"  # the field omits defaults
    # The weights of an exclusive chain are meaningless: its classes differ by their names.
    if entry.arrangement.is_exclusive:
        return entry.name
    return f"{entry.group or 'root'} {entry.weight}"

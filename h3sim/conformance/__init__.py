"""Hypothesis strategies and a suite of laws that any scheduler can be held to.

Importing it registers h3sim's types, so that `hypothesis.strategies.from_type(Page)` works. It
needs Hypothesis; the parts that make tests of pytest need that: `pip install 'h3sim[testing]'`.
"""

from h3sim.values.errors import needing_extra

with needing_extra("hypothesis", "testing"):
    import hypothesis as _hypothesis  # noqa: F401 - to see whether it is there

from h3sim.conformance.call_sequences import Call, Event, History
from h3sim.conformance.laws import (
    BrokenLawError,
    ConformanceReport,
    Law,
    LawVerdict,
    NotCheckedError,
)
from h3sim.conformance.named_claims import ClaimSuggestions, claim_named, suggest_claims
from h3sim.conformance.priority_vectors import VectorReport, VectorVerdict, check_vectors
from h3sim.conformance.references import (
    ReferenceBuckets,
    ReferenceEps,
    ReferenceOrder,
    ReferenceRounds,
    ReferenceStrict,
    ReferenceTree,
)
from h3sim.conformance.state_machine import SchedulerMachine
from h3sim.conformance.strategies import (
    event_scripts,
    loss_patterns,
    pages,
    register_types,
    scheme_scripts,
    signals,
    trees,
)
from h3sim.conformance.subject import (
    BoundedWait,
    ByteShares,
    Candidate,
    Claim,
    FreesMemory,
    IncrementalFirst,
    NeitherFlagStarves,
    NonIncrementalFirst,
    NoStarvation,
    OneByOneInUrgency,
    RoundRobinInUrgency,
    SameAs,
    StrictOrder,
    UrgencyOrder,
    WeightedShares,
)
from h3sim.conformance.suite import (
    SchedulerSuite,
    check_law,
    check_scheduler,
    parametrize_with_checks,
    report_on,
)

__all__ = [
    "BoundedWait",
    "BrokenLawError",
    "ByteShares",
    "Call",
    "Candidate",
    "Claim",
    "ClaimSuggestions",
    "ConformanceReport",
    "Event",
    "FreesMemory",
    "History",
    "IncrementalFirst",
    "Law",
    "LawVerdict",
    "NeitherFlagStarves",
    "NoStarvation",
    "NonIncrementalFirst",
    "NotCheckedError",
    "OneByOneInUrgency",
    "ReferenceBuckets",
    "ReferenceEps",
    "ReferenceOrder",
    "ReferenceRounds",
    "ReferenceStrict",
    "ReferenceTree",
    "RoundRobinInUrgency",
    "SameAs",
    "SchedulerMachine",
    "SchedulerSuite",
    "StrictOrder",
    "UrgencyOrder",
    "VectorReport",
    "VectorVerdict",
    "WeightedShares",
    "check_law",
    "check_scheduler",
    "check_vectors",
    "claim_named",
    "event_scripts",
    "loss_patterns",
    "pages",
    "parametrize_with_checks",
    "report_on",
    "scheme_scripts",
    "signals",
    "suggest_claims",
    "trees",
]

register_types()

"""Answers to a question about a page: which scheme, which edit, how long, how far from the best.

Each lists the loads that it needs and runs them as a study does, so it may import studies and all
below them. Begin with `search.py`; `hints.py` tries edits of a page.
"""

from h3sim.advice.hints import Hints, hints
from h3sim.advice.optimality import (
    CategoryOptimalityRow,
    Optimality,
    OptimalityRow,
    Optimum,
    SchemeOptimalityRow,
    WhatIf,
    WhatIfRow,
    optimal_schedule,
    optimality,
    what_if,
)
from h3sim.advice.prediction import Prediction, PredictionRow, predict
from h3sim.advice.recommendation import Recommendation, recommend
from h3sim.advice.search import RobustnessRow, SearchResult, SearchRow, search
from h3sim.advice.validation import (
    Disagreement,
    PrioritizationTest,
    PrioritizationTestRow,
    SchemeValidation,
    SchemeValidationRow,
    prioritization_test,
    validate_scheme,
)

__all__ = [
    "CategoryOptimalityRow",
    "Disagreement",
    "Hints",
    "Optimality",
    "OptimalityRow",
    "Optimum",
    "Prediction",
    "PredictionRow",
    "PrioritizationTest",
    "PrioritizationTestRow",
    "Recommendation",
    "RobustnessRow",
    "SchemeOptimalityRow",
    "SchemeValidation",
    "SchemeValidationRow",
    "SearchResult",
    "SearchRow",
    "WhatIf",
    "WhatIfRow",
    "hints",
    "optimal_schedule",
    "optimality",
    "predict",
    "prioritization_test",
    "recommend",
    "search",
    "validate_scheme",
    "what_if",
]

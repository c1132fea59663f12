"""What the papers found: their experiments again, figures beside theirs, and verdicts."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.findings.declared import list_findings
    from h3sim.findings.experiments import Experiment, experiment_names, load_experiment
    from h3sim.findings.model import Claim, Finding, FindingsError, Judgement, Verdict, judge
    from h3sim.findings.reproduce import ExperimentRun, Reproduction, reproduce
    from h3sim.findings.schemas import findings_schemas

__all__ = [
    "Claim",
    "Experiment",
    "ExperimentRun",
    "Finding",
    "FindingsError",
    "Judgement",
    "Reproduction",
    "Verdict",
    "experiment_names",
    "findings_schemas",
    "judge",
    "list_findings",
    "load_experiment",
    "reproduce",
]

__getattr__, __dir__ = attach(
    __name__,
    declared="list_findings",
    experiments="Experiment experiment_names load_experiment",
    model="Claim Finding FindingsError Judgement Verdict judge",
    reproduce="ExperimentRun Reproduction reproduce",
    schemas="findings_schemas",
)

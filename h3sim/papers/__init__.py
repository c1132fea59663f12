"""Replications of the papers: experiments, comparisons with published numbers, and verdicts.

They may import everything below the command line. Begin with `reproduce.py`; findings are rows of
`findings.py`.
"""

from h3sim.papers.experiments import Experiment, experiment_names, load_experiment
from h3sim.papers.findings import (
    Claim,
    Finding,
    FindingsError,
    Judgement,
    Verdict,
    judge,
    list_findings,
)
from h3sim.papers.reproduce import ExperimentRun, Reproduction, reproduce

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
    "judge",
    "list_findings",
    "load_experiment",
    "reproduce",
]

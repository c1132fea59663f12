"""The public names of `h3sim.findings`, each loaded when it is first used."""

from h3sim.findings.declared import list_findings as list_findings
from h3sim.findings.experiments import (
    Experiment as Experiment,
    experiment_names as experiment_names,
    load_experiment as load_experiment,
)
from h3sim.findings.model import (
    Claim as Claim,
    Finding as Finding,
    FindingsError as FindingsError,
    Judgement as Judgement,
    Verdict as Verdict,
    judge as judge,
)
from h3sim.findings.reproduce import (
    ExperimentRun as ExperimentRun,
    Reproduction as Reproduction,
    reproduce as reproduce,
)
from h3sim.findings.schemas import findings_schemas as findings_schemas

__all__: list[str]

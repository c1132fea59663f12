"""The public names of `h3sim.papers`, each loaded when it is first used."""

from h3sim.papers.experiments import Experiment as Experiment
from h3sim.papers.experiments import experiment_names as experiment_names
from h3sim.papers.experiments import load_experiment as load_experiment
from h3sim.papers.findings import Claim as Claim
from h3sim.papers.findings import Finding as Finding
from h3sim.papers.findings import FindingsError as FindingsError
from h3sim.papers.findings import Judgement as Judgement
from h3sim.papers.findings import Verdict as Verdict
from h3sim.papers.findings import judge as judge
from h3sim.papers.findings import list_findings as list_findings
from h3sim.papers.reproduce import ExperimentRun as ExperimentRun
from h3sim.papers.reproduce import Reproduction as Reproduction
from h3sim.papers.reproduce import findings_schemas as findings_schemas
from h3sim.papers.reproduce import reproduce as reproduce

__all__: list[str]

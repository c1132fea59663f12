"""`h3sim.reproduce` and its command: experiments as files, the same figures anywhere, documents."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import h3sim
from h3sim import catalog
from h3sim.cli import main
from h3sim.headers.synthetic_headers import request_section
from h3sim.papers import experiment_names, figures, list_findings, load_experiment, marx
from h3sim.papers.estimates import Loads
from h3sim.papers.experiments import HeaderExperiment, requests_of_load
from h3sim.papers.figures import figure_of
from h3sim.papers.findings import Verdict
from h3sim.papers.reproduce import FIGURES, Reproduction, chosen_experiments, reproduce
from h3sim.schema.fields import read_document, write_table
from h3sim.schemes import scheme_to_dict
from h3sim.study.study_file import StudyError, study_from_dict
from h3sim.values.errors import InputError, UnknownNameError
from h3sim.values.units import ms
from tools import findings
from tools.picture_check import errors_in

ROOT = Path(__file__).parents[2]
DEFAULT_URGENCY = 3
TINY = "marx-2019-case-study-1"


@pytest.fixture(scope="module")
def tiny() -> Reproduction:
    return reproduce([TINY, "marx-2019-fig-11"], executor="serial")


@pytest.mark.parametrize("name", experiment_names())
def test_every_shipped_study_can_be_run_quick_and_full(name: str) -> None:
    experiment = load_experiment(name)
    assert experiment.name == name
    assert experiment.title
    assert experiment.source
    assert name in FIGURES
    quick, full = experiment.study(), experiment.study(full=True)
    assert 0 < len(quick) <= len(full)
    assert {page.name for page in quick.design.pages} <= {page.name for page in full.design.pages}


@pytest.mark.parametrize("name", experiment_names())
def test_every_shipped_study_is_written_as_it_is_read(name: str) -> None:
    file = load_experiment(name).file
    assert read_document(type(file), write_table(file), StudyError, source="") == file


def test_requests_of_a_load_go_when_the_browser_made_them() -> None:
    load = h3sim.simulate("creative", scheme="dfifo", network="fibre", rtt_ms=100)
    lists = requests_of_load(load)
    assert [section.at_ns for section in lists.sections] == sorted(
        ms(timing.requested_ms) for timing in load.timings
    )
    assert lists.sections[0].fields == request_section(load.page, load.page.resources[0])
    assert len({section.fields for section in lists.sections}) == len(load.page.resources)


def test_every_error_of_a_study_of_headers_is_reported() -> None:
    document = {"name": "x", "title": "y", "pages": "a", "recorded_rtt_ms": -1, "losses": [0, 2]}
    with pytest.raises(StudyError) as caught:
        read_document(
            HeaderExperiment, document | {"runs": 0, "paper": {"a": "b"}}, StudyError, source=""
        )
    assert [problem.key for problem in caught.value.problems] == [
        *(
            "source",
            "scheme",
            "network",
            "recorded_rtt_ms",
            "rtts_ms",
            "losses[1]",
            "runs",
            "tables_bytes",
            "paper.a",
        ),
    ]


def test_quick_pages_are_spread_over_sizes_and_keep_their_order() -> None:
    experiment = load_experiment("sander-2022-fig-6")
    pages = experiment.study(full=True).design.pages
    chosen = experiment.study().design.pages
    by_size = sorted(pages, key=lambda page: (page.total_bytes, page.name))[
        :: experiment.quick.every
    ]
    assert {page.name for page in chosen} == {page.name for page in by_size}
    assert [page.name for page in chosen] == sorted(page.name for page in chosen)


def test_numbers_of_papers_have_the_names_of_figures() -> None:
    experiment = load_experiment("marx-2019-table-2")
    assert experiment.paper["1000k.bucket-html"] == 1.83
    assert len(experiment.paper) == 31


@pytest.mark.parametrize("variant", ["none", "documents", "images", "all"])
def test_variants_of_chrome_differ_in_the_incremental_flag_alone(variant: str) -> None:
    path = ROOT / "models" / "studies" / "schemes" / f"chrome-eps-{variant}.toml"
    scheme, chrome = h3sim.catalog.read_scheme(path), catalog.load_scheme("chrome-eps")
    other, known = scheme_to_dict(scheme), scheme_to_dict(chrome)
    assert other is not None
    assert known is not None

    def urgencies(document: dict[str, Any]) -> list[tuple[Any, int]]:
        classes = document["classes"]
        of_class = {name: classes[name].get("urgency", DEFAULT_URGENCY) for name in classes}
        rules = document["rules"]
        return [
            (sorted((k, str(v)) for k, v in rule.items() if k != "class"), of_class[rule["class"]])
            for rule in rules
        ]

    assert urgencies(other) == urgencies(known)
    assert other["otherwise"] == known["otherwise"]


def test_an_experiment_brings_what_its_findings_need_and_a_finding_brings_its_experiments() -> None:
    assert chosen_experiments(["marx-15"]) == ["marx-2019-fig-11"]
    needed = ["sander-2022-fig-5", "sander-2022-fig-6", "sander-2022-fig-7"]
    assert chosen_experiments(["sander-2022-fig-6"]) == needed
    assert chosen_experiments(["all"]) == [*experiment_names()]
    with pytest.raises(UnknownNameError, match="h3sim list experiments"):
        chosen_experiments(["marx-2019-fig-9"])


def test_an_empty_name_selects_no_experiment() -> None:
    with pytest.raises(UnknownNameError, match="h3sim list experiments"):
        h3sim.reproduce("")


def test_figures_are_the_same_with_any_number_of_workers_and_in_pieces(
    tiny: Reproduction, tmp_path: Path
) -> None:
    store = tmp_path / "papers.db"
    reproduce("marx-2019-fig-11", store=store, executor="serial")
    with_two = reproduce([TINY, "marx-2019-fig-11"], store=store, workers=2)
    assert with_two.to_dict() == tiny.to_dict()


def test_findings_are_judged_where_all_their_experiments_were_done(tiny: Reproduction) -> None:
    assert [judged.finding.id for judged in tiny.judgements] == ["marx-11", "marx-15"]


def test_other_pages_take_the_place_of_the_corpus(tmp_path: Path) -> None:
    for name in ("dygraphs-index", "davies-meenan"):
        text = catalog.text_of("page", name)
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    done = reproduce("marx-2019-fig-12", pages=tmp_path, executor="serial")
    assert done.runs["marx-2019-fig-12"].pages == 2
    verdicts = {judged.finding.id: judged.verdict for judged in done.judgements}
    # There is no large page among them.
    assert verdicts["marx-7"] is Verdict.CANNOT_BE_JUDGED
    assert verdicts["marx-8"] is not Verdict.CANNOT_BE_JUDGED


def test_the_document_reports_verdicts_that_can_be_read_back(tiny: Reproduction) -> None:
    text = findings.markdown(tiny)
    assert findings.verdicts_in(text) == {
        judged.finding.id: judged.verdict.value for judged in tiny.judgements
    }


def test_a_full_run_gives_the_published_verdict_claims_and_reasons(
    tiny: Reproduction, tmp_path: Path
) -> None:
    run = replace(tiny.runs[TINY], is_complete=False)
    quick = replace(tiny, runs={**tiny.runs, TINY: run})
    assert findings.published(quick)["marx-11"] == (Verdict.REVERSED, "quick")
    lines = ("**marx-11: holds.** Fifo is slow.", "", "It is so by 3 (2 to 4).", "")
    full = findings.FullFinding(Verdict.HOLDS, lines)
    published = findings.published(quick, {"marx-11": full, "marx-15": full})
    assert published["marx-11"] == (Verdict.HOLDS, "full")
    # An experiment that leaves nothing out needs no other run.
    assert published["marx-15"] == (Verdict.DOES_NOT_HOLD, "full")
    text = findings.markdown(quick, {"marx-11": full})
    assert findings.verdicts_in(text) == {"marx-11": "holds", "marx-15": "does not hold"}
    assert "1 holds, 0 in part, 1 does not hold" in text
    assert "\n".join(lines) in text
    assert "dfifo reaches" not in text  # a reason of the quick run
    # What is published can be read back, and published again.
    assert findings.findings_in(text)["marx-11"] == full


def test_the_counts_of_runs_are_those_of_the_table_and_add_up() -> None:
    text = (ROOT / "docs" / "generated" / "findings.md").read_text("utf-8")
    runs = Counter(re.findall(r"^\|.*\| (full|quick|-) \|$", text, re.M))
    paragraph = re.search(r"\*\*The runs\.\*\*(.*?)\n\n", text, re.S)
    assert paragraph is not None
    numbers = [int(number) for number in re.findall(r"\b\d+\b", paragraph[1])]
    assert numbers == [runs["full"], runs["quick"], runs["-"]]
    assert runs.total() == len(re.findall(r"^\*\*[\w-]+: ", text, re.M))


def test_verdicts_are_taken_from_the_document_of_a_full_run(tmp_path: Path) -> None:
    full, path = tmp_path / "full.md", tmp_path / "findings.md"
    full.write_text("| yu-benson-1 | faster | holds | full |\n", encoding="utf-8")
    arguments = ["marx-15", "--markdown", str(path), "--full-run"]
    assert findings.main([*arguments, str(full)]) == 0
    assert findings.verdicts_in(path.read_text("utf-8")) == {"marx-15": "does not hold"}
    with pytest.raises(InputError, match=r"none\.md"):
        findings.main([*arguments, str(tmp_path / "none.md")])


def test_a_changed_verdict_fails_and_leaves_the_document_until_it_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "findings.md"
    arguments = ["marx-15", "--markdown", str(path)]
    assert findings.main(arguments) == 0
    before = path.read_text("utf-8")
    path.write_text(before.replace("| does not hold |", "| holds |"), encoding="utf-8")
    capsys.readouterr()
    assert findings.main(arguments) == 1
    reported = capsys.readouterr().err
    assert reported == f"findings: {path}: marx-15: was 'holds', is 'does not hold'\n"
    assert "| holds |" in path.read_text("utf-8")
    assert findings.main([*arguments, "--update"]) == 0
    assert path.read_text("utf-8") == before


def test_a_document_that_is_no_text_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "findings.md"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match="is not UTF-8: byte 3 is 0xe9"):
        findings.main(["marx-15", "--markdown", str(path)])
    assert path.read_bytes() == b"caf\xe9"


def test_every_error_of_a_command_is_reported_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "nope", "--pages", str(tmp_path), "-j", "0"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("h3sim reproduce: ") for line in lines)
    assert main(["reproduce"]) == 2


def test_the_command_lists_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "experiments", "--no-truncate"]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split()[0] for line in lines] == [*experiment_names()]


def test_the_command_prints_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "marx-15", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "h3sim-reproduction/1"
    assert document["findings"][0]["id"] == "marx-15"


@pytest.mark.parametrize(
    ("suffix", "options"),
    [("png", []), ("pdf", ["--format", "pdf", "--style", "paper", "--width", "column"])],
)
def test_what_is_drawn_is_the_same_again(suffix: str, options: list[str], tmp_path: Path) -> None:
    for folder in ("a", "b"):
        drawing = ["reproduce", "marx-15", "--figures", str(tmp_path / folder)]
        assert main([*drawing, *options]) == 0
    first, second = (tmp_path / f / f"marx-2019-fig-11.{suffix}" for f in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["marx-2019-fig-11", "koshiba-2016"])
def test_the_figure_of_an_experiment_looks_as_it_should(name: str) -> None:
    run = reproduce(name, executor="serial").runs[name]
    figure, printed = figure_of(run), figure_of(run, style="paper")
    assert figure is not None
    assert printed is not None
    assert list(errors_in(figure)) == []
    assert list(errors_in(printed)) == []
    assert printed.get_size_inches()[0] == 7
    # Legends stand beside the axes, not above them, where they would take half of the height.
    assert all(
        legend.get_window_extent().y1 <= ax.get_window_extent().y1 + 2
        for ax in figure.axes
        if (legend := ax.get_legend()) is not None
    )


def test_the_waterfalls_of_koshiba_are_of_the_loads_that_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = reproduce("koshiba-2016", executor="serial").runs["koshiba-2016"]
    drawn = []

    def recorded(page: Any, **options: Any) -> Any:
        load = h3sim.simulate(page, **options)
        drawn.append(load)
        return load

    monkeypatch.setattr(figures, "simulate", recorded)
    figure_of(run)
    for load, name in zip(drawn, ("without", "with"), strict=True):
        times_ms = {timing.id: timing.finished_ms - timing.requested_ms for timing in load.timings}
        judged = {resource: run.figures[f"{name}.{resource}"].value for resource in times_ms}
        assert times_ms == judged


def test_an_experiment_with_few_numbers_has_no_figure(tiny: Reproduction) -> None:
    assert figure_of(tiny.runs[TINY]) is not None
    assert (
        figure_of(
            reproduce("marx-2019-case-study-2", executor="serial").runs["marx-2019-case-study-2"]
        )
        is None
    )


def test_a_study_file_states_what_is_wrong_with_what_is_published() -> None:
    document = {"format": "h3sim-study/1", "pages": ["davies-meenan"], "paper": 3, "title": 1}
    with pytest.raises(StudyError) as caught:
        study_from_dict(document)
    assert [problem.key for problem in caught.value.problems] == ["title", "paper"]


def test_the_documents_verdicts_are_about_the_shipped_findings() -> None:
    found = findings.verdicts_in((ROOT / "docs" / "generated" / "findings.md").read_text("utf-8"))
    assert [*found] == [finding.id for finding in list_findings()]


def test_between_the_marks_of_a_document_only_results_are_written(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    head, tail = "# Mine\n\nWords.\n", "\nMore words.\n"
    path.write_text(f"{head}{findings.BEGIN}\nstale\n{findings.END}{tail}", encoding="utf-8")
    assert findings.main(["marx-15", "--markdown", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"{head}{findings.BEGIN}\n")
    assert text.endswith(f"{findings.END}{tail}")
    assert "stale" not in text
    assert f"h3sim {h3sim.__version__} (commit " in text
    assert findings.verdicts_in(text) == {"marx-15": "does not hold"}
    assert findings.main(["marx-15", "--markdown", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == text


def test_a_run_of_one_experiment_leaves_the_others_of_a_document_as_they_are(
    tmp_path: Path,
) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"{findings.BEGIN}\n{findings.END}", encoding="utf-8")
    assert findings.main(["marx-15", "--markdown", str(path)]) == 0
    first = path.read_text(encoding="utf-8")
    assert findings.main(["marx-2019-case-study-1", "--markdown", str(path), "--update"]) == 0
    both = path.read_text(encoding="utf-8")
    assert findings.verdicts_in(both).keys() > findings.verdicts_in(first).keys()
    headings = [line for line in both.splitlines() if line.startswith("## ")]
    assert len(headings) == 2
    assert set(first.splitlines()) <= set(both.splitlines())


def test_a_dry_run_states_how_many_loads_there_are_and_keeps_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "papers.db"
    command = ["reproduce", TINY, "frindell-2017", "--full", "--store", str(store), "--dry-run"]
    assert main(command) == 0
    head, _, headers, case, *rest = capsys.readouterr().out.splitlines()
    assert head.split() == ["experiment", "loads", "stored", "minutes", "on", "one", "core"]
    assert headers.split()[:3] == ["frindell-2017", "120,000", "0"]
    assert case.split()[:3] == [TINY, "12", "0"]
    assert re.fullmatch(r"about \d+ minutes on one core", rest[-1])
    assert not store.exists()


def test_a_buffer_is_reported_by_how_it_is_filled() -> None:
    def row(scheme: str, kb: float, model: str | None, ms: float) -> dict[str, Any]:
        times = {"byte_index_sampled_all_ms": ms, "byte_index_sampled_atf_ms": ms}
        return {
            "page": "p", "page_bytes": 1000, "scheme": scheme, "send_buffer_kb": kb,
            "send_buffer_refill": model, **times,
        }  # fmt: skip

    rows = [row("rr", 0, None, 100), row("fifo", 0, None, 50)]
    rows += [row("rr", 280, "continuous", 80), row("fifo", 280, "continuous", 50)]
    rows += [row("rr", 280, "when-empty", 100), row("fifo", 280, "when-empty", 40)]
    found = marx.buffers(Loads(rows), {})
    assert found["change.280"].value == 0  # fifo stays twice as fast as rr without a buffer
    assert found["bursts.change.280"].value == pytest.approx(0.25)
    assert found["as-fifo"].value == 0.5


def test_a_size_that_only_goes_with_the_share_has_no_information_next_to_it() -> None:
    speedups = {"fifo": {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0, "f": 6.5}}
    shares = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.5, "e": 0.6, "f": 0.3}
    same = marx._speedup_correlations(
        speedups, shares, {page: 10 - 9 * shares[page] for page in shares}
    )
    assert same["rho.size"].value == pytest.approx(-same["rho.above-fold"].value)
    assert same["rho.size-given-share"].value == 0

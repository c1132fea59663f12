"""The notebooks run, their exercises tell right from wrong, and they are committed bare."""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.effort import HANG_S, IS_THOROUGH, some
from tools import notebooks
from tools.notebooks import NOTEBOOKS, NotebookError, RunningNotebook, read_notebook

ROOT = Path(__file__).parents[2]
SMALL = {"PAGES": "3", "SEEDS": "2"}

WRONG_ANSWERS = {
    "01-prioritization": (
        *("check_1(36, 36, 36)", "check_1(38, 38, 36)", "check_1(38, 36, 38)"),
        *("check_2(40, 50, 40)", "check_3(4.7)"),
    ),
    "02-head-of-line-blocking": (
        "check_1(dict(A2=35, B1=35, A1=35, B2=40), dict(A2=35, B1=35, A1=35, B2=40))",
        "check_1(dict(A2=35, B1=30, A1=35, B2=40), dict(A2=35, B1=30, A1=35, B2=40))",
        *("check_2(lambda every, most: every)", "check_2(lambda every, most: 2 * most)"),
        *("check_3('stream_bytes', 0)", "check_3('connection_bytes', 1)", "check_3('loss', 1)"),
    ),
    "03-eleven-schemes": (
        "check_1('gentelella-form', 'apache-rewrite-tech')",
        "check_1('black-dashboard', 'dc-index')",
        *("check_2(['zeroweight', 'bucket-html', 'bucket'])", "check_2(['rr', 'fifo'])"),
        *("check_3('django-index', 'png')", "check_3('dc-index', 'prism')", "check_3('x', 'y')"),
    ),
    "04-when-round-robin-wins": (
        *("check_1('dc.logo.png', 1)", "check_1('nothing', 3.5)"),
        *("check_2(lambda of, page: True)", "check_2(lambda of, page: False)", "check_3(3)"),
    ),
    "05-your-own-page": (
        *("check_1(schemes)", "check_1([])", "check_2(percent=50)", "check_3('missing.html')"),
    ),
    "06-own-scheduler": (*("check_1(Law.PURE_PICK)", "check_2(FairQueueing)", "check_3(1.0)"),),
    "07-study": (
        *("check_1(300, 600, 300)", "check_1(3000, 60, 300)", "check_1(3000, 600, 30)"),
        *("check_2(lambda results, network: 1.0)", "check_3(8, 0)"),
    ),
    "08-header-compression": (
        *("check_1(3)", "check_2('qpack')", "check_2(['hpack', 'qpack'])", "check_3(0)"),
    ),
    "09-how-far-from-optimal": (
        *("check_1(84, 84, 84)", "check_1(80, 84, 86)", "check_2(75.7)", "check_2(50)"),
        "check_3(3.28)",
    ),
    "10-processes": ("check_1(video)", "check_2(video)", "check_3(video)", "check_3(bursts)"),
    "11-ten-jobs": (
        *("check_1(0.125, 6)", "check_1(0.25, 5)", "check_2(lambda load: load.page_load_ms)"),
        *("check_3(80)", "check_3(10_000)"),
    ),
}
"""By notebook, calls that a check must refuse in words of its own."""


@pytest.fixture(scope="function" if IS_THOROUGH else "module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNotebook]:
    """A kernel; in the usual run one for all, which imports what they import once."""
    folder = tmp_path_factory.mktemp("notebooks")
    with RunningNotebook(folder, SMALL, patience_s=HANG_S) as running:
        yield running


@pytest.mark.parametrize("path", some(NOTEBOOKS[::5], NOTEBOOKS), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # what the kernel's client warns of is not ours
def test_a_notebook_runs_and_its_exercises_refuse_wrong_answers(
    path: Path, kernel: RunningNotebook, tmp_path: Path
) -> None:
    code = [cell.source for cell in cells_of(path) if cell.cell_type == "code"]
    kernel.run(f"import os\nos.chdir({str(tmp_path)!r})")
    kernel.run("%reset -f")  # no name of another notebook is left, nor what `__main__` began with
    kernel.run("__spec__ = None")
    printed = [output.get("text", "") for source in code for output in kernel.run(source)]
    for number in numbers_of_exercises(path):
        assert f"Exercise {number}: correct." in "".join(printed)
    for wrong in WRONG_ANSWERS[path.stem]:
        with pytest.raises(NotebookError, match=r"Exercise \d, not yet: \S"):
            kernel.run(wrong)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_exercise_has_a_blank_for_the_student_and_an_answer_that_its_check_accepts(
    path: Path,
) -> None:
    numbers = numbers_of_exercises(path)
    assert len(numbers) >= 3
    before, answers = split_at_answers(path)
    # A call with `...` is the student's; one without is the answer.
    blanks, solutions = calls_of_checks(before), calls_of_checks(answers)
    assert [number for number, is_blank in blanks if is_blank] == numbers
    assert [number for number, is_blank in solutions if not is_blank] == numbers
    wrong = {call[len("check_")] for call in WRONG_ANSWERS[path.stem]}
    assert wrong == set(numbers)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_reader_predict_before_results_that_it_asserts(path: Path) -> None:
    cells = cells_of(path)
    questions = [index for index, cell in enumerate(cells) if asks_for_a_prediction(cell)]
    assert questions
    for index in questions:
        # The question, the result, and the result in words, which is folded.
        result, *checked, words = cells[index + 1 : index + 4]
        if "source_hidden" not in checked[0].metadata.get("jupyter", {}):
            words = checked[0]
        folds_own_answer = "<summary>Reveal</summary>" in cells[index].source
        assert folds_own_answer or result.cell_type == "code"
        # Assertions in sight would give it away.
        assert folds_own_answer or not re.search("^assert ", result.source, re.M)
        assert folds_own_answer or words.source.startswith("<details><summary>Reveal</summary>")
    code = "".join(cell.source for cell in cells if cell.cell_type == "code")
    assert len(re.findall(r"^ *assert ", code.partition("@exercise")[0], re.M)) >= 3


def asks_for_a_prediction(cell: Any) -> bool:
    return cell.cell_type == "markdown" and "**Predict.**" in cell.source


def cells_of(path: Path) -> list[Any]:
    return list(read_notebook(path).cells)


def split_at_answers(path: Path) -> tuple[list[Any], list[Any]]:
    cells = cells_of(path)
    (begin,) = [index for index, cell in enumerate(cells) if "## Answers" in cell.source]
    return cells[:begin], cells[begin:]


def numbers_of_exercises(path: Path) -> list[str]:
    (text,) = [cell.source for cell in cells_of(path) if cell.source.startswith("## Exercises")]
    return re.findall(r"^(\d+)\. ", text, re.M)


def calls_of_checks(cells: list[Any]) -> list[tuple[str, bool]]:
    """Return the number of each call of a check, and whether it has `...` among its arguments."""
    trees = [ast.parse(cell.source) for cell in cells if cell.cell_type == "code"]
    return [
        (
            call.func.id[len("check_") :],
            any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(call)),
        )
        for tree in trees
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and re.fullmatch(r"check_\d", call.func.id)
    ]


def test_outputs_are_stored_until_the_notebook_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def run_all(path: Path) -> Any:
        runs.append(path.stem)
        return read_notebook(path)

    monkeypatch.setattr(notebooks, "_run_all", run_all)
    path = tmp_path / "short.ipynb"
    path.write_bytes(NOTEBOOKS[0].read_bytes())
    for _ in range(2):
        notebooks.executed(path, tmp_path / "cache")
    assert runs == ["short"]
    path.write_text(path.read_text("utf-8").replace("by-hand", "by-foot"), encoding="utf-8")
    notebooks.executed(path, tmp_path / "cache")
    assert runs == ["short", "short"]
    assert len(list((tmp_path / "cache").iterdir())) == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_output(path: Path) -> None:
    assert [cell for cell in cells_of(path) if cell.cell_type == "code" and cell.outputs] == []


def test_a_whole_study_takes_fifteen_lines_at_most() -> None:
    (path,) = [path for path in NOTEBOOKS if path.stem == "07-study"]
    first_part = itertools.takewhile(lambda cell: "## " not in cell.source, cells_of(path))
    code = [cell.source for cell in first_part if cell.cell_type == "code"]
    assert code
    assert sum(bool(line.strip()) for source in code for line in source.splitlines()) <= 15


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_what_it_teaches_and_ends_with_folded_answers(path: Path) -> None:
    title, *_ = cells_of(path)
    assert title.source.startswith("# ")
    assert "You will" in title.source
    assert "to work through" in title.source or "minutes" in title.source
    _, answers = split_at_answers(path)
    for cell in answers:
        if cell.cell_type == "code":
            assert cell.metadata["jupyter"]["source_hidden"]
        else:
            assert cell.source.removeprefix("## Answers").strip().startswith("<details>")


def test_the_notebooks_are_those_that_teachers_are_told_of_in_order() -> None:
    text = (ROOT / "docs" / "teaching.md").read_text("utf-8")
    reported = re.findall(r"\(\.\./notebooks/([\w-]+)\.ipynb\)", text)
    assert reported == [path.stem for path in NOTEBOOKS]
    assert [stem[:2] for stem in reported] == [f"{n:02}" for n in range(1, len(reported) + 1)]

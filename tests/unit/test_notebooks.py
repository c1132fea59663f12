"""The notebooks run from top to bottom, and are committed without output."""

import warnings
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
TIMEOUT_S = 120

with warnings.catch_warnings():
    # Jupyter's own packages warn of one another's changes while they are imported.
    warnings.simplefilter("ignore")
    import nbclient
    import nbformat


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # what the kernel's client warns of is not ours
def test_a_notebook_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What studies take their size from, and where they keep what is finished.
    monkeypatch.setenv("PAGES", "3")
    monkeypatch.setenv("SEEDS", "2")
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.execution_count for cell in code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_output(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert [
        cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs
    ] == []


def test_a_whole_study_takes_fifteen_lines_at_most() -> None:
    (path,) = [path for path in NOTEBOOKS if path.stem == "study"]
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(bool(line.strip()) for source in code for line in source.splitlines()) <= 15


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS

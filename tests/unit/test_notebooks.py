"""The notebooks run from top to bottom, and are committed without output."""

import itertools
import os
import queue
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.effort import HANG_S

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

with warnings.catch_warnings():
    # Jupyter's own packages warn of one another's changes while they are imported.
    warnings.simplefilter("ignore")
    import nbformat
    from jupyter_client.manager import start_new_kernel


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # what the kernel's client warns of is not ours
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    # What studies take their size from, and where they keep what is finished.
    env = {**os.environ, "PAGES": "3", "SEEDS": "2"}
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path), env=env)
    try:
        for source in code:
            reply = _reply(manager, client, client.execute(source))
            assert reply["status"] == "ok", "\n".join(reply["traceback"])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _reply(manager: Any, client: Any, request: str) -> Any:
    """Return what the kernel answers to a *request*.

    Not by nbclient: at times its asyncio socket did not wake for a reply that had come (pyzmq 27.3)
    and waited until the time was up. Here the socket itself is polled, a second at a time.
    """
    for _ in range(HANG_S):
        try:
            message = client.get_shell_msg(timeout=1)
        except queue.Empty:
            assert manager.is_alive(), "the kernel died"
        else:
            if message["parent_header"].get("msg_id") == request:
                return message["content"]
    pytest.fail(f"the kernel has not answered for {HANG_S} s")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_output(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert [
        cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs
    ] == []


def test_a_whole_study_takes_fifteen_lines_at_most() -> None:
    (path,) = [path for path in NOTEBOOKS if path.stem == "07-study"]
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    first_part = itertools.takewhile(lambda cell: "## " not in cell.source, notebook.cells)
    code = [cell.source for cell in first_part if cell.cell_type == "code"]
    assert code
    assert sum(bool(line.strip()) for source in code for line in source.splitlines()) <= 15


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_what_it_teaches_and_ends_with_folded_answers(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    title, *cells = notebook.cells
    assert title.source.startswith("# ")
    assert "You will" in title.source
    assert "to work through" in title.source or "minutes" in title.source
    text = [cell.source for cell in cells if cell.cell_type == "markdown"]
    (begin,) = [index for index, cell in enumerate(cells) if "## Answers" in cell.source]
    assert any("## Exercises" in source for source in text)
    for cell in cells[begin:]:
        if cell.cell_type == "code":
            assert cell.metadata["jupyter"]["source_hidden"]
        else:
            assert cell.source.removeprefix("## Answers").strip().startswith("<details>")


def test_the_notebooks_are_those_that_teachers_are_told_of_in_order() -> None:
    text = (ROOT / "docs" / "teaching.md").read_text("utf-8")
    reported = re.findall(r"\(\.\./notebooks/([\w-]+)\.ipynb\)", text)
    assert reported == [path.stem for path in NOTEBOOKS]
    assert [stem[:2] for stem in reported] == [f"{n:02}" for n in range(1, len(reported) + 1)]

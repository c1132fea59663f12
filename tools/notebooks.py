"""Runs the notebooks and stores their outputs: `python -m tools.notebooks` fills build/notebooks.

They are committed without outputs; the documentation site shows them with the outputs of this
checkout. A notebook runs again when it, h3sim, a shipped page or a shipped model has changed.
"""

from __future__ import annotations

import hashlib
import os
import queue
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

with warnings.catch_warnings():
    # Jupyter's packages warn of one another's changes while they are imported.
    warnings.simplefilter("ignore")
    import nbformat
    from jupyter_client.manager import start_new_kernel

__all__ = [
    "NOTEBOOKS",
    "SITE_SIZE",
    "NotebookError",
    "RunningNotebook",
    "executed",
    "main",
    "read_notebook",
    "write_notebook",
]

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CACHE = ROOT / "build" / "notebooks"
SITE_SIZE = {"PAGES": "5", "SEEDS": "3"}
"""The size of the study in 07-study on the site: its own would take minutes."""

_RESULTS_DEPEND_ON = ("h3sim/**/*.py", "models/**/*.toml", "corpora/**/*.json", "corpora/**/*.qif")
# A page of the site has no kernel behind it, so that its sliders would not move.
_WITHOUT_WIDGETS = "import sys\nsys.modules['ipywidgets'] = None"
_STEP_S = 1.0
_PATIENCE_S = 600.0


class NotebookError(RuntimeError):
    """A cell of a notebook failed, or its kernel died or did not answer."""


class RunningNotebook:
    """A kernel that runs the cells of a notebook; a context manager.

    nbclient is not used: at times its asyncio socket did not wake for a reply that had arrived
    (pyzmq 27.3). This polls the sockets once a second instead.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], patience_s: float) -> None:
        self._patience_s = patience_s
        self._manager, self._client = start_new_kernel(
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],
            cwd=str(folder),
            env={**os.environ, **environment},
        )

    def __enter__(self) -> RunningNotebook:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def run(self, source: str) -> list[Any]:
        """Run *source* and return its outputs.

        Raises:
            NotebookError: if it failed; the message has its traceback.
        """
        request = self._client.execute(source)
        outputs: list[Any] = []
        shown: dict[str | None, Any] = {}  # outputs that a cell may replace
        for message in self._messages(self._client.get_iopub_msg, request):
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind in ("stream", "display_data", "execute_result"):
                outputs.append(nbformat.v4.output_from_msg(message))  # type: ignore[no-untyped-call]
                shown[content.get("transient", {}).get("display_id")] = outputs[-1]
            elif kind == "update_display_data":
                shown[content["transient"]["display_id"]]["data"] = content["data"]
        reply = next(self._messages(self._client.get_shell_msg, request))["content"]
        if reply["status"] != "ok":
            raise NotebookError("\n".join(reply["traceback"]))
        return outputs

    def _messages(self, receive: Any, request: str) -> Iterator[Any]:
        until = time.monotonic() + self._patience_s
        while time.monotonic() < until:
            try:
                message = receive(timeout=_STEP_S)
            except queue.Empty:
                if not self._manager.is_alive():
                    raise NotebookError("the kernel died") from None
            else:
                if message["parent_header"].get("msg_id") == request:
                    yield message
        raise NotebookError(f"the kernel has not answered for {self._patience_s} s")


def read_notebook(path: Path) -> Any:
    """Return the notebook at *path*, with whatever outputs it has."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def write_notebook(notebook: Any, path: Path) -> None:
    """Write *notebook* to *path*, in a folder that may not exist yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


def main() -> None:
    """Run every notebook that has changed since its outputs were stored."""
    for path in NOTEBOOKS:
        begun = time.monotonic()
        executed(path)
        print(f"{path.stem:26} {time.monotonic() - begun:5.1f} s", flush=True)


def executed(path: Path, cache: Path = CACHE) -> Any:
    """Return the notebook at *path* with its outputs, from *cache* if nothing has changed."""
    stored = cache / f"{path.stem}-{_digest(path)}.ipynb"
    if not stored.is_file():
        for old in cache.glob(f"{path.stem}-*.ipynb"):
            old.unlink()
        part = stored.with_suffix(".part")
        write_notebook(_run_all(path), part)
        part.rename(stored)
    return read_notebook(stored)


def _run_all(path: Path) -> Any:
    notebook = read_notebook(path)
    with (
        tempfile.TemporaryDirectory() as folder,
        RunningNotebook(Path(folder), SITE_SIZE, _PATIENCE_S) as kernel,
    ):
        kernel.run(_WITHOUT_WIDGETS)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                try:
                    cell.outputs = kernel.run(cell.source)
                except NotebookError as error:
                    raise NotebookError(f"{path.name}, cell {cell.id}:\n{error}") from error
    return notebook


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(path.read_bytes(), digest_size=8)
    for file in sorted(each for glob in _RESULTS_DEPEND_ON for each in ROOT.glob(glob)):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main()

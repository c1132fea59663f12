"""Files to start with: a driver in your language, a container and a workflow of CI."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from h3sim.schema import write_atomically
from h3sim.values.errors import InputError, ValidationIssue

WORKFLOW_PATH = ".github/workflows/conformance.yml"


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its driver, what builds it, the image of a container, and how it is run."""

    suffix: str
    image: str
    build: str
    command: str


LANGUAGES: dict[str, Language] = {
    "python": Language("py", "", "", "python driver.py"),
    "go": Language("go", "golang:1.22", "go build -o driver driver.go", "./driver"),
    "rust": Language("rs", "rust:1", "rustc -O -o driver driver.rs", "./driver"),
    "c": Language("c", "gcc:14", "gcc -O2 -static -o driver driver.c", "./driver"),
    "javascript": Language("js", "node:22", "", "node driver.js"),
}
"""The languages for which there is a driver."""

_WORKFLOW = """\
on:
  push:
  schedule:
    - cron: "0 3 * * *"
jobs:
  scheduler:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {{python-version: "3.12"}}
      - run: pip install 'h3sim[testing]'
{build}      - if: github.event_name == 'push'
        run: h3sim conform --annotate --junit conformance.xml -- {command}
      - if: github.event_name == 'schedule'
        run: h3sim conform --profile thorough --seed ${{{{ github.run_id }}}} -- {command}
"""
_CONTAINER = """\
FROM python:3.12-slim
RUN pip install --no-cache-dir 'h3sim[testing]'
WORKDIR /app
COPY {files} ./
CMD ["h3sim", "conform", "--", {command}]
"""


def skeleton_folder() -> Path:
    """Return the folder of the drivers."""
    return Path(__file__).parent / "skeletons"


def _skeleton(suffix: str) -> Path:
    # That in Python is no module of the package.
    return skeleton_folder() / {"py": "eps.py.txt"}.get(suffix, f"eps.{suffix}")


def start(language: str, folder: Path) -> list[Path]:
    """Write a driver, a container file and a workflow, and return their paths.

    Raises:
        InputError: listing each of the files that exists; then none is written.
    """
    chosen = LANGUAGES[language]
    driver = f"driver.{chosen.suffix}"
    build = f"      - run: {chosen.build}\n" if chosen.build else ""
    words = ", ".join(f'"{word}"' for word in chosen.command.split())
    files = _CONTAINER.format(files="driver.py", command=words)
    if chosen.build:
        stage = f"FROM {chosen.image} AS build\nWORKDIR /app\nCOPY {driver} .\nRUN {chosen.build}\n"
        files = stage + files.replace("COPY driver.py", "COPY --from=build /app/driver")
    elif language == "javascript":
        node = "RUN apt-get update && apt-get install -y --no-install-recommends nodejs\n"
        files = files.replace("driver.py", driver).replace("WORKDIR", f"{node}WORKDIR")
    texts = {
        driver: _skeleton(chosen.suffix).read_text("utf-8"),
        "Containerfile": files,
        WORKFLOW_PATH: _WORKFLOW.format(build=build, command=chosen.command),
    }
    existing = [folder / name for name in texts if (folder / name).exists()]
    if existing:
        raise InputError(
            ValidationIssue(key="--init", message=f"{path} exists already") for path in existing
        )
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, text, key="--init")
    return [folder / name for name in texts]

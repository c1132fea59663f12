"""What the documentation names is there: options, tables, papers, and what `--help` shows."""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from h3sim import catalog
from h3sim.cli.command import Parser
from h3sim.cli.main import COMMANDS, make_parser
from h3sim.papers import list_findings

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
OF_OTHERS = {
    *("--directory", "--h3sim-profile", "--hypothesis-seed"),  # of python and pytest
    *("--nthreads", "--nworkers"),  # of dask
    "--log-net-log",  # of Chromium
    *(
        *("--again", "--rm", "--hypothesis-profile"),
        *(
            "--cell",
            "--connections",
            "--half",
            "--scripts",
            "--survival",
            "--web",
            "--think",
            "--draw",
            "--sites",
            "--testbed",
        ),
        "--costs",
        "--each",
        "--every",
        "--logs",
        "--mechanisms",
        "--page",
        "--priorities",
        "--sample",
        "--survivors",
        "--table",
    ),
    "--write",  # of tools, tests and benchmarks
}
"""Options that are none of h3sim's own commands."""
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December")  # fmt: skip
NAME = r"[A-Z][a-zé]+"
CITED = re.compile(
    rf"\b((?:de )?{NAME}(?: et al\.|(?:, [A-Z][\w ]+?)* and {NAME})?)(?: do,)? \(?((?:19|20)\d\d)\b"
)
NO_PEOPLE = (*MONTHS, "Archive", "Almanac", "Workshops")

every_command = pytest.mark.parametrize("command", COMMANDS)


def prose_of(path: Path) -> str:
    return re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.M | re.S)


def parsers_of(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parser and all that stand below it."""
    below = [
        each
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for each in action.choices.values()
    ]
    return [parser, *(found for each in below for found in parsers_of(each))]


@cache
def known_options() -> frozenset[str]:
    """Return every option of every command."""
    found = {
        option
        for command in COMMANDS
        for parser in parsers_of(make_parser([command]))
        for option in parser._option_string_actions
    }
    return frozenset({"--version"} | found)


def test_every_option_that_is_named_exists() -> None:
    known = known_options() | OF_OTHERS
    for path in DOCS:
        spans = " ".join(re.findall(r"`([^`\n]+)`", prose_of(path)))
        assert {*re.findall(r"(?<![\w-])--[a-z][\w-]*", spans)} - known == set(), path.name


def test_every_table_has_a_head() -> None:
    """A line without one is a paragraph full of bars: an empty line ends a table."""
    for path in DOCS:
        lines = prose_of(path).split("\n")
        first = [n for n, line in enumerate(lines) if line[:1] == "|" and lines[n - 1][:1] != "|"]
        headless = [lines[n] for n in first if not re.fullmatch(r"\|[\s:|-]+\|", lines[n + 1])]
        assert headless == [], path.name


def examples_of(command: str) -> list[list[str]]:
    """Return the command lines that the help of *command* shows, each as words behind `h3sim`."""
    lines = [
        line.strip()
        for parser in parsers_of(make_parser([command]))[1:]
        for line in (parser.epilog or "").replace("%%", "%").split("\n")
    ]
    shown = [part for line in lines for part in re.split(r" && | \| | > \S+", line)]
    return [shlex.split(each)[1:] for each in shown if each.startswith("h3sim ")]


@every_command
def test_every_example_of_a_help_is_understood(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any, message: str) -> None:
        raise AssertionError(message)

    monkeypatch.setattr(Parser, "error", refuse)
    examples = examples_of(command)
    assert examples
    for words in examples:
        make_parser(words).parse_args(words)
        named = words[words.index("--scheme") + 1].split(",") if "--scheme" in words else []
        for scheme in named:
            if not scheme.endswith(".toml") and catalog.scheme_set(scheme) is None:
                assert catalog.load_scheme(scheme)


def references() -> list[str]:
    text = (ROOT / "docs" / "references.md").read_text("utf-8")
    return re.findall(r"^\| (?!cited as|---)(.+?) \|", text, re.M)


def cited_in(text: str) -> set[str]:
    found = CITED.findall(" ".join(text.split()))
    return {f"{who} {year}" for who, year in found if who not in NO_PEOPLE}


def test_every_source_of_a_shipped_file_stands_among_the_references() -> None:
    sources = {
        str(path.name): tomllib.loads(path.read_text("utf-8")).get("source", "")
        for path in (ROOT / "models").rglob("*.toml")
    } | {finding.id: finding.source for finding in list_findings()}
    cited = {name: cited_in(text) - set(references()) for name, text in sources.items()}
    assert {name: missing for name, missing in cited.items() if missing} == {}


def test_what_is_cited_stands_among_the_references() -> None:
    known = {*references()}
    for path in DOCS:
        if path.name != "references.md":
            assert cited_in(prose_of(path)) - known == set(), path.name

"""The house itself: nothing in it grows beyond what one can read, and no floor is gone around."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ("h3sim", "tools", "validation", "benchmarks")
CLASS_LINES, FUNCTION_LINES = 400, 80
LOADERS = {
    "h3sim/__init__.py": "the public package, above all floors: names and figures on use",
    "h3sim/headers/wire.py": "the libraries of an extra, none of them h3sim's",
    "h3sim/cli/main.py": "the module of the command, on use",
    "h3sim/values/notebook.py": "figures and exports of a result, on use",
    "tools/docs_site.py": "every public package, to describe it",
    "h3sim/values/plugins.py": "rows that name a class below, loaded when it is chosen",
    "h3sim/study/code_identity.py": "modules that users' code imports, none of them h3sim's",
}
"""What may import h3sim's modules by name, and what for; all of it goes down."""

SHARED_NAMES = {
    "Claim": "of a finding, of a scheduler: what is held against figures or laws",
    "Handshake": "of TCP and of QUIC",
    "Line": "a field line as QCRAM and as early QPACK send it",
    "Packer": "of TCP and of QUIC",
    "Recovery": "of TCP and of QUIC",
}
"""Names that two public classes have, as they are the same thing in two packages."""


Nodes = list[tuple[str, ast.AST]]


@pytest.fixture(scope="module")
def nodes() -> Nodes:
    """Return classes, functions and calls of all files: parsed once, as that takes seconds."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Call)
    return [
        (str(path.relative_to(CHECKOUT)), node)
        for folder in FOLDERS
        for path in sorted((CHECKOUT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, kinds)
    ]


def too_long(nodes: Nodes, limit: int, *kinds: type[ast.AST]) -> set[str]:
    return {
        f"{name} {node.name}"  # type: ignore[attr-defined]
        for name, node in nodes
        if isinstance(node, kinds) and node.end_lineno - node.lineno >= limit  # type: ignore[attr-defined]
    }


def test_no_class_is_longer_than_400_lines(nodes: Nodes) -> None:
    assert too_long(nodes, CLASS_LINES, ast.ClassDef) == set()


def test_two_classes_have_one_name_only_where_they_are_one_thing_in_two_packages(
    nodes: Nodes,
) -> None:
    names = Counter(
        node.name
        for file, node in nodes
        if file.startswith("h3sim/") and isinstance(node, ast.ClassDef)
    )
    public = (name for name in names if not name.startswith("_"))
    assert {name for name in public if names[name] > 1} == set(SHARED_NAMES)


def test_no_function_is_longer_than_80_lines(nodes: Nodes) -> None:
    assert too_long(nodes, FUNCTION_LINES, ast.FunctionDef, ast.AsyncFunctionDef) == set()


@pytest.mark.parametrize("call", ["import_module", "__import__"])
def test_only_loaders_import_modules_of_h3sim_by_name(nodes: Nodes, call: str) -> None:
    found = set()
    for name, node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = node.args[:1]
        is_others = all(isinstance(a, ast.Constant) and "h3sim" not in str(a.value) for a in given)
        if called == call and not is_others:
            found.add(name)
    assert found <= LOADERS.keys()


WRITERS = {
    "h3sim/cli/main.py": "stands in for a standard stream that was closed",
    "h3sim/schema/files.py": "drafts, which take the place of a file when they are whole",
}
"""What may open files for writing, and why; all other files are written by `write_atomically`."""


def writes(call: ast.Call) -> bool:
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    values = [each.value for each in given if isinstance(each, ast.Constant)]
    modes = [value for value in values if isinstance(value, str) and len(value) <= 3]
    is_opened = called in ("open", "fdopen") and any({*mode} & {*"wax+"} for mode in modes)
    return called in ("write_text", "write_bytes") or is_opened


def test_one_function_writes_files(nodes: Nodes) -> None:
    found = {
        name
        for name, node in nodes
        if name.startswith("h3sim/") and isinstance(node, ast.Call) and writes(node)
    }
    assert found == WRITERS.keys()

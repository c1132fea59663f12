"""The package speaks the words of its field: beginnings of docstrings, and names that are not used.

A machine holds only this much; the rest of the language is read by people (docs/architecture.md).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import h3sim

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(h3sim.__file__).parent
PARTS = sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")})
FORBIDDEN_BEGINNINGS = {
    *("How", "Let", "Of", "What", "When", "Where", "Whether", "Who", "Whose"),
}
FORBIDDEN_NAMES = {
    *("accidents", "hears", "heard", "kept", "standing", "took_turn"),
    *("_at", "_of", "_put", "_rest"),
}
"""Names without a fixed meaning; the field has words for them (description, priority, index)."""
FORBIDDEN_WORDS = {
    *("beside", "mistake", "mistakes", "place", "places", "placed", "said", "say", "says"),
    *("tell", "tells", "told", "wanted", "whole"),
}
"""Words that are part of no name either, in whatever case: `is_whole`, `RecordedPlace`."""


def modules_of(part: str) -> list[Path]:
    path = PACKAGE / part
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def docstrings_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring, those behind attributes included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield statement.lineno, statement.value.value


def names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of every variable, parameter, attribute, function and class."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield getattr(node, "lineno", 0), name


def words_of(name: str) -> set[str]:
    """Return the words that a name is joined from, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]*[a-z]+|[A-Z]+", name)}


def bad_beginnings(tree: ast.AST) -> list[tuple[int, str]]:
    """Return the docstrings that begin with a relative clause or an aside."""
    return [
        (line, text.splitlines()[0])
        for line, text in docstrings_of(tree)
        if (word := re.match(r"\W*(\w+)", text)) and word[1] in FORBIDDEN_BEGINNINGS
    ]


def bad_names(tree: ast.AST) -> list[tuple[int, str]]:
    """Return the identifiers that say nothing to a reader who knows the field."""
    return [
        (line, name)
        for line, name in names_of(tree)
        if (name in FORBIDDEN_NAMES or FORBIDDEN_WORDS & words_of(name))
    ]


@pytest.mark.parametrize("part", PARTS)
def test_docstrings_begin_with_verbs_or_nouns_and_identifiers_are_words_of_the_field(
    part: str,
) -> None:
    trees = {str(path): ast.parse(path.read_text("utf-8")) for path in modules_of(part)}
    found = {path: [*bad_beginnings(tree), *bad_names(tree)] for path, tree in trees.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_the_rules_find_what_they_are_for() -> None:
    source = (
        'x = 1\n"""What is left."""\n\ndef f(told):\n    """Whether so."""\n    self._put(told)\n'
        "class RecordedPlace:\n    is_whole = told_ns = _NO_SAY = replace(Placeholder)\n"
    )
    tree = ast.parse(source)
    assert sorted(line for line, _ in bad_beginnings(tree)) == [2, 5]
    assert {name for _, name in bad_names(tree)} == {
        *("told", "_put", "RecordedPlace", "is_whole", "told_ns", "_NO_SAY"),
    }

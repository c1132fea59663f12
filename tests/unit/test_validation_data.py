"""The data that tests and validation compare with: it is described as it is, and all of it."""

from __future__ import annotations

import gzip
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tools import croissant
from validation import __main__ as everything

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
CODE = ("benchmarks", "h3sim", "tests", "tools", "validation")
every_folder = pytest.mark.parametrize("folder", croissant.FOLDERS, ids=lambda path: path.name)


@every_folder
def test_the_metadata_is_that_of_the_files_and_the_readme(folder: Path) -> None:
    """`make croissant` writes it."""
    written = json.loads((folder / "croissant.json").read_text("utf-8"))
    assert written == croissant.metadata(folder)


def test_the_metadata_of_the_corpus_is_that_of_its_files() -> None:
    """`make croissant` writes it."""
    written = json.loads(croissant.CORPUS.read_text("utf-8"))
    assert written == croissant.corpus_metadata()
    sources = [
        field["source"]["fileSet"]["@id"]
        for each in written["recordSet"]
        for field in each["field"]
    ]
    assert set(sources) == {"pages", "resources"}
    names = {each["@id"] for each in written["distribution"] if "sha256" in each}
    assert names == {path.name for path in croissant.CORPUS.parent.glob("*.json")}


def test_every_column_of_the_corpus_has_one_scalar_per_record() -> None:
    """Otherwise mlcroissant 1.1 cannot iterate over the records."""
    for each in json.loads(croissant.CORPUS.read_text("utf-8"))["recordSet"]:
        for path in croissant.CORPUS.parent.glob("*.json"):
            page = json.loads(path.read_text("utf-8"))
            for field in each["field"]:
                *outer, key = field["source"]["extract"]["jsonPath"].split(".")[1:]
                records: Any = page[outer[0].removesuffix("[*]")] if outer else page
                for record in records if isinstance(records, list) else [records]:
                    assert isinstance(record[key], str | int | float), (path.name, field["@id"])


@pytest.mark.parametrize(
    "path",
    [croissant.CORPUS, *(folder / "croissant.json" for folder in croissant.FOLDERS)],
    ids=lambda path: path.parent.name,
)
def test_the_metadata_is_valid_croissant(path: Path) -> None:
    """It has what Croissant 1.0 requires of a data set, its files and its records."""
    found = json.loads(path.read_text("utf-8"))
    required = ("@context", "name", "description", "license", "datePublished", "version")
    assert [key for key in required if not found.get(key)] == []
    assert found["@type"] == "sc:Dataset"
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    ids = [each["@id"] for each in (*found["distribution"], *found["recordSet"])]
    fields = [field for each in found["recordSet"] for field in each["field"]]
    ids += [field["@id"] for field in fields]
    assert len(set(ids)) == len(ids)
    sources: dict[str, Any] = {each["@id"]: each for each in found["distribution"]}
    for each in sources.values():
        is_file = each["@type"] == "cr:FileObject"
        assert each["encodingFormat"]
        assert each.get("sha256") and each["contentUrl"] if is_file else each["includes"]
    for field in fields:
        assert field["dataType"].startswith("sc:")
        kind = "fileObject" if "fileObject" in field["source"] else "fileSet"
        assert sources[field["source"][kind]["@id"]]["@type"].lower() == f"cr:{kind}".lower()
        assert set(field["source"]["extract"]) <= {"column", "jsonPath"}


def records(folder: Path, name: str) -> Iterator[Any]:
    """Yield the records that have the columns of *name*."""
    path = folder / name
    if not path.is_file():
        for each in folder.glob("*-*.json"):
            yield json.loads(each.read_text("utf-8"))
    elif path.suffix == ".json":
        document = json.loads(path.read_text("utf-8"))
        yield from document if isinstance(document, list) else [document]
    else:
        content = path.read_bytes()
        text = gzip.decompress(content) if path.suffix == ".gz" else content
        yield from map(json.loads, text.splitlines())


def keys_of(record: Any, described: set[str]) -> Iterator[str]:
    """Yield the keys of a record; those of a list's entries where the dictionary goes into it."""
    for key, value in record.items():
        if any(column.startswith(f"{key}[].") for column in described):
            yield from (f"{key}[].{inner}" for entry in value for inner in entry)
        else:
            yield key


@every_folder
def test_every_column_is_described_and_every_described_one_is_there(folder: Path) -> None:
    for name, rows in croissant.columns((folder / "README.md").read_text("utf-8")).items():
        described = {column for column, _, _ in rows}
        there = {key for record in records(folder, name) for key in keys_of(record, described)}
        assert there == described, name


@every_folder
def test_every_file_has_its_columns_described(folder: Path) -> None:
    names = set(croissant.columns((folder / "README.md").read_text("utf-8")))
    own = {path.name for path in folder.iterdir()} - {"README.md", "croissant.json"}
    assert names <= own | {folder.name}
    assert folder.name in names or own == names


def test_no_code_looks_outside_of_the_repository() -> None:
    """A file n folders below the root may go up n times, and no further."""
    for folder in CODE:
        for path in (ROOT / folder).rglob("*.py"):
            deep = len(path.relative_to(ROOT).parts)
            text = path.read_text("utf-8")
            climbs = [int(n) + 1 for n in re.findall(r"\.parents\[(\d+)\]", text)]
            assert max(climbs, default=0) <= deep, path


def test_what_is_validated_stands_on_the_page_and_in_a_module() -> None:
    links = re.findall(r"^- \[.*\]\((generated/.*\.md)\)", everything.PAGE.read_text("utf-8"), re.M)
    pages = [(everything.PAGE.parent / link).read_text("utf-8") for link in links]
    sections = {page[2:].partition("\n")[0] for page in pages}
    assert {*everything.SHORT, *everything.LONG} <= sections
    for command in everything.commands(is_all=True):
        assert command.section in sections
        if command.words[0] == "-m":
            assert find_spec(command.words[1]) is not None, command


def test_what_takes_long_or_needs_servers_is_left_out_unless_all_is_requested() -> None:
    short, every = everything.commands(is_all=False), everything.commands(is_all=True)
    long = [each for each in every if each not in short]
    assert [each for each in every if each in short] == short
    assert len(long) == sum(map(len, everything.LONG.values()))

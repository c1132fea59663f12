"""Writes the Croissant metadata of the data sets and of the corpus: `python -m tools.croissant`.

The README of a folder in validation/data has the title, the description, the licence and, below
each heading "Columns of NAME", a dictionary of columns; the files themselves have the rest. The
columns of the corpus are the keys of page files, by their declarations.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.page import Page, Resource
from h3sim.schema.fields import fields_of
from h3sim.schema.values import Choice, Flag, Integer, Number, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.schema.fields import FieldSpec
    from h3sim.schema.values import ValueType

__all__ = ["CORPUS", "FOLDERS", "columns", "corpus_metadata", "main", "metadata"]

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "validation" / "data"
CORPUS = ROOT / "corpora" / "croissant.jsonld"
"""Not a .json file, as those are pages."""
FOLDERS = tuple(sorted(path.parent for path in DATA.glob("*/README.md")))
_FILE = "croissant.json"
_LICENSE = "https://spdx.org/licenses/MIT.html"
_VERSION, _PUBLISHED = "1.0.0", "2026-11-23"
_TYPES = {
    "text": "sc:Text",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "array": "sc:Text",
    "object": "sc:Text",
}
"""Croissant has no type for nested values: these are given as JSON."""
_FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".gz": ["application/jsonlines", "application/gzip"],
}
_PROVENANCE = {
    "source": "origin of the page",
    "licence": "licence of what was loaded",
}
"""Keys of `provenance` that all shipped pages have."""
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "includes": "cr:includes",
    "jsonPath": "cr:jsonPath",
    "recordSet": "cr:recordSet",
    "sc": "https://schema.org/",
    "source": "cr:source",
}


def columns(readme: str) -> dict[str, list[tuple[str, str, str]]]:
    """Return, by name of what has them, the columns of a README: name, type and meaning."""
    found = {}
    for name, text in re.findall(r"^## Columns of (\S+)\n(.*?)(?=^## |\Z)", readme, re.M | re.S):
        found[name] = re.findall(r"^\| `([^`]+)` \| (\w+) \| (.*) \|$", text, re.M)
    return found


def metadata(folder: Path) -> dict[str, Any]:
    """Return the metadata of a folder, as JSON-LD."""
    readme = (folder / "README.md").read_text("utf-8")
    title, description = readme.split("\n\n")[:2]
    return {
        **_dataset(folder.name, title.removeprefix("# "), description),
        "distribution": [*map(_file, _files(folder)), *_sets(folder, columns(readme))],
        "recordSet": [_records(folder, name, rows) for name, rows in columns(readme).items()],
    }


def corpus_metadata() -> dict[str, Any]:
    """Return the metadata of the shipped pages, as JSON-LD."""
    # mlcroissant 1.1 reads columns with one scalar per record: no key that may be left out, and no
    # nested value. All columns of a file set make one table: each record set has its own file set.
    of_pages = [(each.key, _type(each.kind), each.about) for each in _scalars(Page)]
    of_pages += [(f"provenance.{key}", "text", about) for key, about in _PROVENANCE.items()]
    of_resources = [
        (f"resources[].{each.key}", _type(each.kind), each.about) for each in _scalars(Resource)
    ]
    description = """Dependency graphs of web pages: their resources with sizes, kinds and triggers,
    without content. `provenance` has the origin and the licence of what was loaded."""
    pages = sorted(CORPUS.parent.glob("*.json"))
    tables = {"pages": of_pages, "resources": of_resources}
    return {
        **_dataset("corpus", "Pages of h3sim", description),
        "distribution": [*map(_file, pages), *(_set(name, "*.json") for name in tables)],
        "recordSet": [_records(CORPUS.parent, name, rows) for name, rows in tables.items()],
    }


def _scalars(cls: type) -> Iterator[FieldSpec]:
    """Yield the keys of a page file that are always given and have no nested value."""
    for each in fields_of(cls):
        if each.is_needed and _type(each.kind) != "object":
            yield each


def _type(kind: ValueType) -> str:
    """Return the type of a column in a README for that of a key; nested values are objects."""
    types = {Flag: "boolean", Integer: "integer", Number: "number", Text: "text", Choice: "text"}
    return next((name for cls, name in types.items() if isinstance(kind, cls)), "object")


def _dataset(name: str, title: str, description: str) -> dict[str, Any]:
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"h3sim-{name}",
        "alternateName": title,
        "description": " ".join(description.split()),
        "license": _LICENSE,
        "version": _VERSION,
        "datePublished": _PUBLISHED,
    }


def _files(folder: Path) -> list[Path]:
    return sorted(
        (path for path in folder.iterdir() if path.name not in ("README.md", _FILE)),
        key=lambda path: path.name,
    )


def _file(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": _FORMATS[path.suffix],
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _sets(folder: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield a file set for each name that is not a file's: all files have its columns."""
    for name in names:
        if not (folder / name).is_file():
            yield _set(name, "*-*.json")


def _set(name: str, includes: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": name,
        "name": name,
        "encodingFormat": _FORMATS[".json"],
        "includes": includes,
    }


def _records(folder: Path, name: str, rows: list[tuple[str, str, str]]) -> dict[str, Any]:
    """Return a record set: of one file, or, where no file is called *name*, of each file there."""
    kind_of_source = "fileObject" if (folder / name).is_file() else "fileSet"
    return {
        "@type": "cr:RecordSet",
        "@id": f"{name}-records",
        "name": f"{name}-records",
        "description": f"{name}: the columns of each record",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}-records/{column}",
                "name": f"{name}-records/{column}",
                "description": meaning,
                "dataType": _TYPES[kind],
                "source": {kind_of_source: {"@id": name}, "extract": _extract(name, column)},
            }
            for column, kind, meaning in rows
        ],
    }


def _extract(name: str, column: str) -> dict[str, str]:
    if ".jsonl" in name:
        return {"column": column}
    path = column.replace("[]", "[*]")
    return {"jsonPath": f"$[*].{path}" if name.endswith("schedules.json") else f"$.{path}"}


def main() -> None:
    """Write `croissant.json` into each folder, and the metadata of the corpus."""
    found = {folder / _FILE: metadata(folder) for folder in FOLDERS}
    for path, document in {**found, CORPUS: corpus_metadata()}.items():
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()

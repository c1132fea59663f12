"""Writes the Croissant metadata of the data sets: `python -m tools.croissant`.

The README of a folder in validation/data has the title, the description, the licence and, below
each heading "Columns of NAME", a dictionary of columns; the files themselves have the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FOLDERS", "columns", "main", "metadata"]

DATA = Path(__file__).resolve().parents[1] / "validation" / "data"
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
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"h3sim-{folder.name}",
        "alternateName": title.removeprefix("# "),
        "description": " ".join(description.split()),
        "license": _LICENSE,
        "version": _VERSION,
        "datePublished": _PUBLISHED,
        "distribution": [*map(_file, _files(folder)), *_sets(folder, columns(readme))],
        "recordSet": [_records(folder, name, rows) for name, rows in columns(readme).items()],
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
            yield {
                "@type": "cr:FileSet",
                "@id": name,
                "name": name,
                "encodingFormat": _FORMATS[".json"],
                "includes": "*-*.json",
            }


def _records(folder: Path, name: str, rows: list[tuple[str, str, str]]) -> dict[str, Any]:
    """Return a record set: of one file, or, where no file has the name, of each file there."""
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
    """Write `croissant.json` into each folder."""
    for folder in FOLDERS:
        text = json.dumps(metadata(folder), indent=1, ensure_ascii=False) + "\n"
        (folder / _FILE).write_text(text, "utf-8")


if __name__ == "__main__":
    main()

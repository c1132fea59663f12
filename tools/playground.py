"""Builds the playground into build/playground, and serves it: `python -m tools.playground --serve`.

The site is static and complete: h3sim and its libraries as wheels and Pyodide stand beside the
page, and no other host is asked for anything. They come from the package registries, through npm
and pip, once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim import catalog
from playground.simulator import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "PARTS",
    "Handler",
    "build",
    "catalogue",
    "fetch_package",
    "first_requests",
    "main",
]

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "playground"
PARTS = ROOT / "build" / "playground-parts"
SOURCE = ROOT / "playground"

PYODIDE = "pyodide@314.0.7"
"""Python 3.14 for browsers; another version may need other files."""
_PYODIDE_FILES = (
    *("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"),
    *("pyodide-lock.json", "package.json"),
)
_OF_WHEEL = (
    *("setup.cfg", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"),
    *("h3sim", "models", "corpora"),
)
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm"}
_PORT = 8765
_FETCH_S = 600


class PlaygroundError(RuntimeError):
    """The playground could not be built; the message says what was missing."""


class Handler(SimpleHTTPRequestHandler):
    """Serves files with the types that browsers insist on, never from a cache."""

    def guess_type(self, path: Any) -> str:
        """Return the media type of a file: modules and WebAssembly are refused under others."""
        suffix = Path(path).suffix
        return _TYPES.get(suffix) or super().guess_type(path)

    def end_headers(self) -> None:
        """Have the browser ask again: a playground that was built anew is seen at once."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing: each file of the page would be a line."""


def main() -> int:
    """Build the playground; with `--serve` serve it on this machine until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--serve", action="store_true", help="serve it on this machine afterwards")
    parser.add_argument("--port", type=int, default=_PORT, help="the port (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        build(SITE, PARTS)
    except PlaygroundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"built {SITE.relative_to(ROOT)}")
    if arguments.serve:
        _serve(SITE, arguments.port)
    return 0


def build(site: Path, parts: Path) -> None:
    """Write the whole site into *site*, which is emptied before; *parts* keeps what was fetched.

    Raises:
        PlaygroundError: if a part cannot be had, or the wheel cannot be made.
    """
    _fetch(parts)
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(SOURCE, site, ignore=shutil.ignore_patterns("__*"))
    (site / "pyodide").mkdir()
    for name in _PYODIDE_FILES:
        shutil.copyfile(parts / "pyodide" / name, site / "pyodide" / name)
    shutil.copytree(parts / "wheels", site / "wheels")
    _make_wheel(site / "wheels")
    wheels = sorted(path.name for path in (site / "wheels").glob("*.whl"))
    text = json.dumps({**catalogue(), "wheels": wheels}, ensure_ascii=False)
    (site / "catalogue.json").write_text(text, encoding="utf-8")
    answers = {request: json.loads(simulate(request)) for request in first_requests()}
    text = json.dumps(answers, ensure_ascii=False, separators=(",", ":"))
    (site / "computed.json").write_text(text, encoding="utf-8")
    # Static hosts that run Jekyll leave out what it does not know.
    (site / ".nojekyll").touch()


_FIRST_REQUESTS = """
import { DEFAULTS, requestOf } from "./state.mjs";
import { LESSON } from "./lesson.mjs";
const states = [DEFAULTS, ...LESSON.map((step) => ({ ...DEFAULTS, ...step.set }))];
const requests = states.flatMap((state) => state.schemes.map((scheme) => requestOf(state, scheme)));
console.log(JSON.stringify([...new Set(requests)]));
"""


def first_requests() -> list[str]:
    """Return what the page asks Python in its default state and at the start of lesson steps.

    Raises:
        PlaygroundError: if there is no Node.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for module in ("state", "lesson"):
            shutil.copyfile(SOURCE / f"{module}.js", folder / f"{module}.mjs")
        (folder / "requests.mjs").write_text(_FIRST_REQUESTS, encoding="utf-8")
        requests: list[str] = json.loads(_run("node", str(folder / "requests.mjs")))
    return requests


def catalogue() -> dict[str, Any]:
    """Return what the page offers before Python runs: pages, schemes, clients and servers.

    It is written when the site is built: listing the pages would take seconds in a browser.
    """
    return {
        "version": h3sim.__version__,
        "pages": [
            {"name": page.name, "resources": len(page.resources), "bytes": page.total_bytes}
            for page in h3sim.list_pages()
        ],
        "schemes": [
            {"name": scheme.name, "title": scheme.title, "group": _group_of(scheme.name)}
            for scheme in h3sim.list_schemes()
        ],
        "clients": [client.name for client in catalog.list_clients()],
        "servers": [server.name for server in catalog.list_servers()],
    }


def _group_of(scheme: str) -> str:
    """Return the set of schemes that one belongs to, as a heading."""
    for name, title in (
        ("marx-2019", "Marx 2019"),
        ("sander-2022", "Sander 2022"),
        ("servers", "Servers"),
    ):
        if scheme in (catalog.scheme_set(name) or ()):
            return title
    return "Browsers and others"


_LIBRARIES = {"simpy": ">=4.1,<5", "lazy_loader": ">=0.4"}
"""The libraries that a load needs, with their versions."""


def _fetch(parts: Path) -> None:
    """Have Pyodide and the libraries in *parts*, each fetched once."""
    fetch_package(PYODIDE, _PYODIDE_FILES, parts / "pyodide")
    for name, versions in _LIBRARIES.items():
        if not any((parts / "wheels").glob(f"{name}-*.whl")):
            _pip("download", "--no-deps", "--dest", str(parts / "wheels"), f"{name}{versions}")


def fetch_package(package: str, names: Sequence[str], folder: Path) -> None:
    """Have the files *names* of an npm package in *folder*; they are fetched once.

    Raises:
        PlaygroundError: if there is no npm, or it cannot fetch the package.
    """
    if (folder / names[0]).is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as download:
        _run("npm", "pack", "--silent", "--pack-destination", download, package)
        (archive,) = Path(download).glob("*.tgz")
        with tarfile.open(archive) as tar:
            # The one that is looked for comes last: an interrupted run fetches all again.
            for name in reversed(names):
                member = tar.extractfile(f"package/{name}")
                if member is None:
                    raise PlaygroundError(f"{package} has no file {name}")
                (folder / name).write_bytes(member.read())


def _make_wheel(folder: Path) -> None:
    """Make the wheel of h3sim from a copy: setuptools keeps what was deleted in its own folder."""
    with tempfile.TemporaryDirectory() as copy:
        for name in _OF_WHEEL:
            path = ROOT / name
            if path.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.so")
                shutil.copytree(path, Path(copy) / name, ignore=ignored)
            else:
                shutil.copyfile(path, Path(copy) / name)
        _pip("wheel", "--no-deps", "--wheel-dir", str(folder), copy)


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(program: str, *arguments: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise PlaygroundError(f"{program} is needed to build the playground, and is not installed")
    done = subprocess.run(  # noqa: S603 - the package managers of this machine
        [found, *arguments], capture_output=True, text=True, timeout=_FETCH_S, check=False
    )
    if done.returncode:
        message = (done.stderr or done.stdout).strip()
        raise PlaygroundError(f"{program} {' '.join(arguments)} failed:\n{message}")
    return done.stdout


def _serve(site: Path, port: int) -> None:
    with ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=site)) as server:
        print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    sys.exit(main())

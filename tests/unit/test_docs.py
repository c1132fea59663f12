"""What the documentation shows is true: its examples run, and print what it says they print.

In a Markdown file, `$ h3sim ...` in a console block is run, and the lines below it must be among
those that come out, in order; blocks of JSON and TOML are files for these commands, named after
the name in them; Python blocks are run, and a text block right behind one is what it prints.
"""

from __future__ import annotations

import configparser
import contextlib
import dataclasses
import doctest
import io
import itertools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import h3sim
from h3sim import catalog
from h3sim.cli import main
from h3sim.conformance import runner
from h3sim.load.options import flags_of
from h3sim.page import Page, page_from_dict, schema
from h3sim.schedulers import Mixed, Retransmit
from h3sim.schema.fields import fields_of, keys_of
from h3sim.schemes import Arrangement, SchedulerKind, scheme_from_dict
from h3sim.schemes.halves import client_from_toml, server_from_toml
from h3sim.schemes.ranks import RankBy
from h3sim.schemes.rules import CONDITIONS
from h3sim.signals import Signalling, WithoutSignal
from h3sim.study.study_file import StudyFile, study_from_dict
from h3sim.transport import TransportProfile, network_from_dict
from h3sim.transport.congestion import controller_names
from h3sim.transport.link_profile import LinkProfile
from h3sim.transport.profile import profile_from_toml
from h3sim.transport.quic import QuicSettings
from h3sim.transport.tcp import TcpSettings
from tests.effort import IS_THOROUGH
from tests.schemas import SCHEMAS, schema_problems
from tools import docs_tables, formats

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "generated"
README = ROOT / "README.md"
DOCS = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BROKEN = "broken"
"""The name of the page that shows mistakes."""


TAKES_LONG = "h3sim optimality corpus "
"""A command over all shipped pages, which a thorough run alone waits for."""


class Block(NamedTuple):
    """A fenced block, and where its fence begins and ends in the file."""

    language: str
    text: str
    start: int
    stop: int


class Command(NamedTuple):
    """A command of a console block, and what is shown of its output."""

    line: str
    shown: list[str]


def blocks_of(path: Path, *languages: str) -> list[Block]:
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", path.read_text("utf-8"), re.M | re.S)
    blocks = [Block(match[1], match[2], *match.span()) for match in found]
    return [block for block in blocks if not languages or block.language in languages]


def docs_with(*languages: str) -> pytest.MarkDecorator:
    """Return a mark for a test of each file that has a block in one of *languages*."""
    found = [path for path in DOCS if blocks_of(path, *languages)]
    return pytest.mark.parametrize("path", found, ids=lambda path: path.name)


def example_blocks(path: Path) -> list[Block]:
    """Return the files that a page shows, or a file of docs/examples, but for the broken one."""
    if path.suffix == ".md":
        blocks = blocks_of(path, "json", "toml")
        return [block for block in blocks if document_of(block)["name"] != BROKEN]
    text = path.read_text("utf-8")
    return [Block(path.suffix.removeprefix("."), text, 0, len(text))]


EXAMPLES = sorted((ROOT / "docs" / "examples").iterdir())
examples = pytest.mark.parametrize(
    "path",
    [*EXAMPLES, *(path for path in DOCS if blocks_of(path, "json", "toml"))],
    ids=lambda path: path.name,
)
every_doc = pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)


def commands_of(path: Path) -> list[Command]:
    commands: list[Command] = []
    for block in blocks_of(path, "console"):
        for line in block.text.splitlines():
            if line.startswith("$ "):
                commands.append(Command(line.removeprefix("$ "), []))
            elif line != "...":
                commands[-1].shown.append(line)
    return commands


def document_of(block: Block) -> dict[str, Any]:
    return json.loads(block.text) if block.language == "json" else tomllib.loads(block.text)


def write_files(path: Path, folder: Path) -> None:
    for block in blocks_of(path, "json", "toml"):
        name = f"{document_of(block)['name']}.{block.language}"
        (folder / name).write_text(block.text, encoding="utf-8")


def output_of(command: str) -> tuple[int, list[str]]:
    if command.startswith("python "):
        words = [sys.executable, *shlex.split(command)[1:]]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
        return done.returncode, done.stdout.splitlines()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(shlex.split(command)[1:])
    return code, out.getvalue().splitlines()


@docs_with("console")
def test_every_command_prints_what_is_shown(
    path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in commands_of(path):
        if not command.line.startswith(("h3sim ", "python -m validation.")):
            continue
        if command.line.startswith(TAKES_LONG) and not IS_THOROUGH:
            continue
        code, printed = output_of(command.line)
        is_refused = any(line.startswith("h3sim ") for line in command.shown)
        assert code == (2 if is_refused else 0), f"{command.line}: {printed}"
        rest = iter([" ".join(line.split()) for line in printed])
        for shown in command.shown:
            assert " ".join(shown.split()) in rest, (
                f"{command.line} does not print, or not in this order: {shown}"
            )


@pytest.fixture
def at_most_default_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check laws on the default number of histories in a thorough run, and on fewer otherwise.

    The output is the same, down to the shortest history that breaks a law.
    """
    monkeypatch.setattr(runner, "_profile", "default" if IS_THOROUGH else "quick")


@docs_with("python")
@pytest.mark.usefixtures("at_most_default_histories")
def test_every_python_example_prints_what_is_shown(path: Any) -> None:
    blocks = [*blocks_of(path), None]
    text = path.read_text("utf-8")
    dialogue = [block.text for block in blocks[:-1] if is_dialogue(block)]  # type: ignore[arg-type]
    test = doctest.DocTestParser().get_doctest("\n".join(dialogue), {}, path.name, str(path), 0)
    assert doctest.DocTestRunner().run(test).failed == 0
    for block, after in itertools.pairwise(blocks):
        if block.language != "python" or is_dialogue(block):  # type: ignore[arg-type]
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.text, str(path), "exec"), {"__name__": "__main__"})
        assert after is not None
        assert text[block.stop : after.start].strip() == "", "no text block behind a Python block"
        assert (after.language, after.text) == ("text", out.getvalue())


def is_dialogue(block: Block) -> bool:
    return block.language == "python" and block.text.startswith(">>>")


READERS: dict[str, Any] = {
    "h3sim-page/1": page_from_dict,
    "h3sim-scheme/1": scheme_from_dict,
    "h3sim-study/1": study_from_dict,
    "h3sim-network/1": network_from_dict,
}
TEXT_READERS: dict[str, Any] = {
    "h3sim-profile/1": profile_from_toml,
    "h3sim-client/1": client_from_toml,
    "h3sim-server/1": server_from_toml,
}


@examples
def test_every_example_of_a_file_can_be_read(path: Any) -> None:
    for block in example_blocks(path):
        document = document_of(block)
        if document["format"] in TEXT_READERS:
            made = TEXT_READERS[document["format"]](block.text, source=path.name)
        else:
            made = READERS[document["format"]](document)
        assert made.name == document["name"]


FORMATS = {
    "h3sim-page/1": Page,
    "h3sim-scheme/1": h3sim.Scheme,
    "h3sim-network/1": h3sim.Network,
    "h3sim-profile/1": TransportProfile,
    "h3sim-study/1": StudyFile,
}


def tables_of(cls: Any, found: Any) -> None:
    """Note, by class, the keys of a format's tables."""
    if cls in found:
        return
    found[cls] = {key for field in fields_of(cls) for key in field.keys}
    for field in fields_of(cls):
        kind = getattr(field.kind, "of", field.kind)
        if hasattr(kind, "cls") and not kind.keys:
            tables_of(kind.cls, found)
    return


def keys_in(value: Any) -> Any:
    if isinstance(value, dict):
        return set(value).union(*(keys_in(item) for item in value.values()))
    return set().union(*map(keys_in, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("format_", FORMATS)
def test_every_key_of_every_format_stands_in_an_example(format_: Any) -> None:
    """Each example is read by `test_every_example_of_a_file_can_be_read`."""
    shown = set()
    for block in itertools.chain.from_iterable(map(example_blocks, EXAMPLES)):
        document = document_of(block)
        if document["format"] == format_:
            shown |= keys_in(document)
    tables: dict[Any, Any] = {}
    tables_of(FORMATS[format_], tables)
    assert {cls.__name__: keys - shown for cls, keys in tables.items() if keys - shown} == {}


@examples
def test_every_example_fits_its_schema(path: Any) -> None:
    for block in example_blocks(path):
        document = document_of(block)
        if document["format"] in SCHEMAS:
            assert schema_problems(document) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "schemes/*.toml",
        "clients/*.toml",
        "servers/*.toml",
        "networks/*.toml",
        "profiles/*.toml",
        "studies/*.toml",
        "fin*.toml",
    ],
)
def test_every_shipped_file_fits_its_schema(pattern: Any) -> None:
    files = [*(ROOT / "models").glob(pattern)]
    assert files
    for file in files:
        assert schema_problems(tomllib.loads(file.read_text("utf-8"))) == [], file.name


def test_every_published_schema_is_that_of_its_declaration() -> None:
    """`make formats` writes them."""
    for path, found in formats.published().items():
        assert json.loads(path.read_text("utf-8")) == found, path


@every_doc
def test_every_table_of_declarations_is_as_it_is_declared(path: Any) -> None:
    text = path.read_text("utf-8")
    assert docs_tables.written(text) == text, "make docs-tables writes it anew"


def test_every_load_option_is_explained() -> None:
    text = "".join(path.read_text("utf-8") for path in DOCS)
    for field in fields_of(h3sim.LoadConfig):
        flags = flags_of(h3sim.LoadConfig)[field.attribute]
        assert [flag for flag in flags if f"`{flag}`" not in text] == []


def test_every_set_of_pages_is_described() -> None:
    text = (ROOT / "docs" / "corpus.md").read_text("utf-8")
    reported = re.findall(r"^\| `([\w:-]+)` \|", text, re.M)
    sets = tomllib.loads((ROOT / "models" / "sets.toml").read_text("utf-8"))["pages"]
    assert {*catalog.page_set_names(), *sets} <= {*reported, *re.findall(r"`(web:[\w-]+)`", text)}
    assert all(catalog.page_set(name) for name in reported)
    n_shipped, n_in_corpus = len(catalog.list_pages()), len(catalog.page_set("corpus"))  # type: ignore[arg-type]
    assert f"\n{n_shipped} pages are templates" in text
    assert f"synthetic one: {n_in_corpus} |" in text


@pytest.mark.parametrize("folder", ["docs", "generated"])
def test_every_link_leads_to_a_file_and_a_heading(folder: str) -> None:
    for path in DOCS:
        if (path.parent == GENERATED) == (folder == "generated"):
            check_links(path)


def check_links(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(path)):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), target
        assert not anchor or anchor in anchors_of(file), target


def prose_of(path: Path) -> str:
    text = path.read_text("utf-8")
    for block in reversed(blocks_of(path)):
        text = text[: block.start] + text[block.stop :]
    return text


def anchors_of(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose_of(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_leads_to_every_page_of_the_documentation() -> None:
    """The README leads to the index."""
    for folder in (ROOT / "docs", GENERATED):
        links = re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text("utf-8"))
        names = {path.name for path in DOCS if path.parent == folder}
        assert set(links) | {"README.md"} == names
    assert "](docs/README.md)" in README.read_text("utf-8")


def test_the_readme_takes_two_minutes() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 120


def test_every_extra_that_users_install_is_named() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = set(config["options.extras_require"]) - {"dev", "docs", "fuzz", "release"}
    assert set(first_column((ROOT / "docs" / "install.md").read_text("utf-8"))) == extras


def test_statements_about_speed_agree_with_the_table() -> None:
    table = (GENERATED / "speed.md").read_text("utf-8")
    (pure, compiled), = re.findall(
        r"^QUIC, CUBIC, 2 % loss +([\d.]+) .*(?:yes|NO) +([\d.]+) .*(?:yes|NO)$", table, re.M
    )  # fmt: skip
    rates = [float(x) for x in re.findall(r"^constant rate, \S+ +([\d.]+) ", table, re.M)]
    text = " ".join((ROOT / "docs" / "install.md").read_text("utf-8").split())
    reported = re.search(r"that model, ([\d.]+) to ([\d.]+) times by scheme", text)
    assert [float(each) for each in reported.groups()] == [
        round(min(rates), 1),
        round(max(rates), 1),
    ]
    assert (round(float(pure)), round(float(compiled))) == (10, 3)
    assert "about ten times as long, and three times with the compiled build" in text


def errors_of_stacks(settings: str) -> tuple[float, float, float]:
    """Return of the total times of *settings* the least and greatest median, and the worst."""
    table = (GENERATED / "real-stacks.md").read_text("utf-8")
    rows = re.findall(rf"^\| {settings} \|.*?\| \d+ \| ([\d.]+) %, ([\d.]+) % \|", table, re.M)
    medians, worst = zip(*((float(a), float(b)) for a, b in rows), strict=True)
    return min(medians), max(medians), max(worst)


def test_the_errors_that_readme_and_artifact_name_are_those_of_the_tables() -> None:
    """`make validate-stacks`, `make validate-recordings` and `make findings` print those."""
    text = README.read_text("utf-8")
    artifact = (ROOT / "docs" / "artifact.md").read_text("utf-8")
    _, _, worst = errors_of_stacks("no drop")
    assert f"nothing dropped: total time | at most {worst} % |" in text
    summary = (ROOT / "docs" / "validation.md").read_text("utf-8").partition("\n## ")[0]
    assert f"nothing dropped: total time | at most {worst} % off |" in summary
    for settings, words in (("loss, replayed", "recorded"), ("loss, 30 seeds", "of the same rate")):
        least, most, worst = errors_of_stacks(settings)
        reported = f"median {least} to {most} %, at most {worst} % |"
        assert re.search(rf"\| the same with [^|]*{words}[^|]*\| {re.escape(reported)}", text)
        reported = f"median {least} to {most} % off, at most {worst} % |"
        assert re.search(rf"\| the same with [^|]*{words}[^|]*\| {re.escape(reported)}", summary)
    table = (GENERATED / "recordings.md").read_text("utf-8")
    for replay, word in (("replay", "replayed"), ("computed", "computed")):
        (percent,) = re.findall(rf"^{replay}: .*percentage error ([\d.]+) %$", table, re.M)
        assert f"over a link, {word} | mean {percent} % |" in text
        assert f" {percent} % {word}" in artifact
        assert f" {percent} % {word}" in summary
    findings = " ".join((GENERATED / "findings.md").read_text("utf-8").split())
    verdicts = re.search(r"\d+ hold, .*? cannot be judged", findings)
    assert f"| {verdicts[0]} |" in text
    assert f"| {verdicts[0]} |" in summary
    counts = [int(number) for number in re.findall(r"\d+", verdicts[0])]
    assert f"| {sum(counts)} results of the papers |" in text
    judged = re.search(r"Of (\d+) results of the papers ([^|]*) \|", artifact)
    assert judged[0].startswith(f"Of {sum(counts)} results")
    assert [int(number) for number in re.findall(r"\d+", judged[2])] == counts


def test_what_is_shipped_is_counted() -> None:
    text = (ROOT / "docs" / "tour.md").read_text("utf-8")
    recorded = set(catalog.page_set("corpus") or ()) - set(catalog.page_set("papers") or ())
    assert f"\n{len(recorded)} pages recorded this way are shipped" in text
    scope = (ROOT / "docs" / "scope.md").read_text("utf-8")
    assert f"; {len(h3sim.list_networks())} networks (" in scope


def test_every_make_target_that_is_named_exists() -> None:
    targets = {*re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M)}
    for path in DOCS:
        text = path.read_text("utf-8")
        named = re.findall(r"\bmake ([a-z][a-z-]*)`|^\$ make ([a-z][a-z-]*)$", text, re.M)
        assert {first or second for first, second in named} <= targets, path.name


def test_the_contributing_guide_names_the_targets_that_make_shows_first() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (shown,) = re.findall(r"grep -E '\^\(([\w|]+)\):", makefile)
    assert {name for name in shown.split("|") if f"\n{name}: " in makefile} == set(shown.split("|"))
    reported = re.findall(
        r"^\| `make ([a-z-]+)`", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M
    )
    assert sorted(reported) == sorted(shown.split("|"))


@pytest.mark.parametrize("scheme", h3sim.list_schemes(), ids=lambda scheme: scheme.name)
def test_a_scheme_is_described_as_its_file_has_it(scheme: Any) -> None:
    document = tomllib.loads(catalog.text_of("scheme", scheme.name))
    if {"client", "server"} <= set(document):  # its halves have sections of their own
        named = section_of(GENERATED / "schemes.md", "Named pairs")
        (row,) = re.findall(rf"^\| `{re.escape(scheme.name)}` \|.*$", named, re.M)
        assert (
            f"[{document['client']}](clients.md#" in row or f"[{document['client']}](schemes" in row
        )
        assert f"[{document['server']}](servers.md#{document['server']})" in row
        return
    section = section_of(GENERATED / "schemes.md", scheme.name)
    assert f"Mechanism `{scheme.mechanism.value}`" in section
    assert f"\nSource: {scheme.source}." in section
    for holder in scheme.placeholders:
        assert f"| `{holder.name}` | " in section
    for entry in scheme.classes if "classes" in document and "rules" in document else ():
        assert f"| `{entry.name}` | " in section


def section_of(path: Any, heading: Any) -> Any:
    """Return what stands under a heading."""
    parts = re.split(r"^#{1,3} ", path.read_text("utf-8"), flags=re.M)
    found = [part for part in parts if part.split("\n", 1)[0] == heading]
    assert len(found) == 1, f"{len(found)} sections are headed {heading}"
    return found[0]


def test_every_mechanism_stands_in_the_table_and_is_counted() -> None:
    path = ROOT / "docs" / "schemes.md"
    reported = first_column(section_of(path, "The mechanisms"))
    assert {kind.value for kind in SchedulerKind} <= set(reported)
    assert len(SchedulerKind) == 17
    assert "one of seventeen *mechanisms*" in path.read_text("utf-8")


TABLES = ("eps", "tree", "buckets", "strict")
"""The signals of a client."""


@pytest.mark.parametrize("half", ["client", "server"])
def test_a_half_is_described_and_one_row_of_its_list(half: str) -> None:
    path = GENERATED / f"{half}s.md"
    for value in getattr(catalog, f"list_{half}s")():
        section = section_of(path, value.name)
        assert value.title in section
        assert f"\nSource: {value.source}." in section


def test_no_rule_stands_in_two_files() -> None:
    seen: dict[str, str] = {}
    for folder in ("schemes", "clients", "servers"):
        for path in sorted((ROOT / "models" / folder).glob("*.toml")):
            rules = tomllib.loads(path.read_text("utf-8")).get("rules")
            if rules:
                assert seen.setdefault(json.dumps(rules), path.name) == path.name


def test_every_word_of_a_scheme_file_is_explained() -> None:
    pages = (ROOT / "docs" / "schemes.md", GENERATED / "scheme-keys.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    explained = {key.rpartition(".")[2] for key in re.findall(r"`([\w.-]+)`", text)}
    folders = [ROOT / "models" / name for name in ("schemes", "clients", "servers")]
    files = [path for folder in folders for path in folder.glob("*.toml")]
    documents = [tomllib.loads(path.read_text("utf-8")) for path in files]
    tables = [document[key] for document in documents for key in TABLES if key in document]
    words = {
        option.value
        for options in (SchedulerKind, Arrangement, Mixed, RankBy, Signalling, WithoutSignal)
        for option in options
    }
    words |= {key for document in documents for key in document} | set(CONDITIONS)
    for document in [*documents, *tables]:
        entries = [*document.get("classes", {}).values(), *document.get("placeholders", ())]
        words |= {key for entry in [*entries, *document.get("rules", ())] for key in entry}
    assert words - explained == set()


def test_every_key_of_a_page_file_is_explained() -> None:
    pages = (ROOT / "docs" / "page-format.md", GENERATED / "page-keys.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    definitions = schema()["$defs"]
    words = [*schema()["properties"], *definitions["resource"]["properties"]]
    words += [*definitions["discovery"]["properties"]]
    words += definitions["resource"]["properties"]["kind"]["enum"]
    words += definitions["discovery"]["properties"]["at"]["enum"]
    assert [word for word in words if f"`{word}`" not in text] == []


def test_every_key_of_a_network_file_is_explained() -> None:
    pages = (ROOT / "docs" / "networks.md", GENERATED / "network-keys.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    words = set(keys_of(LinkProfile))
    for file in (ROOT / "models" / "networks").iterdir():
        document = tomllib.loads(file.read_text("utf-8"))
        words |= {*document, *document.get("constant_rate", ()), *document.get("jitter", ())}
    assert "max_overtaken" in words
    assert words - {key.rpartition(".")[2] for key in re.findall(r"`([\w.]+)`", text)} == set()


@pytest.mark.parametrize("cls", [TransportProfile, QuicSettings, TcpSettings])
def test_every_setting_of_a_profile_states_what_it_means(cls: Any) -> None:
    # A controller given as code is in no file.
    fields = [field.name for field in dataclasses.fields(cls) if field.name != "controller"]
    assert [entry.attribute for entry in fields_of(cls) if entry.about] == fields


@pytest.mark.parametrize("folder", ["networks", "profiles"])
def test_every_shipped_network_and_profile_is_described(folder: Any) -> None:
    text = section_of(GENERATED / "shipped-networks.md", f"The shipped {folder}")
    names = {file.stem for file in (ROOT / "models" / folder).glob("*.toml")}
    assert set(first_column(text)) == names


def test_every_controller_and_retransmission_policy_is_described() -> None:
    path = ROOT / "docs" / "networks.md"
    assert sorted(first_column(section_of(path, "Controllers"))) == list(controller_names())
    reported = first_column(section_of(path, "Order of retransmissions"))
    assert reported == [policy.value for policy in Retransmit]


def first_column(section: Any) -> list[Any]:
    """Return the names in the first column of a section's tables."""
    rows = re.findall(r"^\| (`.*?) \|", section, re.M)
    return [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]


def test_every_floor_is_explained_in_its_order() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = config["importlinter:contract:floors"]["layers"].split("\n")
    floors = [sorted(re.split(r"\s*\|\s*", line.strip())) for line in lines if line.strip()]
    text = section_of(ROOT / "docs" / "architecture.md", "Floors")
    rows = re.findall(r"^\| (`.*?) \|", text, re.M)
    assert [sorted(re.findall(r"`(\w+)`", row)) for row in rows] == floors


def test_the_citation_and_the_changelog_are_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    version = re.search(r"^version: (\S+)$", citation, re.M)
    released = re.search(r"^date-released: (\S+)$", citation, re.M)
    assert version[1] == h3sim.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## {version[1]}, {released[1]}\n" in changelog


def test_the_documentation_has_no_path_of_one_machine() -> None:
    files = [*DOCS, ROOT / "CHANGELOG.md", ROOT / "CITATION.cff"]
    pattern = r"(?<![\w.])/(?:home|root|tmp|work|Users)/"
    assert [file.name for file in files if re.search(pattern, file.read_text("utf-8"))] == []

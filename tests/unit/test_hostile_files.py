"""Files that no editor writes: each is refused in a line or a few, at once, whatever reads it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.catalog import load_network, load_page, load_profile, load_scheme
from h3sim.page.model import read_marks
from h3sim.schema import parse_toml
from h3sim.schema.files import exceeded_limit
from h3sim.study.study_file import read_study
from h3sim.transport import Jitter
from h3sim.values.errors import InputError
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Callable

READERS = {
    "page": load_page,
    "network": load_network,
    "scheme": load_scheme,
    "profile": load_profile,
}
TOML_READERS = {name: read for name, read in READERS.items() if name != "page"}
every_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)
every_toml_reader = pytest.mark.parametrize("read", TOML_READERS.values(), ids=TOML_READERS)


def complaint(read: Callable[[Path], object], path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    return str(caught.value)


@every_toml_reader
@pytest.mark.parametrize(
    ("text", "shown_text"),
    [
        (f"rtt_ms = {'9' * 5000}", "a number has thousands of digits"),
        (f"rtt_ms = {'[' * 5000}{']' * 5000}", "line 1: arrays and tables are nested more than 16"),
        (f"[{'.'.join('a' * 5000)}]", "line 1: a key has more than 16 parts"),
        (f"{'.'.join('a' * 40_000)} = 1", "line 1: a key has more than 16 parts"),
        ("\n" + ".".join(['"a"'] * 5000) + " = 1", "line 2: a key has more than 16 parts"),
        (f"[a]\nx = {{{'.'.join('a' * 5000)} = 1}}", "line 2: a key has more than 16 parts"),
        (f"{'a = {' * 17}", "line 1: arrays and tables are nested more than 16"),
        ("".join(f"k{n} = 1\n" for n in range(60_000)), "there are more than 50,000 keys"),
        ("[[rules]]\n" * 60_000, "there are more than 50,000 keys"),
        (f'title = "{"a" * 9_000_000}"', "is larger than 8 MiB"),
        (f"{'.'.join('a' * 16)} = 1", "unknown key"),
        (f"name.{'.'.join('a' * 15)} = 1", "must be text, is "),
        ("a = 1\na = 2", "is not TOML"),
    ],
)
def test_toml_that_breaks_parsers_is_refused(
    read: Callable[[Path], object], text: str, shown_text: str, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text(text)
    message = complaint(read, path)
    assert shown_text in message
    assert all(line.startswith(f"{path}: ") for line in message.splitlines())
    assert len(message) < 5000


TOML_WITHIN_LIMITS = (
    f'title = "{"." * 100}"',
    f"title = '{'[' * 100}'",
    f'"{"a." * 100}" = 1',
    f"['{'a.' * 100}']\nx = 1",
    'title = """\n' + "a.a = 1 [[" * 100 + '\n"" \\\\\\""" ' + "." * 50 + '""""',
    f"title = '''{'[.' * 100}'' x''''",
    f'title = "a \\" {"[" * 100}"',
    f"# {'a.' * 100}\nx = 1  # {'{[' * 100}",
    f"values = [{'1.5, ' * 60_000}]",
    "values = [\n" + "  -1.5e3,  # [[[ a.b\n" * 100 + "]",
    f"values = [{'[1.5, 2.5],' * 10_000}]",
    f"values = [{'{x = 1.5, y.z = 2.5},' * 10_000}]",
    f"{'.'.join('a' * 16)} = 1",
    f"[{' . '.join('a' * 16)}]",
    f"a = {'[' * 16}{']' * 16}",
    "at = 1979-05-27T07:32:00.999999-07:00",
)


@pytest.mark.parametrize("text", TOML_WITHIN_LIMITS, ids=range(len(TOML_WITHIN_LIMITS)))
def test_toml_within_the_limits_is_parsed(text: str) -> None:
    assert parse_toml(text, InputError, source="x") == tomllib.loads(text)


def test_every_shipped_toml_file_is_far_within_the_limits() -> None:
    for path in (Path(__file__).parents[2] / "models").rglob("*.toml"):
        assert not exceeded_limit(path.read_text("utf-8") * 10), path.name


def test_studies_keep_the_limits_and_nothing_else_parses_toml(tmp_path: Path) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text(f"{'.'.join('a' * 40_000)} = 1")
    assert "a key has more than 16 parts" in complaint(read_study, path)
    package = Path(h3sim.__file__).parent
    parsing = [file for file in package.rglob("*.py") if "tomllib.load" in file.read_text("utf-8")]
    assert [file.relative_to(package).as_posix() for file in parsing] == ["schema/files.py"]


@every_reader
def test_what_is_no_file_is_not_waited_for(read: Callable[[Path], object], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    for path, shown_text in (
        (pipe, "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path, "directory"),
        (tmp_path / f"{'a' * 300}.toml", "File name too long"),
        (tmp_path / "missing.toml", "No such file or directory"),
        (Path("a\0b.toml"), "embedded null"),
    ):
        message = complaint(read, path)
        assert shown_text in message
        assert message.isprintable()


@every_reader
def test_a_file_that_would_fill_the_memory_is_refused(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "sparse.toml"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert "is larger than 256 MiB" in complaint(read, path)


@every_reader
def test_a_byte_that_is_not_utf_8_is_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "caf\xe9"')
    assert "is not UTF-8: byte 11 is 0xe9" in complaint(read, path)


@every_toml_reader
def test_a_byte_order_mark_is_no_error(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "marked.toml"
    path.write_bytes(b'\xef\xbb\xbfformat = "h3sim-other/1"')
    assert "format: must be 'h3sim-" in complaint(read, path)


@pytest.mark.parametrize("trace", ["pipe", "/dev/zero", "a\\u0000b", "a" * 300, "."])
def test_a_trace_is_read_from_files_only(trace: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "network.toml"
    path.write_text(f'format = "h3sim-network/1"\nname = "x"\n[down]\nmahimahi = "{trace}"\n')
    (line,) = complaint(load_network, path).splitlines()
    assert line.startswith(f"{path}: down.mahimahi: ")


SCHEME = """format = "h3sim-scheme/1"
name = "many"
title = "Many classes and many mistakes"
mechanism = "tree"
signalling = "server"
source = "an example"
"""


def test_the_message_about_a_scheme_with_many_errors_stays_short(tmp_path: Path) -> None:
    classes = "".join(f"[classes.c{number}]\nweight = 1\n" for number in range(2000))
    rules = "".join('[[rules]]\nclass = "c"\n' for _ in range(2000))
    path = tmp_path / "many.toml"
    path.write_text(SCHEME + classes + rules)
    with pytest.raises(InputError) as caught:
        load_scheme(path)
    assert len(caught.value.problems) == 2000
    lines = caught.value.lines()
    assert lines[0] == f"{path}: rules[0].class: 'c' is not one of c0, c1, c2 and 1,997 more"
    assert lines[-1] == f"{path}: and 1,900 more mistakes"
    assert len(lines) == 101


def test_a_class_that_can_have_no_effect_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    text = SCHEME.replace('"tree"', '"fifo"')
    path.write_text(f"{text}\n[classes.all]\nweight = 1\n")
    assert complaint(load_scheme, path) == (
        f"{path}: classes.all.weight: unknown key; none is allowed here"
    )


def test_jitter_is_written_in_ascii_digits() -> None:
    with pytest.raises(InputError, match="must be 'none', or like"):
        Jitter.parse("\u0664:\u0661")


def test_of_a_page_with_very_many_errors_the_rest_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    for entries, key in ((["{}"] * 50_000, "resources[1666]"), (["0"] * 50_000, "resources[5000]")):
        path.write_text(
            f'{{"format": "h3sim-page/1", "name": "x", "resources": [{",".join(entries)}]}}'
        )
        with pytest.raises(InputError) as caught:
            load_page(path)
        *_, last = caught.value.problems
        assert (last.key, last.message) == (key, "more than 5,000 errors: the rest is not read")
        assert len(caught.value.problems) == 5002
        assert len(caught.value.lines()) == 101


def test_of_very_many_unknown_keys_the_first_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "scheme.toml"
    path.write_text(SCHEME + "".join(f"k{number} = 1\n" for number in range(6_000)))
    message = complaint(load_scheme, path)
    assert f"{path}: 6,000 unknown keys, the first of which follow" in message
    assert f"{path}: k0: unknown key" in message


def test_patterns_are_limited_in_number_and_length(tmp_path: Path) -> None:
    marks = tmp_path / "fold.txt"
    page = page_of({"id": "/", "kind": "document", "bytes": 9})
    for text, found in (
        ("/*\n" * 600, "fold.txt: line 501: more than 500 patterns: the rest is not read"),
        ("*a" * 501, "fold.txt: line 1: '" + "*a" * 20),
        ("/\n" * 600, ""),
    ):
        marks.write_text(text, "utf-8")
        if not found:
            assert read_marks(marks, page).resources[0].above_the_fold
            continue
        assert found in complaint(lambda path: read_marks(path, page), marks)
    scheme = tmp_path / "hint.toml"
    hint = '[[hints]]\npath = "' + "*a" * 501 + '"\nurgency = 1\n'
    scheme.write_text(SCHEME.replace('"tree"', '"eps"') + hint, "utf-8")
    assert "path: must have at most 1,000 characters, has 1,002" in complaint(load_scheme, scheme)

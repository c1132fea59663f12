"""Reading of TOML and JSON files, and atomic writes.

TOML is scanned for limits before it is parsed: the memory and time of the standard library's parser
grow with the square of the parts of a dotted key (80 kB of `a.a.a... = 1` took 5.5 GB), plus about
a kilobyte per key. Files of h3sim have a few hundred short keys and at most four levels.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from h3sim.schema.errors import format_value
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from io import BufferedReader

    StrPath = str | os.PathLike[str]


GZIP_MAGIC = b"\x1f\x8b"
"""First bytes of a gzip file (RFC 1952 § 2.3.1)."""
ZIP_MAGIC = b"PK\x03\x04"
"""First bytes of a zip archive (APPNOTE.TXT § 4.3.7)."""
_MAX_SHOWN_PATH = 200
"""Most characters of a path in a message."""
_HEAD_BYTES = 4096
"""First bytes of a file, which show what it was meant to be."""
_MAX_FILE_BYTES = 256 * 2**20
"""Largest file that is read: pages, schemes and networks are smaller."""

_MAX_TOML_BYTES = 8 * 2**20
"""Largest TOML file, in bytes."""
_MAX_KEY_PARTS = 16
"""Most parts of a dotted key or table name."""
_MAX_NESTING = 16
"""Deepest nesting of arrays and inline tables."""
_MAX_KEYS = 50_000
"""Most keys of a file; each part of a dotted key counts."""

_TOML_TOKEN = re.compile(
    r"""
    (?P<skipped>
        \#[^\n]*+                                       # a comment
        | \"\"\" (?: [^"\\] | \\. | "(?!"") )*+ (?: "{3,5} | \Z )  # strings of several lines
        | ''' (?: [^'] | '(?!'') )*+ (?: '{3,5} | \Z )
        | " (?: [^"\\\n] | \\. )*+ "?                   # strings of one line
        | ' [^'\n]*+ '?
    )
    | [.=,\[\]{}\n]
    """,
    re.VERBOSE | re.DOTALL,
)
"""Tokens of the scan; bare keys, numbers, dates and spaces lie between them."""


def shown_path(path: StrPath) -> str:
    r"""Return the path for messages: invisible characters escaped, long paths truncated.

    >>> print(shown_path("a page.json"), shown_path("a\x1b.json"))
    a page.json a\x1b.json
    """
    text = escape_control(os.fspath(path))
    return text if len(text) <= _MAX_SHOWN_PATH else f"{text[:_MAX_SHOWN_PATH]}..."


def resolved_within(folder: Path, path: Path) -> Path | None:
    """Return *path* with symbolic links followed; None if that is outside of *folder*.

    A folder that was downloaded may contain links to any file of the user.

    >>> resolved_within(Path("/site"), Path("/site/../secret")) is None
    True
    """
    try:
        real_path, real_folder = os.path.realpath(path), os.path.realpath(folder)
    except (OSError, ValueError):  # the path is too long or contains a NUL
        return None
    # Texts: a site may name a hundred thousand files, and `Path` takes three times as long.
    is_inside = os.path.normcase(f"{real_path}{os.sep}").startswith(
        os.path.normcase(os.path.join(real_folder, ""))  # noqa: PTH118
    )
    return Path(real_path) if is_inside else None


@contextlib.contextmanager
def open_input(path: StrPath, error: type[InputError]) -> Iterator[BufferedReader]:
    """Open the regular file at *path* for reading bytes.

    Other kinds are refused: a named pipe would block until someone writes, and a device may never
    end. System errors while the caller reads become *error*, too.

    Raises:
        error: if there is no such file, it is of another kind, or it cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise error(
            [ValidationIssue(key="path", message=f"must be a path, is {format_value(path)}")]
        )
    try:
        # Without O_NONBLOCK, opening a pipe would block; regular files ignore the flag.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                message = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
                raise error([ValidationIssue(key="", message=message)], shown_path(path))
            yield file
    except (OSError, ValueError) as caught:  # ValueError: the path contains a NUL
        if isinstance(caught, InputError | UnicodeDecodeError):  # raised by the caller's reading
            raise
        message = f"cannot be read: {_system_message(caught)}"
        raise error([ValidationIssue(key="", message=message)], shown_path(path)) from caught


def read_text(path: StrPath, error: type[InputError]) -> str:
    """Return the text of the UTF-8 file at *path*, without a byte order mark.

    The file may be compressed with gzip.

    Raises:
        error: if it cannot be read, is too large, or is not a regular UTF-8 file.
    """
    with open_input(path, error) as file:
        # What is known to be too large is not read; some files, as those of /proc, state no size.
        is_too_large = os.fstat(file.fileno()).st_size > _MAX_FILE_BYTES
        raw = b"" if is_too_large else _unpacked(file, path, error)
    if is_too_large or len(raw) > _MAX_FILE_BYTES:
        message = f"is larger than {_MAX_FILE_BYTES >> 20} MiB"
        raise error([ValidationIssue(key="", message=message)], shown_path(path))
    try:
        # Line ends become "\n", as in a file that Python opens as text.
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as caught:
        message = f"is not UTF-8: byte {caught.start} is {raw[caught.start]:#04x}"
        raise error([ValidationIssue(key="", message=message)], shown_path(path)) from caught


def read_head(path: StrPath, error: type[InputError]) -> bytes:
    """Return the first bytes of the file at *path*, unpacked if it is compressed with gzip.

    Raises:
        error: if it cannot be read.
    """
    with open_input(path, error) as file:
        head = file.read(_HEAD_BYTES)
    if not head.startswith(GZIP_MAGIC):
        return head
    import zlib  # lazy: few files are compressed

    with contextlib.suppress(zlib.error):
        head = zlib.decompressobj(zlib.MAX_WBITS + 16).decompress(head, _HEAD_BYTES)
    return head


def _unpacked(file: BufferedReader, path: StrPath, error: type[InputError]) -> bytes:
    """Return what *file* contains, unpacked if it is gzip, up to a byte more than is allowed."""
    if not file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
        return file.read(_MAX_FILE_BYTES + 1)
    import gzip  # lazy: few files are compressed
    import zlib

    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            return unpacked.read(_MAX_FILE_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as caught:
        problem = ValidationIssue(key="", message=f"is damaged or cut off: {caught}")
        raise error([problem], shown_path(path)) from caught


def check_output(path: StrPath, *, key: str = "", error: type[InputError] = InputError) -> None:
    """Check that a file can be written at *path*, before the work whose result goes there.

    Raises:
        error: with the reason; *key* is the option that gave the path.
    """
    target = Path(path)
    try:
        # The tests below answer False for a name that is too long; this raises OSError.
        with contextlib.suppress(FileNotFoundError):
            target.lstat()
        folder = target.parent
        if not folder.is_dir():
            message = f"there is no folder {str(folder)!r}"
        elif target.is_dir():
            message = f"{shown_path(path)} is a folder"
        elif not os.access(target if target.exists() else folder, os.W_OK):
            message = f"{shown_path(path)} cannot be written: no permission"
        else:
            return
    except (OSError, ValueError, RuntimeError) as caught:  # too long, a NUL, a loop of links
        message = f"{shown_path(path)} cannot be written: {_system_message(caught)}"
    raise error([ValidationIssue(key=key, message=message)])


def write_atomically(
    path: StrPath,
    content: str | bytes | Callable[[BinaryIO], None],
    *,
    key: str = "",
    error: type[InputError] = InputError,
) -> None:
    """Write *content* to *path* atomically: on failure an existing file stays unchanged.

    *content* is text (written as UTF-8), bytes, or a function that writes them to a file. Text is
    compressed if the name ends in .gz. Links are followed, and the permissions of a replaced file
    are kept. Devices and pipes cannot be replaced: they are written to directly.

    Raises:
        error: if the file cannot be written; *key* is the option that gave the path.
    """
    if not isinstance(path, str | os.PathLike):
        raise error(
            [ValidationIssue(key=key or "path", message=f"must be a path, is {format_value(path)}")]
        )
    try:
        target = Path(path)
        if target.suffix == ".gz" and isinstance(content, str):
            content = _compressed(content)
        # Before links are resolved: /dev/stdout may link to an anonymous pipe.
        is_special = target.exists() and not target.is_file() and not target.is_dir()
        if is_special:
            with target.open("wb") as file:
                _write_content(content, file)
        else:
            # Write through a link instead of replacing it by a file.
            _replace(target.resolve(), content)
    except (OSError, ValueError, RuntimeError) as caught:
        if isinstance(caught, InputError):
            raise
        problem = ValidationIssue(key=key, message=f"cannot be written: {_system_message(caught)}")
        raise error([problem], shown_path(path)) from caught


def _compressed(text: str) -> bytes:
    import gzip  # lazy: few files are compressed

    return gzip.compress(text.encode("utf-8"), mtime=0)


def _replace(target: Path, content: str | bytes | Callable[[BinaryIO], None]) -> None:
    """Write a temporary file next to *target*, and rename it once it is on the disk."""
    import secrets  # lazy: keeps imports fast

    # In the same folder: renaming is atomic only within one file system.
    draft = target.with_name(f".h3sim-{secrets.token_hex(8)}.tmp")
    try:
        # Mode "x", so that a link planted under that name is not followed.
        with draft.open("xb") as file:
            with contextlib.suppress(FileNotFoundError):
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            _write_content(content, file)
            file.flush()
            # A full disk may be reported only here, before the rename.
            os.fsync(file.fileno())
        draft.replace(target)
    finally:  # also after an interrupt or SIGTERM
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _write_content(content: str | bytes | Callable[[BinaryIO], None], file: BinaryIO) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def _system_message(error: Exception) -> str:
    """Return the message of a system error without its path, which the caller shows."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def exceeded_limit(text: str) -> str:
    r"""Return a message about the first limit that TOML *text* exceeds; "" if none.

    The text need not be valid TOML: the parser checks that.

    >>> exceeded_limit("a.b = [[1.5, 2.5], [3.5]]")
    ''
    >>> exceeded_limit("x = 1\n" + "a." * 20 + "a = 1")
    'line 2: a key has more than 16 parts'
    >>> exceeded_limit("x = " + "[" * 20 + "]" * 20)
    'line 1: arrays and tables are nested more than 16 deep'
    """
    if len(text) > _MAX_TOML_BYTES or len(text.encode("utf-8", "surrogatepass")) > _MAX_TOML_BYTES:
        return f"is larger than {_MAX_TOML_BYTES >> 20} MiB, the most for TOML"
    depth = n_dots = n_keys = 0
    # A table header "[a.b]" is a key without "=", and its brackets do not separate keys.
    in_header = in_value = False
    for match in _TOML_TOKEN.finditer(text):
        if match["skipped"] is not None:
            continue
        symbol = match[0]
        if symbol == ".":
            n_dots += 1
            # So many dots between two separators are in a key: a number has only one.
            if n_dots >= _MAX_KEY_PARTS:
                return _at_line(match, f"a key has more than {_MAX_KEY_PARTS} parts")
            continue
        if symbol == "=" or (symbol == "\n" and in_header):
            n_keys += n_dots + 1
            if n_keys > _MAX_KEYS:
                return _at_line(match, f"there are more than {_MAX_KEYS:,} keys")
        elif symbol in "[{":
            in_header = in_header or (depth == 0 and not in_value)
            depth += 1
            if depth > _MAX_NESTING:
                message = f"arrays and tables are nested more than {_MAX_NESTING} deep"
                return _at_line(match, message)
        elif symbol in "]}":
            depth = max(0, depth - 1)
        in_value = symbol == "=" or (in_value and not (symbol == "\n" and depth == 0))
        in_header = in_header and symbol != "\n"
        if not (in_header and symbol in "[]"):
            n_dots = 0
    return ""


def _at_line(match: re.Match[str], message: str) -> str:
    line = match.string.count("\n", 0, match.start()) + 1
    return f"line {line}: {message}"


def parse_toml(text: str, error: type[InputError], *, source: str) -> dict[str, Any]:
    """Parse *text* as TOML.

    Raises:
        error: if it is not TOML, exceeds a limit of `exceeded_limit`, or has a number of thousands
            of digits.
    """
    import tomllib  # lazy: keeps imports fast

    try:
        message = exceeded_limit(text)
        if not message:
            return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as caught:
        message = f"is not TOML: {caught}"
    except RecursionError:
        message = "is nested too deeply"
    except ValueError:  # int() refuses it; CPython's limit is 4,300 digits
        message = "is not TOML that can be used: a number has thousands of digits"
    except (AttributeError, TypeError):
        message = f"must be text, is {format_value(text)}"
    raise error([ValidationIssue(key="", message=message)], source)


def json_error_message(error: json.JSONDecodeError) -> str:
    """Return the message of *error*, after which " at" and a position can follow.

    >>> json_error_message(json.JSONDecodeError("Unterminated string starting at", "x", 0))
    'Unterminated string starting'
    """
    return error.msg.removesuffix(" at")


def parse_json(text: str, error: type[InputError], *, source: str) -> object:
    """Parse *text* as JSON; its objects have the duplicate keys in their attribute `twice`.

    Raises:
        error: if it is not JSON, is nested too deeply, or holds a number of thousands of digits.
    """
    try:
        document: object = json.loads(text, object_pairs_hook=_Object, parse_constant=_NotANumber)
    except json.JSONDecodeError as caught:
        what = json_error_message(caught)
        message = f"is not JSON: {what} at line {caught.lineno}, column {caught.colno}"
    except RecursionError:
        message = "is nested too deeply"
    except ValueError as caught:
        message = f"is not JSON that can be used: {caught}"
    except TypeError:
        message = f"must be text, is {format_value(text)}"
    else:
        return document
    raise error([ValidationIssue(key="", message=message)], source)


DIGEST = "digest"
"""Key of the digest of a document, by which damage and edits are noticed when it is read."""
_DIGEST_BYTES = 8
"""Length of the digest of a document: it guards against damage, not against an attacker."""


def lines_digest(lines: Iterable[str]) -> str:
    """Return the digest of *lines*: 8 bytes of BLAKE2b in hexadecimal digits.

    >>> lines_digest(["first", "second"])
    'e416dc5757601a38'
    """
    import hashlib  # lazy: keeps imports fast

    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def json_digest(document: Mapping[str, object]) -> str:
    """Return the digest of a JSON document's keys and values in order, without the digest itself.

    It does not depend on white space and on how numbers and texts are written: a document may be
    indented.

    >>> json_digest({"seed": 1, "digest": "any"}) == json_digest({"seed": 1})
    True
    >>> json_digest({"seed": 1}) == json_digest({"seed": 1.0})
    False
    """
    values = {key: value for key, value in document.items() if key != DIGEST}
    return lines_digest([json.dumps(values, default=repr)])


def digest_problem(document: object) -> ValidationIssue | None:
    """Return an issue if a JSON document has a digest and differs from it, otherwise None.

    >>> print(digest_problem({"seed": 2, "digest": json_digest({"seed": 1})}))
    digest: differs from the document, which is damaged or was edited
    """
    if not isinstance(document, Mapping) or DIGEST not in document:
        return None
    try:
        if document[DIGEST] == json_digest(document):
            return None
    except RecursionError:
        return ValidationIssue(key="", message="is nested too deeply")
    message = "differs from the document, which is damaged or was edited"
    return ValidationIssue(key=DIGEST, message=message)


class _Object(dict[str, object]):
    """JSON object that records its duplicate keys in `twice`."""

    def __init__(self, pairs: Iterable[tuple[str, object]]) -> None:
        super().__init__()
        self.twice: list[str] = []
        for key, value in pairs:
            if key in self:
                self.twice.append(key)
            self[key] = value


class _NotANumber:
    """NaN or Infinity, which Python's parser accepts but JSON forbids; no field type accepts it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

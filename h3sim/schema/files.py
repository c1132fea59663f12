"""Files in and out: TOML and JSON parsed, and atomic writes."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, ValidationIssue
from h3sim.schema.errors import format_value
from h3sim.schema.toml_limits import exceeded_limit
from h3sim.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import BufferedReader
    from typing import BinaryIO


if TYPE_CHECKING:
    StrPath = str | os.PathLike[str]


GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of what gzip wrote (RFC 1952 § 2.3.1)."""
_LONGEST_PATH = 200
"""A longer path is cut in a message."""
_MOST_BYTES = 256 * 2**20
"""No page, scheme or network is larger; a file that is would only fill the memory."""


def shown_path(path: StrPath) -> str:
    r"""Return the path as messages show it: what cannot be seen spelt out, cut where it is long.

    >>> print(shown_path("a page.json"), shown_path("a\x1b.json"))
    a page.json a\x1b.json
    """
    text = escape_control(os.fspath(path))
    return text if len(text) <= _LONGEST_PATH else f"{text[:_LONGEST_PATH]}..."


def resolved_within(folder: Path, path: Path) -> Path | None:
    """Return *path* with symbolic links followed; None if that is outside of *folder*.

    A folder that is handed on can hold links to any file of whoever opens it.

    >>> resolved_within(Path("/site"), Path("/site/../secret")) is None
    True
    """
    try:
        real, inside = (Path(os.path.realpath(each)) for each in (path, folder))
    except (OSError, ValueError):  # too long, a NUL
        return None
    return real if real.is_relative_to(inside) else None


@contextlib.contextmanager
def open_input(path: StrPath, error: type[InputError]) -> Iterator[BufferedReader]:
    """Open the regular file at *path* for reading bytes.

    Nothing else is opened: a named pipe would wait for whoever writes, a device never ends. What
    the system refuses while the file is read becomes *error*, too.

    Raises:
        error: if there is no such file, it is of another kind, or it cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise error(
            [ValidationIssue(key="path", message=f"must be a path, is {format_value(path)}")]
        )
    try:
        # Without O_NONBLOCK opening a pipe would already wait; regular files know no difference.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                what = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
                raise error([ValidationIssue(key="", message=what)], shown_path(path))
            yield file
    except (OSError, ValueError) as caught:
        if isinstance(caught, InputError | UnicodeDecodeError):
            raise
        message = f"cannot be read: {_reason(caught)}"
        raise error([ValidationIssue(key="", message=message)], shown_path(path)) from caught


def read_text(path: StrPath, error: type[InputError]) -> str:
    """Return the text of the UTF-8 file at *path*, without a byte order mark.

    Raises:
        error: if it cannot be read, is larger than any such file, or is something else.
    """
    with open_input(path, error) as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        message = f"is larger than {_MOST_BYTES >> 20} MiB"
        raise error([ValidationIssue(key="", message=message)], shown_path(path))
    try:
        # Line ends as in any file that is opened as text.
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as caught:
        message = f"is not UTF-8: byte {caught.start} is {raw[caught.start]:#04x}"
        raise error([ValidationIssue(key="", message=message)], shown_path(path)) from caught


def check_output(path: StrPath, *, key: str = "", error: type[InputError] = InputError) -> None:
    """Refuse a path at which no file could be written, before the work whose result goes there.

    Raises:
        error: saying why not; *key* is the option that gave the path.
    """
    target = Path(path)
    try:
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
        message = f"{shown_path(path)} cannot be written: {_reason(caught)}"
    raise error([ValidationIssue(key=key, message=message)])


def write_whole(
    path: StrPath,
    content: str | bytes | Callable[[BinaryIO], None],
    *,
    key: str = "",
    error: type[InputError] = InputError,
) -> None:
    """Put *content* at *path*, whole or not at all: a file that stood there stays if it fails.

    *content* is text (written as UTF-8), bytes, or what writes them to a file that it is given. A
    link is followed, and a file that is replaced hands on its permissions. What is no regular file
    (a device, a pipe) cannot be replaced: it is written to as it stands.

    Raises:
        error: if the file cannot be written; *key* is the option that gave the path.
    """
    if not isinstance(path, str | os.PathLike):
        raise error(
            [ValidationIssue(key=key or "path", message=f"must be a path, is {format_value(path)}")]
        )
    try:
        target = Path(path)
        # Before links are followed: /dev/stdout is one, to a pipe that has no name.
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as file:
                _put(content, file)
        else:
            # A link is written through: replaced itself, it would become a file.
            _replace(target.resolve(), content)
    except (OSError, ValueError, RuntimeError) as caught:
        if isinstance(caught, InputError):
            raise
        problem = ValidationIssue(key=key, message=f"cannot be written: {_reason(caught)}")
        raise error([problem], shown_path(path)) from caught


def _replace(target: Path, content: str | bytes | Callable[[BinaryIO], None]) -> None:
    """Write a draft beside *target*, and put it in its place when it is on the disk."""
    import secrets  # on use: importing h3sim should stay quick

    # In the same folder: only within one file system does a replacement happen at once.
    draft = target.with_name(f".h3sim-{secrets.token_hex(8)}.tmp")
    try:
        # Mode "x", as a link that somebody else has put under that name must not be followed.
        with draft.open("xb") as file:
            with contextlib.suppress(FileNotFoundError):
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            _put(content, file)
            file.flush()
            # A disk that is full may say so only here; replacing comes after that.
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        # Also on the way out of an interrupt or of a request to end the process.
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _put(content: str | bytes | Callable[[BinaryIO], None], file: BinaryIO) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def _reason(error: Exception) -> str:
    """Return what the system says, without the path, which stands before it."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def parse_toml(text: str, error: type[InputError], *, source: str) -> dict[str, Any]:
    """Return the TOML document that *text* is.

    Raises:
        error: if it is not TOML, exceeds a limit of `toml_limits`, or holds a number of thousands
            of digits.
    """
    import tomllib  # on use: importing h3sim should stay quick

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


def parse_json(text: str, error: type[InputError], *, source: str) -> object:
    """Return the JSON document that *text* is; its objects know which keys stood in them twice.

    Raises:
        error: if it is not JSON, is nested too deeply, or holds a number of thousands of digits.
    """
    try:
        document: object = json.loads(text, object_pairs_hook=_Object, parse_constant=_NotANumber)
    except json.JSONDecodeError as caught:
        message = f"is not JSON: {caught.msg} at line {caught.lineno}, column {caught.colno}"
    except RecursionError:
        message = "is nested too deeply"
    except ValueError as caught:
        message = f"is not JSON that can be used: {caught}"
    except TypeError:
        message = f"must be text, is {format_value(text)}"
    else:
        return document
    raise error([ValidationIssue(key="", message=message)], source)


class _Object(dict[str, object]):
    """A JSON object that remembers which keys stood in it twice."""

    def __init__(self, pairs: Iterable[tuple[str, object]]) -> None:
        super().__init__()
        self.twice: list[str] = []
        for key, value in pairs:
            if key in self:
                self.twice.append(key)
            self[key] = value


class _NotANumber:
    """NaN or Infinity, which Python's parser takes and JSON does not have: no field accepts it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

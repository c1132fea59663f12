"""Files in and out, and parsed documents (JSON, TOML) with all their mistakes, not the first alone.

>>> reader = DocumentReader()
>>> reader.whole("size", -3, low=0), reader.number("rtt_ms", "soon")
(0, 0)
>>> [str(problem) for problem in reader.problems]
['size: must be a whole number of at least 0, is -3', "rtt_ms: must be a number, is 'soon'"]
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from h3sim.errors import InputError, Problem
from h3sim.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from enum import Enum
    from io import BufferedReader
    from typing import BinaryIO

    EnumT = TypeVar("EnumT", bound=Enum)
    StrPath = str | os.PathLike[str]

__all__ = [
    "DocumentReader",
    "check_output",
    "is_quantity",
    "listed",
    "not_one_of",
    "open_input",
    "parse_toml",
    "read_text",
    "shown",
    "shown_path",
    "write_whole",
]


_LARGEST = 10**15
"""More than any time, size or rate in any unit that files use."""
_SHOWN_CHARACTERS = 60
_LONGEST_PATH = 200
"""A longer path is cut in a message."""
_MOST_BYTES = 256 * 2**20
"""No page, scheme or network is larger; a file that is would only fill the memory."""
_LISTED_NAMES = 40
"""So many names are listed whole; of more, those that are nearest."""
_COMPARED_NAMES = 500
"""Among more names than this, near ones are not looked for: it takes time for each."""


def is_quantity(value: object) -> bool:
    """Return whether *value* is a number that can be counted with: finite and not absurd.

    >>> is_quantity(1.5), is_quantity(True), is_quantity(float("nan")), is_quantity(10**400)
    (True, False, False, False)
    """
    return type(value) in (int, float) and -_LARGEST <= value <= _LARGEST  # type: ignore[operator]


def shown(value: object) -> str:
    """Return how a wrong value is shown: cut where it is long.

    >>> shown("soon"), shown(10**400), shown("a" * 100)[-5:]
    ("'soon'", 'a huge number', 'aa...')
    """
    if isinstance(value, str | bytes):  # cut before it is quoted, which takes time
        value = value[: _SHOWN_CHARACTERS + 1]
    try:
        is_huge = isinstance(value, int) and abs(value) > _LARGEST
        text = "a huge number" if is_huge else repr(value)
    except (RecursionError, ValueError):  # deep, or with a number of thousands of digits in it
        return "too much to show"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def not_one_of(value: object, known: Iterable[str]) -> str:
    """Return the message for a name that is not *known*; of many names it lists the nearest.

    >>> not_one_of("blue", ["red", "green"])
    "'blue' is not one of red, green"
    >>> not_one_of("n7x", (f"n{number}" for number in range(300)))
    "'n7x' is not one of n7, n97, n87 and 297 more"
    """
    return f"{shown(value)} is not one of {listed(known, near=value)}"


def listed(known: Iterable[str], *, near: object = "") -> str:
    """Return names in a row; of many, those *near* to one, and how many there are more.

    >>> listed([])
    '(none)'
    """
    names = tuple(known)
    if len(names) <= _LISTED_NAMES:
        return ", ".join(names) or "(none)"
    few: Sequence[str] = ()
    if isinstance(near, str) and len(names) <= _COMPARED_NAMES:
        import difflib  # on use: importing h3sim should stay quick

        few = difflib.get_close_matches(near[:_SHOWN_CHARACTERS], names, n=3)
    few = few or names[:3]
    return (
        f"{', '.join(name[:_SHOWN_CHARACTERS] for name in few)} and {len(names) - len(few):,} more"
    )


def shown_path(path: StrPath) -> str:
    r"""Return the path as messages show it: what cannot be seen spelt out, cut where it is long.

    >>> print(shown_path("a page.json"), shown_path("a\x1b.json"))
    a page.json a\x1b.json
    """
    text = printable(os.fspath(path))
    return text if len(text) <= _LONGEST_PATH else f"{text[:_LONGEST_PATH]}..."


@contextlib.contextmanager
def open_input(path: StrPath, error: type[InputError]) -> Iterator[BufferedReader]:
    """Open the regular file at *path* for reading bytes.

    Nothing else is opened: a named pipe would wait for whoever writes, a device never ends. What
    the system refuses while the file is read becomes *error*, too.

    Raises:
        error: if there is no such file, it is of another kind, or it cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise error([Problem(key="path", message=f"must be a path, is {shown(path)}")])
    try:
        # Without O_NONBLOCK opening a pipe would already wait; regular files know no difference.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                what = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
                raise error([Problem(key="", message=what)], shown_path(path))
            yield file
    except (OSError, ValueError) as caught:
        if isinstance(caught, InputError | UnicodeError):
            raise
        message = f"cannot be read: {_reason(caught)}"
        raise error([Problem(key="", message=message)], shown_path(path)) from caught


def read_text(path: StrPath, error: type[InputError]) -> str:
    """Return the text of the UTF-8 file at *path*, without a byte order mark.

    Raises:
        error: if it cannot be read, is larger than any such file, or is something else.
    """
    with open_input(path, error) as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        message = f"is larger than {_MOST_BYTES >> 20} MiB"
        raise error([Problem(key="", message=message)], shown_path(path))
    try:
        # Line ends as in any file that is opened as text.
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as caught:
        message = f"is not UTF-8: byte {caught.start} is {raw[caught.start]:#04x}"
        raise error([Problem(key="", message=message)], shown_path(path)) from caught


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
    raise error([Problem(key=key, message=message)])


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
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as file:
                _put(content, file)
        else:
            _replace(target, content)
    except (OSError, ValueError, RuntimeError) as caught:
        if isinstance(caught, InputError):
            raise
        problem = Problem(key=key, message=f"cannot be written: {_reason(caught)}")
        raise error([problem], shown_path(path)) from caught


def _replace(target: Path, content: str | bytes | Callable[[BinaryIO], None]) -> None:
    """Write a draft beside *target*, and put it in its place when it is on the disk."""
    import secrets  # on use: importing h3sim should stay quick

    draft = target.with_name(f".h3sim-{secrets.token_hex(8)}.tmp")
    try:
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
        error: if it is not TOML, is nested too deeply, or holds a number of thousands of digits.
    """
    import tomllib  # on use: importing h3sim should stay quick

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as caught:
        message = f"is not TOML: {caught}"
    except RecursionError:
        message = "is nested too deeply"
    except ValueError:  # int() refuses it; CPython's limit is 4,300 digits
        message = "is not TOML that can be used: a number has thousands of digits"
    except (AttributeError, TypeError):
        message = f"must be text, is {shown(text)}"
    raise error([Problem(key="", message=message)], source)


class DocumentReader:
    """Each method returns the value that it was given, or a stand-in after noting what is wrong."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._reported: set[str] = set()
        self._n_reported = 0

    def report(self, key: str, message: str) -> None:
        """Note a mistake."""
        self.problems.append(Problem(key=key, message=message))

    def reported(self) -> set[str]:
        """Return the keys at which mistakes were noted; not to be changed."""
        # Taken up as it grows: asking once a row must not cost all the rows before it.
        self._reported.update(problem.key for problem in self.problems[self._n_reported :])
        self._n_reported = len(self.problems)
        return self._reported

    def add(self, problems: Iterable[Problem]) -> None:
        """Note mistakes that were found elsewhere, but for keys that were told already."""
        reported = set(self.reported())
        self.problems += [problem for problem in problems if problem.key not in reported]

    def keys(self, key: str, entry: Iterable[str], known: Iterable[str]) -> None:
        """Note every key of *entry* that is not *known*."""
        known = tuple(known)
        for name in entry:
            if name not in known:
                where = f"{key}.{name}" if key else name
                allowed = (
                    f"allowed are {listed(known, near=name)}" if known else "none is allowed here"
                )
                self.report(where, f"unknown key; {allowed}")

    def table(self, key: str, value: Any) -> dict[str, Any]:
        """Return a table, {} in place of anything else."""
        if isinstance(value, dict):
            return value
        self.report(key, f"must be a table, is {shown(value)}")
        return {}

    def text(self, key: str, value: Any) -> str:
        """Return text, "" in place of anything else."""
        if isinstance(value, str):
            return value
        self.report(key, f"must be text, is {shown(value)}")
        return ""

    def flag(self, key: str, value: Any) -> bool:
        """Return true or false, the latter in place of anything else."""
        if isinstance(value, bool):
            return value
        self.report(key, f"must be true or false, is {shown(value)}")
        return False

    def number(self, key: str, value: Any) -> float:
        """Return a number, 0 in place of anything else or of what no quantity can be."""
        if is_quantity(value):
            return float(value) if isinstance(value, float) else int(value)
        self.report(key, f"must be a number, is {shown(value)}")
        return 0

    def whole(self, key: str, value: Any, *, low: int, high: int | None = None) -> int:
        """Return a whole number from *low* to *high*, *low* in place of anything else."""
        if type(value) is int and value >= low and (high is None or value <= high):
            return value
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        self.report(key, f"must be a whole number {bounds}, is {shown(value)}")
        return low

    def texts(self, key: str, value: Any, options: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return a list of texts, or one text as a list of it; with *options*, only those."""
        entries = [value] if isinstance(value, str) else value
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            self.report(key, f"must be text or a list of it, is {shown(value)}")
            return ()
        known = None if options is None else tuple(options)
        for entry in entries:
            if known is not None and entry not in known:
                self.report(key, not_one_of(entry, known))
        return tuple(entry for entry in entries if known is None or entry in known)

    def tables(self, key: str, value: Any) -> list[dict[str, Any]]:
        """Return a list of tables, [] in place of anything else."""
        if isinstance(value, list):
            return [self.table(f"{key}[{place}]", entry) for place, entry in enumerate(value)]
        self.report(key, f"must be a list of tables, is {shown(value)}")
        return []

    def choice(self, key: str, value: Any, options: type[EnumT]) -> EnumT:
        """Return the member of *options* of that value, the first in place of anything else."""
        members = list(options)
        for option in members:
            if option.value == value:
                return option
        self.report(key, not_one_of(value, (str(option.value) for option in members)))
        return members[0]

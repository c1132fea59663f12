"""Opens a recording as text, whatever its encoding, gzipped or not, without holding all of it."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from h3sim.capture.imported import RecordingError
from h3sim.documents import open_input
from h3sim.documents.files import GZIP_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedIOBase
    from os import PathLike

    from h3sim.errors import InputError

__all__ = ["TextSource", "opened"]

_MOST_BYTES = 512 << 20
"""More is not read: no browser writes more (a text of V8 ends there), a small gzip may hold it."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PEEKED_BYTES = 4096
_STRAY = re.compile("[\udc80-\udcff]")


class TextSource:
    """Text that is read piece by piece; `problems` says what was wrong on the way.

    UTF-8, UTF-16 and UTF-32 are told by their byte order mark, UTF-16 by the zeros of a first
    character in ASCII as well. Bytes that are not UTF-8 become U+FFFD.
    """

    def __init__(self, binary: BufferedIOBase) -> None:
        self._binary = binary
        self._decoder: codecs.IncrementalDecoder | None = None
        self._n_bytes = 0
        self._ended = False
        self._next = ""
        self.problems: list[str] = []

    def peek(self) -> str:
        """Return what `read` will return next, without taking it."""
        self._next = self._next or self.read(_PEEKED_BYTES)
        return self._next

    def read(self, n_bytes: int) -> str:
        """Return the text of about so many bytes, "" at the end or where nothing can be read."""
        if self._next:
            text, self._next = self._next, ""
            return text
        while not self._ended:
            raw = self._raw(n_bytes)
            text = self._decode(raw)
            if text:
                return text
        return ""

    def _raw(self, n_bytes: int) -> bytes:
        raw = b""
        try:
            # One read at a time: what comes before a broken end is not lost.
            raw = self._binary.read1(n_bytes)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.problems.append(f"cannot be unpacked further: {error}")
        self._n_bytes += len(raw)
        if self._n_bytes > _MOST_BYTES:
            self.problems.append(f"is longer than {_MOST_BYTES >> 20} MiB: reading stopped there")
            raw = b""
        self._ended = not raw
        return raw

    def _decode(self, raw: bytes) -> str:
        if self._decoder is None:
            raw, encoding = _told(raw)
            # So that wrong bytes can be told from a U+FFFD that the file has itself.
            errors = "surrogateescape" if encoding == "utf-8" else "replace"
            self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        text = self._decoder.decode(raw, final=self._ended)
        whole = text if text.isascii() else _STRAY.sub("\ufffd", text)
        if whole != text and not any("UTF-8" in problem for problem in self.problems):
            self.problems.append("is not UTF-8 throughout: wrong bytes were read as U+FFFD")
        return whole


def _told(raw: bytes) -> tuple[bytes, str]:
    """Return the bytes behind the byte order mark, and the encoding."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :], encoding
    if raw[1:2] == b"\0" and raw[:1] != b"\0":
        return raw, "utf-16-le"
    if raw[:1] == b"\0" and raw[1:2] not in (b"\0", b""):
        return raw, "utf-16-be"
    return raw, "utf-8"


@contextmanager
def opened(
    path: str | PathLike[str], error: type[InputError] = RecordingError
) -> Iterator[TextSource]:
    """Open the file at *path* as text.

    Raises:
        error: if it cannot be opened or read.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(open_input(path, error))
        if raw.peek(2)[:2] == GZIP_MAGIC:
            yield TextSource(stack.enter_context(gzip.GzipFile(fileobj=raw)))
        else:
            yield TextSource(raw)

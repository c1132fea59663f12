"""`python -m tests.hostile.one BYTES STEP READER...`: read hostile files of these readers.

Of each reader it reads every STEP-th file, 1 for all; readers begin with different ones.

Each is read by a fork of this process, which may take so many bytes of memory and seconds of the
processor as `LIMIT_BYTES` and `LIMIT_S` say; the system ends it where it takes more. A line for
each file says how long it took and what the fork has held, or that it failed.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.readers import READERS, check
from tests.hostile.files import FILES

LIMIT_BYTES = 500 * 10**6
LIMIT_S = 10


def names_of(reader: str, step: int) -> list[str]:
    """Return the names of every *step*-th file of a reader."""
    return [*FILES[reader]][[*FILES].index(reader) % step :: step]


def _made(reader: str, name: str, n_bytes: int) -> bytes:
    """Return a file that another process has made, so that its memory does not count."""
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if not child:
            file.write(FILES[reader][name](n_bytes))
            file.flush()
            os._exit(0)
        os.waitpid(child, 0)
        file.seek(0)
        return file.read()


def read(reader: str, name: str, n_bytes: int) -> None:
    """Make a file, set the limits and read it."""
    data = _made(reader, name, n_bytes)
    used_s = time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, resource.RLIM_INFINITY))
    # Beside what it took to get here; counted in whole seconds.
    limit_s = int(used_s) + LIMIT_S + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory() as folder:
        check(READERS[reader], data, Path(folder))
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    took_s = time.process_time() - used_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 10**6
    print(f"{took_s:.3f} {peak_mb:.0f} {reader}: {name}", flush=True)


def _in_fork(reader: str, name: str, n_bytes: int) -> bool:
    """Read a file in a fork; return whether it ended well."""
    child = os.fork()
    if not child:
        try:
            read(reader, name, n_bytes)
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the parent reports it
            print(f"{name}: {type(error).__name__}: {error}"[:200], file=sys.stderr, flush=True)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if status:
        code = os.waitstatus_to_exitcode(status)
        print(f"failed {code} {reader}: {name}", flush=True)
    return not status


def main(arguments: list[str]) -> int:
    """Read the files that the arguments name; return 1 if one failed."""
    n_bytes, step, *readers = arguments
    ended = [
        _in_fork(reader, name, int(n_bytes))
        for reader in readers
        for name in names_of(reader, int(step))
    ]
    return int(not all(ended))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m tests.hostile.one READER BYTES [NAME]`: read hostile files in this process.

Without a name all files of the reader are read, one after the other. The process may take so many
bytes of memory and seconds of the processor as `LIMIT_BYTES` and `LIMIT_S` say; the system ends it
where it takes more. A line for each file says how long it took, and what the process has held.
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
    print(f"{took_s:.3f} {peak_mb:.0f} {name}", flush=True)


def main(arguments: list[str]) -> int:
    """Read what the arguments say."""
    reader, n_bytes, *names = arguments
    for name in names or FILES[reader]:
        read(reader, name, int(n_bytes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m tests.fuzz.one READER SECONDS FOLDER [SEED]`: fuzz one reader in this process.

Where `atheris` is installed libFuzzer looks for inputs that reach new lines; where it is not,
inputs are changed blindly. The last line on the standard output says how many were read. A process
that ends otherwise has found something, and its input lies in the folder.
"""

from __future__ import annotations

import importlib.util
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HANG_SECONDS, MOST_MIB = 10, 1024
"""An input that takes longer, or more memory, counts as found."""


def _blindly(try_one: Callable[[bytes], None], samples: list[bytes], options: Any) -> None:
    """Change samples and try them until the time is over."""
    from tests.fuzz.mutating import mutated

    slowest, peak_mib = 0.0, 0
    rng, done, until = random.Random(options.seed), 0, time.monotonic() + options.seconds
    resource.setrlimit(resource.RLIMIT_AS, (4 * MOST_MIB << 20, 4 * MOST_MIB << 20))
    signal.signal(signal.SIGALRM, _hangs)
    while time.monotonic() < until:
        data = mutated(rng, samples)
        options.last.write_bytes(data)
        signal.alarm(HANG_SECONDS)
        began = time.monotonic()
        try_one(data)
        slowest = max(slowest, time.monotonic() - began)
        signal.alarm(0)
        done += 1
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        if peak_mib > MOST_MIB:
            raise MemoryError(f"more than {MOST_MIB} MiB")
    options.last.unlink(missing_ok=True)
    print(f"read {done}\nslowest {int(slowest)}\npeak {peak_mib}")


def _hangs(*_: object) -> None:
    raise TimeoutError(f"longer than {HANG_SECONDS} s")


def _guided(atheris: Any, try_one: Callable[[bytes], None], options: Any) -> None:
    """Let libFuzzer choose the inputs; it keeps those that reached something new."""
    flags = {
        "max_total_time": max(1, int(options.seconds)),
        "timeout": HANG_SECONDS,
        "rss_limit_mb": MOST_MIB,
        "max_len": 8192,
        "seed": options.seed,
        "print_final_stats": 1,
        "dict": options.dictionary,
        "artifact_prefix": f"{options.folder}/",
    }
    arguments = [sys.argv[0], *(f"-{name}={value}" for name, value in flags.items())]
    atheris.Setup([*arguments, str(options.corpus)], try_one)
    atheris.Fuzz()


class _Options:
    """The command line, and the files that belong to a reader."""

    def __init__(self, arguments: list[str]) -> None:
        self.name = arguments[0]
        self.seconds = float(arguments[1])
        own = self.name.replace(" ", "-")
        self.folder = Path(arguments[2]) / own
        self.seed = int(arguments[3]) if len(arguments) > 3 else 1
        self.corpus = self.folder / "corpus"
        self.dictionary = self.folder / "dictionary.txt"
        self.last = self.folder / "last"

    def prepare(self, samples: list[bytes]) -> None:
        """Write the samples and the words that libFuzzer begins with."""
        from tests.fuzz.mutating import TOKENS

        self.corpus.mkdir(parents=True, exist_ok=True)
        for number, sample in enumerate(samples):
            (self.corpus / f"sample-{number}").write_bytes(sample)
        quoted = ("".join(f"\\x{byte:02x}" for byte in token) for token in TOKENS)
        self.dictionary.write_text("".join(f'"{token}"\n' for token in quoted), "utf-8")


def main(arguments: list[str]) -> int:
    """Fuzz until the time is over, or something is found."""
    options = _Options(arguments)
    is_guided = importlib.util.find_spec("atheris") is not None
    if is_guided:
        import atheris  # type: ignore[import-untyped,unused-ignore]

        with atheris.instrument_imports(include=["h3sim"]):
            from tests.fuzz.readers import READERS, check
    else:
        from tests.fuzz.readers import READERS, check
    reader = READERS[options.name]
    samples = list(reader.samples())
    options.prepare(samples)
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder:
        # What is loaded on first use takes its time once, and not that of an input.
        for sample in samples:
            check(reader, sample, Path(folder))

        def try_one(data: bytes) -> None:
            check(reader, data, Path(folder))

        if is_guided:
            _guided(atheris, try_one, options)
        else:
            _blindly(try_one, samples, options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`make validate-sander`: the directions that Sander 2022 found, over loads of recorded pages.

Each page of validation/data/pages is loaded with six schemes over the cells of the paper's Table I;
figures are medians over seeds, relative to chrome's.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from h3sim.cli.command import BAD_INPUT, Parser, progress_bar
from h3sim.values.errors import InputError
from validation.sander_deltas import Results
from validation.sander_findings import FINDINGS, Finding
from validation.sander_runs import CELLS, Job, Run, pages, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.page import Page
DEFAULT_SEEDS = 3
SMALL_BYTES = 600_000
"""Below this the paper calls a site small (§ V-B)."""
FULL_SEEDS = 30
"""As many runs a cell as the paper has."""
_INTERRUPTED = 130


def jobs_of(findings: Sequence[Finding], positions: Sequence[int], seeds: int) -> list[Job]:
    """Return what is to be loaded, a job once: without loss nothing is drawn, and one seed does."""
    networks = dict.fromkeys(network for finding in findings for network in finding.networks)
    return [
        Job(network, page, seed)
        for network in networks
        for page in positions
        for seed in range(seeds if CELLS[network].is_lossy else 1)
    ]


def run_all(jobs: Sequence[Job], workers: int) -> Iterator[Run]:
    """Yield what came out of *jobs*, in their order, however the workers finish."""
    with ProcessPoolExecutor(max_workers=workers, initializer=_ignore_interrupts) as pool:
        try:
            yield from pool.map(run, jobs, chunksize=2)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def main(argv: list[str] | None = None) -> int:
    """Print a table and a verdict for each finding."""
    parser = _parser()
    try:
        return _main(parser, parser.parse_args(argv))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except InputError as error:
        print("\n".join(error.lines()), file=sys.stderr)
        return BAD_INPUT


def _main(parser: Parser, options: argparse.Namespace) -> int:
    _check(parser, options)
    findings = [f for f in FINDINGS if not options.finding or f.id in options.finding]
    seeds = FULL_SEEDS if options.full else options.seeds
    positions = [n for n, page in enumerate(pages()) if _is_selected(page.name, options.page)]
    jobs = jobs_of(findings, positions, seeds)
    runs: list[Run] = []
    with progress_bar("page") as progress:
        for done in run_all(jobs, options.workers):
            runs.append(done)
            if progress is not None:
                progress(len(runs), len(jobs))
    print(_head([pages()[n] for n in positions], seeds))
    results = Results(runs)
    for finding in findings:
        print("\n" + finding.report(results))
    _print_repeated(results)
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="python -m validation.sander",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m validation.sander sander-3 sander-12 --seeds 5",
    )
    known = [finding.id for finding in FINDINGS]
    parser.add_argument(
        "finding", nargs="*", metavar="FINDING", help=f"of {', '.join(known)}; default: all"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=DEFAULT_SEEDS,
        metavar="N",
        help="loads of each page, scheme and cell with loss (default: %(default)s)",
    )
    parser.add_argument(
        "--full", action="store_true", help=f"{FULL_SEEDS} seeds, as many as the paper's runs"
    )
    parser.add_argument(
        "--page",
        action="append",
        default=[],
        metavar="PART",
        help="load only pages whose names hold this; may be given several times",
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes"
    )
    return parser


def _check(parser: Parser, options: argparse.Namespace) -> None:
    known = [finding.id for finding in FINDINGS]
    unknown = [name for name in options.finding if name not in known]
    if unknown:
        parser.error(f"no finding is called {unknown[0]!r}; there are {', '.join(known)}")
    if not any(_is_selected(page.name, options.page) for page in pages()):
        parser.error(f"--page: no page's name holds {' or '.join(map(repr, options.page))}")
    for name in ("seeds", "workers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: must be at least 1, is {getattr(options, name)}")


def _is_selected(name: str, parts: Sequence[str]) -> bool:
    return not parts or any(part in name for part in parts)


def _head(loaded: Sequence[Page], seeds: int) -> str:
    n, total = len(loaded), sum(page.total_bytes for page in loaded)
    small = sum(page.total_bytes < SMALL_BYTES for page in loaded)
    return (
        f"pages: {n}, recorded, {total / n / 1e6:.2f} MB on average, {small} below 0.6 MB;"
        f" seeds a cell with loss: {seeds}\n"
        "medians over pages, relative to chrome; in brackets how many pages have less : more by 5 %"
    )


def _print_repeated(results: Results) -> None:
    repeated = {results.title(n): times for n, times in results.repeated.items() if times}
    if repeated:
        message = ", ".join(f"{times} at {title}" for title, times in repeated.items())
        print(f"\nrepeated with other losses, as a load did not end in time: {message}")


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())

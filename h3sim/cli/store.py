"""`h3sim store`: what a store of studies holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.cli.parsing import FAILED, Parser, RawHelp
from h3sim.cli.tables import add_wide, table, terminal_width
from h3sim.documents import check_output
from h3sim.errors import InputError, Problem
from h3sim.printable import printable
from h3sim.study import Store, read_results
from h3sim.study.identity import model_version
from h3sim.study.store_repair import repair_store

if TYPE_CHECKING:
    import argparse

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim store list study.db
  h3sim store verify study.db
  h3sim store repair study.db
  h3sim store export study.db rows.csv --study 2
  h3sim store prune study.db --failed --other-models
"""
_FORMATS = (".csv", ".parquet", ".jsonl")


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "store",
        help=summary,
        description="Show, check, export or tidy a store of studies.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION", parser_class=Parser)
    for name, action, text in (
        ("list", _list, "show the studies and what is known of them"),
        ("verify", _verify, "check that the file is sound, and name what is damaged"),
        ("repair", _repair, "drop what is damaged, so that the next run makes it again"),
        ("export", _export, "write the rows of a study"),
        ("prune", _prune, "forget what is of no use any more"),
    ):
        command = actions.add_parser(name, help=text, description=text)
        command.add_argument("store", metavar="STORE", help="the file")
        command.set_defaults(command=action)
        if name == "export":
            command.add_argument("file", metavar="FILE", help=f"FILE{', FILE'.join(_FORMATS)}")
            command.add_argument(
                "--study", type=int, metavar="N", help="its number in the list (default: the last)"
            )
            command.add_argument("--resources", action="store_true", help="a row a resource")
        if name == "list":
            add_wide(command)
        if name == "prune":
            command.add_argument("--failed", action="store_true", help="what failed")
            command.add_argument(
                "--other-models", action="store_true", help="what other versions of h3sim made"
            )


def _list(options: argparse.Namespace) -> int:
    with Store(options.store, may_write=False) as store:
        studies, counts = store.studies(), store.counts()
    rows = (
        (s.id, s.name or "-", f"{s.n:,}", f"{s.done:,}", f"{s.failed:,}", ", ".join(s.axes) or "-")
        for s in studies
    )
    width = terminal_width(options)
    print(table(("study", "name", "cells", "done", "failed", "axes"), rows, width=width))
    print()
    models = (
        (model, f"{done:,}", f"{failed:,}", f"{seconds:,.1f}")
        for model, done, failed, seconds in counts
    )
    print(table(("model", "done", "failed", "took s"), models, width=width))
    return 0


def _verify(options: argparse.Namespace) -> int:
    with Store(options.store, may_write=False) as store:
        found = store.verify()
    for line in found:
        print(printable(f"{options.store}: {line}"))
    if not found:
        print(printable(f"{options.store}: sound"))
    return FAILED if found else 0


def _repair(options: argparse.Namespace) -> int:
    dropped = repair_store(options.store)
    for line in dropped:
        print(printable(f"{options.store}: dropped: {line}"))
    left = "the same sweep runs again what is missing" if dropped else "nothing to drop"
    print(printable(f"{options.store}: {left}"))
    return 0


def _export(options: argparse.Namespace) -> int:
    suffix = next((ending for ending in _FORMATS if options.file.endswith(ending)), "")
    if not suffix:
        message = f"must end in {', '.join(_FORMATS)}, is {options.file!r}"
        raise InputError([Problem(key="FILE", message=message)])
    check_output(options.file, key="FILE")
    results = read_results(options.store, study=options.study)
    rows = results.resources() if options.resources else results
    {".csv": rows.to_csv, ".parquet": rows.to_parquet, ".jsonl": rows.save}[suffix](options.file)
    print(printable(f"wrote {len(rows):,} rows to {options.file}"))
    return 0


def _prune(options: argparse.Namespace) -> int:
    if not options.failed and not options.other_models:
        message = "say what is of no use: --failed, --other-models or both"
        raise InputError([Problem(key="prune", message=message)])
    Store(options.store, may_write=False).close()  # where there is none, none shall be made
    keep = model_version() if options.other_models else None
    with Store(options.store) as store:
        n = store.prune(keep_model=keep, failed=options.failed)
    print(printable(f"{options.store}: forgot {n:,} cells"))
    return 0

"""Merging stores: those of the parts of a study, for example, which ran on several machines."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.schema.files import shown_path
from h3sim.study.rows import StoreError
from h3sim.study.store import KEPT_SUFFIX, Store, StoreInputError
from h3sim.values.text import escape_control

if TYPE_CHECKING:
    from collections.abc import Sequence


def merge_stores(
    sources: Sequence[str | Path], output: str | Path, *, other_models: bool = False
) -> int:
    """Write the studies and loads of all *sources* to a new store, and return the number of loads.

    Each source is verified. A study that several sources have is one study, with the loads of all.
    Loads of several versions of h3sim are merged only with *other_models*.

    Raises:
        StoreError: if a source is damaged, has loads of another version or another result of the
            same load, or if *output* exists or cannot be written; then it is not written.
    """
    if os.path.lexists(output):
        raise StoreInputError("exists: choose another file for the merged store", str(output))
    opened = [Store(source, may_write=False) for source in sources]
    try:
        _check_sources(opened, other_models=other_models)
        target = Path(output).absolute()
        if not target.parent.is_dir():
            raise StoreInputError("there is no such folder", shown_path(target.parent))
        with tempfile.TemporaryDirectory(prefix=".h3sim-merge-", dir=target.parent) as folder:
            draft = Path(folder) / "merged.db"
            with Store(draft) as merged:
                for source in opened:
                    merged.add(source)
                n_loads = sum(done + failed for _, done, failed, _ in merged.counts())
            for source in opened:
                if (kept := Path(f"{source.path}{KEPT_SUFFIX}")).is_dir():
                    shutil.copytree(kept, f"{target}{KEPT_SUFFIX}", dirs_exist_ok=True)
            draft.replace(target)
    finally:
        for source in opened:
            source.close()
    return n_loads


def _check_sources(sources: Sequence[Store], *, other_models: bool) -> None:
    """Refuse damaged stores, and models of h3sim other than that of the first load."""
    models: dict[str, str] = {}
    for source in sources:
        if damage := source.verify():
            message = f"is damaged, {escape_control(damage[0])}: `h3sim store repair` drops that"
            raise StoreError(f"{shown_path(source.path)}: {message}")
        models |= {model: source.path for model, *_ in source.counts() if model not in models}
    if len(models) > 1 and not other_models:
        found = "; ".join(f"{shown_path(path)} has {model}" for model, path in models.items())
        message = f"the loads are of different versions: {escape_control(found)}"
        raise StoreError(f"{message}; --other-models merges them all the same")

"""By what code of somebody else's is known again: its source, and what it was made with."""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
import sys
import types
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["code_parts", "source_digest"]

_HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: what has it was made by a `class` statement, or might have been."""


def code_parts(factory: Any, name: str) -> list[str]:
    """Return what tells *factory*, which makes what is called *name*, from all that does otherwise.

    Of a class that is its source, and that of the classes it derives from; of a function its own,
    and that of the classes and functions it names; of all else its class and its state. What a
    `functools.partial`, a method or a function holds counts as well.

    Raises:
        InputError: if a source cannot be read, or what it is made with cannot be pickled.

    >>> seven, eight = (functools.partial(int, base=base) for base in (7, 8))
    >>> code_parts(seven, "seven") == code_parts(eight, "eight")
    False
    """
    return list(_Described(name).of(factory))


class _Described:
    """Describes what makes a scheduler, and each class and function on the way once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: dict[int, object] = {}
        """By identity; kept, so that no other one gets the same."""

    def of(self, part: Any) -> Iterator[str]:
        """Yield what tells *part*."""
        if inspect.isclass(part) or inspect.isroutine(part) or isinstance(part, functools.partial):
            if id(part) not in self._seen:
                self._seen[id(part)] = part
                yield from self._of_code(part)
        else:
            yield self._pickled(part)
            yield from self.of(type(part))

    def _of_code(self, part: Any) -> Iterator[str]:
        if isinstance(part, functools.partial):
            yield from self._of_all(part.func, *part.args, *part.keywords, *part.keywords.values())
        elif inspect.isclass(part):
            yield from self._sources(part)
        elif inspect.ismethod(part):
            yield from self._of_all(part.__func__, part.__self__)
        elif inspect.isfunction(part):
            yield self._source(part)
            yield from self._of_all(*_held(part))
        else:  # of C
            yield f"{part.__module__}.{part.__qualname__}"

    def _of_all(self, *parts: Any) -> Iterator[str]:
        for part in parts:
            yield from self.of(part)

    def _sources(self, made_by: type) -> Iterator[str]:
        """Yield the name and the source of the class and of its bases; those of C have none."""
        for cls in made_by.__mro__:
            yield f"{cls.__module__}.{cls.__qualname__}"
            # A module without a name has classes that say they are builtins.
            is_pythons = cls.__module__ != "builtins" and cls.__module__ in sys.stdlib_module_names
            if cls is made_by and cls.__flags__ & _HEAP_TYPE and not is_pythons:
                yield self._source(cls)
            else:
                # Compiled ones have none: those of h3sim are known by its version.
                with suppress(OSError, TypeError):
                    yield inspect.getsource(cls)

    def _source(self, part: Any) -> str:
        try:
            return inspect.getsource(part)
        except (OSError, TypeError) as error:
            raise self._refused("code whose source cannot be read") from error

    def _pickled(self, value: Any) -> str:
        try:
            return pickle.dumps(value).hex()
        except Exception as error:  # whatever classes of somebody else's raise
            what = f"made with what cannot be pickled ({type(error).__name__}: {error})"
            raise self._refused(what) from error

    def _refused(self, why: str) -> InputError:
        message = f"{self._name} is {why}: no store could know it again"
        return InputError([Problem(key="schemes", message=message)])


def _held(function: types.FunctionType) -> Iterator[Any]:
    """Yield what a function holds: defaults, what it closes over, and what it names of a module."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    named = inspect.getclosurevars(function)
    for values in (named.nonlocals, named.globals):
        for _, value in sorted(values.items()):
            if not isinstance(value, types.ModuleType):
                yield value


def source_digest(module: str) -> str:
    """Return a digest of the source of the package that *module* is in.

    Nothing is imported. What is not there, or has no source, is an empty text's.

    >>> len(source_digest("json.decoder")), source_digest("json.decoder") == source_digest("json")
    (12, True)
    """
    digest = hashlib.blake2b(digest_size=6)
    spec = None
    with suppress(ImportError, ValueError):  # a module may have no spec
        spec = find_spec(module.partition(".")[0])
    folders = (
        [] if spec is None else [Path(found) for found in spec.submodule_search_locations or ()]
    )
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    if spec is not None and spec.has_location and not folders:
        files = [Path(spec.origin or "")]
    for path in files:
        with suppress(OSError):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()

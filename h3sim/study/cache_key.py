"""Cache keys of loads: digests of every input that affects the result, user code included."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import pickle
import sys
import tokenize
import types
from contextlib import suppress
from functools import cache, lru_cache
from importlib import metadata, resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim._version import __version__
from h3sim.browser import BrowserModel
from h3sim.config.load_config import LoadConfig, recorded_network
from h3sim.errors import H3SimError, InputError
from h3sim.headers.base import HeaderLists
from h3sim.headers.wire import LIBRARIES
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.plugins import entry_points_of
from h3sim.results.configuration import configuration
from h3sim.schema.fields import write_table
from h3sim.schemes import Scheme, scheme_to_dict
from h3sim.study.run import resolve_config
from h3sim.transport import Network, TransportProfile, network_to_dict, profile_to_dict
from h3sim.transport.congestion import controller_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.page import Page
    from h3sim.study.design import Design


_NO_SOURCE = (OSError, TypeError, SyntaxError, tokenize.TokenError)
"""Errors of `inspect.getsource` without a source, or with that of something else."""
_HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE, the flag of classes that a `class` statement may have made."""


def code_parts(factory: Any, name: str, key: str = "schemes") -> list[str]:
    """Return texts that identify the behaviour of *factory*, the code behind *name*.

    For a class: its source and that of its bases. For a function: its source. Both include the
    globals that they name: other classes, functions and values. Otherwise: class and state. Values
    bound by a `functools.partial`, a method or a closure are included. Of libraries only what is
    named counts, not what it names in turn. Code without a source file, as in a notebook or at the
    interactive prompt, is identified by its cell's source or its bytecode.

    Raises:
        InputError: at *key*, if a bound value cannot be pickled.

    >>> seven, eight = (functools.partial(int, base=base) for base in (7, 8))
    >>> code_parts(seven, "seven") == code_parts(eight, "eight")
    False
    """
    return list(_Described(name, key).of(factory))


class _Described:
    """Description of a user's code that visits each class and function once."""

    def __init__(self, name: str, key: str) -> None:
        self._name = name
        self._key = key
        self._seen: dict[int, object] = {}
        """Visited objects by id; references are held so that no id is reused."""

    def of(self, part: Any) -> Iterator[str]:
        """Yield the texts that identify *part*."""
        if inspect.isclass(part) or inspect.isroutine(part) or isinstance(part, functools.partial):
            if id(part) not in self._seen:
                self._seen[id(part)] = part
                yield from self._code_parts(part)
        else:
            yield self._pickled(part)
            yield from self.of(type(part))

    def _code_parts(self, part: Any) -> Iterator[str]:
        """Yield the source of a callable, and of all that it refers to."""
        if isinstance(part, functools.partial):
            yield from self._of_all(part.func, *part.args, *part.keywords, *part.keywords.values())
        elif inspect.isclass(part):
            yield from self._source_files(part)
        elif inspect.ismethod(part):
            yield from self._of_all(part.__func__, part.__self__)
        elif inspect.isfunction(part):
            yield self._source(part)
            if not _is_library(part):
                yield from self._of_all(*_held(part))
        else:  # implemented in C
            yield f"{part.__module__}.{part.__qualname__}"

    def _of_all(self, *parts: Any) -> Iterator[str]:
        for part in parts:
            yield from self.of(part)

    def _source_files(self, made_by: type) -> Iterator[str]:
        """Yield name and source of the class and its bases; those implemented in C have none."""
        for cls in made_by.__mro__:
            yield f"{cls.__module__}.{cls.__qualname__}"
            # Classes of a module without a name claim to be builtins.
            if is_interactive(cls) or _is_without_file(cls):
                yield from self._members(cls)
                continue
            if not _is_library(cls):
                for function in itertools.chain(*map(_functions_in, vars(cls).values())):
                    if inspect.isfunction(function):
                        yield from self._of_all(*_held(function))
            is_pythons = cls.__module__ != "builtins" and cls.__module__ in sys.stdlib_module_names
            if cls is made_by and cls.__flags__ & _HEAP_TYPE and not is_pythons:
                yield self._source(cls)
            else:
                # Compiled classes have no source: those of h3sim are identified by its version.
                with suppress(*_NO_SOURCE):
                    yield inspect.getsource(cls)

    def _members(self, cls: type) -> Iterator[str]:
        """Yield the members of a class without a file: functions by their code, other by value."""
        for name, value in sorted(vars(cls).items()):
            if name in _OF_EVERY_CLASS:
                continue
            yield name
            for part in _functions_in(value):
                if not inspect.isdatadescriptor(part):  # slots, which are named anyway
                    yield from self.of(part)

    def _source(self, part: Any) -> str:
        try:
            return inspect.getsource(part)
        except _NO_SOURCE as error:
            if isinstance(part, types.FunctionType):
                return repr(_code_description(part.__code__))
            raise self._refused("code whose source cannot be read") from error

    def _pickled(self, value: Any) -> str:
        try:
            return pickle.dumps(value).hex()
        except Exception as error:  # foreign classes may raise anything
            what = f"made with a value that cannot be pickled ({type(error).__name__}: {error})"
            raise self._refused(what) from error

    def _refused(self, why: str) -> InputError:
        message = f"{self._name} is {why}: its results cannot be stored and found again"
        return InputError.at(self._key, message)


_OF_EVERY_CLASS = (
    *("__dict__", "__weakref__", "__module__", "__doc__", "__abstractmethods__", "_abc_impl"),
    *("__firstlineno__", "__static_attributes__", "__annotations__", "__parameters__"),
    *("__qualname__", "__annotate_func__", "__annotations_cache__"),
)
"""Attributes that do not affect the behaviour of a class, or differ between processes."""


def is_interactive(part: Any) -> bool:
    """Return whether a class or function was defined in a notebook or at a prompt: in no file."""
    if part.__module__ != "__main__":
        return False
    # What is read from standard input claims to be in a file of that name.
    return not Path(getattr(sys.modules["__main__"], "__file__", None) or "<stdin>").is_file()


def _is_library(part: Any) -> bool:
    """Return whether a class or function is Python's, h3sim's or an installed package's."""
    root = (part.__module__ or "").partition(".")[0]
    if root == "h3sim" or root in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return bool({"site-packages", "dist-packages"} & {*Path(file).parts})


def _functions_in(value: Any) -> tuple[Any, ...]:
    """Return the functions that a property or the like in a class calls, or *value* itself."""
    if isinstance(value, property):
        return tuple(filter(None, (value.fget, value.fset, value.fdel)))
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    return (value.func if isinstance(value, functools.cached_property) else value,)


def _is_without_file(cls: type) -> bool:
    """Return whether the methods of a class are Python's, but its source cannot be found."""
    if not any(inspect.isfunction(value) for value in vars(cls).values()):
        return False
    try:
        inspect.getsource(cls)
    except _NO_SOURCE:
        return True
    return False


def _code_description(code: types.CodeType) -> tuple[object, ...]:
    """Return what a code object does, without file names and line numbers."""
    constants = tuple(
        _code_description(value)
        if isinstance(value, types.CodeType)
        # A set has no defined order.
        else ("frozenset", *sorted(map(repr, value)))
        if isinstance(value, frozenset)
        else repr(value)
        for value in code.co_consts
    )
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    arguments = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    compiled = (code.co_name, code.co_code.hex(), code.co_exceptiontable.hex())
    return (*compiled, constants, names, arguments)


def _held(function: types.FunctionType) -> Iterator[Any]:
    """Yield the values a function depends on: defaults, closure and the globals it names."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    named = inspect.getclosurevars(function)
    for values in (named.nonlocals, named.globals):
        for _, value in sorted(values.items()):
            if not isinstance(value, types.ModuleType):
                yield value


def source_digest(module: str) -> str:
    """Return a digest of the source of the package that *module* is in.

    Nothing is imported. A missing module, or one without source, has the digest of an empty text.

    >>> len(source_digest("json.decoder")), source_digest("json.decoder") == source_digest("json")
    (12, True)
    """
    digest = hashlib.blake2b(digest_size=6)
    spec = None
    with suppress(ImportError, ValueError):  # a module may have no spec
        spec = find_spec(module.partition(".")[0])
    folders = () if spec is None else spec.submodule_search_locations or ()
    files = [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    if spec is not None and spec.has_location and not folders:
        files = [Path(spec.origin or "")]
    for path in files:
        with suppress(OSError):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


_WITHOUT_INFLUENCE = (
    *("cli", "conformance", "importers", "papers", "reporting", "study"),
    *("corpora", "models"),
)
"""Packages that do not affect results; shipped models and pages have digests of their own."""
_OF_STUDY = ("study/header_models.py", "study/run.py", "study/worker.py")
"""Modules of the study package that affect results: they resolve loads and build rows."""
_GROUPS = ("h3sim.schedulers", "h3sim.congestion")
_KEY_BYTES = 16


@cache
def model_version() -> str:
    """Return a text that identifies the model: h3sim's version, a source digest, dependencies.

    The digest includes shipped networks and profiles; the dependencies are the installed plug-ins
    and header compression libraries.

    Results of another model are never reused, even between two commits of one version.
    """
    digest = hashlib.blake2b(digest_size=6)
    # Sorted: directory order is undefined.
    for name, source in sorted(_source_files(resources.files("h3sim"), "")):
        digest.update(name.encode() + b"\0" + source + b"\0")
    # Not named by any cell: the default network, and the profiles that networks refer to.
    for named in (*catalog.list_networks(), *catalog.list_profiles()):
        digest.update(_plain_text(named).encode() + b"\0")
    return " ".join((f"h3sim {__version__}", digest.hexdigest(), *sorted({*_dependencies()})))


def _source_files(folder: Any, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the Python files of a folder that can affect a result."""
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _source_files(entry, f"{name}/")
        elif name.endswith(".py") and (
            name.split("/")[0] not in _WITHOUT_INFLUENCE or name in _OF_STUDY
        ):
            yield name, entry.read_bytes()


def _dependencies() -> Iterator[str]:
    """Yield the versions of header compression libraries, and of plug-ins with their source."""
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"
    for entry in itertools.chain(*map(entry_points_of, _GROUPS)):
        if entry.dist is not None:
            # An editable install keeps its version while its source changes.
            named = entry.pattern.match(entry.value)
            source = source_digest(named["module"] if named else "")
            yield f"{entry.dist.name} {entry.dist.version} {source}"


_MOST_RESOLVED = 4096
_NAMES_AND_SEED = ("network", "seed")
"""Settings of a load that are in its key by themselves."""
_ABOUT_NETWORK = ("name", "title", "source", "profile", "cc")
"""Keys of a network that say nothing of its links: what it suggests is in the resolved profile."""


class CellKeys:
    """Keys of a design's cells: equal cells have equal keys in any design.

    A load is known by its resolved configuration, so that a study with another axis keeps the
    loads that are the same.

    Raises:
        InputError: if a scheme is code that cannot be identified.
    """

    def __init__(self, design: Design, model: str) -> None:
        self._design = design
        self._head = digest(model, *design.metrics)  # rows with other columns are other rows
        self._pages = [page_digest(page) for page in design.pages]
        self._schemes = [scheme_digest(scheme) for scheme in design.schemes]
        self._resolved = lru_cache(maxsize=_MOST_RESOLVED)(self._resolve)

    def key(self, index: int) -> bytes:
        """Return the key of the cell at *index*."""
        page, setting, scheme, seed = self._design.indices(index)
        # What is resolved depends on the page only where it was recorded.
        recorded = getattr(self._design.pages[page], "recorded_load", None) is not None
        is_own = recorded or isinstance(self._design.pages[page], HeaderLists)
        resolved = self._resolved(setting, scheme, page if is_own else None)
        hashed = hashlib.blake2b(self._head, digest_size=_KEY_BYTES)
        hashed.update(self._pages[page] + self._schemes[scheme] + resolved)
        hashed.update(str(self._design.seeds[seed]).encode())
        return hashed.digest()

    def _resolve(self, setting: int, scheme: int, page: int | None) -> bytes:
        subject, options = self._design.pages[page or 0], self._design.settings[setting]
        return resolved_digest(subject, self._design.schemes[scheme], options)

    def token(self) -> str:
        """Return a text that identifies this study: all inputs of its cells, in order."""
        design = self._design
        hashed = hashlib.blake2b(self._head, digest_size=_KEY_BYTES)
        for part in (*self._pages, *self._schemes):
            hashed.update(part)
        for listed in design.settings.listed:
            hashed.update(digest("listed", _settings(dict(listed))))
        for name, values in design.settings.axes.items():
            hashed.update(digest("axis", name, *(_settings({name: v}) for v in values)))
        hashed.update(digest("seeds", *map(str, design.seeds)))
        return hashed.hexdigest()


def resolved_digest(
    subject: Page | HeaderLists, scheme: Scheme, options: Mapping[str, Any]
) -> bytes:
    """Return what tells a setting from others by what it comes to, however it is given.

    So `cc="cubic"` is the load that a network with CUBIC has by default. A setting that comes
    to nothing, since something is wrong with it, is known by what is given.
    """
    if isinstance(subject, HeaderLists):
        return digest(_settings(options))
    try:
        spec = resolve_config(subject, scheme, LoadConfig(**options))
    except H3SimError:
        return digest(_settings(options))
    network = network_to_dict(spec.network)
    named = options.get("network", RECORDED_NETWORK)
    return digest(
        # The name under which rows have the network; that of a changed one lists the changes.
        getattr(named, "name", str(named)),
        _settings(configuration(spec) | dict.fromkeys(_NAMES_AND_SEED)),
        json.dumps({key: network[key] for key in network if key not in _ABOUT_NETWORK}),
        _plain_text(spec.profile),
        _plain_text(spec.browser),
        _plain_text(options.get("header_compression")),
        str(spec.limit_ns),
    )


def page_digest(page: Page | HeaderLists) -> bytes:
    """Return a digest of a page, with its name and recorded network."""
    # The page's digest does not cover its recorded network.
    network = recorded_network(page)
    recorded = [] if network is None else [json.dumps(network_to_dict(network))]
    return digest(page.digest, page.name, *recorded)


def scheme_digest(scheme: Scheme) -> bytes:
    """Return a digest of a scheme, code of a scheduler included.

    Raises:
        InputError: if it is code that cannot be identified.
    """
    document = scheme_to_dict(scheme)
    if document is not None:
        return digest(json.dumps(document))
    factory = getattr(scheme.mechanism, "factory", None)
    return digest(json.dumps([write_table(scheme), *code_parts(factory, scheme.name)]))


def digest(*parts: str) -> bytes:
    """Return a digest of these texts in this order."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=_KEY_BYTES).digest()


def _settings(options: Mapping[str, Any]) -> str:
    return json.dumps({name: _plain_value(value) for name, value in sorted(options.items())})


def _plain_text(value: Any) -> str:
    return json.dumps(_plain_value(value))


def _plain_value(value: Any) -> Any:
    """Return a value of a configuration as JSON can hold it."""
    if isinstance(value, Network):
        return network_to_dict(value)
    if isinstance(value, TransportProfile):
        # With the code of its congestion controller, where it is the user's.
        own = value.controller
        return [profile_to_dict(value), *([] if own is None else code_parts(own, value.cc, "cc"))]
    if isinstance(value, BrowserModel):
        return repr(value)
    if callable(value):
        return code_parts(value, controller_named(value)[0], "cc")
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)

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


_NO_SOURCE_ERRORS = (OSError, TypeError, SyntaxError, tokenize.TokenError)
"""Errors of `inspect.getsource` without a source, or with that of something else."""
_HEAP_TYPE_FLAG = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: set for classes defined by a `class` statement."""


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
    return list(_CodeDescriber(name, key).texts_of(factory))


class _CodeDescriber:
    """Yields texts that identify a user's code, visiting each class and function once."""

    def __init__(self, name: str, key: str) -> None:
        self._name = name
        self._key = key
        self._seen: dict[int, object] = {}
        """Visited objects by id; references are held so that no id is reused."""

    def texts_of(self, part: Any) -> Iterator[str]:
        """Yield the texts that identify *part*."""
        if inspect.isclass(part) or inspect.isroutine(part) or isinstance(part, functools.partial):
            if id(part) not in self._seen:
                self._seen[id(part)] = part
                yield from self._code_parts(part)
        else:
            yield self._pickled(part)
            yield from self.texts_of(type(part))

    def _code_parts(self, part: Any) -> Iterator[str]:
        """Yield the source of a callable, and of all that it refers to."""
        if isinstance(part, functools.partial):
            yield from self._texts_of_all(
                part.func, *part.args, *part.keywords, *part.keywords.values()
            )
        elif inspect.isclass(part):
            yield from self._class_parts(part)
        elif inspect.ismethod(part):
            yield from self._texts_of_all(part.__func__, part.__self__)
        elif inspect.isfunction(part):
            yield self._source(part)
            if not _is_library(part):
                yield from self._texts_of_all(*_referenced_values(part))
        else:  # implemented in C
            yield f"{part.__module__}.{part.__qualname__}"

    def _texts_of_all(self, *parts: Any) -> Iterator[str]:
        for part in parts:
            yield from self.texts_of(part)

    def _class_parts(self, described: type) -> Iterator[str]:
        """Yield name and source of a class and its bases; those implemented in C have none."""
        for cls in described.__mro__:
            yield f"{cls.__module__}.{cls.__qualname__}"
            # Classes defined by `exec` without a module name claim to be in builtins.
            if is_interactive(cls) or _is_without_file(cls):
                yield from self._members(cls)
                continue
            if not _is_library(cls):
                for function in itertools.chain(*map(_functions_in, vars(cls).values())):
                    if inspect.isfunction(function):
                        yield from self._texts_of_all(*_referenced_values(function))
            is_stdlib = cls.__module__ != "builtins" and cls.__module__ in sys.stdlib_module_names
            if cls is described and cls.__flags__ & _HEAP_TYPE_FLAG and not is_stdlib:
                yield self._source(cls)  # a user's class must have a source
            else:
                # Compiled classes have no source: those of h3sim are identified by its version.
                with suppress(*_NO_SOURCE_ERRORS):
                    yield inspect.getsource(cls)

    def _members(self, cls: type) -> Iterator[str]:
        """Yield the members of a class without a file: functions by their code, other by value."""
        for name, value in sorted(vars(cls).items()):
            if name in _IGNORED_ATTRIBUTES:
                continue
            yield name
            for part in _functions_in(value):
                if not inspect.isdatadescriptor(part):  # slots, whose names suffice
                    yield from self.texts_of(part)

    def _source(self, part: Any) -> str:
        try:
            return inspect.getsource(part)
        except _NO_SOURCE_ERRORS as error:
            if isinstance(part, types.FunctionType):
                return repr(_code_description(part.__code__))
            raise self._refused("code whose source cannot be read") from error

    def _pickled(self, value: Any) -> str:
        try:
            return pickle.dumps(value).hex()
        except Exception as error:  # foreign classes may raise anything
            reason = f"made with a value that cannot be pickled ({type(error).__name__}: {error})"
            raise self._refused(reason) from error

    def _refused(self, reason: str) -> InputError:
        message = f"{self._name} is {reason}: its results cannot be stored and found again"
        return InputError.at(self._key, message)


_IGNORED_ATTRIBUTES = (
    "__dict__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__abstractmethods__",
    "_abc_impl",
    "__firstlineno__",
    "__static_attributes__",
    "__annotations__",
    "__parameters__",
    "__qualname__",
    "__annotate_func__",
    "__annotations_cache__",
)
"""Attributes that do not affect the behaviour of a class, or differ between processes."""


def is_interactive(part: Any) -> bool:
    """Return whether a class or function was defined in a notebook or at a prompt: in no file."""
    if part.__module__ != "__main__":
        return False
    # A program that is read from standard input claims to be in a file "<stdin>".
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
    """Return whether a class has methods written in Python, but its source cannot be found."""
    if not any(inspect.isfunction(value) for value in vars(cls).values()):
        return False
    try:
        inspect.getsource(cls)
    except _NO_SOURCE_ERRORS:
        return True
    return False


def _code_description(code: types.CodeType) -> tuple[object, ...]:
    """Return the content of a code object, without file names and line numbers."""
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


def _referenced_values(function: types.FunctionType) -> Iterator[Any]:
    """Yield the values that a function refers to: defaults, closure and globals, not modules."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    variables = inspect.getclosurevars(function)
    for values in (variables.nonlocals, variables.globals):
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


_PACKAGES_WITHOUT_INFLUENCE = (
    "cli",
    "conformance",
    "importers",
    "papers",
    "reporting",
    "study",
    "corpora",
    "models",
)
"""Packages that do not affect results; shipped models and pages have digests of their own."""
_STUDY_MODULES_WITH_INFLUENCE = ("study/header_models.py", "study/run.py", "study/worker.py")
"""Modules of the study package that affect results: they resolve loads and build rows."""
_ENTRY_POINT_GROUPS = ("h3sim.schedulers", "h3sim.congestion")
_KEY_BYTES = 16
"""Length of the key of a load, without collisions in practice."""


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
    # Options need not name them: the default network, and the profiles that networks refer to.
    for value in (*catalog.list_networks(), *catalog.list_profiles()):
        digest.update(_plain_text(value).encode() + b"\0")
    return " ".join((f"h3sim {__version__}", digest.hexdigest(), *sorted({*_dependencies()})))


def _source_files(folder: Any, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the Python files of a folder that can affect a result."""
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _source_files(entry, f"{name}/")
        elif name.endswith(".py"):
            package = name.partition("/")[0]
            is_irrelevant = package in _PACKAGES_WITHOUT_INFLUENCE
            if not is_irrelevant or name in _STUDY_MODULES_WITH_INFLUENCE:
                yield name, entry.read_bytes()


def _dependencies() -> Iterator[str]:
    """Yield the versions of header compression libraries, and of plug-ins with their source."""
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"
    for entry in itertools.chain(*map(entry_points_of, _ENTRY_POINT_GROUPS)):
        if entry.dist is not None:
            # In an editable install the source changes while the version stays.
            match = entry.pattern.match(entry.value)
            source = source_digest(match["module"] if match else "")
            yield f"{entry.dist.name} {entry.dist.version} {source}"


_MAX_CACHED_DIGESTS = 4096
"""Most digests of resolved settings that are cached for the next pages and seeds."""
_SEPARATE_SETTINGS = ("network", "seed")
"""Settings of a load that are other parts of its key."""
_IRRELEVANT_NETWORK_KEYS = ("name", "title", "source", "profile", "cc")
"""Keys of a network that do not describe its links. Its profile and controller affect a load only
through the resolved transport profile."""


class CellKeys:
    """Keys of a design's cells: equal cells have equal keys in any design.

    A load is identified by its resolved configuration, so that a study to which an axis is added
    can reuse loads.

    Raises:
        InputError: if a scheme is code that cannot be identified.
    """

    def __init__(self, design: Design, model: str) -> None:
        self._design = design
        self._common_digest = digest(model, *design.metrics)
        self._page_digests = [page_digest(page) for page in design.pages]
        self._scheme_digests = [scheme_digest(scheme) for scheme in design.schemes]
        self._setting_digest = lru_cache(maxsize=_MAX_CACHED_DIGESTS)(self._digest_setting)

    def key(self, index: int) -> bytes:
        """Return the key of the cell at *index*."""
        page, setting, scheme, seed = self._design.indices(index)
        # All pages without a recording share a resolved setting, and so an entry of the cache.
        is_recorded = getattr(self._design.pages[page], "recorded_load", None) is not None
        depends_on_page = is_recorded or isinstance(self._design.pages[page], HeaderLists)
        resolved = self._setting_digest(setting, scheme, page if depends_on_page else None)
        key_hash = hashlib.blake2b(self._common_digest, digest_size=_KEY_BYTES)
        key_hash.update(self._page_digests[page] + self._scheme_digests[scheme] + resolved)
        key_hash.update(str(self._design.seeds[seed]).encode())
        return key_hash.digest()

    def _digest_setting(self, setting: int, scheme: int, page: int | None) -> bytes:
        """Return the digest of a resolved setting; None stands for any page without a recording."""
        subject, options = self._design.pages[page or 0], self._design.settings[setting]
        return resolved_digest(subject, self._design.schemes[scheme], options)

    def token(self) -> str:
        """Return a text that identifies this study: all inputs of its cells, in order."""
        design = self._design
        token_hash = hashlib.blake2b(self._common_digest, digest_size=_KEY_BYTES)
        for part in (*self._page_digests, *self._scheme_digests):
            token_hash.update(part)
        for listed in design.settings.listed:
            token_hash.update(digest("listed", _settings_text(dict(listed))))
        for name, values in design.settings.axes.items():
            texts = (_settings_text({name: value}) for value in values)
            token_hash.update(digest("axis", name, *texts))
        token_hash.update(digest("seeds", *map(str, design.seeds)))
        if design.listed is not None:
            token_hash.update(digest("loads", *map(str, design.listed)))
        return token_hash.hexdigest()


def resolved_digest(
    subject: Page | HeaderLists, scheme: Scheme, options: Mapping[str, Any]
) -> bytes:
    """Return a digest of a setting as resolved, which is equal however it is given.

    So `cc="cubic"` is the same load as the default over a network with CUBIC. An invalid setting
    cannot be resolved, and has a digest of the given options.
    """
    if isinstance(subject, HeaderLists):
        return digest(_settings_text(options))
    try:
        spec = resolve_config(subject, scheme, LoadConfig(**options))
    except H3SimError:
        return digest(_settings_text(options))
    network = network_to_dict(spec.network)
    given_network = options.get("network", RECORDED_NETWORK)
    return digest(
        # The name of the network in rows; that of the resolved one lists the changes.
        getattr(given_network, "name", str(given_network)),
        _settings_text(configuration(spec) | dict.fromkeys(_SEPARATE_SETTINGS)),
        json.dumps({key: network[key] for key in network if key not in _IRRELEVANT_NETWORK_KEYS}),
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


def _settings_text(options: Mapping[str, Any]) -> str:
    return json.dumps({name: _plain_value(value) for name, value in sorted(options.items())})


def _plain_text(value: Any) -> str:
    return json.dumps(_plain_value(value))


def _plain_value(value: Any) -> Any:
    """Return a value of a configuration as JSON can hold it."""
    if isinstance(value, Network):
        return network_to_dict(value)
    if isinstance(value, TransportProfile):
        controller = value.controller  # only if it is the user's code
        code = [] if controller is None else code_parts(controller, value.cc, "cc")
        return [profile_to_dict(value), *code]
    if isinstance(value, BrowserModel):
        return repr(value)
    if callable(value):
        return code_parts(value, controller_named(value)[0], "cc")
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)

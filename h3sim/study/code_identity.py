"""Identity of users' code: digests that change whenever the behaviour of the code can.

Pickling by value (`cloudpickle.register_pickle_by_value`) cannot identify code: two processes
pickle the same class to different bytes, since its id is random, sets are written in the order of
their hashes, and the modules that a registered module imports are left out. So code is followed
here: its bytecode without file names and line numbers, and every value that it names.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import json
import os
import shutil
import sys
import types
import uuid
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.schedulers import DriverScheduler


PACKAGES_WITHOUT_INFLUENCE = (
    "cli",
    "conformance",
    "importers",
    "papers",
    "reporting",
    "study",
    "corpora",
    "models",
)
"""Packages of h3sim that its model does not include; shipped data have digests of their own."""
VERSION_ATTRIBUTE = "code_version"
"""Attribute by which users vouch for what cannot be followed."""


class CodeDigests:
    """Digests of schedulers and controllers that users wrote, and what could not be followed.

    Code that cannot be followed completely has another digest for each `CodeDigests`, so that its
    results are never reused, unless it has an attribute `code_version`. Without *is_strict* such
    code has the digest of what can be followed. Workers receive digests with the code, since code
    that was pickled by value may have lost what it names.

    >>> digests = CodeDigests()
    >>> seven, eight = (functools.partial(int, base=base) for base in (7, 8))
    >>> digests.digest_of(seven, "seven") == digests.digest_of(eight, "eight")
    False
    """

    def __init__(self, *, is_strict: bool = True) -> None:
        self._nonce = uuid.uuid4().hex if is_strict else ""
        # The objects are kept, so that no id is reused. Each is followed once, since running a
        # load may change what the code refers to.
        self._known: dict[int, tuple[object, str]] = {}
        self.not_reused: dict[str, str] = {}
        """Reasons why results of code cannot be reused, by the name of the code."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": [*self._known.values()]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._known = {id(code): (code, digest) for code, digest in state["_known"]}

    def digest_of(self, code: Any, name: str) -> str:
        """Return the digest of a class, function or object that is called *name*."""
        if id(code) not in self._known:
            walk = _Walk()
            try:
                walk.add(code)
            except RecursionError:
                walk.unfollowed["values nested too deeply"] = None
            version = _version_of(code)
            walk.parts.append(f"version {version}")
            if walk.unfollowed and version is None:
                self.not_reused[name] = next(iter(walk.unfollowed))
                walk.parts.append(self._nonce)
            self._known[id(code)] = (code, _digest_of_parts(walk.parts))
        return self._known[id(code)][1]

    def warnings(self) -> Iterator[str]:
        """Yield a line for each name in `not_reused`."""
        for name, reason in self.not_reused.items():
            yield (
                f"{name} uses {reason}, which cannot be followed: its loads are not reused. Give it"
                f" a {VERSION_ATTRIBUTE}, and change that with every change, to reuse them"
            )


def _version_of(code: Any) -> Any:
    """Return the version that a user gave some code, or the function of a `functools.partial`."""
    of_function = getattr(getattr(code, "func", None), VERSION_ATTRIBUTE, None)
    return getattr(code, VERSION_ATTRIBUTE, of_function)


def _digest_of_parts(parts: Iterable[str]) -> str:
    return hashlib.blake2b(json.dumps(list(parts)).encode(), digest_size=16).hexdigest()


class _Names(NamedTuple):
    """Names in a code object and all code nested in it."""

    globals: set[str]
    attributes: set[str]
    """Names of attributes, and of all else."""
    imports: list[tuple[int, str, tuple[str, ...]]]
    """Level, module and imported names of each import."""


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes_in(constant)


def _names_in(code: types.CodeType) -> _Names:
    """Return the names in *code*, also those in lambdas, comprehensions and nested functions."""
    names = _Names(set(), set(), [])
    for part in _codes_in(code):
        names.attributes.update(part.co_names)
        operands: list[Any] = [0, None]  # of the last two instructions
        for instruction in dis.get_instructions(part):
            if instruction.opname in _GLOBAL_INSTRUCTIONS:
                names.globals.add(instruction.argval)
            elif instruction.opname == "IMPORT_NAME":
                level, imported = operands[-2:]
                names.imports.append((level or 0, instruction.argval, tuple(imported or ())))
            if instruction.opname != "EXTENDED_ARG":
                operands.append(instruction.argval)
    return names


_GLOBAL_INSTRUCTIONS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_ATOMS = (type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes)
_C_ATTRIBUTES = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
)
_IGNORED_ATTRIBUTES = (
    "__dict__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__abstractmethods__",
    "_abc_impl",
    "__slotnames__",
    "__firstlineno__",
    "__static_attributes__",
    "__annotations__",
    "__parameters__",
    "__qualname__",
    "__annotate_func__",
    "__annotations_cache__",
)
"""Attributes that do not affect the behaviour of a class, or differ between processes."""
_HEAP_TYPE_FLAG = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: set for classes defined by a `class` statement."""
_DYNAMIC_NAMES = {"getattr", "vars", "dir", "hasattr", "__dict__"}
"""Names in code that may use any member of a module that it names."""
_UNFOLLOWED_GLOBALS = {"open", "eval", "exec", "compile", "input", "globals", "__import__"}
_UNFOLLOWED_ATTRIBUTES = {
    "read_text",
    "read_bytes",
    "loadtxt",
    "genfromtxt",
    "fromfile",
    "read_csv",
    "read_json",
    "read_parquet",
    "import_module",
    "check_output",
    "Popen",
    "urlopen",
    "environ",
    "environb",
    "getenv",
    "getenvb",
}
"""Names of what reads files or the environment or runs other code: that is not followed."""


class _Walk:
    """A walk through a user's code and values that writes down each once, in a defined order."""

    def __init__(self, earlier: _Walk | None = None) -> None:
        self.parts: list[str] = []
        self.unfollowed: dict[str, None] = {} if earlier is None else earlier.unfollowed
        # References are held so that no id is reused.
        self._visited: dict[int, tuple[int, object]] = dict(earlier._visited if earlier else {})
        self._members: dict[tuple[int, str, int], object] = dict(
            earlier._members if earlier else {}
        )
        """Names that were looked for in members of modules."""

    def add(self, value: Any) -> None:
        """Add *value*, and all that it refers to."""
        kind = type(value)
        if kind in _ATOMS:
            self.parts.append(f"{kind.__name__} {value!r}")
        elif kind is tuple:
            self._add_all(f"tuple of {len(value)}", *value)
        elif id(value) in self._visited:
            self.parts.append(f"visited {self._visited[id(value)][0]}")
        elif isinstance(value, types.ModuleType):
            self._add_module(value, None)
        else:
            self._visited[id(value)] = (len(self._visited), value)
            self._add_object(value)

    def _add_all(self, description: str, *values: Any) -> None:
        self.parts.append(description)
        for value in values:
            self.add(value)

    def _add_object(self, value: Any) -> None:
        """Add a value that may refer to itself."""
        kind = type(value)
        if kind in (list, dict, types.MappingProxyType):
            items = value if kind is list else itertools.chain.from_iterable(value.items())
            self._add_all(f"{kind.__name__} of {len(value)}", *items)
        elif kind in (set, frozenset):
            self._add_set(value)
        elif kind is types.CodeType:
            self._add_code(value)
        elif inspect.isclass(value):
            self._add_class(value)
        elif kind is types.FunctionType:
            self._add_function(value)
        elif kind is types.MethodType:
            self._add_all("method", value.__func__, value.__self__)
        elif kind is types.BuiltinFunctionType:
            self._add_name(value.__module__, value.__qualname__)
            if not isinstance(value.__self__, types.ModuleType | None):
                self.add(value.__self__)
        elif kind in _C_ATTRIBUTES:
            self.parts.append(f"{kind.__name__} {value.__name__}")
        elif isinstance(value, property):
            self._add_all("property", value.fget, value.fset, value.fdel)
        elif isinstance(value, staticmethod | classmethod):
            self._add_all(kind.__name__, value.__func__)
        elif isinstance(value, functools.cached_property):  # its lock cannot be pickled
            self._add_all("cached property", value.func)
        elif value is os.environ or value is getattr(os, "environb", None):
            self.unfollowed["the environment"] = None
        else:
            self._add_instance(value)

    def _add_set(self, values: Iterable[Any]) -> None:
        """Add values without a defined order: each as if it were the next, sorted."""
        digests = []
        for value in values:
            walk = _Walk(self)
            walk.add(value)
            digests.append(_digest_of_parts(walk.parts))
        self.parts += ["set", *sorted(digests)]

    def _add_code(self, code: types.CodeType) -> None:
        """Add a code object without file names and line numbers."""
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.parts += [code.co_code.hex(), code.co_exceptiontable.hex(), repr(names), repr(counts)]
        self._add_all(f"code {code.co_name}", *code.co_consts)

    def _add_function(self, function: types.FunctionType) -> None:
        """Add a function, and the values that it and the code nested in it name."""
        code, module = function.__code__, function.__globals__
        names = _names_in(code)
        bound: dict[str, Any] = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # an empty cell
                bound[name] = cell.cell_contents
        if is_library(module.get("__name__")):
            # A wrapper of a library: what it wraps may be the user's.
            self._add_name(module["__name__"], code.co_qualname)
            self._add_all("wrapper", *bound.values())
            return
        defaults = (function.__defaults__, function.__kwdefaults__)
        self._add_all("function", code, *defaults, function.__dict__)
        for name in sorted(bound):
            self._add_named(name, bound[name], names)
        for name in sorted(names.globals):
            if name in module:
                self._add_named(name, module[name], names)
            elif name in _UNFOLLOWED_GLOBALS:
                self.unfollowed[f"{name}() in {function.__qualname__}"] = None
        self._add_imports(function, names)
        for name in sorted(names.attributes & _UNFOLLOWED_ATTRIBUTES):
            self.unfollowed[f"{name}() in {function.__qualname__}"] = None

    def _add_named(self, name: str, value: Any, names: _Names | None) -> None:
        """Add the value of a *name* in code; of a module only what the code may use."""
        self.parts.append(f"name {name}")
        if isinstance(value, types.ModuleType):
            is_dynamic = names is None or names.attributes & _DYNAMIC_NAMES
            self._add_module(value, None if is_dynamic else names)
        else:
            self.add(value)

    def _add_imports(self, function: types.FunctionType, names: _Names) -> None:
        """Add what the code imports when it runs."""
        package = function.__globals__.get("__package__") or ""
        for level, name, imported in names.imports:
            try:
                absolute = importlib.util.resolve_name("." * level + name, package)
                module = importlib.import_module(absolute)
            except Exception:  # noqa: BLE001 - users' modules may raise anything
                self.parts.append(f"no module {name}")
                continue
            for member in imported:
                if not hasattr(module, member):
                    with suppress(ImportError):
                        importlib.import_module(f"{absolute}.{member}")
            root = module if imported else sys.modules[absolute.partition(".")[0]]
            self._add_named(name, root, names)

    def _add_module(self, module: types.ModuleType, names: _Names | None) -> None:
        """Add the members of a user's module with these *names*; None stands for all."""
        self._add_name(module.__name__, "")
        if is_library(module.__name__):
            return
        members = vars(module)
        used = members if names is None else names.attributes | {"__getattr__"}
        for name in sorted(member for member in members if member in used):
            if names is None and name.startswith("__") and name != "__getattr__":
                continue
            if (id(module), name, id(names)) not in self._members:
                self._members[id(module), name, id(names)] = names  # held, for its id
                self._add_named(name, members[name], names)

    def _add_class(self, cls: type) -> None:
        """Add a class: its bases, and its members sorted by name."""
        # Classes defined by `exec` without a module name claim to be in builtins.
        is_made_by_exec = cls.__module__ == "builtins" and cls.__flags__ & _HEAP_TYPE_FLAG
        if is_library(cls.__module__) and not is_made_by_exec:
            self._add_name(cls.__module__, cls.__qualname__)
            return
        self._add_all(f"class {cls.__name__}", *cls.__bases__, type(cls))
        for name, value in sorted(vars(cls).items()):
            if name not in _IGNORED_ATTRIBUTES:
                self.parts.append(f"member {name}")
                self.add(value)
        self._add_compiled(cls.__module__)

    def _add_instance(self, value: Any) -> None:
        """Add an object by what pickle would make of it."""
        from h3sim.schedulers import DriverScheduler  # lazy: starting processes imports much

        if isinstance(value, DriverScheduler):
            self._add_program(value)
        self._add_all("object", type(value))
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            made_of: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception as error:  # noqa: BLE001 - foreign classes may raise anything
            self.unfollowed[f"a {type(value).__name__} ({type(error).__name__}: {error})"] = None
            return
        if isinstance(made_of, str):
            self._add_name(getattr(value, "__module__", None), made_of)
            # Wrappers such as that of `functools.lru_cache` are pickled by name.
            self.add(getattr(value, "__wrapped__", None))
            return
        make, arguments, state, *items = (*made_of, None, None, None)[:5]
        self._add_all("made by", make, arguments, state)
        for iterator in items:
            self.add(None if iterator is None else list(iterator))

    def _add_program(self, driver: DriverScheduler) -> None:
        """Add the files that the command of a *driver* names; they may read others."""
        for word in driver.command:
            with suppress(OSError, ValueError):
                file = Path(shutil.which(word) or word)
                self.parts.append(hashlib.blake2b(file.read_bytes()).hexdigest())
        self.unfollowed[f"the program {' '.join(driver.command)}"] = None

    def _add_name(self, module: str | None, name: str) -> None:
        """Add a part of Python, h3sim or an installed package by its name and the package."""
        self.parts.append(f"{module} {name}")
        root = (module or "").partition(".")[0]
        if _is_installed(root):
            self.parts.append(_installed_digest(root))
        elif module is not None and not is_library(module):
            self._add_compiled(module)

    def _add_compiled(self, module: str) -> None:
        """Add the file of a user's module that was compiled."""
        file = getattr(sys.modules.get(module), "__file__", None) or ".py"
        if not file.endswith(".py"):
            with suppress(OSError):
                self.parts.append(hashlib.blake2b(Path(file).read_bytes()).hexdigest())


def is_library(module: str | None) -> bool:
    """Return whether a module is Python's, an installed package's, or in the model of h3sim.

    >>> is_library("json.decoder"), is_library("h3sim.schedulers"), is_library("my_schedulers")
    (True, True, False)
    """
    root, _, rest = (module or "").partition(".")
    if root == "h3sim":
        return rest.partition(".")[0] not in PACKAGES_WITHOUT_INFLUENCE
    return root in sys.stdlib_module_names or _is_installed(root)


def _is_installed(root: str) -> bool:
    """Return whether a module or package is in a folder of installed packages."""
    if root in ("h3sim", "__main__"):
        return False
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return bool({"site-packages", "dist-packages"} & {*Path(file).parts})


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


_installed_digest = cache(source_digest)
"""Digest of the source of an installed package, which does not change while it is in use."""

"""Declarations that the compiled build needs (see CONTRIBUTING.md); they do nothing elsewhere.

mypyc recognizes the decorator `mypyc_attr` by its name when it compiles. At run time it does
nothing, so users do not need its package. Classes that are pickled are marked `serializable`; those
of them that have an `__init__` also allow interpreted subclasses, for otherwise mypyc 2.4 leaves
out the `__init__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_extensions import mypyc_attr

    T = TypeVar("T")
else:

    def mypyc_attr(**_options: Any) -> Callable[[T], T]:
        """Return a decorator that returns the class unchanged."""
        return lambda cls: cls


__all__ = ["doc_of", "mypyc_attr"]


def doc_of(part: object) -> str:
    """Return the docstring of a class or function, for compiled ones from their source file.

    Compiled classes and functions have no `__doc__`.

    >>> from h3sim.transport.pacing import Pacer
    >>> doc_of(Pacer).split(":")[0]
    'A leaky bucket'
    """
    import ast  # on use: importing h3sim should stay quick
    import inspect
    import sys
    from pathlib import Path

    doc = inspect.getdoc(part)
    module = sys.modules.get(getattr(part, "__module__", ""))
    if doc or module is None or not module.__file__:
        return doc or ""
    source_path = Path(module.__file__).with_name(f"{module.__name__.rpartition('.')[2]}.py")
    is_compiled = not module.__file__.endswith(".py")
    if not is_compiled or not source_path.is_file():  # packages of others may omit their sources
        return ""
    source = source_path.read_text(encoding="utf-8")
    name = getattr(part, "__name__", "")
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
    return ""

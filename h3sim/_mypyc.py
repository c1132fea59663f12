"""Declarations that the compiled build needs (see CONTRIBUTING.md); they do nothing elsewhere.

mypyc reads `mypyc_attr` by its name when it compiles. When h3sim runs it does nothing, so no one
needs the package that it comes from. What is pickled is `serializable`; and whatever of that has an
`__init__` allows interpreted subclasses as well, for else mypyc 2.4 leaves the `__init__` out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_extensions import mypyc_attr

    T = TypeVar("T")
else:

    def mypyc_attr(**_options: Any) -> Callable[[T], T]:
        """Return what leaves a class as it is."""
        return lambda cls: cls


__all__ = ["doc_of", "mypyc_attr"]


def doc_of(part: object) -> str:
    """Return the docstring of a class or function; what is compiled has one in its source only.

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
    # What is not compiled has said all, and what others compile need not have its source there.
    if module.__file__.endswith(".py") or not source_path.is_file():
        return ""
    source = source_path.read_text(encoding="utf-8")
    kinds = (ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.parse(source).body if isinstance(node, kinds))
    name = getattr(part, "__name__", "")
    return next((ast.get_docstring(node) or "" for node in nodes if node.name == name), "")

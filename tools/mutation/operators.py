"""Which mistakes are made: one node of a module's syntax tree is replaced by another."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Mutant", "code_with", "mutants_of"]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
"""Orders at their boundary, which is where mistakes are; equalities the other way round."""
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TOLD = {"__repr__", "__str__", "_repr_html_", "_repr_pretty_"}
"""Methods that speak to people; what they say is no rule of the simulation."""
_KEYWORDS_LEFT_ALONE = {"repr", "strict", "metadata", "stacklevel", "maxsize", "doc"}
"""Arguments that change nothing that a load could show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One mistake: *before* became *after* on a line of a file (a path from the checkout).

    *function* is the dotted name of what it stands in, "" at the top of a module; *text* digests
    that function: once it has changed, a result is known to be old.
    """

    file: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    occurrence: int
    text: str
    is_at_import: bool

    @property
    def key(self) -> str:
        """By what it is known again, whatever moves around its function."""
        parts = (self.file, self.function, self.operator, self.before, self.after)
        return hashlib.sha256("\0".join((*parts, str(self.occurrence))).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.before} -> {self.after}"


@dataclass(slots=True)
class _Site:
    """A node that may be replaced: where it hangs, and in which function."""

    node: ast.AST
    put: Callable[[ast.AST], None]
    function: str
    scope: ast.AST
    is_at_import: bool


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Return every mutant of a module, in the order of its text."""
    return [mutant for mutant, _, _ in _all(file, ast.parse(source))]


def code_with(mutant: Mutant, source: str) -> ast.Module:
    """Return the module's tree with that one mistake in it.

    Raises:
        LookupError: if the source has no such mutant.
    """
    tree = ast.parse(source)
    for each, site, replacement in _all(mutant.file, tree):
        if each.key == mutant.key:
            site.put(ast.copy_location(replacement, site.node))
            return ast.fix_missing_locations(tree)
    raise LookupError(str(mutant))


def _all(file: str, tree: ast.Module) -> Iterator[tuple[Mutant, _Site, ast.AST]]:
    seen: Counter[tuple[str, ...]] = Counter()
    digests: dict[int, str] = {}
    for site in list(_sites(tree, "", tree, is_at_import=True)):
        before = ast.unparse(site.node)
        for operator, replacement in _replacements(site.node):
            after = ast.unparse(ast.fix_missing_locations(replacement))
            digest = digests.get(id(site.scope))
            if digest is None:
                dumped = ast.dump(site.scope) if site.function else before
                digest = hashlib.sha256(dumped.encode()).hexdigest()[:16]
                if site.function:
                    digests[id(site.scope)] = digest
            name = (site.function, operator, before, after)
            mutant = Mutant(
                file=file,
                function=site.function,
                line=getattr(site.node, "lineno", 0),
                operator=operator,
                before=before,
                after=after,
                occurrence=seen[name],
                text=digest,
                is_at_import=site.is_at_import,
            )
            seen[name] += 1
            yield mutant, site, replacement


def _sites(node: ast.AST, function: str, scope: ast.AST, *, is_at_import: bool) -> Iterator[_Site]:
    """Walk below *node*; annotations, messages, decorators and what types alone see stay whole."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        if isinstance(node, ast.Raise):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _stays_valid(child):
                continue
            put = _putter(node, name, index if isinstance(value, list) else None)
            late = is_at_import
            if isinstance(node, ast.FunctionDef | ast.Lambda) and name == "body":
                late = False
            yield _Site(child, put, function, scope, late)
            inner, below = function, scope
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner, below = f"{function}.{child.name}".lstrip("."), child
            yield from _sites(child, inner, below, is_at_import=late)


def _putter(node: ast.AST, name: str, index: int | None) -> Callable[[ast.AST], None]:
    def put(replacement: ast.AST) -> None:
        if index is None:
            setattr(node, name, replacement)
        else:
            getattr(node, name)[index] = replacement

    return put


def _stays_valid(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.FunctionDef(name=name) if name in _TOLD:
            return True
        case ast.keyword(arg=name) if name in _KEYWORDS_LEFT_ALONE:
            return True
        case ast.Call(func=ast.Name(id="Problem" | "cast" | "TypeVar")):
            return True
        case _:
            return False


def _replacements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare():
            for index, op in enumerate(node.ops):
                ops = [*node.ops]
                ops[index] = _COMPARISONS[type(op)]()
                yield "comparison", ast.Compare(node.left, ops, node.comparators)
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC and not _is_text(node):
            yield "arithmetic", ast.BinOp(node.left, _ARITHMETIC[type(op)](), node.right)
        case ast.AugAssign(op=op):
            if type(op) in _ARITHMETIC:
                changed = _ARITHMETIC[type(op)]()
                yield "arithmetic", ast.AugAssign(node.target, changed, node.value)
            yield "statement", ast.Pass()
        case ast.BoolOp(op=op, values=values):
            other: ast.boolop = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "logic", ast.BoolOp(other, values)
            for index in range(len(values)):
                left = values[:index] + values[index + 1 :]
                yield "logic", left[0] if len(left) == 1 else ast.BoolOp(op, left)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "sign", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield "call", ast.Call(ast.Name(_CALLS[name], ast.Load()), node.args, node.keywords)
        case _:
            yield from _statements(node)


def _statements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.If(test=test, body=body, orelse=orelse) if _is_plain(test):
            yield "condition", ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test=test, body=value, orelse=other) if _is_plain(test):
            yield "condition", ast.IfExp(ast.UnaryOp(ast.Not(), test), value, other)
        case ast.While(test=test) if _is_plain(test) and not isinstance(test, ast.Constant):
            yield "condition", ast.While(ast.UnaryOp(ast.Not(), test), node.body, node.orelse)
        case ast.Expr(value=ast.Call()):
            yield "statement", ast.Pass()
        case ast.Delete(targets=[ast.Attribute() | ast.Subscript(), *_]):
            # A name is deleted only to say that an argument is not used.
            yield "statement", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", ast.Pass()
        case ast.Continue():
            yield "loop", ast.Break()
        case ast.Break():
            yield "loop", ast.Continue()


def _is_plain(test: ast.AST) -> bool:
    """Whether a condition has no operator of its own that is turned around anyway."""
    return not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp)


def _is_text(node: ast.BinOp) -> bool:
    """Whether it puts text together, or types (`int | None`)."""
    sides = (node.left, node.right)
    is_text = any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and type(side.value) is str)
        for side in sides
    )
    is_type = isinstance(node.op, ast.BitOr) and any(
        isinstance(side, ast.Constant) and side.value is None for side in sides
    )
    return is_text or is_type

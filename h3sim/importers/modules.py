"""JavaScript modules: the files that a module imports statically.

Only `import` and `export ... from` with a name in quotes count, since a browser requests nothing
else before a module runs. It is a scan of the tokens that matter, not a parser: comments, strings
and templates are skipped. The time is linear in the length for any input.

>>> imports_of(b'import "./a.js"; import x, {y} from "../b.js"; import("./c.js"); // import "d"')
['./a.js', '../b.js']
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from h3sim.importers.recorded_request import RecordedRequest

_WORD = rb"(?<![\w$.])(?:import|export)(?![\w$])"
_COMMENT = rb"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?+"
_TOKEN = re.compile(
    _COMMENT + rb"|\"(?:[^\"\\\n]|\\.)*+\"?+|'(?:[^'\\\n]|\\.)*+'?+|`(?:[^`\\]|\\.)*+`?+|" + _WORD,
    re.DOTALL,
)
"""A comment, a string, a template, or a word that may begin an import."""
_NAMES = re.compile(rb"(?:import|export)((?:" + _COMMENT + rb"|(?!" + _WORD + rb")[\w$*,{}\s])*+)")
"""Text between that word and the name of the file: names, blanks and comments.

Imported names in quotes are rare, and such an import is not found.
"""
_SPECIFIER = re.compile(rb"\"([^\"\\\n]*+)\"|'([^'\\\n]*+)'")
_COMMENTS = re.compile(_COMMENT)


def imports_of(source: bytes) -> list[str]:
    """Return the specifiers that a module imports, in order, each once.

    >>> imports_of(b"export * from './a.js'; export const from = 'no'; x.import('./b.js')")
    ['./a.js']
    """
    found: dict[str, None] = {}
    token = _TOKEN.search(source)
    while token is not None:
        end = token.end()
        if token[0] in (b"import", b"export"):
            clause = _NAMES.match(source, token.start())
            assert clause is not None  # noqa: S101 - it begins with the word
            end = clause.end()
            names = _COMMENTS.sub(b" ", clause[1]).split()
            specifier = _SPECIFIER.match(source, end)
            is_import = names[-1:] == [b"from"] or clause[1].rstrip().endswith((b"}from", b"*from"))
            if specifier and (is_import or (not names and token[0] == b"import")):
                found[(specifier[1] or specifier[2] or b"").decode("utf-8", "replace")] = None
        token = _TOKEN.search(source, end)
    return [*found]


class ModuleGraphs:
    """The modules in a recording, with what each imports.

    *parents* has the index of the request that led to each. A module's import has a script as
    initiator but no call stack; recorders that write no stacks at all do not tell.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> a, b, c = (
    ...     RecordedRequest(key="", url=f"http://x/{n}.js", initiator_type="script", end_ms=9.0 * n)
    ...     for n in range(3))
    >>> a.resolved_kind = b.resolved_kind = c.resolved_kind = Kind.SCRIPT
    >>> a.stack = ("http://x/",)
    >>> graphs = ModuleGraphs([a, b, c], {1: 0, 2: 1})
    >>> graphs.are_modules(0, 2), graphs.imports(1, 2), graphs.as_it_ran(0).end_ms
    (True, True, 18.0)
    """

    def __init__(
        self, requests: Sequence[RecordedRequest], parents: Mapping[int, int | None]
    ) -> None:
        self._requests = requests
        self._imports: dict[int, list[int]] = {}
        if any(request.stack for request in requests):
            for index, parent in parents.items():
                if parent is not None and self._is_import(requests[index], requests[parent]):
                    self._imports.setdefault(parent, []).append(index)
        imported = (each for found in self._imports.values() for each in found)
        self._modules = {*self._imports, *imported}

    @staticmethod
    def _is_import(request: RecordedRequest, parent: RecordedRequest) -> bool:
        are_scripts = request.resolved_kind is parent.resolved_kind is Kind.SCRIPT
        return are_scripts and request.initiator_type == "script" and not request.stack

    def are_modules(self, *indices: int) -> bool:
        """Return whether all these requests are for modules."""
        return self._modules.issuperset(indices)

    def imports(self, parent: int | None, index: int) -> bool:
        """Return whether the module *parent* imports another one."""
        return parent is not None and index in self._imports.get(parent, ())

    def as_it_ran(self, script: int) -> RecordedRequest:
        """Return the request for a script, ended and run with all that it imports."""
        if script not in self._imports:
            return self._requests[script]
        graph, met = [script], {script}
        for module in graph:
            found = [each for each in self._imports.get(module, ()) if each not in met]
            met.update(found)
            graph += found
        requests = [self._requests[each] for each in graph]
        ends_ms = [each.end_ms for each in requests if each.end_ms is not None]
        return replace(
            self._requests[script],
            end_ms=max(ends_ms, default=None),
            parse_ms=sum(each.parse_ms for each in requests),
            execute_ms=sum(each.execute_ms for each in requests),
        )

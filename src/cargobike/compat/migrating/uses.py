"""Where a script uses names of older libraries: which import each comes from, and what it is called in full."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from cargobike.compat.as_is.standing import ROOM
from cargobike.compat.translations import LIBRARIES

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_Importing = ast.Import | ast.ImportFrom


@dataclass(eq=False, slots=True)
class Binding:
    """A name that an import of an older library gives a script.

    Attributes:
        statement: The import.
        alias: Its part that binds the name.
        name: The name in the script.
        old: What it stands for: `horovod.torch`.
    """

    statement: _Importing
    alias: ast.alias
    name: str
    old: str


@dataclass(frozen=True, slots=True)
class Use:
    """One place that uses such a name.

    Attributes:
        binding: Where the name comes from.
        parts: The name and what is asked of it in turn: `hvd`, `hvd.Compression`, `hvd.Compression.fp16`.
        call: The call, if the last of them is called.
        is_unused: Whether what it returns is dropped.
    """

    binding: Binding
    parts: tuple[ast.expr, ...]
    call: ast.Call | None
    is_unused: bool = False

    def old_names(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield what each part is called in full, the longest first."""
        attributes = [part.attr for part in self.parts[1:] if isinstance(part, ast.Attribute)]
        for length in range(len(attributes), -1, -1):
            yield ".".join([self.binding.old, *attributes[:length]]), self.parts[length]


@dataclass(slots=True)
class Found:
    """What was found in a script.

    Attributes:
        bindings: The names from older libraries, in the order of the script.
        uses: Where they are used.
        taken: All other names that the script binds anywhere.
    """

    bindings: list[Binding] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)


def find_uses(tree: ast.Module) -> Found:
    """Find the names of older libraries in a script."""
    search = _Search()
    search.enter(tree)
    return search.found


class _Search(ast.NodeVisitor):
    """Walks through a script with the names that each scope binds."""

    def __init__(self) -> None:
        self.found = Found()
        self._scopes: list[dict[str, Binding | None]] = []
        self._statement: ast.expr | None = None

    def enter(self, node: ast.Module | _Scope) -> None:
        bound: dict[str, Binding | None] = {}
        for inner in _in_scope(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                for binding in _bindings(inner):
                    bound[binding.name] = binding
                    self.found.bindings.append(binding)
            for name in _names_bound(inner):
                self.found.taken.add(name)
                bound.setdefault(name, None)
        self._scopes.append(bound)
        self.generic_visit(node)
        self._scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = enter

    def visit_Expr(self, node: ast.Expr) -> None:
        self._statement = node.value
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        self._look(node.func, node)
        for argument in (*node.args, *node.keywords):
            self.visit(argument)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._look(node, None)

    def visit_Name(self, node: ast.Name) -> None:
        self._look(node, None)

    def _look(self, node: ast.expr, call: ast.Call | None) -> None:
        parts = [node]
        while isinstance(parts[-1], ast.Attribute):
            parts.append(parts[-1].value)
        root = parts[-1]
        if not isinstance(root, ast.Name):
            self.visit(root) if root is not node else self.generic_visit(node)
            return
        binding = next((scope[root.id] for scope in reversed(self._scopes) if root.id in scope), None)
        if binding is not None and isinstance(root.ctx, ast.Load):
            is_unused = call is not None and call is self._statement
            self.found.uses.append(Use(binding, tuple(reversed(parts)), call, is_unused))


def _in_scope(scope: ast.Module | _Scope) -> Iterator[ast.AST]:
    """Yield what lies in a scope and in no scope inside it; of those their first node, which binds a name."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, _Scope):
            waiting[:0] = list(ast.iter_child_nodes(node))


def _bindings(node: _Importing) -> Iterator[Binding]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            old = _of_others(f"{node.module or ''}.{alias.name}") if not node.level else ""
            name = alias.asname or alias.name
        else:
            old = _of_others(alias.name)
            name = alias.asname or alias.name.partition(".")[0]
            if not alias.asname and old == alias.name:
                old = name  # `import horovod.torch` binds `horovod`
            elif not alias.asname:
                continue  # `import cargobike.compat.…` has our own name already
        if old and alias.name != "*":
            yield Binding(node, alias, name, old)


def _of_others(name: str) -> str:
    """Return an older library's name without ours in front of it; an empty text if it is none."""
    name = name.removeprefix(f"{ROOM}.")
    return name if name.partition(".")[0] in LIBRARIES else ""


def _names_bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            ours = {binding.alias for binding in _bindings(node)}
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names if alias not in ours)
        case _:
            pass

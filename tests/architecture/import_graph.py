"""Reads a package's import statements without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: who imports it, what, where, and whether inside a function."""

    importer: str
    file: str
    line: int
    target: str
    deferred: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.target}"


@dataclass(frozen=True, slots=True)
class Module:
    """One source file and what it imports."""

    name: str
    file: str
    tree: ast.Module
    lines: int
    imports: tuple[Import, ...]


def read_package(root: Path) -> dict[str, Module]:
    """Read every module below `root`, the folder of a package, keyed by dotted name."""
    paths = {_dotted(root, path): path for path in sorted(root.rglob("*.py"))}
    modules = {}
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, filename=str(path))
        file = path.relative_to(root).as_posix()
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imports = tuple(
            Import(name, file, node.lineno, target, deferred)
            for node, deferred in _import_statements(tree)
            for target in _targets(node, package, set(paths))
        )
        modules[name] = Module(name, file, tree, len(text.splitlines()), imports)
    return modules


def find_cycles(modules: dict[str, Module]) -> list[list[str]]:
    """Return every group of modules that import each other, directly or through others."""
    edges = {
        name: {item.target for item in module.imports if item.target in modules and item.target != name}
        for name, module in modules.items()
    }
    reachable = {name: _reachable(name, edges) for name in edges}
    groups: dict[frozenset[str], None] = {}
    for name in edges:
        group = frozenset(other for other in reachable[name] if name in reachable[other])
        if group:
            groups[group | {name}] = None
    return [sorted(group) for group in groups]


def _reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(edges[start])
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(edges[name])
    return seen


def _dotted(root: Path, path: Path) -> str:
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _import_statements(tree: ast.Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, deferred = todo.pop(0)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, deferred
        inside = deferred or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        todo.extend((child, inside) for child in ast.iter_child_nodes(node))


def _targets(node: ast.Import | ast.ImportFrom, package: str, known: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = node.module or ""
    if node.level:
        parent = package.split(".")[: len(package.split(".")) - node.level + 1]
        module = ".".join([*parent, module] if module else parent)
    # `from package import module` means the module; `from module import name` the module that holds it.
    named = (f"{module}.{alias.name}" for alias in node.names)
    return list(dict.fromkeys(name if name in known else module for name in named))

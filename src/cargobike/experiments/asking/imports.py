"""Which imports of a source are surely run, when it is imported and one of its functions is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cargobike.core.source_code import parse_module

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def imports_run(text: str, functions: set[str], *, is_theirs: bool = True) -> list[str]:
    r"""Return the modules that are imported at the top, and in the functions and what they call.

    What stands under `if TYPE_CHECKING` or `if __name__ == "__main__"`, in a branch of a function or in a function that
    none of them mentions is left out.

    Args:
        text: Python source; of what cannot be read there are none.
        functions: Names of functions and classes that will be called; those that they mention are added.
        is_theirs: Whether the function must be in this text: if it has none of that name, all in it count.

    Example:
        >>> imports_run("import a\ndef train(x):\n    import b\ndef other():\n    import c", {"train"})
        ['a', 'b']
    """
    try:
        tree = parse_module(text)
    except (SyntaxError, ValueError):
        return []
    around = dict(_definitions(tree))
    named = [node for node in around if node.name in functions]
    reached = list[ast.AST]([tree, *(named or (around if is_theirs else ()))])
    found: dict[str, None] = {}
    seen = set[ast.AST]()
    while reached:
        one = reached.pop(0)
        if one in seen:
            continue
        seen.add(one)
        mentioned = set[str]()
        for node in _run(one):
            found |= dict.fromkeys(_modules(node))
            mentioned |= {node.id} if isinstance(node, ast.Name) else set()
            mentioned |= {node.attr} if isinstance(node, ast.Attribute) else set()
        functions |= mentioned
        reached += [node for node in around if node.name in mentioned]
        reached += [around[one]] if one in around else []  # a function in a function has what is around it
    return list(found)


def _definitions(tree: ast.AST, around: ast.AST | None = None) -> Iterator[tuple[_Function | ast.ClassDef, ast.AST]]:
    """Yield each function and class with what it stands in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function | ast.ClassDef):
            yield node, around or tree
            yield from _definitions(node, node)
        else:
            yield from _definitions(node, around or tree)


def _run(root: ast.AST) -> Iterator[ast.AST]:
    """Yield what is run when a module is imported, a class is used or a function is called."""
    in_function = isinstance(root, _Function)
    waiting = list(ast.iter_child_nodes(root))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, _Function | ast.Lambda) and not isinstance(root, ast.ClassDef):
            continue
        if isinstance(node, ast.ClassDef):
            continue
        yield node
        if isinstance(node, ast.If):
            waiting += [] if in_function else _branches(node)
        elif not (in_function and isinstance(node, ast.match_case | ast.ExceptHandler)):
            waiting += ast.iter_child_nodes(node)


def _branches(node: ast.If) -> list[ast.stmt]:
    test = ast.unparse(node.test)
    return node.orelse if "TYPE_CHECKING" in test or "__name__" in test else [*node.body, *node.orelse]


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []

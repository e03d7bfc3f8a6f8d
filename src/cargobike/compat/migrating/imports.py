"""The imports of a script after its calls have new names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from cargobike.compat.as_is.standing import ROOM
from cargobike.compat.migrating.edits import Edit
from cargobike.compat.migrating.uses import Binding, Found
from cargobike.compat.translations import LIBRARIES

_PACKAGE = "cargobike"


def new_name(name: str, taken: Collection[str]) -> tuple[str, str]:
    """Return how a script calls something of ours, and the import that it needs.

    `cargobike.experiment.launch` is `experiment.launch` after `from cargobike import experiment`, unless the script
    uses the word for something else.
    """
    _, first, *rest = name.split(".")
    if first in taken:
        return name, f"import {_PACKAGE}"
    return ".".join([first, *rest]), f"from {_PACKAGE} import {first}"


def import_edits(found: Found, needed: dict[ast.stmt, list[str]], kept: Collection[Binding]) -> Iterator[Edit]:
    """Yield the changes of imports: in place of each what its uses need now, and ours by the old names for the rest.

    Args:
        found: What the script uses.
        needed: New imports by the statement whose names they replace.
        kept: Names of older libraries that some use still needs.
    """
    for statement in dict.fromkeys(binding.statement for binding in found.bindings):
        ours = [binding for binding in found.bindings if binding.statement is statement]
        aliases = {binding.alias for binding in ours}
        lines = list(dict.fromkeys(needed.get(statement, ())))
        lines += [line for binding in ours if binding in kept for line in _by_old_name(binding)]
        others = [alias for alias in statement.names if alias not in aliases]
        if others:
            lines.append(ast.unparse(_only(statement, others)))
        indent = " " * statement.col_offset
        text = f"\n{indent}".join(_together(lines)) or "pass"
        end = statement.end_lineno or 0, statement.end_col_offset or 0
        yield Edit((statement.lineno, statement.col_offset), end, text)


def _together(lines: Iterable[str]) -> list[str]:
    """Return imports with one line for all names of a module."""
    names: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):
        source, _, name = line.partition(" import ")
        names.setdefault(source, []).extend([name] if name else [])
    return [f"{source} import {', '.join(given)}" if given else source for source, given in names.items()]


def _by_old_name(binding: Binding) -> Iterator[str]:
    """Yield the import of ours that gives a script the old name."""
    statement, alias = binding.statement, binding.alias
    if isinstance(statement, ast.ImportFrom):
        module = str(statement.module).removeprefix(f"{ROOM}.")
        source = f"{ROOM}.{module}" if module in LIBRARIES or "." in module else ROOM
        yield f"from {source} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    elif alias.asname:
        yield f"import {ROOM}.{alias.name.removeprefix(f'{ROOM}.')} as {alias.asname}"
    else:
        library, _, below = alias.name.partition(".")
        if below:
            yield f"import {ROOM}.{alias.name}"
        yield f"from {ROOM} import {library}"


def _only(statement: ast.Import | ast.ImportFrom, aliases: list[ast.alias]) -> ast.stmt:
    if isinstance(statement, ast.Import):
        return ast.Import(aliases)
    return ast.ImportFrom(statement.module, aliases, statement.level)

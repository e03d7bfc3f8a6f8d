"""A script for an older library in our own names, and what of it could not be translated."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from cargobike.compat.as_is.standing import ROOM
from cargobike.compat.migrating.calls import Arguments
from cargobike.compat.migrating.edits import Edit, edited
from cargobike.compat.migrating.imports import import_edits, new_name
from cargobike.compat.migrating.uses import Binding, Found, Use, find_uses
from cargobike.compat.translations import Translation, translation_of
from cargobike.core.source_code import parse_module


@dataclass(frozen=True, slots=True)
class Change:
    """One use of an older name.

    Attributes:
        line: Where it is in the old script.
        old: The name in full.
        new: Our own, if there is one.
        done: Whether it was rewritten.
        remark: What is left to do, or why it was not.
    """

    line: int
    old: str
    new: str
    done: bool
    remark: str


@dataclass(frozen=True, slots=True)
class Migrated:
    """A rewritten script, and its changes in the order of the old one."""

    code: str
    changes: tuple[Change, ...]

    @property
    def left(self) -> tuple[Change, ...]:
        """What could not be translated; it runs on under the old names."""
        return tuple(change for change in self.changes if not change.done)


def migrate(source: str) -> Migrated:
    """Rewrite a script in our own names.

    Raises:
        SyntaxError: If it is not Python.
    """
    found = find_uses(parse_module(source))
    arguments = Arguments(source)
    decided = [_decided(use, arguments) for use in found.uses]
    kept = {one.use.binding for one in decided if not one.change.done}
    kept |= _unused(found)
    taken = found.taken | {binding.name for binding in kept}
    needed: dict[ast.stmt, list[str]] = {}
    edits: list[Edit] = []
    for one in decided:
        if one.change.done and one.literal:
            edits.append(Edit(_start(one.node), _end(one.node), one.literal))
        elif one.change.done:
            text, line = new_name(one.change.new, taken)
            needed.setdefault(one.use.binding.statement, []).append(line)
            edits += [Edit(_start(one.node), _end(one.node), text), *one.arguments]
    edits += import_edits(found, needed, kept)
    changes = sorted((one.change for one in decided), key=lambda change: change.line)
    return Migrated(edited(source, edits), tuple(changes))


@dataclass(frozen=True, slots=True)
class _Decided:
    use: Use
    node: ast.expr
    change: Change
    arguments: tuple[Edit, ...] = ()
    literal: str = ""


def _decided(use: Use, arguments: Arguments) -> _Decided:
    line = use.parts[0].lineno
    full, last = next(use.old_names())
    known = next(_translations(use), None)
    if known is None:
        remark = f"it is not known here; kept as {ROOM}.{full}"
        return _Decided(use, last, Change(line, full, "", done=False, remark=remark))
    translation, node = known
    if translation.literal:
        change = Change(line, translation.old, translation.literal, done=True, remark="")
        return _Decided(use, node, change, literal=translation.literal)
    edits: list[Edit] | None = []
    remark = translation.remark
    if translation.same and use.call is not None and node is last:
        edits = arguments.edits(use.call, translation)
        if edits is None:
            remark = translation.remark or "its arguments are not written one by one, or have no counterpart"
    fits = translation.returns or use.is_unused
    done = translation.same and edits is not None and fits
    change = Change(line, translation.old, translation.new, done=done, remark=remark)
    return _Decided(use, node, change, tuple(edits or ()))


def _translations(use: Use) -> Iterator[tuple[Translation, ast.expr]]:
    for name, node in use.old_names():
        if (translation := translation_of(name)) is not None:
            yield translation, node


def _unused(found: Found) -> set[Binding]:
    """Return names that no code uses: an import for its effect, or for others, stays."""
    used = {use.binding for use in found.uses}
    return {binding for binding in found.bindings if binding not in used}


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0

"""Makes mutants of a module: each is its source with one small mistake inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

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
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_LEFT_OUT = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Delete)
_WITHOUT_EFFECT = ("logger.", "log.", "_log.", "warnings.")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: where it is, and the module's text with it."""

    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.line}: {_one_line(self.before)}  →  {_one_line(self.after)}"


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 100 else words[:99] + "…"


class _Changes(ast.NodeVisitor):
    """Collects pairs of a node and what to write instead of it."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.AST, str]] = []
        self._depth = 0

    def _add(self, node: ast.AST, instead: ast.AST | str) -> None:
        if self._depth:
            self.found.append((node, instead if isinstance(instead, str) else f"({ast.unparse(instead)})"))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Look at what a function does, neither at its annotations and defaults nor at its decorators."""
        self._depth += 1
        self._visit_body(node.body)
        self._depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_body(node.body)

    def visit_Module(self, node: ast.Module) -> None:
        self._visit_body(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def _visit_body(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _LEFT_OUT) and self._leave_out(node):
            return
        super().visit(node)

    def _leave_out(self, node: ast.AST) -> bool:
        """Offer to leave a statement out; return whether there is nothing more to change in it."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.Yield | ast.YieldFrom):
            return isinstance(node.value, ast.Constant)
        text = ast.unparse(node)
        if text.startswith(_WITHOUT_EFFECT):
            return True
        if isinstance(node, ast.Raise):
            self._add(node, "pass")
            return True  # what a message says is no behaviour that these tests are about
        is_local = isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets)
        if not is_local:
            self._add(node, "pass")
        return False

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            if other := _COMPARISONS.get(type(operator)):
                operators = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                self._add(node, ast.Compare(node.left, operators, node.comparators))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._add(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_text = any(isinstance(side, ast.JoinedStr) for side in (node.left, node.right))
        if not is_text and (other := _OPERATORS.get(type(node.op))):
            self._add(node, ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if not isinstance(node.test, ast.Compare | ast.UnaryOp | ast.BoolOp):
            self._add(node.test, ast.UnaryOp(ast.Not(), node.test))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._add(node, ast.IfExp(node.test, node.orelse, node.body))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not _is_nothing_or_number(node.value):
            self._add(node, "return None")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._add(node, repr(node.value + 1))

    def visit_keyword(self, node: ast.keyword) -> None:
        """Leave `zip(…, strict=True)` alone: like an assertion, it changes nothing as long as it holds."""
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts for people alone."""


def _is_nothing_or_number(value: ast.expr) -> bool:
    """Tell whether a returned value is `None`, or a number or truth value, which gets a mutant as a constant."""
    return isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool | int | float))


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its lines; each line keeps its number."""
    changes = _Changes()
    changes.visit(ast.parse(source))
    data = source.encode()
    starts = [0]
    for text_line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(text_line))
    places = [(_places(node, starts), instead) for node, instead in changes.found]
    for (line, begin, end), instead in sorted(places):
        before = data[begin:end].decode()
        lines = "\n" * before.count("\n")
        after = f"{instead[:-1]}{lines})" if instead.endswith(")") else instead + lines
        text = data[:begin].decode() + after + data[end:].decode()
        try:
            compile(text, "mutant", "exec")
        except SyntaxError:  # such as a name in a pattern
            continue
        yield Mutant(line, before, instead, text)


def _places(node: ast.AST, starts: list[int]) -> tuple[int, int, int]:
    """Return the line of a node, and where its text begins and ends."""
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

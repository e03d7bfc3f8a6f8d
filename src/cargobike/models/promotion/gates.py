"""Gates before aliases: `accuracy >= champion.accuracy and latency_ms <= 20`, judged on what was measured.

The language is a small part of Python's expressions, parsed and never run: numbers, metrics of the version by name,
metrics of the versions that aliases point at (`champion.accuracy`), `metrics["val/loss"]` and `champion["val/loss"]`
for names that are no words, `+ - * /`, comparisons, `and`, `or`, `not`, and `abs`, `min`, `max`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cargobike.core.errors import GateError, InvalidInputError, nearest
from cargobike.core.values.words import number

LONGEST: Final = 1000
OWN: Final = "metrics"
"""What stands for the version itself where its metrics are named in brackets."""

_ARITHMETIC: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[float, float], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: Final[dict[str, Callable[..., float]]] = {"abs": abs, "min": min, "max": max}
_LANGUAGE: Final = (
    "A gate has numbers, metrics (accuracy), metrics of an alias (champion.accuracy, champion['val/loss']), + - * /, "
    "< <= > >= == !=, and, or, not, abs(), min(), max()."
)


@dataclass(frozen=True)
class Judgement:
    """What became of a gate.

    Attributes:
        passes: Whether the version may pass.
        figures: What was compared, by name.
        failed: The comparisons that did not hold, as they were written.
        remarks: What there is to say besides.
    """

    passes: bool
    figures: dict[str, float | None]
    failed: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def refusal(self, subject: str, gate: str) -> GateError:
        """Return the error that says why a version does not pass, with the figures."""
        figures = ", ".join(
            f"{name} = {'unknown' if value is None else number(value)}" for name, value in self.figures.items()
        )
        reasons = "; ".join(dict.fromkeys([*(f"{part} does not hold" for part in self.failed), *self.remarks]))
        return GateError(f"{subject} does not pass {gate!r}: {reasons}. ({figures})", figures=self.figures)


class Gate:
    """A gate that was understood.

    Args:
        text: The gate as a user wrote it.

    Raises:
        InvalidInputError: If it is no gate; says what is not understood, and what is.
    """

    def __init__(self, text: str) -> None:
        if type(text) is not str or not text.strip() or len(text) > LONGEST:
            raise InvalidInputError(
                f"when={str(text)[:80]!r} was given; write a comparison, such as "
                f"'accuracy >= champion.accuracy', of at most {LONGEST} characters."
            )
        self.text = text.strip()
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InvalidInputError(
                f"when={text!r} cannot be understood: {getattr(error, 'msg', error)}. {_LANGUAGE}"
            ) from error
        mistakes = _mistakes(self._tree)
        if not mistakes and not _is_truth(self._tree):
            mistakes = ["it compares nothing"]
        if mistakes:
            raise InvalidInputError(f"when={text!r} cannot be used. {_LANGUAGE}", mistakes)

    @property
    def others(self) -> set[str]:
        """The aliases that it names."""
        return {name for node in ast.walk(self._tree) if (name := _alias_in(node))}

    def judge(self, own: Mapping[str, float], others: Mapping[str, Mapping[str, float] | None]) -> Judgement:
        """Judge a version.

        Args:
            own: What was measured of it.
            others: What was measured of the versions that aliases point at, `None` for an alias that points at nothing:
                what is compared with that holds, and a remark says so.
        """
        judging = _Judging(own, others)
        passes = judging.truth(self._tree)
        return Judgement(passes and not judging.unknown, judging.figures, judging.failed, judging.remarks)


def check_aliases(gate: Gate, aliases: Mapping[str, int], moved: str) -> None:
    """Refuse a gate that names an alias which neither exists nor is about to be moved: it may be misspelt.

    Raises:
        InvalidInputError: If it does.
    """
    for name in sorted(gate.others - aliases.keys() - {moved}):
        known = sorted({*aliases, moved})
        raise InvalidInputError(
            f"when={gate.text!r} names {name!r}, which is no alias of this model; there are {', '.join(known)}."
            f"{nearest(name, known)}"
        )


class _Judging:
    def __init__(self, own: Mapping[str, float], others: Mapping[str, Mapping[str, float] | None]) -> None:
        self._own = own
        self._others = others
        self.figures: dict[str, float | None] = {}
        self.failed: list[str] = []
        self.remarks: list[str] = []
        self.unknown = False

    def truth(self, node: ast.expr, *, wanted: bool = True) -> bool:
        """Tell whether something holds; what compares with a version that is missing is as `wanted`."""
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(part, wanted=wanted) for part in node.values]  # all, so that all figures are shown
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.UnaryOp):
            return not self.truth(node.operand, wanted=not wanted)
        assert isinstance(node, ast.Compare)
        return self._compare(node, wanted=wanted)

    def _compare(self, node: ast.Compare, *, wanted: bool) -> bool:
        values = [self._value(part) for part in (node.left, *node.comparators)]
        missing = {name for part in ast.walk(node) if (name := _alias_in(part)) and self._others.get(name) is None}
        if missing:
            self.remarks += [f"{name} points at no version yet, so nothing is compared with it" for name in missing]
            self.remarks = list(dict.fromkeys(self.remarks))
            return wanted
        if None in values:
            self.unknown = True
            return False
        pairs = zip(node.ops, values, values[1:], strict=False)
        holds = all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs)  # type: ignore[arg-type]
        if holds is not wanted:
            self.failed.append(ast.unparse(node) if wanted else f"not ({ast.unparse(node)})")
        return holds

    def _value(self, node: ast.expr) -> float | None:
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand)
            return None if value is None else -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left), self._value(node.right)
            if left is None or right is None:
                return None
            try:
                return _ARITHMETIC[type(node.op)](left, right)
            except ZeroDivisionError:
                return math.nan
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            values = [self._value(part) for part in node.args]
            return None if None in values else float(_FUNCTIONS[node.func.id](*values))
        return self._measured(node)

    def _measured(self, node: ast.expr) -> float | None:
        alias, name = _metric_in(node)
        measured = self._own if not alias else self._others.get(alias)
        shown = ast.unparse(node)
        if measured is None:
            self.figures[shown] = None
            return None
        value = measured.get(name)
        self.figures[shown] = value
        if value is None:
            # Also where nothing is compared with it: a misspelt metric must not open the gate for the first champion.
            self.unknown |= not alias
            subject = alias or "this version"
            self.remarks.append(
                f"{name} was not measured of {subject}, which has {', '.join(sorted(measured)) or 'no metrics'}"
                f"{nearest(name, measured)}".rstrip("?. ")
            )
        return value


def _metric_in(node: ast.expr) -> tuple[str, str]:
    """Return alias and metric of a name; no alias for the version itself."""
    if isinstance(node, ast.Name):
        return "", node.id
    if isinstance(node, ast.Attribute):
        assert isinstance(node.value, ast.Name)
        return ("" if node.value.id == OWN else node.value.id), node.attr
    assert isinstance(node, ast.Subscript)
    assert isinstance(node.value, ast.Name)
    assert isinstance(node.slice, ast.Constant)
    return ("" if node.value.id == OWN else node.value.id), str(node.slice.value)


def _alias_in(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.value, ast.Name):
        return "" if node.value.id == OWN else node.value.id
    return ""


def _is_truth(node: ast.expr) -> bool:
    """Tell whether something is true or false: a comparison, or such put together."""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_truth, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _is_truth(node.operand)
    return isinstance(node, ast.Compare)


def _mistakes(node: ast.expr) -> list[str]:
    """Return what in an expression is not of the language."""
    parts: list[Any] = []
    if isinstance(node, ast.BoolOp):
        parts = list(node.values)
        if not all(map(_is_truth, parts)):
            return [f"{ast.unparse(node)!r} puts together what is no comparison"]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.UAdd):
        parts = [node.operand]
        if isinstance(node.op, ast.Not) != _is_truth(node.operand):
            return [f"{ast.unparse(node)!r} mixes numbers and comparisons"]
    elif isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
        parts = [node.left, *node.comparators]
        if any(map(_is_truth, parts)):
            return [f"{ast.unparse(node)!r} compares comparisons"]
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        parts = [node.left, node.right]
        if any(map(_is_truth, parts)):
            return [f"{ast.unparse(node)!r} computes with comparisons"]
    elif isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        enough = len(node.args) == 1 if known and ast.unparse(node.func) == "abs" else len(node.args) > 1
        if not known or node.keywords or not enough or any(isinstance(part, ast.Starred) for part in node.args):
            return [f"{ast.unparse(node)!r} is no call of abs(x), min(x, y) or max(x, y)"]
        parts = list(node.args)
        if any(map(_is_truth, parts)):
            return [f"{ast.unparse(node)!r} computes with comparisons"]
    elif not _is_leaf(node):
        return [f"{ast.unparse(node)!r} is not understood"]
    return [mistake for part in parts for mistake in _mistakes(part)]


def _is_leaf(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) in {int, float} and math.isfinite(node.value) and abs(node.value) < 1e300  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return node.id not in _FUNCTIONS
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name)
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    )

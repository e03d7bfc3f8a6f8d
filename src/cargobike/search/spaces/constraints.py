"""Constraints between parameters: expressions such as `min_leaf < max_leaf`, read without running anything.

An expression is parsed into Python's syntax tree, of which a few kinds of nodes are known: comparisons, arithmetic,
`and`, `or`, `not`, `in`, numbers and text, names of parameters, and `abs`, `min`, `max`. Everything else is refused.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cargobike.core.errors import nearest
from cargobike.core.source_code import parse_expression
from cargobike.search.spaces.parameter import Parameter
from cargobike.search.spaces.values import identity, is_number, shown

MAX_CHARACTERS: Final = 1000
"""Longer than any rule that a person writes, and short enough that its numbers cannot grow without end."""
_ALLOWED = "comparisons, + - * / // % **, and, or, not, in, abs, min, max, numbers, text and names of parameters"

Evaluate = Callable[[Mapping[str, object]], Any]
"""Computes a part of an expression from parameters."""


class _Absent:
    """Stands for what cannot be told, because a parameter does not exist beside the others."""


_ABSENT: Final = _Absent()


class NotAllowedError(ValueError):
    """An expression is no constraint; the message says why."""


@dataclass(frozen=True)
class Constraint:
    """A rule that parameters keep.

    Attributes:
        text: As it was written.
        names: The parameters that it speaks of, in order of appearance.
    """

    text: str
    names: tuple[str, ...]
    _evaluate: Evaluate

    def holds(self, params: Mapping[str, object]) -> bool:
        """Tell whether parameters keep it.

        A comparison with a parameter that does not exist is neither true nor false, and a constraint that is neither
        holds. What cannot be computed, as a division by zero or an order between a number and a text, does not hold.
        """
        try:
            return self._evaluate(params) is not False
        except (ArithmeticError, TypeError, ValueError):
            return False

    def broken_by(self, params: Mapping[str, object]) -> str:
        """Return why parameters do not keep it."""
        values = ", ".join(f"{name}={shown(params[name])}" for name in self.names if name in params)
        return f"{self.text}: does not hold for {values}"


def read_constraints(given: object, parameters: Mapping[str, Parameter], mistakes: list[str]) -> list[Constraint]:
    """Read constraints on some parameters; what is wrong is added to `mistakes`."""
    if isinstance(given, str) or callable(given) or not isinstance(given, Iterable):
        given = (given,)
    constraints = []
    for text in given:
        try:
            constraints.append(_read(text, parameters))
        except NotAllowedError as error:
            mistakes.append(f"constraint {shown(text)}: {error}")
    return constraints


def _read(text: object, parameters: Mapping[str, Parameter]) -> Constraint:
    if callable(text):
        raise NotAllowedError(
            "a function cannot be kept in a journal or read from a file; write an expression, such as 'a < b'"
        )
    if not isinstance(text, str):
        raise NotAllowedError("must be text, such as 'a < b'; a parameter of the name 'constraints' goes into a dict")
    if len(text) > MAX_CHARACTERS:
        raise NotAllowedError(f"is longer than {MAX_CHARACTERS} characters")
    source, quoted = _without_quotes(text.strip())
    try:
        tree = parse_expression(source)
        reader = _Reader(parameters, quoted)
        evaluate = reader.truth(tree.body)
    except (SyntaxError, ValueError) as error:
        if isinstance(error, NotAllowedError):
            raise
        raise NotAllowedError(
            f"is not an expression ({getattr(error, 'msg', error)}); allowed are {_ALLOWED}"
        ) from None
    except (RecursionError, MemoryError):
        raise NotAllowedError("is nested too deeply") from None
    if not reader.names:
        raise NotAllowedError(f"names no parameter; there are {', '.join(parameters)}")
    return Constraint(text.strip(), tuple(reader.names), evaluate)


def _without_quotes(text: str) -> tuple[str, dict[str, str]]:
    """Replace names in backticks, which may be anything, by names that Python can parse."""
    quoted: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return match.group(0)
        stand_in = f"_quoted_{len(quoted)}_"
        quoted[stand_in] = match.group(1)
        return stand_in

    return re.sub(r"`([^`]+)`|'[^']*'|\"[^\"]*\"", replace, text), quoted


def _power(base: Any, exponent: Any) -> Any:
    # Whole numbers of Python grow until memory ends; floats overflow, which is an error that is caught.
    return float(base) ** float(exponent)


_ARITHMETIC: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_ORDER: Final[dict[type, Callable[[Any, Any], bool]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"abs": abs, "min": min, "max": max}


class _Reader:
    """Turns nodes of a syntax tree into functions of parameters.

    Attributes:
        names: The parameters that were named so far.
    """

    def __init__(self, parameters: Mapping[str, Parameter], quoted: Mapping[str, str]) -> None:
        self._parameters = parameters
        self._quoted = quoted
        self.names: dict[str, None] = {}

    def truth(self, node: ast.expr) -> Evaluate:
        """Return a function that says `True`, `False`, or that it cannot be told."""
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(part) for part in node.values]
            return _any_of(parts) if isinstance(node.op, ast.Or) else _all_of(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return _negated(self.truth(node.operand))
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Name) and self._is_flag(node):
            return self._value(node)
        what = ast.unparse(node)
        for stand_in, name in self._quoted.items():
            what = what.replace(stand_in, f"`{name}`")
        raise NotAllowedError(f"{shown(what)} is neither true nor false; compare it with something")

    def _is_flag(self, node: ast.Name) -> bool:
        parameter = self._parameters.get(self._name(node))
        return parameter is not None and bool(parameter.values) and all(type(one) is bool for one in parameter.values)

    def _comparison(self, node: ast.Compare) -> Evaluate:
        pairs: list[Evaluate] = []
        left = node.left
        for sign, right in zip(node.ops, node.comparators, strict=True):
            pairs.append(self._pair(left, sign, right))
            left = right
        return pairs[0] if len(pairs) == 1 else _all_of(pairs)

    def _pair(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Evaluate:
        if type(sign) in _ORDER:
            self._check_order(left, right)
            order = _ORDER[type(sign)]
            return _joined(self._value(left), self._value(right), lambda a, b: order(*_comparable(a, b)))
        first, second = self._value(left), self._value(right)
        if isinstance(sign, ast.Eq | ast.Is):
            return _joined(first, second, lambda a, b: identity(a) == identity(b))
        if isinstance(sign, ast.NotEq | ast.IsNot):
            return _joined(first, second, lambda a, b: identity(a) != identity(b))
        if not isinstance(right, ast.Tuple | ast.List | ast.Set):
            raise NotAllowedError("after `in` comes a list of values, such as ['sgd', 'adam']")
        if isinstance(sign, ast.In):
            return _joined(first, second, lambda a, b: identity(a) in identity(b))  # type: ignore[operator]
        return _joined(first, second, lambda a, b: identity(a) not in identity(b))  # type: ignore[operator]

    def _check_order(self, *nodes: ast.expr) -> None:
        """Refuse an order that no values of the parameters have: that of a number and a text, say."""
        kinds = [self._kinds(node) for node in nodes]
        if not set.intersection(*kinds) & {"number", "text"}:
            words = " and ".join(
                f"{ast.unparse(node)} ({' or '.join(sorted(kind))})" for node, kind in zip(nodes, kinds, strict=True)
            )
            raise NotAllowedError(f"{words} have no order; compare them with ==, != or in")

    def _kinds(self, node: ast.expr) -> set[str]:
        if isinstance(node, ast.Constant):
            return {_kind(node.value)}
        if isinstance(node, ast.Name):
            parameter = self._parameters.get(self._name(node))
            if parameter is not None and not parameter.is_range:
                return {_kind(value) for value in parameter.values}
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return {"list"}
        return {"number"}

    def _name(self, node: ast.Name) -> str:
        return self._quoted.get(node.id, node.id)

    def _value(self, node: ast.expr) -> Evaluate:
        if isinstance(node, ast.Constant):
            return self._constant(node.value)
        if isinstance(node, ast.Name):
            return self._parameter(self._name(node))
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return _tuple_of([self._value(part) for part in node.elts])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            sign = -1 if isinstance(node.op, ast.USub) else 1
            return _joined(self._number(node.operand), lambda params: sign, operator.mul)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return _joined(self._number(node.left), self._number(node.right), _ARITHMETIC[type(node.op)])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            return self._call(node, _FUNCTIONS[node.func.id])
        raise NotAllowedError(f"{shown(ast.unparse(node))} is not allowed; allowed are {_ALLOWED}")

    def _call(self, node: ast.Call, function: Callable[..., Any]) -> Evaluate:
        fewest = 1 if function is abs else 2
        if node.keywords or len(node.args) < fewest or (function is abs and len(node.args) > 1):
            raise NotAllowedError(f"{shown(ast.unparse(node))}: give {'one number' if function is abs else 'numbers'}")
        parts = _tuple_of([self._number(argument) for argument in node.args])
        return _joined(parts, lambda params: None, lambda values, _: function(*values))

    def _number(self, node: ast.expr) -> Evaluate:
        if "number" not in self._kinds(node):
            raise NotAllowedError(f"{ast.unparse(node)} is not a number")
        evaluate = self._value(node)
        return lambda params: _as_number(evaluate(params))

    def _constant(self, value: object) -> Evaluate:
        if value is not None and not isinstance(value, bool | int | float | str):
            raise NotAllowedError(f"{shown(value)} is not allowed; allowed are {_ALLOWED}")
        return lambda params: value

    def _parameter(self, name: str) -> Evaluate:
        if name not in self._parameters:
            raise NotAllowedError(f"{name!r} is not a parameter of this space.{nearest(name, self._parameters)}")
        self.names[name] = None
        return lambda params: params.get(name, _ABSENT)


def _kind(value: object) -> str:
    return "number" if is_number(value) else "text" if isinstance(value, str) else type(value).__name__


def _as_number(value: object) -> object:
    if value is not _ABSENT and not is_number(value):
        raise TypeError(f"{shown(value)} is not a number")
    return value


def _comparable(first: Any, second: Any) -> tuple[Any, Any]:
    both_text = isinstance(first, str) and isinstance(second, str)
    if not both_text and not (is_number(first) and is_number(second)):
        raise TypeError(f"{shown(first)} and {shown(second)} have no order")
    if any(isinstance(value, float) and math.isnan(value) for value in (first, second)):
        raise ArithmeticError("not a number")
    return first, second


def _joined(first: Evaluate, second: Evaluate, join: Callable[[Any, Any], Any]) -> Evaluate:
    def evaluate(params: Mapping[str, object]) -> Any:
        a, b = first(params), second(params)
        return _ABSENT if a is _ABSENT or b is _ABSENT else join(a, b)

    return evaluate


def _tuple_of(parts: list[Evaluate]) -> Evaluate:
    def evaluate(params: Mapping[str, object]) -> Any:
        values = tuple(part(params) for part in parts)
        return _ABSENT if any(value is _ABSENT for value in values) else values

    return evaluate


def _any_of(parts: list[Evaluate]) -> Evaluate:
    def evaluate(params: Mapping[str, object]) -> Any:
        answer: Any = False
        for part in parts:
            truth = part(params)
            if truth is True:
                return True
            answer = _ABSENT if truth is _ABSENT else answer
        return answer

    return evaluate


def _all_of(parts: list[Evaluate]) -> Evaluate:
    def evaluate(params: Mapping[str, object]) -> Any:
        answer: Any = True
        for part in parts:
            truth = part(params)
            if truth is False:
                return False
            answer = _ABSENT if truth is _ABSENT else answer
        return answer

    return evaluate


def _negated(part: Evaluate) -> Evaluate:
    def evaluate(params: Mapping[str, object]) -> Any:
        truth = part(params)
        return _ABSENT if truth is _ABSENT else not truth

    return evaluate

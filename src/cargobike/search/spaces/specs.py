"""Specifications: what people write to describe a parameter, read into a `Parameter` or into mistakes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from cargobike.core.errors import nearest
from cargobike.search.spaces.parameter import TYPE_NAMES, Condition, Parameter, TypeName
from cargobike.search.spaces.scales import SCALE_NAMES, ScaleName, ceiling_of
from cargobike.search.spaces.values import NotPlainError, Value, identity, is_number, plain, plain_list, shown

Spec: TypeAlias = tuple[Any, ...] | Sequence[Any] | Mapping[str, Any] | Parameter
"""`("DOUBLE", [low, high], "log", {…})`, a list of choices, `{"double": [low, high]}` or a `Parameter`."""

OPTIONS = ("scale", "step", "points", "when")
_SYNONYMS = {
    "FLOAT": "DOUBLE", "REAL": "DOUBLE", "CONTINUOUS": "DOUBLE", "UNIFORM": "DOUBLE", "LOGUNIFORM": "DOUBLE",
    "INT": "INTEGER", "LONG": "INTEGER", "RANDINT": "INTEGER",
    "CHOICE": "CATEGORICAL", "CATEGORY": "CATEGORICAL", "ENUM": "CATEGORICAL", "BOOL": "CATEGORICAL",
    "STRING": "CATEGORICAL", "ORDINAL": "DISCRETE",
}  # fmt: skip
_SCALE_SYNONYMS = {
    "logarithmic": "log",
    "log10": "log",
    "ln": "log",
    "uniform": "linear",
    "loguniform": "log",
}
_HOW = "write ('DOUBLE', [low, high]), ('INTEGER', [low, high]) or a list of choices"


def read_spec(name: str, spec: object, mistakes: list[str]) -> tuple[Parameter | None, Condition]:
    """Read one specification into a parameter, as yet without its condition, and the condition.

    What is wrong is added to `mistakes`, and then there is no parameter; the condition can still be checked.
    """
    found: list[str] = []
    condition = _read_condition(spec, found)
    parameter = _read(name, spec, found)
    mistakes.extend(f"{name}: {mistake}" for mistake in found)
    return None if found else parameter, condition


def _read(name: str, spec: object, mistakes: list[str]) -> Parameter | None:
    if isinstance(spec, Parameter):
        return replace(spec, name=name)
    if isinstance(spec, Mapping):
        return _read_mapping(name, spec, mistakes)
    if isinstance(spec, tuple):
        return _read_tuple(name, spec, mistakes)
    choices = plain_list(spec)
    if choices is not None:
        return _with_choices(name, None, choices, {}, mistakes)
    mistakes.append(f"{shown(spec)} is not a specification; {_HOW}, [{shown(spec)}] for a fixed value")
    return None


def _read_tuple(name: str, spec: tuple[Any, ...], mistakes: list[str]) -> Parameter | None:
    if not spec or not isinstance(spec[0], str) or not 2 <= len(spec) <= 4:
        mistakes.append(f"{shown(spec)} is not a specification; {_HOW}")
        return None
    type_name = _read_type(spec[0], mistakes, hint=f"; for choices write a list: {shown(list(spec))}")
    options: dict[str, Any] = {}
    for extra in spec[2:]:
        if isinstance(extra, str) and "scale" not in options:
            options["scale"] = extra
        elif isinstance(extra, Mapping) and extra is spec[-1]:
            repeated = sorted(set(extra) & set(options))
            if repeated:
                mistakes.append(f"the scale is given twice: {options['scale']!r} and {extra['scale']!r}")
            options |= extra
        else:
            mistakes.append(
                f"{shown(extra)} cannot stand here; after the values come a scale ({_names(SCALE_NAMES)}) "
                f"and a dict of options ({_names(OPTIONS)})"
            )
    return None if type_name is None else _finish(name, type_name, spec[1], options, mistakes)


def _read_mapping(name: str, spec: Mapping[Any, Any], mistakes: list[str]) -> Parameter | None:
    options = dict(spec)
    if "type" in options:
        type_name = _read_type(options.pop("type"), mistakes)
        if "values" in options:
            values = options.pop("values")
        else:
            values = [options.pop(bound, None) for bound in ("low", "high")]
    else:
        typed = [key for key in options if isinstance(key, str) and key.upper() in TYPE_NAMES]
        if len(typed) != 1:
            keys = ", ".join(type_name.lower() for type_name in TYPE_NAMES)
            guess = "".join(_suggestion(key) for key in options if isinstance(key, str) and key not in OPTIONS)
            mistakes.append(f"{shown(dict(spec))} must have exactly one of the keys {keys}.{guess}")
            return None
        type_name = _read_type(typed[0], mistakes)
        values = options.pop(typed[0])
    return None if type_name is None else _finish(name, type_name, values, options, mistakes)


def _finish(
    name: str, type_name: TypeName, values: object, options: dict[str, Any], mistakes: list[str]
) -> Parameter | None:
    for key in options:
        if key not in OPTIONS:
            mistakes.append(f"unknown option {key!r}; known are {_names(OPTIONS)}.{nearest(str(key), OPTIONS)}")
    items = plain_list(values)
    if items is None and isinstance(values, tuple):
        items = list(values)
    if items is None:
        mistakes.append(f"{shown(values)} is not a list; {_HOW}")
        return None
    if type_name in ("DISCRETE", "CATEGORICAL"):
        return _with_choices(name, type_name, items, options, mistakes)
    return _with_range(name, type_name, items, options, mistakes)


def _with_choices(
    name: str, type_name: TypeName | None, items: list[object], options: dict[str, Any], mistakes: list[str]
) -> Parameter | None:
    for key in ("scale", "step", "points"):
        if options.get(key) is not None and options[key] != "linear":
            mistakes.append(f"{key}={shown(options[key])} fits only DOUBLE and INTEGER, not listed values")
    values: list[Value] = []
    for item in items:
        try:
            values.append(plain(item))
        except NotPlainError as error:
            mistakes.append(str(error))
    if len(items) == 2 and isinstance(items[0], str) and items[0].upper() in TYPE_NAMES and type_name is None:
        mistakes.append(f"a list holds choices; write a tuple: {shown(tuple(items))}")
    if not items:
        mistakes.append("there is no value to choose from; list at least one")
    numeric = all(is_number(value) for value in values)
    if type_name == "DISCRETE" and not numeric:
        strange = next(value for value in values if not is_number(value))
        mistakes.append(f"DISCRETE takes numbers, not {shown(strange)}; use CATEGORICAL")
    seen: dict[object, Value] = {}
    for value in values:
        if identity(value) in seen:
            mistakes.append(f"{shown(value)} is listed twice")
        seen[identity(value)] = value
    chosen: TypeName = type_name or ("DISCRETE" if numeric else "CATEGORICAL")
    return Parameter(name, chosen, values=tuple(values))


def _with_range(
    name: str, type_name: TypeName, items: list[object], options: dict[str, Any], mistakes: list[str]
) -> Parameter | None:
    scale = _read_scale(options.get("scale"), mistakes)
    points = options.get("points")
    if points is not None and (not isinstance(points, int) or isinstance(points, bool) or points < 1):
        mistakes.append(f"points={shown(points)} must be a whole number of at least 1")
        points = None
    if len(items) != 2:
        mistakes.append(f"a range has two ends, [low, high], but {shown(items)} has {len(items)}")
        return None
    low, high = (_read_bound(item, type_name, mistakes) for item in items)
    step = None if options.get("step") is None else _read_step(options["step"], type_name, mistakes)
    if low is None or high is None:
        return None
    _check_range(low, high, step, scale, mistakes)
    return Parameter(name, type_name, low, high, scale, step, points=points)


def _check_range(low: float, high: float, step: float | None, scale: ScaleName, mistakes: list[str]) -> None:
    if low > high:
        mistakes.append(f"the range is upside down: low {low!r} is above high {high!r}")
        return
    if low == high:
        mistakes.append(f"the range is empty: low and high are both {low!r}; for a fixed value write [{low!r}]")
        return
    if not math.isfinite(high - low):
        mistakes.append(f"the range [{low!r}, {high!r}] is wider than a float can tell")
    if step is not None and step > high - low:
        mistakes.append(f"step {step!r} is larger than the range [{low!r}, {high!r}]")
    if scale == "log" and low <= 0:
        mistakes.append(f"a log scale needs low above 0, not {low!r}")
    if scale == "reverse-log" and not (ceiling_of(low, high) == 1.0 or low > 0):
        mistakes.append(f"a reverse-log scale needs a range above 0 or within [0, 1), not [{low!r}, {high!r}]")


def _read_bound(item: object, type_name: TypeName, mistakes: list[str]) -> float | None:
    try:
        value = plain(item)
    except NotPlainError as error:
        mistakes.append(f"a bound must be a finite number: {error}")
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        mistakes.append(f"a bound must be a number, not {shown(value)}")
        return None
    if type_name == "DOUBLE":
        return float(value)
    if value != int(value):
        mistakes.append(f"a bound of INTEGER must be a whole number, not {shown(value)}")
        return None
    return int(value)


def _read_step(item: object, type_name: TypeName, mistakes: list[str]) -> float | None:
    try:
        value = plain(item)
    except NotPlainError:
        value = None
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        mistakes.append(f"step must be a number above 0, not {shown(item)}")
        return None
    if type_name == "DOUBLE":
        return float(value)
    if value != int(value):
        mistakes.append(f"the step of INTEGER must be a whole number, not {shown(value)}")
        return None
    return int(value)


def _read_condition(spec: object, mistakes: list[str]) -> Condition:
    if isinstance(spec, Parameter):
        return spec.condition
    options = spec[-1] if isinstance(spec, tuple) and spec else spec
    when = options.get("when") if isinstance(options, Mapping) else None
    if when is None:
        return ()
    if not isinstance(when, Mapping) or not all(isinstance(name, str) for name in when):
        mistakes.append(f"when={shown(when)} must be a dict such as {{'optimizer': 'sgd'}} or {{'layers': [2, 3]}}")
        return ()
    pairs = []
    for name, wanted in when.items():
        allowed = plain_list(wanted)
        if allowed == []:
            mistakes.append(f"when={{{name!r}: []}} can never hold; list at least one value")
        pairs.append((name, tuple([wanted] if allowed is None else allowed)))
    return tuple(pairs)


def _read_type(given: object, mistakes: list[str], hint: str = "") -> TypeName | None:
    for type_name in TYPE_NAMES:
        if isinstance(given, str) and given.upper() == type_name:
            return type_name
    guess = _suggestion(str(given))
    mistakes.append(f"unknown type {shown(given)}; known are {_names(TYPE_NAMES)}{'' if guess else hint}.{guess}")
    return None


def _suggestion(word: str) -> str:
    synonym = _SYNONYMS.get(word.upper().replace("_", "").replace("-", ""))
    return f" Did you mean {synonym!r}?" if synonym else nearest(word.upper(), TYPE_NAMES)


def _read_scale(given: object, mistakes: list[str]) -> ScaleName:
    if given is None:
        return "linear"
    word = str(given).lower().replace("_", "-").replace(" ", "-")
    word = "reverse-log" if word == "reverselog" else word
    for scale in SCALE_NAMES:
        if isinstance(given, str) and word == scale:
            return scale
    synonym = _SCALE_SYNONYMS.get(word.replace("-", ""))
    guess = f" Did you mean {synonym!r}?" if synonym else nearest(word, SCALE_NAMES)
    mistakes.append(f"unknown scale {shown(given)}; known are {_names(SCALE_NAMES)}.{guess}")
    return "linear"


def _names(words: Sequence[str]) -> str:
    return ", ".join(words)

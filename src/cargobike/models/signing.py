"""Signatures of models: learned from an example, and rows checked against them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from cargobike.core.errors import InvalidInputError, PredictionError
from cargobike.core.registering.modelling import Predictor
from cargobike.core.signatures import NUMPY_NAMES, Datatype, Field, Signature
from cargobike.core.values.words import count
from cargobike.models.flavours.rows import rows_of

INPUT: Final = "input"
"""What the only field of a row is called, unless the example names it."""
OUTPUT: Final = "output"
_MISTAKES_SHOWN: Final = 10
_OF_NUMPY: Final[dict[str, Datatype]] = {name: datatype for datatype, name in NUMPY_NAMES.items()}
_WORDS: Final = {"B": "true or false", "I": "a whole number", "U": "a whole number", "F": "a number"}


def infer_signature(predictor: Predictor, example: Any) -> Signature:
    """Return what a model takes and returns, as an example shows it.

    Args:
        predictor: The model, which is called with the example once, and with its first row alone.
        example: A few rows: a list, an array whose first axis is the rows, a DataFrame, or a dict of columns. Arrays
            say which numbers are meant (`float32`); of lists all numbers with a point are what the model computes in.

    Raises:
        InvalidInputError: If rows of the example differ in kind.
        PredictionError: If the model fails on them.
    """
    rows = rows_of(example)
    floats: Datatype = getattr(predictor, "floats", "FP64")
    inputs = _fields(rows, _only_name(example), _declared(example), floats)
    try:
        answers = list(predictor(rows))
    except PredictionError:
        raise
    except Exception as error:
        raise PredictionError(
            f"The model failed on the example of {count(len(rows), 'row')}: {type(error).__name__}: {error}"
        ) from error
    if len(answers) != len(rows):
        raise PredictionError(f"The model was given {count(len(rows), 'row')} and returned {len(answers)} answers.")
    try:
        outputs = _fields(answers, OUTPUT, {}, floats)
    except InvalidInputError:
        outputs = ()  # answers of different kinds, which are not checked
    return Signature(inputs, outputs)


def check_rows(signature: Signature, rows: Sequence[Any]) -> None:
    """Check rows against what a model takes.

    Raises:
        InvalidInputError: Naming row and field of each mistake, as far as they can be listed.
    """
    fields = signature.inputs
    if len(fields) == 1 and _fits_at_once(fields[0], rows):
        return
    mistakes: list[str] = []
    for number, row in enumerate(rows):
        mistakes.extend(f"row {number}{mistake}" for mistake in _row_mistakes(fields, row))
        if len(mistakes) > _MISTAKES_SHOWN:
            mistakes[_MISTAKES_SHOWN:] = ["and more"]
            break
    if mistakes:
        raise InvalidInputError("These rows do not fit what the model takes.", mistakes)


def describe(field: Field) -> str:
    """Say what a field takes, for people."""
    shape = f"[{', '.join('any' if size < 0 else str(size) for size in field.shape)}]" if field.shape else ""
    return f"{field.name}: {field.datatype}{shape}{' or nothing' if field.nullable else ''}"


def _fields(rows: Sequence[Any], only: str, declared: Mapping[str, Datatype], floats: Datatype) -> tuple[Field, ...]:
    if not isinstance(rows[0], Mapping):
        return (_field(only, rows, next(iter(declared.values()), None), floats),)
    names = [str(name) for name in rows[0]]
    if len(names) == 1:
        raise InvalidInputError(
            f"Rows with the single field {names[0]!r} were given; a row of one field is the bare value of that field: "
            f"give {_short(rows[0][names[0]])} instead of {_short(dict(rows[0]))}."
        )
    mistakes = [
        f"row {number} is {_short(row)}, and not a dict with {', '.join(names)}"
        for number, row in enumerate(rows)
        if not isinstance(row, Mapping) or [str(name) for name in row] != names
    ]
    if mistakes:
        raise InvalidInputError("Rows of an example must have the same fields, in the same order.", mistakes[:5])
    return tuple(_field(name, [row[name] for row in rows], declared.get(name), floats) for name in names)


def _field(name: str, values: Sequence[Any], declared: Datatype | None, floats: Datatype) -> Field:
    present = [value for value in values if value is not None]
    if not present:
        raise InvalidInputError(f"All values of {name!r} are missing, which does not tell what they are.")
    shapes, datatypes, has_missing = [], set(), len(present) < len(values)
    for number, value in enumerate(present):
        shape, kinds, missing = _look(value)
        if shape is None:
            raise InvalidInputError(f"row {number}, field {name!r}: lists in it differ in length: {_short(value)}.")
        shapes.append(shape)
        datatypes |= kinds
        has_missing = has_missing or missing
    if len({len(shape) for shape in shapes}) != 1:
        raise InvalidInputError(f"Values of {name!r} are nested differently deep in different rows of the example.")
    shape = tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))
    return Field(name, declared or _datatype(name, datatypes, floats), shape, has_missing)


def _look(value: Any) -> tuple[tuple[int, ...] | None, set[type], bool]:
    """Return the shape of a value, the types in it, and whether some are missing; no shape if it is ragged."""
    if value is None:
        return (), set(), True
    if isinstance(value, float):
        return (), {float}, math.isnan(value)
    if not isinstance(value, list | tuple):
        return (), {type(value)}, False
    parts = [_look(part) for part in value]
    shapes = {shape for shape, _, _ in parts}
    kinds = {kind for _, several, _ in parts for kind in several}
    missing = any(lacks for _, _, lacks in parts)
    if len(shapes) > 1 or None in shapes:
        return None, kinds, missing
    inner = next(iter(shapes)) if shapes else ()
    return (len(value), *(inner or ())), kinds, missing


def _datatype(name: str, kinds: set[type], floats: Datatype) -> Datatype:
    if not kinds:
        return floats
    if kinds <= {bool}:
        return "BOOL"
    if kinds <= {int, bool}:
        return "INT64"
    if kinds <= {int, float, bool}:
        return floats
    if kinds <= {str}:
        return "BYTES"
    words = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InvalidInputError(
        f"Values of {name!r} are of the types {words}; a field holds numbers, or texts, or booleans."
    )


def _declared(example: Any) -> dict[str, Datatype]:
    """Return the types that arrays, tensors and columns of the example have of their own."""
    if hasattr(example, "columns") and hasattr(example, "dtypes"):
        return _known({str(name): example[name].dtype for name in example.columns})
    if isinstance(example, Mapping):
        return _known({str(name): getattr(column, "dtype", None) for name, column in example.items()})
    if isinstance(example, Sequence) and len(example) and isinstance(example[0], np.ndarray):
        example = example[0]
    return _known({INPUT: getattr(example, "dtype", None)})


def _only_name(example: Any) -> str:
    """Return what the only field of a row is called, if the example says that."""
    names = list(example.columns if hasattr(example, "columns") else example if isinstance(example, Mapping) else ())
    return str(names[0]) if len(names) == 1 else INPUT


def _known(types: Mapping[str, Any]) -> dict[str, Datatype]:
    words = {name: str(kind).removeprefix("torch.").lower() for name, kind in types.items() if kind is not None}
    return {name: _OF_NUMPY[word] for name, word in words.items() if word in _OF_NUMPY and word != "object"}


def _fits_at_once(field: Field, rows: Sequence[Any]) -> bool:
    """Tell whether all rows of a numeric field fit, by one look at them as an array; false also means "look closer"."""
    if field.datatype in ("BYTES", "BOOL") or not rows:
        return not rows
    try:
        array = np.asarray(rows)
    except ValueError:
        return False
    kinds = "iuf" if field.datatype.startswith("F") else "iu"
    if array.dtype.kind not in kinds or array.ndim != 1 + len(field.shape):
        return False
    if any(wanted not in (size, -1) for wanted, size in zip(field.shape, array.shape[1:], strict=True)):
        return False
    if array.dtype.kind == "f":
        return bool(np.isfinite(array).all())
    return _in_range(field.datatype, int(array.min(initial=0)), int(array.max(initial=0)))


def _in_range(datatype: Datatype, least: int, most: int) -> bool:
    if datatype.startswith("F"):
        return True
    limits = np.iinfo(NUMPY_NAMES[datatype])
    return int(limits.min) <= least and most <= int(limits.max)


def _row_mistakes(fields: tuple[Field, ...], row: Any) -> list[str]:
    if len(fields) == 1:
        return [f", field {fields[0].name!r}: {mistake}" for mistake in _mistakes(fields[0], row, fields[0].shape)]
    names = [field.name for field in fields]
    if not isinstance(row, Mapping):
        return [f" is {_short(row)}; give a dict with the fields {', '.join(names)}"]
    mistakes = [f" has the unknown field {name!r}; known are {', '.join(names)}" for name in row if name not in names]
    for field in fields:
        if field.name in row:
            found = _mistakes(field, row[field.name], field.shape)
            mistakes.extend(f", field {field.name!r}: {mistake}" for mistake in found)
        elif not field.nullable:
            mistakes.append(f" lacks the field {field.name!r}")
    return mistakes


def _mistakes(field: Field, value: Any, shape: tuple[int, ...], where: str = "") -> list[str]:
    if value is None:
        return [] if field.nullable else [f"{where}it is missing (null)"]
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not shape:
        mistake = _value_mistake(field, value)
        return [where + mistake] if mistake else []
    if not isinstance(value, list | tuple):
        return [f"{where}it is {_short(value)}, not a list of {'any number of' if shape[0] < 0 else shape[0]} values"]
    if shape[0] not in (-1, len(value)):
        return [f"{where}it has {count(len(value), 'value')}, and the model takes {shape[0]}"]
    for number, part in enumerate(value):
        if mistakes := _mistakes(field, part, shape[1:], f"{where}value {number}: "):
            return mistakes  # the first of a vector says enough
    return []


def _value_mistake(field: Field, value: Any) -> str:
    kind = field.datatype[0] if field.datatype != "BYTES" else "T"
    if isinstance(value, list | tuple | Mapping):
        return f"it is {_short(value)}, not a single value"
    if kind == "T":
        return "" if isinstance(value, str | bytes) else f"it is {_short(value)}, not a text"
    if kind == "B":
        return "" if isinstance(value, bool) else f"it is {_short(value)}, not {_WORDS[kind]}"
    if not isinstance(value, int | float):
        return f"it is {_short(value)}, not {_WORDS[kind]}"
    if isinstance(value, float) and not math.isfinite(value):
        return "" if field.nullable and math.isnan(value) and kind == "F" else f"it is {value}, not a finite number"
    if kind == "F":
        return ""
    if isinstance(value, float) and not value.is_integer():
        return f"it is {value}, not {_WORDS[kind]}"
    return (
        ""
        if _in_range(field.datatype, int(value), int(value))
        else f"it is {value}, which {field.datatype} cannot hold"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"

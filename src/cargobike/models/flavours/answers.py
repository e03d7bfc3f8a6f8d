"""What models return, as plain answers: one for each row, of values that JSON can hold."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from cargobike.core.errors import PredictionError
from cargobike.core.values.words import count

_PLAIN: Final = frozenset({float, int, str, bool, type(None)})
_READ: Final[dict[type, Callable[[Any], Any]]] = {int: int.__int__, float: float.__float__, str: str.__str__}


def answers_of(result: Any, rows: int) -> list[Any]:
    """Return one plain answer for each row.

    Args:
        result: What a model returned: an array whose first axis is the rows; a list; a table; several of them by
            name, or one behind the other, which become dicts by name.
        rows: How many rows it was given.

    Raises:
        PredictionError: If it is not one answer for each, naming both numbers; or not plain data, naming the row.
    """
    if isinstance(result, Mapping):
        return _joined({str(name): answers_of(column, rows) for name, column in result.items()}, rows)
    answers = _listed(result)
    if len(answers) != rows:
        raise PredictionError(
            f"The model was given {count(rows, 'row')} and returned {count(len(answers), 'answer')}; it must return "
            "one for each row, in their order."
        )
    if _PLAIN.issuperset(map(type, answers)):
        return answers
    return [_plain(answer, number) for number, answer in enumerate(answers)]


def named(result: Any) -> Any:
    """Give names to several results that come as a tuple: `output_0`, `output_1` and so on."""
    if isinstance(result, tuple | list) and len(result) == 1:
        return result[0]
    if isinstance(result, tuple | list):
        return {f"output_{number}": part for number, part in enumerate(result)}
    return result


def _joined(columns: Mapping[str, list[Any]], rows: int) -> list[Any]:
    if not columns:
        raise PredictionError(f"The model was given {count(rows, 'row')} and returned an empty dict.")
    if len(columns) == 1:
        return next(iter(columns.values()))
    names = tuple(columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _listed(result: Any) -> list[Any]:
    if type(result) is list:
        return result
    if hasattr(result, "to_dict") and hasattr(result, "columns"):  # a DataFrame of pandas
        records: list[Any] = result.to_dict(orient="records")
        return records
    if (convert := _converter(result)) is not None:
        converted = convert()
        if not isinstance(converted, list):
            raise PredictionError(
                f"The model returned the single value {converted!r}; return a list, one for each row."
            )
        return converted
    if isinstance(result, str | bytes) or not isinstance(result, Iterable):
        raise PredictionError(
            f"The model returned {_kind(result)}; it must return a list with one answer for each row, or an array."
        )
    return list(result)


def _converter(value: Any) -> Callable[[], Any] | None:
    """Return what makes plain values of an array, tensor, column or number of a library; `None` if it is none."""
    if hasattr(value, "detach"):  # a tensor that may be on another device, or be part of a graph
        return value.detach().cpu().tolist  # type: ignore[no-any-return]
    for name in ("tolist", "to_list"):
        if callable(convert := getattr(value, name, None)):
            return convert  # type: ignore[no-any-return]
    if hasattr(value, "numpy") and callable(value.numpy):  # TensorFlow
        return value.numpy().tolist  # type: ignore[no-any-return]
    return None


def _plain(value: Any, row: int) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(part, row) for name, part in value.items()}
    if isinstance(value, list | tuple):
        if _PLAIN.issuperset(map(type, value)):
            return list(value)
        return [_plain(part, row) for part in value]
    if (convert := _converter(value)) is not None:
        converted = convert()
        if type(converted) is not type(value):
            return _plain(converted, row)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    for kind, read in _READ.items():  # a class of its own, such as an enumeration
        if isinstance(value, kind):
            return read(value)
    raise PredictionError(
        f"row {row}: the answer holds {_kind(value)}; answers are numbers, texts, lists and dicts of them."
    )


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"

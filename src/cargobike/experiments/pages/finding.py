"""Which trials fit a filter such as `act=relu|gelu lr<0.01 value>=0.9`, and in which order they are listed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cargobike.analysis.axes import text_of
from cargobike.analysis.scores import latest_of, objective_name
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial

PLAIN_COLUMNS = (
    "trial",
    "state",
    "value",
    "duration",
    "attempts",
    "last_value",
    "last_step",
    "worker",
    "started",
    "mark",
)
_MOST_NAMED = 30
_NO_MARKS: Mapping[int, str] = {}
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_VALUE = r'((?:"(?:[^"\\]|\\.)*"|[^\s"])*)'
_TERM = re.compile(rf'(?:{_QUOTED}|([^\s"<>=!|]+))\s*(<=|>=|!=|<|>|=)\s*{_VALUE}|{_QUOTED}|(\S+)')
_SIGNS = re.compile(r'["<>=]')
_HOW = "Write conditions such as lr<0.01 or act=relu|gelu, values with blanks or signs in quotes, or plain words."
_BETWEEN_QUOTES = re.compile(_QUOTED)
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"|([^|"]+)')


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: a column, how it is compared, and with what; without a column all its texts are searched."""

    column: str
    operator: str
    wanted: tuple[str, ...]


def read_filter(text: str) -> list[Condition]:
    """Read conditions, all of which must hold; values with blanks are in quotes, several are separated by `|`.

    Raises:
        InvalidInputError: If a part of it is neither a condition nor a word.
    """
    conditions = []
    for match in _TERM.finditer(text):
        quoted_column, column, operator, value, quoted, word = match.groups()
        if operator:
            wanted = tuple(_pieces(value))
            name = _unquoted(quoted_column) if quoted_column else column
            _check(match[0], operator, wanted, bare=_BETWEEN_QUOTES.sub("", value))
            conditions.append(Condition(name, operator, wanted))
        elif quoted is None and _SIGNS.search(word):
            raise InvalidInputError(f"{word!r} in the filter cannot be read. {_HOW}")
        else:
            conditions.append(Condition("", "~", (_unquoted(quoted) if quoted is not None else word,)))
    return conditions


def _check(term: str, operator: str, wanted: tuple[str, ...], *, bare: str) -> None:
    if _SIGNS.search(bare):
        raise InvalidInputError(f"{term!r} in the filter cannot be read. {_HOW}")
    if operator not in ("=", "!=") and (len(wanted) > 1 or _number(wanted[0]) is None):
        raise InvalidInputError(f"{term!r} in the filter compares with no number; write it as lr{operator}0.01.")


def _pieces(text: str) -> list[str]:
    return [_unquoted(quoted) if quoted else plain for quoted, plain in _PIECE.findall(text)] or [""]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def trial_in(record: ExperimentRecord, number: int) -> Trial:
    """Return a trial.

    Raises:
        NotFoundError: If there is no such trial; says which there are.
    """
    try:
        return record.trials[number] if number in record.trials else record.runs[number]
    except KeyError:
        trials = f"trials 0 to {len(record.runs) - 1}" if record.runs else "no trials yet"
        raise NotFoundError(f"There is no trial {number} in {record.id}; it has {trials}.") from None


def found_trials(
    record: ExperimentRecord,
    *,
    states: Sequence[str] = (),
    text: str = "",
    sort: str = "trial",
    descending: bool = False,
    marks: Mapping[int, str] = _NO_MARKS,
) -> list[Trial]:
    """Return the trials that fit, sorted; those without the key come last, equal ones by number.

    Trials that are marked as hidden are left out, unless the filter asks for marks.

    Raises:
        InvalidInputError: If there is no such column to sort by, or the filter cannot be read or names nothing here.
    """
    conditions = read_filter(text)
    column = column_of(record, sort, marks)
    trials: Iterable[Trial] = record.trials.values()
    if all(each.column != "mark" for each in conditions):
        trials = [trial for trial in trials if marks.get(trial.number) != "hidden"]
    if states:
        trials = [trial for trial in trials if trial.state.value in states]
    if conditions:
        tests = [(_filtered_column(record, each, marks), each) for each in conditions]
        trials = [trial for trial in trials if all(_holds(record, trial, get, each) for get, each in tests)]
    with_key: list[tuple[Any, Trial]] = []
    without: list[Trial] = []
    for trial in trials:
        key = column(trial)
        if key is None or (isinstance(key, float) and math.isnan(key)):
            without.append(trial)
        else:
            with_key.append((_order(key), trial))
    with_key.sort(key=lambda pair: pair[1].number)
    with_key.sort(key=lambda pair: pair[0], reverse=descending)
    return [trial for _, trial in with_key] + sorted(without, key=lambda trial: trial.number)


def column_of(record: ExperimentRecord, name: str, marks: Mapping[int, str] = _NO_MARKS) -> Callable[[Trial], Any]:
    """Return how to read a column of the table: a plain one, `params.NAME` or `metrics.NAME`.

    Raises:
        InvalidInputError: If there is no such column.
    """
    read = _column_or_none(record, name, marks)
    if read is None:
        raise InvalidInputError(
            f"There is no column {name!r}; there are {', '.join(PLAIN_COLUMNS)}, params.NAME and metrics.NAME."
        )
    return read


def _filtered_column(
    record: ExperimentRecord, condition: Condition, marks: Mapping[int, str]
) -> Callable[[Trial], Any] | None:
    """Return how to read the column that a condition is about, `None` if it is about all texts."""
    name = condition.column
    if condition.operator == "~":
        return None
    names = _names(record)
    read = _column_or_none(record, name, marks)
    if not record.trials or (read is not None and name.partition(".")[2] in ("", *names)):
        return read or (lambda _: None)
    known = list(dict.fromkeys([*names, *PLAIN_COLUMNS]))
    raise InvalidInputError(
        f"The filter names {name!r}, which no trial here has.{nearest(name.rpartition('.')[2], known)} "
        f"There are {', '.join(known[:_MOST_NAMED])}{' …' if len(known) > _MOST_NAMED else ''}."
    )


def _names(record: ExperimentRecord) -> list[str]:
    """Return the names of all parameters and metrics, those of trials to come included."""
    of_space = [str(each["name"]) for each in record.header.space or () if "name" in each]
    of_trials = [name for trial in record.trials.values() for name in (*trial.params, *trial.metrics)]
    return list(dict.fromkeys([*of_space, *of_trials]))


def _column_or_none(record: ExperimentRecord, name: str, marks: Mapping[int, str]) -> Callable[[Trial], Any] | None:
    kind, _, inner = name.partition(".")
    if kind == "params" and inner:
        return lambda trial: trial.params.get(inner)
    if kind == "metrics" and inner:
        return lambda trial: trial.metrics.get(inner)
    plain: dict[str, Callable[[Trial], Any]] = {
        "trial": lambda trial: trial.number,
        "state": lambda trial: trial.state.value,
        "value": lambda trial: trial.value,
        "duration": lambda trial: trial.duration_s,
        "attempts": lambda trial: trial.attempts,
        "last_value": latest_of,
        "last_step": lambda trial: trial.curve.steps[-1] if len(trial.curve) else None,
        "worker": lambda trial: trial.worker,
        "started": lambda trial: trial.started_at,
        "mark": lambda trial: marks.get(trial.number),
    }
    if name in plain:
        return plain[name]
    if any(name in trial.params for trial in record.trials.values()):
        return lambda trial: trial.params.get(name)
    if any(name in trial.metrics for trial in record.trials.values()):
        return lambda trial: trial.metrics.get(name)
    return plain["value"] if name == objective_name(record) else None


def _holds(record: ExperimentRecord, trial: Trial, get: Callable[[Trial], Any] | None, condition: Condition) -> bool:
    if condition.operator == "~":
        return condition.wanted[0].lower() in _whole_text(record, trial)
    if get is None:
        return False
    value = get(trial)
    if condition.operator in ("=", "!="):
        is_one = any(_equals(value, wanted) for wanted in condition.wanted)
        return is_one if condition.operator == "=" else not is_one
    number, bound = _number(value), _number(condition.wanted[0])
    if number is None or bound is None:
        return False
    return {
        "<": number < bound,
        "<=": number <= bound,
        ">": number > bound,
        ">=": number >= bound,
    }[condition.operator]


def _equals(value: object, wanted: str) -> bool:
    if value is None:
        return wanted.lower() in ("", "none", "absent")
    if not isinstance(value, bool) and isinstance(value, int | float):
        number = _number(wanted)
        return number is not None and (value == number or f"{value:.6g}" == f"{number:.6g}")
    return text_of(value, 10_000).lower() == wanted.lower()


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _whole_text(record: ExperimentRecord, trial: Trial) -> str:
    words = [str(trial.number), trial.state.value, trial.worker or ""]
    words += [f"{name}={text_of(value, 200)}" for name, value in trial.params.items()]
    words += [trial.error.strip().rpartition("\n")[2]] if trial.error else []
    return " ".join(words).lower()


def _order(key: Any) -> tuple[int, Any]:
    """Return a key by which numbers come before texts, in any column."""
    if isinstance(key, bool) or not isinstance(key, int | float):
        return 1, text_of(key, 200)
    return 0, key

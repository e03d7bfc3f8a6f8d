"""What the tasks of another orchestrator are: the steps of a run, each with its function and its inputs.

A step can stand alone if its function is at the top of a file, and what it was given and what it hands on is plain data
or a thing of the project. If that is not so for all steps, the run is one task: the whole pipeline.
"""

from __future__ import annotations

import keyword
import math
import re
from typing import Any, NamedTuple

from cargobike.core.values.exact import unpack_exactly
from cargobike.pipelines.facts import StepKind
from cargobike.pipelines.record import RunRecord, StepRecord
from cargobike.pipelines.values.value import Value


class Given(NamedTuple):
    """An input of a task: plain data, or what other tasks returned.

    Attributes:
        data: The data.
        tasks: The name of the task whose result it is, or those of several, whose results are a list.
    """

    data: Any = None
    tasks: str | list[str] | None = None


class ExportedTask(NamedTuple):
    """A step that stands alone.

    Attributes:
        name: What it is called there: a word of its own for each.
        function: `file.py:name`.
        inputs: What it is called with, by name.
        opens_things: Whether things of the project are among its inputs.
    """

    name: str
    function: str
    inputs: dict[str, Given]
    opens_things: bool


def tasks_of(record: RunRecord) -> tuple[list[ExportedTask], list[str]]:
    """Return the steps of a run as tasks; or none, and why they cannot stand alone."""
    steps = [record.steps[number] for number in sorted(record.steps)]
    names = _names(steps)
    reasons = [reason for step in steps for reason in _reasons(step, record)]
    if not steps:
        reasons.append("it has no steps")
    if reasons:
        return [], reasons
    return [_task(step, names, record) for step in steps], []


def word_for(text: str) -> str:
    """Return a text as a word that can be a name in Python and the id of a task."""
    word = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower() or "step"
    return f"step_{word}" if word[0].isdecimal() or keyword.iskeyword(word) or word == "dag" else word


def _names(steps: list[StepRecord]) -> dict[int, str]:
    """Return a name for each step: its own, with its number where several are called the same."""
    words = {step.number: word_for(step.name) for step in steps}
    counts: dict[str, int] = {}
    for word in words.values():
        counts[word] = counts.get(word, 0) + 1
    return {number: word if counts[word] == 1 else f"{word}__{number}" for number, word in words.items()}


def _reasons(step: StepRecord, record: RunRecord) -> list[str]:
    """Return what keeps a step from standing alone."""
    title = f"step {step.number} ({step.name})"
    if step.kind is not StepKind.FUNCTION:
        return [f"{title} is a call of Cargobike itself, made by the pipeline"]
    reasons = []
    if not step.function:
        reasons.append(f"{title} is made of a function that is not at the top of a file")
    for name, value in step.inputs.items():
        if not name.isidentifier():
            reasons.append(f"{title} is given {name}, which has no name to give it by")
        elif not (value.form in {"step", "kept"} or _is_json(value)):
            reasons.append(f"{title} is given {name}, {value}, which is not plain data")
    needed = {number for other in record.steps.values() for number in other.after}
    if step.number in needed and step.result is not None and not (step.result.form == "kept" or _is_json(step.result)):
        reasons.append(f"{title} hands on {step.result}, which is not plain data")
    return reasons


def _task(step: StepRecord, names: dict[int, str], record: RunRecord) -> ExportedTask:
    inputs = {name: _given(value, names) for name, value in step.inputs.items()}
    handed = [record.steps[number].result for number in step.after]
    opens = any(value is not None and value.form == "kept" for value in [*step.inputs.values(), *handed])
    return ExportedTask(names[step.number], step.function, inputs, opens)


def _given(value: Value, names: dict[int, str]) -> Given:
    if value.form == "step":
        several = isinstance(value.data, list)
        return Given(tasks=[names[number] for number in value.data] if several else names[value.data])
    if value.thing is not None:
        return Given({"kind": value.thing[0], "id": value.thing[1]})
    return Given(unpack_exactly(value.data))


def _is_json(value: Value) -> bool:
    """Tell whether a value is in the journal, and stays what it is on its way through JSON."""
    return value.form == "plain" and _stays(unpack_exactly(value.data))


def _stays(data: Any) -> bool:
    if type(data) is float:
        return math.isfinite(data)
    if type(data) is list:
        return all(map(_stays, data))
    if type(data) is dict:
        return all(type(key) is str and _stays(item) for key, item in data.items())
    return data is None or type(data) in {bool, int, str}

"""Reads numbers out of what a program prints or writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import FunctionError, ProgramError
from cargobike.core.values.kinds import read_text

STEP: Final = "step"
"""The group of a pattern for reports that is the step, not a metric."""

_LARGEST_FILE = 1024 * 1024


def read_pattern(text: str, what: str) -> re.Pattern[str]:
    """Compile a regular expression that finds numbers: in named groups, or in one group without a name.

    Raises:
        FunctionError: If it is none, or has no such group.
    """
    try:
        pattern = re.compile(read_text(what, text))
    except re.error as error:
        raise FunctionError(f"{what}={text!r} is no regular expression: {error}.") from None
    named = [name for name in pattern.groupindex if name != STEP]
    if not named and pattern.groups - len(pattern.groupindex) != 1:
        raise FunctionError(
            f"{what}={text!r} must have a group around each number, such as (?P<loss>\\S+), or one without a name."
        )
    return pattern


def find_numbers(pattern: re.Pattern[str], line: str, metric: str) -> dict[str, float] | None:
    """Return the numbers that a pattern finds in a line, `None` if it does not match or finds something else.

    Args:
        pattern: What to look for.
        line: Where.
        metric: The name of a number whose group has none.

    Example:
        >>> find_numbers(re.compile("epoch (?P<step>.+): loss (?P<loss>.+)"), "epoch 3: loss 0.5", "value")
        {'step': 3.0, 'loss': 0.5}
    """
    match = pattern.search(line)
    if match is None:
        return None
    named = match.groupdict()
    if not any(name != STEP for name in named):
        taken = set(pattern.groupindex.values())
        free = next(number for number in range(1, pattern.groups + 1) if number not in taken)
        named = {**named, metric: match[free]}
    try:
        return {name: float(text) for name, text in named.items() if text is not None}
    except ValueError:
        return None


def read_score(text: str, metric: str) -> dict[str, Any] | None:
    """Read a number, or a JSON object that holds numbers; `None` if it is neither.

    Example:
        >>> read_score("0.93", "accuracy"), read_score('{"loss": 0.5}', "value"), read_score("done", "value")
        ({'accuracy': 0.93}, {'loss': 0.5}, None)
    """
    try:
        return {metric: float(text)}
    except ValueError:
        pass
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, Mapping) and content else None  # type: ignore[return-value]


def read_file(path: Path, metric: str) -> dict[str, Any]:
    """Read a score from a file that a program has written.

    Raises:
        ProgramError: If there is none.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ProgramError(f"The program has not written its score to {path}: {error.strerror}.") from None
    if len(content) > _LARGEST_FILE:
        raise ProgramError(f"{path} is larger than {_LARGEST_FILE // 1024} KiB, which is no score.")
    score = read_score(content.decode("utf-8", "replace").strip(), metric)
    if score is None:
        raise ProgramError(f"{path} holds neither a number nor a JSON object of numbers.")
    return score

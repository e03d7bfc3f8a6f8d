"""Listed trials: exactly the given sets of parameters, in the given order."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from cargobike.core.errors import SpaceError
from cargobike.core.records import Params, Trial
from cargobike.core.values.numbers import describe
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.values import NotPlainError, plain, shown


class Listed(AbstractOptimizer):
    """Tries exactly these sets of parameters; a set that is listed twice is tried twice.

    Args:
        params: The sets. They need not have the same names, and values may be anything that JSON can hold.

    Raises:
        SpaceError: If one of them is not a dict, or holds something that JSON cannot; lists all mistakes.
    """

    name: ClassVar[str] = "listed"
    learns: ClassVar[bool] = False
    handles_objectives: ClassVar[bool] = True

    def __init__(self, params: Iterable[Mapping[str, Any]]) -> None:
        self.params = read_sets(params)

    def initialize(self) -> None:
        """Go back to the first set."""
        self._next = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return the next set, or `None` after the last."""
        limit = len(self.params) if self.num_trials is None else min(self.num_trials, len(self.params))
        if self._next >= limit:
            return None
        self._next += 1
        return copy.deepcopy(self.params[self._next - 1])


def read_sets(params: object) -> list[Params]:
    """Return sets of parameters as plain data.

    Raises:
        SpaceError: If there are none, or some cannot be used; lists all mistakes.
    """
    if not isinstance(params, Iterable) or isinstance(params, str | bytes | Mapping):
        example = "[{'lr': 0.1}]"
        raise SpaceError(f"sets of parameters are a list of dicts, such as {example}; {describe(params)} was given")
    mistakes: list[str] = []
    sets: list[Params] = []
    for number, given in enumerate(params):
        if not isinstance(given, Mapping):
            mistakes.append(f"number {number}: must be a dict of parameters, not {shown(given)}")
            continue
        clean: Params = {}
        for name, value in given.items():
            if not isinstance(name, str) or not name:
                mistakes.append(f"number {number}: a parameter's name must be a string, not {shown(name)}")
                continue
            try:
                clean[name] = _plain_deep(value)
            except (NotPlainError, RecursionError) as error:
                mistakes.append(f"number {number}: {name}: {error}")
        sets.append(clean)
    if not sets and not mistakes:
        mistakes.append("the list is empty; give at least one dict of parameters")
    if mistakes:
        raise SpaceError("this list of parameters cannot be used:", mistakes)
    return sets


def _plain_deep(value: object) -> object:
    """As `plain`, but lists and dicts are fine too: nothing is compared, so nothing need be hashable."""
    if isinstance(value, list):
        return [_plain_deep(item) for item in value]
    if isinstance(value, Mapping):
        strange = next((key for key in value if not isinstance(key, str)), None)
        if strange is not None:
            raise NotPlainError(f"JSON has only strings as keys, not {strange!r}")
        return {key: _plain_deep(item) for key, item in value.items()}
    return plain(value)

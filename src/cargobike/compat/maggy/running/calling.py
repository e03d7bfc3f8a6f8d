"""Calls a train function in the way in which its Maggy called it; the names of its parameters decide."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from cargobike import trial
from cargobike.compat.maggy.core.reporter import Reporter
from cargobike.compat.maggy.trial import Trial
from cargobike.core.values.numbers import NotANumberError, to_float

REPORTER: Final = "reporter"
HPARAMS: Final = "hparams"
BUDGET: Final = "budget"
OBJECTS: Final = ("model", "module", "dataset", "train_set", "test_set", HPARAMS)
"""What train functions of 1.x receive besides a reporter."""
USUAL_KEYS: Final = ("metric", "Metric")
"""What the number to optimize is called unless a script says so."""


class Called:
    """A train function of Maggy's, as a train function of ours.

    It receives parameters by name. A function that has none of the parameters of 1.x gets them as they are; one that
    has gets what the configuration holds, and all parameters as `hparams`.

    Args:
        function: The user's function.
        key: What the number to optimize is called.
        objects: What the configuration holds: `model`, `dataset` and so on.
        taken: Names that parameters of the search have, which are no objects then.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        key: str = USUAL_KEYS[0],
        objects: Mapping[str, Any] | None = None,
        taken: tuple[str, ...] = (),
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._key = key
        self._objects = dict(objects or {})
        signature = inspect.signature(function)
        self._names = tuple(
            name
            for name, parameter in signature.parameters.items()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        )
        self._takes_any = any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
        self.takes_objects = any(name in OBJECTS and name not in taken for name in self._names)
        self.__signature__ = self._loose_signature() if self.takes_objects else signature

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "__signature__"}

    def _loose_signature(self) -> inspect.Signature:
        """Return a signature that takes every parameter: they go into `hparams`."""
        kinds = inspect.Parameter
        reporter = [kinds(REPORTER, kinds.KEYWORD_ONLY)] if REPORTER in self._names else []
        return inspect.Signature([*reporter, kinds("params", kinds.VAR_KEYWORD)])

    @property
    def takes_budget(self) -> bool:
        """Whether it can be told how long to train."""
        return BUDGET in self._names or HPARAMS in self._names or self._takes_any

    @property
    def takes_reporter(self) -> bool:
        """Whether it can broadcast."""
        return REPORTER in self._names

    def __call__(self, **params: Any) -> Any:
        """Call the user's function."""
        params.pop(REPORTER, None)  # ours, which has fewer methods
        arguments = dict(params)
        if self.takes_objects:
            given = {HPARAMS: dict(params), **self._objects}
            arguments = {name: given.get(name, params.get(name)) for name in self._names if name in (*OBJECTS, *params)}
        if REPORTER in self._names:
            arguments[REPORTER] = Reporter(self._key, Trial._generate_id(dict(trial.params)))
        return read_returned(self._function(**arguments), self._key)


def read_returned(returned: Any, key: str) -> Any:
    """Return what a train function returned with the number to optimize under its name.

    A list stands for its first number, as `model.evaluate` returns it. In a dict the number is looked for by its name;
    where no script has chosen a name, the first one counts. 0 is a number.
    """
    if isinstance(returned, list | tuple) and returned:
        return returned[0]
    if isinstance(returned, Mapping) and key not in returned and key in USUAL_KEYS:
        other = next((name for name in USUAL_KEYS if name in returned), None)
        name = other or next((name for name, value in returned.items() if _is_number(value)), None)
        return returned if name is None else {key: returned[name], **returned}
    return returned


def _is_number(value: object) -> bool:
    try:
        to_float(value)
    except NotANumberError:
        return False
    return True

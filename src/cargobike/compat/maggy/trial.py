"""Maggy's `Trial`: what users' own optimizers, stop rules and ablators make and read."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from typing import Any, Final

from cargobike.core.errors import InvalidInputError

__all__ = ["Trial"]

_ABLATED: Final = ("ablated_feature", "ablated_layer")


class Trial:
    """One set of hyperparameters and what became of it, under Maggy's names.

    Args:
        params: The hyperparameters.
        trial_type: `"optimization"` or `"ablation"`.
        info_dict: What an optimizer wants to remember about it.
    """

    PENDING: Final = "PENDING"
    SCHEDULED: Final = "SCHEDULED"
    RUNNING: Final = "RUNNING"
    ERROR: Final = "ERROR"
    FINALIZED: Final = "FINALIZED"

    def __init__(
        self, params: dict[str, Any], trial_type: str = "optimization", info_dict: dict[str, Any] | None = None
    ) -> None:
        self.trial_type = trial_type
        named = {name: params.get(name) for name in _ABLATED} if trial_type == "ablation" else params
        self.trial_id = Trial._generate_id(named)
        self.params = params
        self.status: str = Trial.PENDING
        self.early_stop = False
        self.final_metric: float | None = None
        self.metric_history: list[float] = []
        self.step_history: list[int] = []
        self.metric_dict: dict[int, float] = {}
        self.start: float | None = None
        self.duration: float | None = None
        self.lock = threading.RLock()
        self.info_dict: dict[str, Any] = {} if info_dict is None else info_dict

    def __repr__(self) -> str:
        return f"<Trial {self.trial_id} {self.params} {self.status}>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.lock = threading.RLock()

    def get_early_stop(self) -> bool:
        """Return whether it is to stop early, or has."""
        return self.early_stop

    def set_early_stop(self) -> None:
        """Note that it is to stop early."""
        self.early_stop = True

    def append_metric(self, metric_data: Mapping[str, Any]) -> int | None:
        """Add a reported point, `{"step": …, "value": …}`; returns the step, or `None` if it was there already."""
        step, value = metric_data["step"], metric_data["value"]
        if step in self.metric_dict or value is None:
            return None
        self.metric_dict[step] = value
        self.metric_history.append(value)
        self.step_history.append(step)
        return int(step)

    @classmethod
    def _generate_id(cls, params: Any) -> str:
        """Return the first 16 hexadecimal digits of the MD5 of the parameters as JSON with sorted keys."""
        if not isinstance(params, dict):
            raise InvalidInputError(f"Hyperparameters need to be a dictionary, not {params!r}.")
        if not all(isinstance(name, str) for name in params):
            raise InvalidInputError(f"All hyperparameter names have to be strings; {list(params)!r} were given.")
        text = json.dumps(params, sort_keys=True, default=str)
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds of it."""
        kept = {name: value for name, value in self.__dict__.items() if name not in ("lock", "start")}
        return {"__class__": "Trial", **kept}

    def to_json(self) -> str:
        """Return it as JSON; `from_json` undoes it."""
        return json.dumps(self.to_dict(), default=str)

    @classmethod
    def from_json(cls, json_str: str) -> Trial:
        """Make a trial from JSON.

        Raises:
            InvalidInputError: If it holds no trial.
        """
        kept = json.loads(json_str)
        if not isinstance(kept, dict) or kept.get("__class__") != "Trial" or not isinstance(kept.get("params"), dict):
            raise InvalidInputError("json_str is not a Trial object: it must be what to_json returned.")
        made = cls(kept["params"])
        for name in ("trial_id", "status", "early_stop", "final_metric", "metric_history", "duration"):
            if name in kept:
                setattr(made, name, kept[name])
        return made

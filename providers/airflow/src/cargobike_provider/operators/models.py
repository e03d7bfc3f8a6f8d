"""The operator that registers models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cargobike_provider.errors import CargobikeMistake
from cargobike_provider.operators.operator import CargobikeOperator, Function, read_function


class CargobikeRegisterModelOperator(CargobikeOperator):
    """Keep a model as the next version of its name, and promote it if a gate lets it pass.

    Returns `{"kind": "model", "id": "digits:3", "version": 3, "metrics": …, "made_from": […]}`.

    Args:
        model_name: The model's name.
        trial: What made it: an experiment (its best trial; an id, a name, `"last"`, or what a
            `CargobikeExperimentOperator` returned), or one of its trials, `"20261117-1a2b/3"`.
        model: Instead, or for the trial: a function or class that predicts, `"file.py:function"`.
        files: Instead, files to keep as they are: paths, or a dict from names to paths.
        factory: What makes the module whose weights a trial has kept, `"file.py:make_net"`.
        metrics: What was measured of it.
        example: A few rows, which the model must be able to answer.
        description: A sentence for people.
        tags: Words; the DAG, its run and the task are added.
        promote_to: An alias that is moved to the version, such as `champion`.
        when: The gate that decides whether it may move: `"accuracy >= champion.accuracy"`.
    """

    template_fields: Sequence[str] = (
        *CargobikeOperator.template_fields,
        "model_name",
        "trial",
        "model",
        "files",
        "metrics",
        "description",
        "tags",
        "promote_to",
        "when",
    )

    def __init__(
        self,
        *,
        model_name: str,
        trial: Any = None,
        model: Function | None = None,
        files: Any = None,
        factory: Function | None = None,
        metrics: Mapping[str, float] | None = None,
        example: Any = None,
        description: str = "",
        tags: Sequence[str] = (),
        promote_to: str | None = None,
        when: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.model_name = model_name
        self.trial = trial
        self.model = None if model is None else read_function("model", model)
        self.files = files
        self.factory = None if factory is None else read_function("factory", factory)
        self.metrics = metrics
        self.example = example
        self.description = description
        self.tags = tags
        self.promote_to = promote_to
        self.when = when
        if when and not promote_to:
            raise CargobikeMistake(f"when={when!r} is a gate for an alias; say which: promote_to='champion'.")
        self.announce("model", model_name)

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        return "register", {
            "name": self.model_name,
            "trial": self.trial,
            "model": self.model,
            "files": self.files,
            "factory": self.factory,
            "promote_to": self.promote_to,
            "when": self.when,
            "options": {
                "metrics": self.metrics,
                "example": self.example,
                "description": self.description,
                "tags": list(self.tags),
            },
        }

"""Operators that serve models: deploy one, roll a deployment to another version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cargobike_provider.errors import CargobikeMistake
from cargobike_provider.operators.operator import CargobikeOperator


class CargobikeDeployOperator(CargobikeOperator):
    """Serve a version of a model; the task ends when it answers, the deployment goes on.

    A task may run twice, so a deployment that serves already is rolled to the version, and left alone if it has it. It
    lives on the machine that the task ran on.

    Returns `{"kind": "deployment", "id": …, "url": …, "model": "digits:3"}`.

    Args:
        deployment: Its name.
        model: `digits@champion`, `digits:3`, or what a `CargobikeRegisterModelOperator` returned.
        replicas: How many processes predict: a number, or the fewest and the most.
        if_serving: What to do with one that serves already: `"roll"` it, or `"fail"`.
        timeout_s: How long a roll may take.
        options: Further arguments of `serving.deploy`, as plain data; `before` and `after` as `"file.py:function"`.
    """

    template_fields: Sequence[str] = (
        *CargobikeOperator.template_fields,
        "deployment",
        "model",
        "replicas",
        "options",
    )

    def __init__(
        self,
        *,
        deployment: str,
        model: Any,
        replicas: int | Sequence[int] = 1,
        if_serving: Literal["roll", "fail"] = "roll",
        timeout_s: float = 600.0,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if if_serving not in {"roll", "fail"}:
            raise CargobikeMistake(f"if_serving={if_serving!r} was given; allowed are 'roll' and 'fail'.")
        self.deployment = deployment
        self.model = model
        self.replicas = replicas
        self.if_serving = if_serving
        self.timeout_s = timeout_s
        self.options = options
        self.announce("deployment", deployment)

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        return "deploy", {
            "name": self.deployment,
            "model": self.model,
            "if_serving": self.if_serving,
            "timeout_s": self.timeout_s,
            "options": {"replicas": self.replicas, **(self.options or {})},
        }


class CargobikeRollOperator(CargobikeOperator):
    """Bring another version into a deployment without losing a request, and wait until it serves alone.

    With a canary the task succeeds when the version was promoted, and fails when it was taken back.

    Args:
        deployment: Its name.
        model: The version: `digits@champion`, `digits:4`, or what a `CargobikeRegisterModelOperator` returned.
        canary: The share of requests that it gets at first.
        shadow: Whether it gets copies of requests, and its answers are only compared.
        watch: When a canary is promoted or taken back: fields of `serving.Plan`, such as `{"requests": 500}`.
        wait: Whether the task waits for that; without a canary or shadow the version serves when the task ends.
        timeout_s: How long that may take; then it is taken back, and the task fails.
    """

    template_fields: Sequence[str] = (*CargobikeOperator.template_fields, "deployment", "model", "watch")

    def __init__(
        self,
        *,
        deployment: str,
        model: Any,
        canary: float = 0.0,
        shadow: bool = False,
        watch: Mapping[str, Any] | None = None,
        wait: bool = True,
        timeout_s: float = 600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deployment = deployment
        self.model = model
        self.canary = canary
        self.shadow = shadow
        self.watch = watch
        self.wait = wait
        self.timeout_s = timeout_s
        self.announce("deployment", deployment)

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        return "roll", {
            "name": self.deployment,
            "model": self.model,
            "canary": self.canary,
            "shadow": self.shadow,
            "watch": dict(self.watch or {}),
            "wait": self.wait,
            "timeout_s": self.timeout_s,
        }

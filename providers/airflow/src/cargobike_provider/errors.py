"""How a task fails in Airflow's words."""

from __future__ import annotations

from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException


class CargobikeTaskError(AirflowException):
    """What Cargobike or a user's function raised; Airflow tries the task again as often as it is told to."""


class CargobikeMistake(AirflowFailException):
    """What another try would not mend: a function, project, model or connection that is not there."""


def error_of(described: dict[str, Any]) -> AirflowException:
    """Return the error that an answer of the program describes."""
    words = f"{described['kind']}: {described['message']}"
    return CargobikeMistake(words) if described.get("mistaken") else CargobikeTaskError(words)

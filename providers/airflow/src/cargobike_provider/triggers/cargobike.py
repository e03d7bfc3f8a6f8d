"""`CargobikeTrigger`: looks at a project again and again, in the triggerer, until something has happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from cargobike_provider.errors import CargobikeMistake
from cargobike_provider.hooks.cargobike import CargobikeHook
from cargobike_provider.triggers.looking import shared_looker

MOST_FAILURES: Final = 5
"""How often in a row a look may fail, such as on storage that does not answer, before the sensor is told."""


class CargobikeTrigger(BaseTrigger):
    """Fires once something has happened in a project, or when looking fails for good.

    Many of them share one process for each project. Connections are looked up when it runs, so that nothing secret is
    kept with a trigger.

    Args:
        action: The look: one of the actions of `program/`.
        arguments: What that takes.
        cargobike_conn_id: The connection that names the project.
        project: The project, instead of the connection's.
        python: The interpreter that has Cargobike, instead of the connection's.
        poke_interval: Seconds between two looks.
        may_be_missing: Whether to go on looking while the thing does not exist.
    """

    def __init__(
        self,
        action: str,
        arguments: dict[str, Any],
        *,
        cargobike_conn_id: str = CargobikeHook.default_conn_name,
        project: str | None = None,
        python: str | None = None,
        poke_interval: float = 60.0,
        may_be_missing: bool = False,
    ) -> None:
        super().__init__()
        self.action = action
        self.arguments = arguments
        self.cargobike_conn_id = cargobike_conn_id
        self.project = project
        self.python = python
        self.poke_interval = poke_interval
        self.may_be_missing = may_be_missing

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what Airflow keeps to start it in the triggerer."""
        return (
            "cargobike_provider.triggers.cargobike.CargobikeTrigger",
            {
                "action": self.action,
                "arguments": self.arguments,
                "cargobike_conn_id": self.cargobike_conn_id,
                "project": self.project,
                "python": self.python,
                "poke_interval": self.poke_interval,
                "may_be_missing": self.may_be_missing,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until it has happened."""
        hook = CargobikeHook(self.cargobike_conn_id, project=self.project, python=self.python)
        try:
            settings = await hook.asettings()
        except AirflowException as error:
            yield TriggerEvent({"error": str(error)})
            return
        failures = 0
        async with shared_looker(settings) as looker:
            while True:
                try:
                    seen = await looker.ask(self.action, self.arguments)
                    failures = 0
                    if seen["happened"]:
                        yield TriggerEvent({"seen": seen})
                        return
                except CargobikeMistake as error:
                    if not (self.may_be_missing and is_missing(error)):
                        yield TriggerEvent({"error": str(error)})
                        return
                except AirflowException as error:
                    failures += 1
                    self.log.warning("A look at the project failed (%d of %d): %s", failures, MOST_FAILURES, error)
                    if failures >= MOST_FAILURES:
                        yield TriggerEvent({"error": str(error)})
                        return
                await asyncio.sleep(self.poke_interval)


def is_missing(error: BaseException) -> bool:
    """Tell whether an error says that there is no such thing."""
    return str(error).startswith("NotFoundError")

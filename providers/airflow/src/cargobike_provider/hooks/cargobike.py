"""`CargobikeHook`: knows which project and which Python a connection means, and asks Cargobike there."""

from __future__ import annotations

import sys
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from cargobike_provider.errors import CargobikeMistake
from cargobike_provider.process import Program
from cargobike_provider.settings import Settings


class CargobikeHook(BaseHook):
    """Runs Cargobike for a connection, in a process of its own.

    The connection's host is the project: a folder or a URL. Its password is the token of deployments. Its extra may
    hold `python`, `create_project`, `paths` (folders to import from) and `environment` (variables).

    Args:
        cargobike_conn_id: The connection; not asked for if a project is given and it is the default one.
        project: The project, instead of the connection's.
        python: The interpreter that has Cargobike, instead of the connection's.
        create_project: Whether a project that is not there is made, instead of what the connection says.
    """

    conn_name_attr = "cargobike_conn_id"
    default_conn_name = "cargobike_default"
    conn_type = "cargobike"
    hook_name = "Cargobike"

    def __init__(
        self,
        cargobike_conn_id: str = default_conn_name,
        *,
        project: str | None = None,
        python: str | None = None,
        create_project: bool | None = None,
    ) -> None:
        super().__init__()
        self.cargobike_conn_id = cargobike_conn_id
        self.project = project
        self.python = python
        self.create_project = create_project
        self._program: Program | None = None

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return how the form of a connection looks, for versions of Airflow that ask the hook."""
        return {
            "hidden_fields": ["port", "login", "schema"],
            "relabeling": {"host": "Project", "password": "Token of deployments"},
            "placeholders": {"host": "/data/project, s3://bucket/project or hdfs://host:9000/project"},
        }

    def settings(self) -> Settings:
        """Return how the program is started.

        Raises:
            CargobikeMistake: If there is no such connection, or it names no project.
        """
        try:
            connection = self.get_connection(self.cargobike_conn_id)
        except AirflowNotFoundException as error:
            return self._without_connection(error)
        return self._read(connection)

    async def asettings(self) -> Settings:
        """Return how the program is started; for triggers, which must not block."""
        try:
            connection = await self.aget_connection(self.cargobike_conn_id)
        except AirflowNotFoundException as error:
            return self._without_connection(error)
        return self._read(connection)

    def _without_connection(self, error: AirflowException) -> Settings:
        if not self.project or self.cargobike_conn_id != self.default_conn_name:
            variable = f"AIRFLOW_CONN_{self.cargobike_conn_id.upper()}"
            raise CargobikeMistake(
                f"There is no connection {self.cargobike_conn_id!r}. Make one of the type cargobike whose host is the "
                f"project (`airflow connections add {self.cargobike_conn_id} --conn-type cargobike --conn-host "
                f'/data/project`, or {variable}), or give project="/data/project".'
            ) from error
        return Settings(self.project, self.python or sys.executable, bool(self.create_project))

    def _read(self, connection: Any) -> Settings:
        extra = connection.extra_dejson
        project = self.project or extra.get("project") or connection.host
        if not project:
            raise CargobikeMistake(
                f"The connection {self.cargobike_conn_id!r} names no project. Set its host to a folder such as "
                "/data/project, or to a URL such as s3://bucket/project."
            )
        mistakes = []
        paths, environment = extra.get("paths") or [], extra.get("environment") or {}
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            mistakes.append(f"paths={paths!r}: a list of folders")
        if not isinstance(environment, dict) or not all(isinstance(value, str) for value in environment.values()):
            mistakes.append("environment: an object of texts")
        if mistakes:
            raise CargobikeMistake(f"The extra of {self.cargobike_conn_id!r} is wrong: {'; '.join(mistakes)}.")
        if connection.password:
            environment = {"CARGOBIKE_SERVE_TOKEN": connection.password, **environment}
        create = self.create_project if self.create_project is not None else bool(extra.get("create_project"))
        python = self.python or extra.get("python") or sys.executable
        return Settings(str(project), str(python), create, tuple(paths), environment)

    def ask(
        self,
        action: str,
        arguments: dict[str, Any],
        *,
        origin: dict[str, Any] | None = None,
        directory: str | None = None,
    ) -> Any:
        """Have Cargobike do something, and return plain data; what it prints is logged meanwhile.

        Args:
            action: What to do: one of the actions of `program/`.
            arguments: What that takes, as plain data.
            origin: Which task of which run asks.
            directory: Where it runs.

        Raises:
            CargobikeMistake: If trying again would not help.
            CargobikeTaskError: If it failed.
        """
        settings = self.settings()
        self._program = program = Program(settings, directory=directory, log=self.log.info)
        try:
            return program.ask(settings.request(action, arguments, origin))
        except BaseException:
            program.kill()
            raise
        finally:
            program.end()
            self._program = None

    def kill(self) -> None:
        """End what runs, with everything that it started."""
        if self._program is not None:
            self._program.kill()

    def test_connection(self) -> tuple[bool, str]:
        """Tell whether the project is there and can be read with that Python."""
        try:
            there = self.ask("describe", {})
        except AirflowException as error:
            return False, str(error)
        return True, (
            f"{there['project']} has {there['experiments']} experiments; Cargobike {there['cargobike']} is in "
            f"{there['python']}."
        )

"""How the program that runs Cargobike is started: which Python, where, with what around it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

PROGRAM: Final = Path(__file__).parent / "program"

_AIRFLOWS_OWN: Final = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "_AIRFLOW_")
"""Variables that hold Airflow's secrets and settings, which the code of users in another process has no need of."""


@dataclass(frozen=True)
class Settings:
    """What a connection and the arguments of a task say about the program.

    Attributes:
        project: A folder or URL.
        python: The interpreter that has Cargobike.
        create_project: Whether a project that is not there is made.
        paths: Folders that modules of the user are imported from.
        environment: Variables of the process.
    """

    project: str
    python: str = sys.executable
    create_project: bool = False
    paths: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def command(self) -> list[str]:
        """The program and its arguments; nothing secret is among them."""
        return [self.python, "-P", str(PROGRAM)]

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the process: this one's without what is Airflow's own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_AIRFLOWS_OWN)}
        if os.path.realpath(self.python) != os.path.realpath(sys.executable) or self.python != sys.executable:
            for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
                kept.pop(name, None)
        return {**kept, "PYTHONUNBUFFERED": "1", **self.environment}

    def request(self, action: str, arguments: dict[str, Any], origin: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return a request to the program."""
        return {
            "do": action,
            "arguments": arguments,
            "origin": origin or {},
            "project": self.project,
            "create": self.create_project,
            "paths": list(self.paths),
        }

"""What all operators share: the process, the reference that is handed on, the asset that is announced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from airflow.sdk import BaseOperator

from cargobike_provider.assets.cargobike import KINDS, create_asset, is_fixed
from cargobike_provider.errors import CargobikeMistake
from cargobike_provider.hooks.cargobike import CargobikeHook

Function = str | Callable[..., Any]


class CargobikeOperator(BaseOperator):
    """Has Cargobike do something in a process of its own.

    What it returns is plain data, mostly a reference such as `{"kind": "model", "id": "digits:3", …}`, and becomes the
    task's XCom. A task that is killed ends its process and everything that was started from there.

    Args:
        cargobike_conn_id: The connection that names the project.
        project: The project, instead of the connection's.
        python: The interpreter that has Cargobike, instead of the connection's.
        create_project: Whether a project that is not there is made.
        working_directory: Where it runs, and what paths of files are relative to; by default the folder of the DAG.
    """

    template_fields: Sequence[str] = ("cargobike_conn_id", "project", "python", "working_directory")
    ui_color = "#dff0e3"

    def __init__(
        self,
        *,
        cargobike_conn_id: str = CargobikeHook.default_conn_name,
        project: str | None = None,
        python: str | None = None,
        create_project: bool | None = None,
        working_directory: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cargobike_conn_id = cargobike_conn_id
        self.project = project
        self.python = python
        self.create_project = create_project
        self.working_directory = working_directory
        self._hook: CargobikeHook | None = None

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for: the action and its arguments."""
        raise NotImplementedError

    def announce(self, kind: str, name: Any) -> None:
        """Add what this task makes to its outlets, if its name is known when the DAG is parsed."""
        if is_fixed(name):
            asset = create_asset(kind=kind, name=name, project=self.cargobike_conn_id)
            if asset not in self.outlets:
                self.outlets.append(asset)

    def execute(self, context: Any) -> Any:
        """Ask, log what is printed, announce what was made, and return a reference to it."""
        action, arguments = self.request()
        self._hook = CargobikeHook(
            self.cargobike_conn_id, project=self.project, python=self.python, create_project=self.create_project
        )
        value = self._hook.ask(
            action, arguments, origin=origin_of(context), directory=self.working_directory or folder_of(context)
        )
        self._tell_assets(context, value)
        return value

    def on_kill(self) -> None:
        """End the process, with everything that it started."""
        if self._hook is not None:
            self._hook.kill()

    def _tell_assets(self, context: Any, value: Any) -> None:
        """Say in the events of assets which version there is now, and what it was made from."""
        for thing in _references(value):
            own = create_asset(kind=thing["kind"], name=thing["name"], project=self.cargobike_conn_id)
            for outlet in self.outlets:
                if getattr(outlet, "uri", None) == own.uri:
                    context["outlet_events"][outlet].extra.update({"cargobike": thing, **origin_of(context)})


def _references(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the references in what a task returns: the whole, or what its list or dict holds."""
    if isinstance(value, dict) and value.get("kind") in KINDS and isinstance(value.get("name"), str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, dict):
                yield from _references(one)


def origin_of(context: Any) -> dict[str, Any]:
    """Return which task of which run of which DAG this is."""
    instance = context["ti"]
    return {
        "dag_id": instance.dag_id,
        "run_id": instance.run_id,
        "task_id": instance.task_id,
        "map_index": getattr(instance, "map_index", -1),
        "try_number": getattr(instance, "try_number", 1),
    }


def folder_of(context: Any) -> str | None:
    """Return the folder of a DAG's file; `None` if it is not on this machine."""
    folder = os.path.dirname(getattr(context.get("dag"), "fileloc", "") or "")
    return folder if os.path.isdir(folder) else None


def read_function(what: str, function: Function) -> str:
    """Return a function as text: `file.py:function` or `package.module:function`.

    A function itself is accepted if another Python can import it by its name; it is never pickled.

    Raises:
        CargobikeMistake: If it cannot be imported elsewhere.
    """
    if isinstance(function, str):
        return function
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", "") or ""
    if not name or "<" in name or module in {"", "__main__"} or module.startswith("unusual_prefix_"):
        raise CargobikeMistake(
            f"{what}={function!r} was given, which another process cannot import. Put it into a file of its own "
            f'beside the DAG and name it: {what}="file.py:{name if name and "<" not in name else "function"}".'
        )
    return f"{module}:{name}"

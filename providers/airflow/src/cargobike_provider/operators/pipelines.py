"""The operator that runs pipelines."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cargobike_provider.operators.operator import CargobikeOperator, Function, origin_of, read_function


class CargobikePipelineOperator(CargobikeOperator):
    """Run a pipeline. A task that is tried again goes on where the run was, and does no step twice.

    Returns `{"kind": "pipeline", "id": the run, "name": …, "state": …, "result": …}`.

    Args:
        pipeline: `"file.py:function"`, relative to the DAG's folder, or `"package.module:function"`.
        parameters: Its arguments by name, as plain data.
        run_id: The id of the run; by default one that follows from the DAG, its run and the task, so that each of them
            has exactly one run, however often it is tried.
        accept_changes: Whether a task that is tried again goes on although the code has changed meanwhile; steps whose
            own code or inputs have changed run anew.
    """

    template_fields: Sequence[str] = (*CargobikeOperator.template_fields, "pipeline", "parameters", "run_id")

    def __init__(
        self,
        *,
        pipeline: Function,
        parameters: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        accept_changes: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline = read_function("pipeline", pipeline)
        self.parameters = parameters
        self.run_id = run_id
        self.accept_changes = accept_changes
        self.announce("pipeline", self.pipeline.rpartition(":")[2])

    def execute(self, context: Any) -> Any:
        """Run it, or go on with it."""
        self.run_id = self.run_id or run_id_of(origin_of(context))
        return super().execute(context)

    def request(self) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        return "pipeline", {
            "pipeline": self.pipeline,
            "parameters": dict(self.parameters or {}),
            "run_id": self.run_id,
            "accept_changes": self.accept_changes,
        }


def run_id_of(origin: Mapping[str, Any]) -> str:
    """Return the id of the run of a task: readable, and another for each task of each run."""
    parts = [str(origin[key]) for key in ("dag_id", "run_id", "task_id", "map_index")]
    mark = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]
    words = re.sub(r"[^a-z0-9]+", "-", f"{origin['dag_id']}-{origin['task_id']}".lower()).strip("-")
    return f"airflow-{words[:40].strip('-')}-{mark}"

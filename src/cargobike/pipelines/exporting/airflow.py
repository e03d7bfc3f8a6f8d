"""A run as the file of an Airflow DAG, for the operators of `airflow-provider-cargobike`."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from cargobike.core.errors import InvalidInputError
from cargobike.pipelines.exporting.tasks import ExportedTask, Given, tasks_of, word_for
from cargobike.pipelines.facts import RunState
from cargobike.pipelines.record import RunRecord, state_of

_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")


class ExportedDag(NamedTuple):
    """The file of a DAG.

    Attributes:
        text: Its source.
        dag_id: What the DAG is called.
        tasks: Its tasks.
        reasons: Why it is one task, if it is: what keeps steps from standing alone.
    """

    text: str
    dag_id: str
    tasks: list[str]
    reasons: list[str]


def as_airflow_dag(
    record: RunRecord, *, dag_id: str = "", schedule: str = "", conn_id: str = "cargobike_default"
) -> ExportedDag:
    """Write a run that was completed as a DAG: a task for each step, or one for the whole pipeline.

    Args:
        record: The run.
        dag_id: What to call the DAG; by default as the pipeline.
        schedule: When it runs, as Airflow writes it; by default only when it is asked to.
        conn_id: The connection that names the project.

    Raises:
        InvalidInputError: If the run was not completed, its pipeline cannot be found again, or a name cannot be used.
    """
    state = state_of(record)
    dag_id = dag_id or word_for(record.pipeline)
    mistakes = [
        f"{what}={given!r}: up to 200 letters, digits, '_', '-' and '.'"
        for what, given in (("dag_id", dag_id), ("conn_id", conn_id))
        if not _ID.fullmatch(given)
    ]
    if state is not RunState.COMPLETED:
        mistakes.append(f"run {record.id} is {state}: which steps there are is known once it is completed")
    tasks, reasons = tasks_of(record)
    if not tasks and not record.started.function:
        mistakes.append(f"the pipeline {record.pipeline} is not at the top of a file, and cannot be found from there")
    if mistakes:
        raise InvalidInputError("This cannot be exported:", mistakes)
    if tasks:
        body, names = [_step(task, conn_id) for task in tasks], [task.name for task in tasks]
        operator = "CargobikeFunctionOperator"
    else:
        body, names = [_whole(record, conn_id)], [word_for(record.pipeline)]
        operator = "CargobikePipelineOperator"
    text = _FILE.format(
        pipeline=json.dumps(record.pipeline)[1:-1],
        run=record.id,
        operator=operator,
        dag_id=dag_id,
        schedule=repr(schedule or None),
        body="\n".join(body),
    )
    return ExportedDag(text, dag_id, names, reasons)


_FILE = '''"""The pipeline {pipeline}, as run {run} was. Written by `cargobike pipelines export --airflow`."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG
from cargobike_provider.operators import {operator}

with DAG({dag_id!r}, schedule={schedule}, start_date=datetime(2026, 1, 1), catchup=False) as dag:
{body}
'''


def _step(task: ExportedTask, conn_id: str) -> str:
    lines = [
        f"    {task.name} = CargobikeFunctionOperator(",
        f"        task_id={task.name!r},",
        f"        cargobike_conn_id={conn_id!r},",
        f"        function={task.function!r},",
    ]
    if task.inputs:
        lines.append("        op_kwargs={")
        lines += [f"            {name!r}: {_source(given)}," for name, given in task.inputs.items()]
        lines.append("        },")
    if task.opens_things:
        lines.append("        open_things=True,")
    return "\n".join([*lines, "    )"])


def _source(given: Given) -> str:
    if isinstance(given.tasks, str):
        return f"{given.tasks}.output"
    if given.tasks is not None:
        return f"[{', '.join(f'{name}.output' for name in given.tasks)}]"
    return repr(given.data)


def _whole(record: RunRecord, conn_id: str) -> str:
    name = word_for(record.pipeline)
    return "\n".join(
        [
            f"    {name} = CargobikePipelineOperator(",
            f"        task_id={name!r},",
            f"        cargobike_conn_id={conn_id!r},",
            f"        pipeline={record.started.function!r},",
            f"        parameters={record.params!r},",
            "    )",
        ]
    )

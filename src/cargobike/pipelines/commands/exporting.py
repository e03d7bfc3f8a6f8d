"""`cargobike pipelines export`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cargobike.cli.printing import cell, console, print_json
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.pipelines.commands.naming import Json, RunName
from cargobike.pipelines.exporting.airflow import as_airflow_dag
from cargobike.pipelines.record import find_run
from cargobike.store.files import project


def export(
    name: RunName = "last",
    *,
    airflow: Annotated[bool, typer.Option("--airflow", help="As the file of an Airflow DAG.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file; printed if left out.")] = None,
    dag_id: Annotated[str, typer.Option(help="What to call the DAG; by default as the pipeline.")] = "",
    schedule: Annotated[str, typer.Option(help="When it runs: '@daily', '0 3 * * *'.")] = "",
    conn_id: Annotated[str, typer.Option(help="The Airflow connection of the project.")] = "cargobike_default",
    as_json: Json = False,
) -> None:
    """Write a pipeline that ran for another orchestrator."""
    if not airflow:
        raise InvalidInputError("Say for which orchestrator: --airflow.")
    dag = as_airflow_dag(find_run(name, project.current()), dag_id=dag_id, schedule=schedule, conn_id=conn_id)
    if output is not None:
        _write(output, dag.text)
    if as_json:
        text = None if output is not None else dag.text
        where = None if output is None else str(output)
        print_json({"dag_id": dag.dag_id, "tasks": dag.tasks, "reasons": dag.reasons, "file": where, "text": text})
        return
    if output is None:
        sys.stdout.write(dag.text)
    else:
        console().print(cell(f"{output} has the DAG {dag.dag_id} with {', '.join(dag.tasks)}."))
    if dag.reasons:
        words = "It is one task, which runs the whole pipeline and goes on where it was when it is tried again:"
        typer.echo("\n  - ".join([words, *dag.reasons]), err=True)


def _write(path: Path, text: str) -> None:
    """Write a file that appears whole: Airflow may look at any moment."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}.") from error

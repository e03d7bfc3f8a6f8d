"""`cargobike pipelines ls` and `rm`."""

from __future__ import annotations

import os
import shutil
from typing import Annotated

import typer

from cargobike.cli.asking import Yes, confirm
from cargobike.cli.printing import age, cell, console, parameters, print_json, print_table, table
from cargobike.core.errors import CargobikeError, InvalidInputError, StoreError
from cargobike.pipelines.commands.describing import counted, run_as_json
from cargobike.pipelines.commands.naming import Json, complete_pipeline, complete_run
from cargobike.pipelines.record import RunRecord, find_run, list_runs, state_of
from cargobike.store.files import project
from cargobike.store.files.locking import DriverLock, holder, is_held
from cargobike.store.files.mirror import share_removal

_SHOWN = 50


def ls(
    pipeline: Annotated[
        str, typer.Argument(metavar="[PIPELINE]", help="Only its runs.", autocompletion=complete_pipeline)
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help=f"All runs, not only the newest {_SHOWN}.")] = False,
    as_json: Json = False,
) -> None:
    """List the runs of the project, the newest first."""
    records = list_runs(project.current(), pipeline)
    shown = records if everything or as_json else records[:_SHOWN]
    if as_json:
        print_json([run_as_json(record, with_steps=False) for record in shown])
        return
    if not records:
        console().print(f"There are no runs in {project.current().root}.")
        return
    made = table("RUN", "PIPELINE", "STATE", "STEPS", "SECONDS", "STARTED", "PARAMETERS", right=("SECONDS",))
    for record in shown:
        made.add_row(
            cell(record.id, "bold"),
            cell(record.pipeline),
            cell(state_of(record)),
            cell(counted(record)),
            cell(f"{record.seconds:.1f}"),
            cell(age(record.started.at)),
            cell(parameters(record.params)),
        )
    print_table(made)
    if len(shown) < len(records):
        console().print(f"{len(records) - len(shown)} more; --all lists them.")


def rm(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Ids, or their beginnings.", autocompletion=complete_run)
    ],
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove runs and everything they wrote; what the project keeps elsewhere (models, tables …) stays."""
    records: dict[str, RunRecord] = {}
    mistakes: list[str] = []
    for name in runs:
        try:
            record = find_run(name, project.current())
            if is_held(record.folder):
                raise StoreError(f"{record.id} is being driven by {holder(record.folder)}; cancel it first")
            records[record.id] = record
        except CargobikeError as error:
            mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError("Nothing was removed:", mistakes)
    names = "\n  ".join(records)
    confirm(f"Remove for good:\n  {names}\n?", yes=yes, as_json=as_json)
    for record in records.values():
        _remove(record)
    if as_json:
        print_json({"removed": list(records)})
    else:
        typer.echo(f"Removed {', '.join(records)}.")


def _remove(record: RunRecord) -> None:
    folder = record.folder
    share_removal(folder)
    doomed = folder.root.with_name(f".removing-{folder.id}-{os.getpid()}")
    try:
        # Held, so that no driver resumes it meanwhile; renamed, so that no reader ever sees half of it.
        with DriverLock(folder):
            folder.root.rename(doomed)
        shutil.rmtree(doomed)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"Cannot remove {folder.root}: {error.strerror} ({error.filename}).") from error

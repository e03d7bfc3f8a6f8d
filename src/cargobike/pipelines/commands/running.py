"""`cargobike pipelines run`, `resume` and `cancel`."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated, Any

import msgspec
import typer

from cargobike.cli.parameters import read_parameters
from cargobike.cli.printing import print_json
from cargobike.cli.terminal import neutralized
from cargobike.core.errors import RunCancelledError, StepFailedError
from cargobike.core.values.exact import unpack_exactly
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.experiments.commands.naming_parts import complete_function
from cargobike.pipelines import front, running
from cargobike.pipelines.commands.describing import run_as_json, summary
from cargobike.pipelines.commands.naming import Json, RunName
from cargobike.pipelines.commands.progress import progress
from cargobike.pipelines.facts import RunState
from cargobike.pipelines.record import find_run
from cargobike.pipelines.viewing import Run
from cargobike.store.files import project

Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Parallel = Annotated[
    int | None, typer.Option(min=1, help="How many steps may run at once. [default: one per processor]")
]


def run(
    function: Annotated[
        str,
        typer.Argument(metavar="FILE.py:FUNCTION", help="The pipeline.", autocompletion=complete_function),
    ],
    *,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter; may be repeated.")
    ] = None,
    params: Annotated[str, typer.Option(metavar="JSON", help="All parameters at once, as a JSON object.")] = "",
    run_id: Annotated[str, typer.Option(help="What to call the run; it is begun once.")] = "",
    cause: Annotated[str, typer.Option(metavar="JSON", help="What set it off, as a JSON object.")] = "",
    parallel: Parallel = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Use no results of earlier runs.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a pipeline: a function in a Python file."""
    given = unpack_exactly(_object("--params", params)) | read_parameters(set_ or [], "--set")
    with _shown(quiet=quiet, as_json=as_json) as watch:
        finished = front.run(
            function,
            run_id=run_id,
            cause=_object("--cause", cause),
            parallel=parallel,
            use_cache=not no_cache,
            watch=watch,
            **given,
        )
    _tell(finished, as_json=as_json)


def resume(
    name: RunName = "last",
    *,
    accept_changes: Annotated[
        bool,
        typer.Option("--accept-changes", help="Go on although the code has changed; changed steps are run anew."),
    ] = False,
    function: Annotated[
        str, typer.Option(metavar="FILE.py:FUNCTION", help="Where the pipeline is now, if its file was moved.")
    ] = "",
    parallel: Parallel = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Go on with a run where it was: what is done is not done again."""
    with _shown(quiet=quiet, as_json=as_json) as watch:
        finished = front.resume(name, function or None, accept_changes=accept_changes, parallel=parallel, watch=watch)
    _tell(finished, as_json=as_json)


def cancel(
    name: RunName = "last",
    *,
    timeout: Annotated[float, typer.Option(min=0.0, help="How many seconds it may take.")] = 30.0,
    force: Annotated[bool, typer.Option("--force", help="Kill its driver if that is not enough.")] = False,
    as_json: Json = False,
) -> None:
    """Cancel a run: its steps are ended, and it can be resumed."""
    run_id = find_run(name, project.current()).id
    state = running.cancel(run_id, timeout=timeout, force=force)
    if as_json:
        print_json({"run": run_id, "state": state.value})
    else:
        typer.echo(f"Run {run_id} is {state}.")


@contextlib.contextmanager
def _shown(*, quiet: bool, as_json: bool) -> Any:
    """Show progress on a terminal; what the pipeline prints must not end up in the middle of JSON."""
    with contextlib.ExitStack() as exits:
        if as_json:
            exits.enter_context(contextlib.redirect_stdout(sys.stderr))
        watch = exits.enter_context(progress(quiet=quiet or as_json))
        try:
            yield watch
        except StepFailedError as error:
            exits.close()
            _tell_failed(error.run, as_json=as_json)
            raise
        except RunCancelledError as error:
            exits.close()
            _tell_failed(error.run, as_json=as_json)
            raise


def _tell_failed(run_id: str, *, as_json: bool) -> None:
    if as_json and run_id:
        print_json(run_as_json(find_run(run_id, project.current())))
    elif run_id:
        typer.echo(f"`cargobike pipelines resume {run_id}` goes on with it.", err=True)


def _tell(finished: Run, *, as_json: bool) -> None:
    if as_json:
        print_json(run_as_json(finished.record))
    else:
        typer.secho(neutralized(summary(finished.record)), fg="green" if finished.state is RunState.COMPLETED else None)
    if finished.state is not RunState.COMPLETED:
        raise typer.Exit(1)


def _object(option: str, text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except UNDECODABLE as error:
        raise typer.BadParameter(f"{text!r} is no JSON object ({error})", param_hint=option) from error

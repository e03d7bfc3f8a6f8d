"""Run pipelines, resume them, and look at their runs: the functions behind the public names."""

from __future__ import annotations

import builtins
import inspect
import math
import os
import time
from collections.abc import Callable
from typing import Any

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.ids import experiment_id
from cargobike.experiments.asking.importing import load_from_file
from cargobike.pipelines.driving.conduct import Request, conduct, take_up
from cargobike.pipelines.driving.driver import Watch
from cargobike.pipelines.facts import RunState
from cargobike.pipelines.kind import RUNS
from cargobike.pipelines.record import find_run, list_runs
from cargobike.pipelines.steps.current import current_driver
from cargobike.pipelines.steps.step import Step
from cargobike.pipelines.values.code import fingerprints, function_place
from cargobike.pipelines.values.keeping import is_plain
from cargobike.pipelines.viewing import Run
from cargobike.store.files import project as projects


def run(
    pipeline: Callable[..., Any] | str,
    /,
    *,
    run_id: str = "",
    cause: dict[str, Any] | None = None,
    parallel: int | None = None,
    use_cache: bool = True,
    watch: Watch | None = None,
    **params: Any,
) -> Run:
    """Run a pipeline to its end.

    Args:
        pipeline: A function that calls steps, or `"file.py:function"`.
        run_id: What to call the run; a new id by default. A run is never begun twice.
        cause: What set it off, as plain data; the pipeline finds it in `pipelines.cause()`.
        parallel: How many steps may run at once; as many as there are processors by default.
        use_cache: Whether results of earlier runs may be used, by steps that may be cached.
        watch: A function that is shown the record and the fact after each fact.
        **params: What the pipeline is called with, as plain data. One whose name is taken here is given in a
            `functools.partial`.

    Raises:
        InvalidInputError: If the parameters do not fit, or there is such a run already.
        StepFailedError: If a step failed and the pipeline did not handle that. Other exceptions of the pipeline's
            function are raised as they are. `pipelines.resume` goes on with what is there.
    """
    if current_driver() is not None:
        raise InvalidInputError(
            "pipelines.run was called inside a pipeline. Call the other pipeline as a function: its steps become steps "
            "of this run. Or call pipelines.run in a step, for a run of its own."
        )
    place = pipeline if isinstance(pipeline, str) else ""
    function = load_from_file(pipeline) if isinstance(pipeline, str) else pipeline
    check_call(function, params)
    if run_id and not RUNS.id.fullmatch(run_id):
        raise InvalidInputError(
            f"{run_id!r} cannot be the id of a run: letters, digits, dots, dashes and underscores, at most 120, "
            "beginning with a letter or digit."
        )
    request = Request(
        function=function,
        params=params,
        code=fingerprints(function),
        place=_absolute(place) or function_place(function),
        parallel=_parallel(parallel),
        use_cache=use_cache,
        cause=cause or {},
        watch=watch,
    )
    project = projects.prepare()
    return Run(conduct(request, project, run_id or experiment_id(time.time())))


def resume(
    run: str = "last",
    pipeline: Callable[..., Any] | str | None = None,
    *,
    accept_changes: bool = False,
    parallel: int | None = None,
    watch: Watch | None = None,
) -> Run:
    """Go on with a run that failed, was interrupted or cancelled, or whose driver died, where it was.

    The pipeline's function is called again. Steps that are done return what they returned; the others run. A run that
    was completed is returned as it is.

    Args:
        run: Its id, the beginning of its id, or `last`.
        pipeline: The function, if it is not at the top of a file, where it is found by itself.
        accept_changes: Whether to go on although the code has changed: steps whose own code or inputs have changed are
            run anew, and those that depend on them.
        parallel: How many steps may run at once.
        watch: A function that is shown the record and the fact after each fact.

    Raises:
        NotFoundError: If there is no such run.
        InvalidInputError: If the code has changed, or the function cannot be found.
        StoreError: If another driver has it.
    """
    record = find_run(run, projects.current())
    if record.state is RunState.COMPLETED:
        return Run(record)
    where = pipeline if pipeline is not None else record.started.function
    if not where:
        raise InvalidInputError(
            f"The pipeline {record.pipeline} of run {record.id} is not at the top of a file, and cannot be found "
            "again; give it: pipelines.resume(run, function)."
        )
    function = load_from_file(where) if isinstance(where, str) else where
    check_call(function, record.params)
    request = Request(
        function=function,
        params=record.params,
        code=fingerprints(function),
        parallel=_parallel(parallel or record.started.parallel),
        use_cache=record.started.use_cache,
        watch=watch,
    )
    return Run(take_up(request, record, accept_changes=accept_changes))


def get(run: str = "last") -> Run:
    """Return a run by its id, the beginning of its id, `last`, or the last one of a pipeline by its name.

    Raises:
        NotFoundError: If there is no such run.
    """
    return Run(find_run(run, projects.current()))


def list(pipeline: str = "") -> builtins.list[Run]:
    """Return the runs of the project, or of one pipeline, the newest first."""
    return [Run(record) for record in list_runs(projects.current(), pipeline)]


def cause() -> dict[str, Any]:
    """Return what set off the run that this is called in: empty if a person did, or outside of a pipeline."""
    driver = current_driver()
    return {} if driver is None else driver.cause


def check_call(function: Any, params: dict[str, Any]) -> None:
    """Refuse what cannot be called, or not again in the same way."""
    if isinstance(function, Step) or not callable(function):
        what = f"{function.name} is a step" if isinstance(function, Step) else f"{function!r} is no function"
        raise InvalidInputError(f"{what}; a pipeline is a function that calls steps.")
    mistakes = [
        f"{name} is a {type(value).__name__}; give plain data (numbers, text, lists, dicts), such as a name or a path"
        for name, value in params.items()
        if not is_plain(value)
    ]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    if signature is not None:
        mistakes += _misfits(signature, params)
    if mistakes:
        title = getattr(function, "__name__", "the pipeline")
        raise InvalidInputError(f"The pipeline {title} cannot be called so:", mistakes)


def _misfits(signature: inspect.Signature, params: dict[str, Any]) -> builtins.list[str]:
    mistakes: builtins.list[str] = []
    known = signature.parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values())
    names = [name for name, one in known.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    if not takes_any:
        mistakes += [
            f"it has no parameter {name!r}; it has {', '.join(names) or 'none'}.{nearest(name, names)}"
            for name in params
            if name not in names
        ]
    needed = [name for name in names if known[name].default is inspect.Parameter.empty and name not in params]
    return mistakes + [f"the parameter {name!r} is missing" for name in needed]


def _absolute(place: str) -> str:
    path, separator, name = place.rpartition(":")
    return f"{os.path.abspath(os.path.expanduser(path))}:{name}" if separator else ""


def _parallel(given: int | None) -> int:
    if given is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if type(given) is not int or not 1 <= given <= math.isqrt(2**31):
        raise InvalidInputError(f"parallel must be a whole number, at least 1; {given!r} was given.")
    return given

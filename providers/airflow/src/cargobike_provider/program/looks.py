"""Looks at a project for sensors: cheap, and changes nothing."""

from __future__ import annotations

import sys
import time
from typing import Any

import cargobike
from cargobike import experiment, project
from cargobike.storage import open_storage

from .answers import experiment_reference, group_reference

Arguments = dict[str, Any]
Origin = dict[str, Any]


def look_at_experiment(arguments: Arguments, _origin: Origin) -> Any:
    """Return whether an experiment has ended, and how."""
    result = experiment.load(arguments["experiment"])
    state = str(result.state)
    return {
        "happened": state != "running",
        "state": state,
        "reason": result.reason,
        **_as_thing(experiment_reference(result)),
    }


def look_at_group(arguments: Arguments, _origin: Origin) -> Any:
    """Return whether a feature group has got rows: after a moment, or within the last seconds."""
    from cargobike import features  # noqa: PLC0415 - an extra of Cargobike

    group = features.group(arguments["group"], arguments.get("version"))
    written = [commit for commit in group.history() if commit.inserted or commit.updated]
    newest = max((commit.at for commit in written), default=0.0)
    since = arguments.get("newer_than")
    since = since if since is not None else time.time() - arguments["max_age_s"]
    return {
        "happened": newest > since,
        "state": f"last written {_ago(newest)}" if newest else "without rows",
        "written_at": newest,
        **_as_thing(group_reference(group)),
    }


def look_at_trigger(arguments: Arguments, _origin: Origin) -> Any:
    """Return what a trigger of a pipeline has seen since a mark."""
    from cargobike.core.registering.triggers import Trigger, look_of  # noqa: PLC0415 - newer than the rest of this file

    trigger = Trigger(arguments["kind"], arguments["subject"], arguments.get("options") or {})
    mark, storage = arguments.get("mark") or "", open_storage(project.path())
    # A sensor that is rescheduled looks with a new process each time: where it began is kept in the project.
    place = f"airflow/marks/{arguments['waiting']}"
    if not mark:
        mark = (storage.read(place) or b"").decode()
    seen = look_of(trigger)(trigger, mark, project.current())
    if seen.cause is not None:
        storage.delete(place)
    elif not mark:
        storage.create(place, seen.mark.encode())
    return {
        "happened": seen.cause is not None,
        "state": f"{trigger}" if seen.cause is not None else f"not {trigger.kind}",
        "mark": seen.mark,
        "cause": seen.cause,
    }


def describe_project(_arguments: Arguments, _origin: Origin) -> Any:
    """Return what a connection leads to."""
    return {
        "project": str(project.current().root),
        "cargobike": cargobike.__version__,
        "python": sys.executable,
        "experiments": len(project.experiment_ids()),
    }


def _as_thing(reference: dict[str, Any]) -> dict[str, Any]:
    return {"thing": reference}


def _ago(at: float) -> str:
    return f"{max(time.time() - at, 0):.0f} s ago"

"""The door: watch a deployment, find monitors, bring labels, compare versions."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.registering.following import Logged, log_keeper
from cargobike.core.registering.steps import own_step, step_token
from cargobike.core.registering.triggers import Trigger
from cargobike.core.values.kinds import read_count
from cargobike.core.version import __version__
from cargobike.monitoring.alarms.policy import Policy
from cargobike.monitoring.asking.choices import read_hooks, read_window
from cargobike.monitoring.asking.references import Chosen, asked_for, choose_reference
from cargobike.monitoring.asking.subjects import read_subject, rows_until_now
from cargobike.monitoring.facts import AnyMonitorFact, Hooks, MonitorChanged, MonitorStarted, SubjectKind, Watched
from cargobike.monitoring.handle import Monitor
from cargobike.monitoring.kind import MONITORS
from cargobike.monitoring.labelling.metrics import Metric, choose_metrics, name_of
from cargobike.monitoring.record import MonitorFolder, all_folders, find_record, folder_of, read_record
from cargobike.monitoring.running.keeping import Keeper, Kept
from cargobike.monitoring.running.launching import launch
from cargobike.monitoring.running.process import held
from cargobike.monitoring.watching.watching import WatchingRecord
from cargobike.store.files import project as projects
from cargobike.store.files.mirror import refresh

_ENGINES: Final = ("local", "spark")
_TYPICAL_ROWS: Final = 1000
"""For windows by time: the size that is calibrated ahead; others are when they are first met."""


@own_step("monitoring.watch", recover="cargobike.monitoring.triggering:recover_watch")
def watch(
    deployment: Any,
    reference: Any = None,
    *,
    window: int | str | timedelta = 1000,
    alarm: str = "3 of 5",
    false_alarms: float = 0.05,
    metrics: Sequence[str | Metric] = ("error",),
    columns: Sequence[str] | None = None,
    name: str = "",
    engine: str = "local",
    detach: bool = False,
    start: bool = True,
    from_beginning: bool = True,
    hooks: Hooks | None = None,
    label: str = "label",
    prediction: str = "",
    lateness: str | float | timedelta = "1min",
    least: int = 20,
    seed: int = 1,
) -> Monitor:
    """Watch what a deployment is asked and answers, and raise an alarm when it does not look like the reference.

    A process of its own follows the deployment's log, beside it. Each row of the log counts once, also when that
    process is killed and started again.

    Args:
        deployment: The name of the deployment; or a feature group, as itself or by name, `group:teams`: rows that
            are inserted from now on are compared with those that it has.
        reference: What is usual: a training dataset, a table, a path, a frame, or a `Reference`; by default what the
            served model was trained on. What the model predicts for it is watched too.
        window: How many rows are judged at once, or how long: `"1h"`. A window holds rows of one version of the model.
        alarm: How many unusual windows of how many raise an alarm.
        false_alarms: Which part of windows without a shift may be unusual, from 0.005 to 0.5.
        metrics: How errors are measured where labels come: `error`, `mae`, `mse`, `log_loss`, or functions of
            predictions and labels that return a number for each row, lower for better.
        columns: The features to judge; by default all numbers and categories.
        name: The monitor's name; by default the deployment's.
        engine: Where rows are read and summed: `local`, a process on this machine, or `spark`, a cluster, with
            `spark:MASTER` for one that Spark's own settings do not name. Both give the same windows.
        detach: Whether the process goes on when this one ends; in a pipeline it always does.
        start: Whether to start that process; else `cargobike monitor start` does.
        from_beginning: Whether what is in the log already is watched too.
        hooks: What is told of alarms besides: an address, an inbox, a program.
        label: The column of labels that says what is true.
        prediction: The column of the log that labels are about, if it has several: `output.digit`.
        lateness: How long windows by time wait for requests that come late.
        least: The fewest rows of a window that is judged.
        seed: What is random is drawn from it.

    Raises:
        NotFoundError: If there is no such deployment.
        InvalidInputError: If something cannot be used, the deployment keeps no log, or another process watches already.

    Example:
        ```python
        monitor = monitoring.watch("digits", reference=dataset, window=1000, alarm="3 of 5")
        ```
    """
    project = projects.prepare()
    kind, deployment = read_subject(deployment)
    chosen_name = name or deployment
    _check_choices(chosen_name, engine, alarm, metrics, kind)
    choice, chosen_hooks = read_window(window, lateness), read_hooks(hooks or Hooks())
    logged = log_keeper(kind).about(deployment, project)
    _check_log(deployment, logged)
    if kind == "group" and reference is None:
        reference, from_beginning = rows_until_now(deployment, project), False
    chosen = choose_reference(
        reference,
        logged,
        deployment,
        project,
        window=choice.rows or _TYPICAL_ROWS,
        false_alarms=false_alarms,
        columns=columns,
        seed=seed,
        asked=asked_for(logged, deployment, project, kind),
    )
    watched = Watched(
        subject=deployment,
        kind=kind,
        window=choice,
        alarm=str(Policy.parse(alarm)),
        false_alarms=chosen.reference.false_alarms,
        least=read_count("least", least, least=1),
        reference=chosen.name,
        reference_thing=(chosen.thing.kind, chosen.thing.name, chosen.thing.version),
        fingerprint=chosen.reference.fingerprint,
        columns=tuple(chosen.reference.columns),
        left_out=chosen.left_out,
        model=logged.model,
        metrics=tuple(name_of(one) for one in metrics),
        label=label,
        prediction=prediction,
        engine=engine,
        hooks=chosen_hooks,
    )
    folder = folder_of(project, chosen_name)
    _write_down(folder, watched, chosen, from_beginning=from_beginning)
    if start:
        launch(folder, detach=detach or bool(step_token()))  # what a step has made outlives the process that made it
    return Monitor(chosen_name, project)


def _check_choices(name: str, engine: str, alarm: str, metrics: Sequence[str | Metric], kind: SubjectKind) -> None:
    """Refuse what cannot be watched like this; names all mistakes."""
    mistakes = []
    if not MONITORS.id.fullmatch(name):
        mistakes.append(f"{name!r} can be no name of a monitor; names have letters, digits, '.', '_' and '-'")
    if engine.partition(":")[0] not in _ENGINES or engine.startswith("local:"):
        mistakes.append(f"engine={engine!r} is not known; there is {', '.join(_ENGINES)}, and 'spark:MASTER'")
    if kind == "group" and engine != "local":
        mistakes.append(f"engine={engine!r} watches logs of deployments; a feature group is watched with 'local'")
    try:
        Policy.parse(alarm)
    except InvalidInputError as error:
        mistakes.append(str(error))
    try:
        choose_metrics(metrics)
        for one in metrics:
            name_of(one)
    except InvalidInputError as error:
        mistakes.append(str(error))
    if mistakes:
        raise InvalidInputError(f"{name} cannot be watched like this.", mistakes)


def _check_log(deployment: str, logged: Logged) -> None:
    if not logged.sample:
        raise InvalidInputError(
            f"{deployment} keeps no log (sample=0), so there is nothing to watch. Deploy it with "
            "log={'sample': 0.1}, or any other share above 0."
        )


def _write_down(folder: MonitorFolder, watched: Watched, chosen: Chosen, *, from_beginning: bool) -> None:
    """Write what was asked for into the journal, and the reference beside it."""
    with held(folder):
        record = read_record(folder)
        if record is not None and record.watched == watched and folder.reference.exists():
            return
        chosen.reference.save(folder.reference)
        keeper = Keeper(folder)
        try:
            fact: AnyMonitorFact
            if record is None:
                fact = MonitorStarted(
                    at=time.time(),
                    id=folder.id,
                    watched=watched,
                    cargobike=__version__,
                    user=_user(),
                    host=socket.gethostname(),
                )
            else:
                fact = MonitorChanged(at=time.time(), watched=watched, user=_user())
            keeper.commit(_begun(folder, keeper.kept, watched, from_beginning=from_beginning), [fact])
        finally:
            keeper.close()


def _begun(folder: MonitorFolder, kept: Kept, watched: Watched, *, from_beginning: bool) -> Kept:
    """Return where watching begins: open windows of another reference are let go, the place in the log is kept."""
    position = kept.watching.position
    if not position and not from_beginning:
        follower = log_keeper(watched.kind).follow(watched.subject, folder.project)
        try:
            position = follower.end()
        finally:
            follower.close()
    judging = kept.watching.judging
    return Kept(watching=WatchingRecord(position=position, judging=judging), labelling=kept.labelling)


def monitor(name: str) -> Monitor:
    """Return a monitor of the project.

    Raises:
        NotFoundError: If there is no such monitor.
    """
    project = projects.current()
    refresh(project)
    find_record(project, name)
    return Monitor(name, project)


def list_monitors() -> list[Monitor]:
    """Return the monitors of the project, by name."""
    project = projects.current()
    refresh(project)
    return [Monitor(folder.id, project) for folder in all_folders(project)]


def drifted(deployment: str, *, kind: str = "", monitor: str = "") -> Trigger:
    """Return what sets off a pipeline when an alarm is raised: `when=monitoring.drifted("digits")`.

    The pipeline gets the alarm as its cause: what moved, since when, the window and the place in the log.

    Args:
        deployment: What is watched; a monitor of the same name, unless `monitor` says another.
        kind: `drift` for data, `error` for errors where labels come; by default both.
        monitor: The name of the monitor.

    Raises:
        InvalidInputError: If the kind is not known.
    """
    if kind not in {"", "drift", "error"}:
        raise InvalidInputError(f"kind={kind!r} is not known; give 'drift', 'error', or nothing for both.")
    return Trigger("drifted", monitor or deployment, {"kind": kind} if kind else {})


def labels(name: str, table: Any) -> int:
    """Bring labels to a monitor: rows with `request_id`, and a column that says what is true; return their number.

    The watcher joins them with what was predicted, measures errors over time, and raises an alarm where these rise.

    Args:
        name: The monitor.
        table: The labels: a frame, an Arrow table, a path, or anything else that holds rows.

    Raises:
        NotFoundError: If there is no such monitor.
        InvalidInputError: If a column is missing.
    """
    return monitor(name).label(table)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def find_page(name: str) -> str:
    """Return the address of the page of a monitor.

    Raises:
        NotFoundError: If there is no such monitor.
    """
    if read_record(folder_of(projects.current(), name)) is None:
        raise NotFoundError(f"There is no monitor {name!r}.", wanted=name)
    return f"/monitors/{name}"

"""Sensors: deferrable, so that they take no slot of a worker while they wait; or `mode="reschedule"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf

from cargobike_provider.errors import CargobikeMistake, CargobikeTaskError
from cargobike_provider.hooks.cargobike import CargobikeHook
from cargobike_provider.operators.operator import origin_of
from cargobike_provider.operators.pipelines import run_id_of
from cargobike_provider.triggers.cargobike import CargobikeTrigger, is_missing


class CargobikeSensor(BaseSensorOperator):
    """Waits until something has happened in a project.

    Args:
        cargobike_conn_id: The connection that names the project.
        project: The project, instead of the connection's.
        python: The interpreter that has Cargobike, instead of the connection's.
        must_exist: Whether what is waited for must be there already; otherwise its absence is waited out, too.
        deferrable: Whether to wait in the triggerer; by default what Airflow's configuration says.
    """

    template_fields: Sequence[str] = ("cargobike_conn_id", "project", "python")
    ui_color = "#dff0e3"

    def __init__(
        self,
        *,
        cargobike_conn_id: str = CargobikeHook.default_conn_name,
        project: str | None = None,
        python: str | None = None,
        must_exist: bool = True,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cargobike_conn_id = cargobike_conn_id
        self.project = project
        self.python = python
        self.must_exist = must_exist
        self.deferrable = deferrable

    def look(self, context: Any) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for: the action and its arguments."""
        raise NotImplementedError

    def judge(self, seen: dict[str, Any]) -> Any:
        """Return what is handed on of what has happened; raise if it is not what was waited for."""
        return seen

    def poke(self, context: Any) -> PokeReturnValue:
        """Look once."""
        hook = CargobikeHook(self.cargobike_conn_id, project=self.project, python=self.python)
        try:
            seen = hook.ask(*self.look(context), origin=origin_of(context))
        except CargobikeMistake as error:
            if self.must_exist or not is_missing(error):
                raise
            self.log.info("Not there yet: %s", error)
            return PokeReturnValue(is_done=False)
        self.log.info("%s", seen["state"])
        return (
            PokeReturnValue(is_done=True, xcom_value=self.judge(seen))
            if seen["happened"]
            else PokeReturnValue(is_done=False)
        )

    def execute(self, context: Any) -> Any:
        """Wait; deferred after a first look, which also finds mistakes."""
        if not self.deferrable:
            return super().execute(context)
        first = self.poke(context)
        if first.is_done:
            return first.xcom_value
        action, arguments = self.look(context)
        return self.defer(
            trigger=CargobikeTrigger(
                action,
                arguments,
                cargobike_conn_id=self.cargobike_conn_id,
                project=self.project,
                python=self.python,
                poke_interval=self.poke_interval,
                may_be_missing=not self.must_exist,
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute_complete(self, context: Any, event: Mapping[str, Any] | None = None) -> Any:
        """Go on after the trigger has fired."""
        if not event or "seen" not in event:
            raise CargobikeTaskError((event or {}).get("error") or "The trigger has fired without saying why.")
        self.log.info("%s", event["seen"]["state"])
        return self.judge(event["seen"])


class CargobikeExperimentSensor(CargobikeSensor):
    """Wait until an experiment has ended, whichever process runs it.

    Returns the reference that a `CargobikeExperimentOperator` returns.

    Args:
        experiment: Its id, a unique name, or the beginning of an id.
        allowed_states: How it may have ended; otherwise the sensor fails, and says how it did.
    """

    template_fields: Sequence[str] = (*CargobikeSensor.template_fields, "experiment")

    def __init__(self, *, experiment: str, allowed_states: Sequence[str] = ("completed",), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.experiment = experiment
        self.allowed_states = allowed_states

    def look(self, context: Any) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        return "look at experiment", {"experiment": self.experiment}

    def judge(self, seen: dict[str, Any]) -> Any:
        """Return a reference to the experiment; fail if it ended in another way."""
        if seen["state"] not in self.allowed_states:
            reason = f": {seen['reason']}" if seen["reason"] else ""
            raise CargobikeTaskError(f"The experiment {seen['thing']['id']} is {seen['state']}{reason}.")
        return seen["thing"]


class CargobikeFeatureGroupSensor(CargobikeSensor):
    """Wait until a feature group has got rows.

    Args:
        group: Its name.
        version: The version of its definition; by default the newest.
        newer_than: A moment after which rows must have come, as ISO 8601 text; may be a template such as
            `{{ data_interval_start }}`.
        max_age: Instead, how old its newest rows may be.
    """

    template_fields: Sequence[str] = (*CargobikeSensor.template_fields, "group", "newer_than")

    def __init__(
        self,
        *,
        group: str,
        version: int | None = None,
        newer_than: str | datetime | None = None,
        max_age: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (newer_than is None) == (max_age is None):
            raise CargobikeMistake("Give either newer_than=, a moment, or max_age=, a timedelta.")
        self.group = group
        self.version = version
        self.newer_than = newer_than
        self.max_age = max_age

    def look(self, context: Any) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        arguments: dict[str, Any] = {"group": self.group, "version": self.version}
        if self.max_age is not None:
            return "look at group", {**arguments, "max_age_s": self.max_age.total_seconds()}
        moment = self.newer_than
        try:
            moment = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
        except ValueError as error:
            raise CargobikeMistake(
                f"newer_than={self.newer_than!r} is no moment; write 2026-11-17T03:00:00+01:00."
            ) from error
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return "look at group", {**arguments, "newer_than": moment.timestamp()}

    def judge(self, seen: dict[str, Any]) -> Any:
        """Return a reference to the group, with its commit."""
        return {**seen["thing"], "written_at": seen["written_at"]}


class CargobikeDriftSensor(CargobikeSensor):
    """Wait for an alarm of a monitor.

    Args:
        subject: What is watched: the name of the deployment, feature group or monitor.
        since: A mark of an earlier look (`mark` of what this sensor returned), after which an alarm must have come; by
            default the moment of the first look.
        trigger_options: Options of `monitoring.drifted`.
    """

    template_fields: Sequence[str] = (*CargobikeSensor.template_fields, "subject", "since")

    def __init__(
        self,
        *,
        subject: str,
        since: str | None = None,
        trigger_options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.subject = subject
        self.since = since
        self.trigger_options = trigger_options

    def look(self, context: Any) -> tuple[str, dict[str, Any]]:
        """Return what the program is asked for."""
        return "look at trigger", {
            "kind": "drifted",
            "subject": self.subject,
            "options": dict(self.trigger_options or {}),
            "mark": self.since or "",
            "waiting": run_id_of(origin_of(context)),
        }

    def judge(self, seen: dict[str, Any]) -> Any:
        """Return what caused the alarm, with the mark to look on from."""
        return {"kind": "alarm", "subject": self.subject, "cause": seen["cause"], "mark": seen["mark"]}

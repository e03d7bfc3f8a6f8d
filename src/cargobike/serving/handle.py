"""The handle of a deployment: predict, release, scale, look, stop; from any process of the same user and machine."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from cargobike.core.errors import DeploymentError, InvalidInputError, WaitError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.steps import Kept, own_step, step_token
from cargobike.serving.facts import Plan
from cargobike.serving.kind import DEPLOYMENTS
from cargobike.serving.predicting import Client
from cargobike.serving.record import DeploymentFolder, Moment, find_record, folder_of, read_record
from cargobike.serving.specification import Limits
from cargobike.serving.status import Status
from cargobike.serving.supervising.calling import call
from cargobike.serving.supervising.launching import await_end
from cargobike.serving.supervising.leaving import end_left_behind
from cargobike.serving.supervising.logs import read_logs
from cargobike.serving.supervising.runtime import runtime_folder
from cargobike.store.files.locking import holds_lock
from cargobike.store.files.storages import storage_of

_BEYOND_S: Final = 60.0
_END_S: Final = 30.0
_LOOK_S: Final = 0.2

Judge = Callable[[Status], bool | None]
"""Decides about a version that is watched: `True` promotes it, `False` takes it back, `None` goes on watching."""


class Deployment:
    """A model that is served.

    Returned by `serving.deploy` and `serving.deployment`. As a context manager it stops the deployment at its end.

    Attributes:
        name: Its name in the project.
        token: What callers must send, if `deploy` made or got one; empty in other processes.
    """

    def __init__(self, name: str, project: ProjectFolder, *, token: str = "", pid: int = 0) -> None:
        self.name = name
        self.token = token
        self._project = project
        self._runtime = runtime_folder(project, name)
        self._client: Client | None = None
        self._pid = pid

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        return Kept("deployment", self.name)

    @property
    def folder(self) -> DeploymentFolder:
        """Its folder in the project."""
        return folder_of(self._project, self.name)

    @property
    def url(self) -> str:
        """The address of the endpoint; the same after it was lost and started again."""
        return self.status().url

    def predict(self, rows: Any, *, timeout_s: float = 30.0) -> Any:
        """Return the answer to a row, or the answers to a list of rows, in their order.

        Args:
            rows: A row (a dict by field, or the bare value of a model with one field), or a list of them.
            timeout_s: How long at most; while the endpoint comes back from a loss, this waits.

        Raises:
            InvalidInputError: If a row does not fit the model; says which field.
            PredictionError: If the model raised an error.
            WaitError: If there was no answer in time.
        """
        if self._client is None:
            specification = find_record(self._project, self.name).specification
            self._client = Client(self.url, self.token, specification.tls_certificate)
        return self._client.predict(rows, timeout_s)

    @own_step("deployment.roll", recover="cargobike.serving.recovering:recover_roll")
    def roll(
        self,
        model: str | Any,
        *,
        canary: float = 0.0,
        shadow: bool = False,
        by: str = "",
        watch: Plan | None = None,
        judge: Judge | None = None,
        timeout_s: float = 600.0,
    ) -> Status:
        """Bring in another version without losing a request: start, warm up, check, shift, drain.

        The version that serves goes on until the new one is ready; if that cannot be loaded, nothing changes. With
        `canary` or `shadow` this returns when the new version gets its share; then it is promoted, or taken back, by
        its errors and its latency, by `judge`, or by `promote` and `rollback`.

        Args:
            model: A version of the same model: `digits:4`, `digits@champion`, or what `models.register` returned.
            canary: The share of requests that it gets at first, such as 0.1.
            shadow: Whether it gets copies of requests; its answers are compared with those that are served.
            by: A field by whose values requests are shared out, so that each value meets one version (A/B). Such a
                version stays until `promote` or `rollback`.
            watch: When to promote a canary, and when to take it back: a `Plan`.
            judge: A function of yours that decides; it gets the `Status`, again and again, until it returns `True`
                or `False`.
            timeout_s: How long to wait; for `judge` too.

        Raises:
            DeploymentError: If the version could not be brought in; says why, with the model's own error.
            WaitError: If `judge` has not decided in time; the version was taken back.
        """
        if not 0.0 <= canary < 1.0:
            raise InvalidInputError(f"canary={canary!r} was given; it is a share of requests, from 0 to below 1.")
        if by and not canary:
            raise InvalidInputError(f"by={by!r} needs canary=, the share of values that meets the new version.")
        plan = msgspec.structs.replace(watch or Plan(), canary=canary, shadow=shadow, by=by)
        if judge is not None or by:
            plan = msgspec.structs.replace(plan, decide=False)
        reference = model if isinstance(model, str) else f"{model.name}:{model.version}"
        body = {"model": reference, "plan": msgspec.to_builtins(plan), "step": step_token()}
        self._call("roll", body, timeout_s)
        return self.status() if judge is None else self.judged(judge, timeout_s)

    def judged(self, judge: Judge, timeout_s: float) -> Status:
        """Wait until a function has decided about the version that is watched; internal."""
        give_up_at = time.monotonic() + timeout_s
        while time.monotonic() < give_up_at:
            status = self.status()
            if not status.candidate:
                raise DeploymentError(status.last_error or "The version was taken back meanwhile.")
            verdict = judge(status)
            if verdict is True:
                return self.promote()
            if verdict is False:
                return self.rollback(reason="judge said no")
            time.sleep(_LOOK_S)
        self.rollback(reason="judge did not decide in time")
        raise WaitError(f"judge has not decided within {timeout_s:g} s; the version was taken back.")

    @own_step("deployment.promote", recover="cargobike.serving.recovering:recover_promote")
    def promote(self, *, timeout_s: float = 600.0) -> Status:
        """Give all requests to the version that is watched."""
        self._call("promote", {}, timeout_s)
        return self.status()

    @own_step("deployment.rollback", recover="cargobike.serving.recovering:recover_rollback")
    def rollback(self, *, reason: str = "", timeout_s: float = 600.0) -> Status:
        """Take back the version that is being brought in; else go back to the one that served before."""
        self._call("rollback", {"reason": reason, "step": step_token()}, timeout_s)
        return self.status()

    @own_step("deployment.scale")
    def scale(self, replicas: int | tuple[int, int]) -> Status:
        """Change how many replicas there are: a number, or the fewest and the most."""
        least, most = (replicas, replicas) if isinstance(replicas, int) else replicas
        self._call("scale", {"least": least, "most": most}, 30.0)
        return self.status()

    def status(self) -> Status:
        """Return how it is doing; from the journal, if it does not run."""
        try:
            return msgspec.convert(call(self._runtime, "status"), Status, strict=False)
        except ConnectionError:
            return self._status_of_journal()

    def history(self) -> list[Moment]:
        """Return what happened to it, in words, with times."""
        return find_record(self._project, self.name).history

    def logs(self, *, replica: int | None = None, lines: int = 200) -> str:
        """Return the last lines that its processes printed: of all replicas, or of one."""
        return read_logs(self.folder, replica=replica, lines=lines)

    @own_step("deployment.stop")
    def stop(self, *, timeout_s: float | None = None) -> None:
        """Answer what is there, and end all its processes; does nothing if it does not run.

        Args:
            timeout_s: How long at most; by default as long as requests may take, and half a minute.

        Raises:
            DeploymentError: If it has not ended by then.
        """
        pid = self._pid
        if timeout_s is None:
            record = read_record(self.folder)
            timeout_s = _END_S + (Limits() if record is None else record.specification.limits).stop_s
        with contextlib.suppress(ConnectionError):
            pid = int(call(self._runtime, "status")["pid"])
            call(self._runtime, "stop", {}, timeout_s)
        if self._client is not None:
            self._client.close()
        if pid and not await_end(pid, timeout_s):
            raise DeploymentError(f"{self.name} has not ended within {timeout_s:g} s; its supervisor is process {pid}.")
        if not holds_lock(self.folder):
            end_left_behind(self._project, self.name)

    def remove(self) -> None:
        """Stop it, and delete everything it has kept: its journal, and its log of requests."""
        self.stop()
        storage = storage_of(self._project)
        for entry in list(storage.list(DEPLOYMENTS.place(self.name), deep=True)):
            storage.delete(entry.path)  # where the project is on shared storage, the log of requests lies there
        shutil.rmtree(self.folder.root, ignore_errors=True)

    def __enter__(self) -> Deployment:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        status = self.status()
        where = f" at {status.url}" if status.state not in {"stopped", "lost"} else ""
        return f"<Deployment {self.name}: {status.model}, version {status.version}, {status.state}{where}>"

    def _call(self, verb: str, body: dict[str, Any], timeout_s: float) -> Any:
        try:
            return call(self._runtime, verb, body, timeout_s)
        except ConnectionError as error:
            find_record(self._project, self.name)
            raise DeploymentError(
                f"{self.name} is not being served; start it with `cargobike deployments start {self.name}`."
            ) from error

    def _status_of_journal(self) -> Status:
        record = find_record(self._project, self.name)
        specification = record.specification
        return Status(
            name=self.name,
            model=specification.model,
            state="stopped" if record.is_stopped else "starting" if holds_lock(self.folder) else "lost",
            url=record.url,
            grpc_address=record.grpc_address,
            version=record.current,
            previous=record.previous,
            least=record.least,
            most=record.most,
        )

"""A pod from its first probe to its last answer: model and view from a project on S3, features from Redis."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import yaml

from cargobike import features, models, project, serving
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.serving.commands.shipping import Shipping, ship
from cargobike.serving.specification import Specification
from support.cluster_requests import asked
from support.grpc_calls import Calls, infer_request
from support.pods import HEADERS, TOKEN, Pod
from support.redis_server import RedisServer

CALLERS = 8


def values(rows: list[dict[str, Any]]) -> list[float]:
    """Answer after a moment, so that requests are there when the pod is told to end."""
    time.sleep(0.01)
    return [row["budget"] * row["fans"] for row in rows]


@pytest.fixture
def team(
    storage_url: Callable[[str], str], redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Return a project on S3 with a model, and a view whose rows are in Redis."""
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "here"))
    url = storage_url("moto")
    project.use(url)
    teams = features.create_group("teams", key="team_id", online=redis_server.url)
    teams.insert({"team_id": [1, 2, 3], "budget": [10.0, 20.0, 30.0], "fans": [1.0, 2.0, 3.0]})
    features.create_view("value", features=["budget", "fans"])
    models.register("digits", values, example=[{"budget": 1.0, "fans": 2.0}])
    yield url
    project.use(None)


class Caller(threading.Thread):
    """Asks on one connection for as long as it is kept open, as clients behind a Service do."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.statuses: list[int] = []
        self.was_asked_to_close = False
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with httpx.Client(headers=HEADERS, timeout=60) as client:
                while not self.was_asked_to_close:
                    answer = client.post(f"{self.address}/predict", json=[{"team_id": 2}])
                    assert answer.json() == [40.0]
                    self.statuses.append(answer.status_code)
                    self.was_asked_to_close = answer.headers.get("connection") == "close"
        except Exception as error:
            self.error = error


@pytest.mark.slow
def test_a_pod_under_load_ends_without_a_failed_request(team: str, tmp_path: Path) -> None:
    wanted = asked(1, view="value:1", grpc_port=0, project_url=team, pulls_model=True, environment={"GREETING": ""})
    pod = Pod(tmp_path / "pod", wanted, {"GREETING": "hello"}, leave_s=2.0)
    try:
        pod.await_ready()
        with Calls(f"127.0.0.1:{pod.grpc_port}", TOKEN) as calls:
            answer = calls("ModelInfer", infer_request("digits", {"team_id": ("INT64", [1], [3])}))
            assert list(answer.outputs[0].contents.fp64_contents) == [90.0]
        callers = [Caller(pod.address) for _ in range(CALLERS)]
        for caller in callers:
            caller.start()
        _await(lambda: all(len(caller.statuses) > 5 for caller in callers))
        pod.process.send_signal(signal.SIGTERM)
        _await(lambda: not pod.is_ready())
        late = httpx.post(f"{pod.address}/predict", json=[{"team_id": 1}], headers=HEADERS)
        assert late.json() == [10.0], "what is sent although it is not ready any more is answered, too"
        assert late.headers["connection"] == "close"
        for caller in callers:
            caller.join(60)
        pod.process.wait(60)
    finally:
        output = pod.close()
    assert [caller.error for caller in callers] == [None] * CALLERS
    assert all(caller.was_asked_to_close for caller in callers)
    assert {status for caller in callers for status in caller.statuses} == {200}
    assert pod.process.returncode == 0, output
    assert TOKEN not in output
    answered = sum(len(caller.statuses) for caller in callers) + 2
    assert serving.read_log("digits").num_rows == answered, "files in the project outlive the pod"


def test_a_pod_that_cannot_reach_its_model_says_so(tmp_path: Path, storage_url: Callable[[str], str]) -> None:
    pod = Pod(tmp_path / "pod", asked(7, pulls_model=True, project_url=storage_url("moto")))
    try:
        pod.process.wait(60)
    finally:
        output = pod.close()
    assert pod.process.returncode == 1
    assert "digits:7 cannot be taken from s3://" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_calls_over_grpc_go_to_another_pod_without_a_failed_one(tmp_path: Path) -> None:
    project.use(tmp_path / "project")
    version = models.register("digits", slowly, example=[1.0])
    pods = []
    for name in ("one", "other"):
        version.copy_to(ProjectFolder(tmp_path / name / "project"))
        pods.append(Pod(tmp_path / name, asked(1, grpc_port=0), leave_s=1.0))
    try:
        for pod in pods:
            pod.await_ready()
        addresses = ",".join(f"127.0.0.1:{pod.grpc_port}" for pod in pods)
        channel = grpc.insecure_channel(f"ipv4:{addresses}", options=[("grpc.lb_policy_name", "round_robin")])
        with Calls.over(channel, TOKEN) as calls:
            callers = [Repeating(calls) for _ in range(CALLERS)]
            for caller in callers:
                caller.start()
            _await(lambda: all(caller.answered > 5 for caller in callers))
            pods[0].process.send_signal(signal.SIGTERM)
            pods[0].process.wait(60)
            before = [caller.answered for caller in callers]
            _await(lambda: all(caller.answered > count + 5 for caller, count in zip(callers, before, strict=True)))
            for caller in callers:
                caller.has_enough.set()
            for caller in callers:
                caller.join(60)
    finally:
        for pod in pods:
            pod.process.send_signal(signal.SIGTERM)
            pod.process.wait(60)
            pod.close()
    assert [caller.error for caller in callers] == [None] * CALLERS


def slowly(rows: list[float]) -> list[float]:
    time.sleep(0.01)
    return rows


class Repeating(threading.Thread):
    """Calls again and again, over a channel that knows both pods."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self.calls = calls
        self.answered = 0
        self.error: Exception | None = None
        self.has_enough = threading.Event()

    def run(self) -> None:
        request = infer_request("digits", {"input": ("FP64", [1], [1.0])})
        while not self.has_enough.is_set() and self.error is None:
            try:
                self.calls("ModelInfer", request)
                self.answered += 1
            except grpc.RpcError as error:
                self.error = error


def _await(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_what_pods_need_from_the_project_is_rendered_and_what_they_cannot_reach_refused(
    team: str, tmp_path: Path
) -> None:
    wanted = Specification(name="digits", model="digits:1", grpc_port=0)
    ship(wanted, Shipping("kubernetes", tmp_path / "ship", image="digits:1", pulls_model=True))
    (config, deployment, *_) = yaml.safe_load_all((tmp_path / "ship" / "kubernetes.yaml").read_text())
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"][-2:] == ["--pull", team]
    assert json.loads(config["data"]["deployment.json"])["logging"]["url"] == team
    assert '"cargobike[serving,grpc,s3]==' in (tmp_path / "ship" / "Dockerfile").read_text()
    with pytest.raises(InvalidInputError, match=r"group teams are behind a socket of this host.*update\(online='redis"):
        ship(Specification(name="digits", model="digits:1", view="value"), Shipping("kubernetes"))

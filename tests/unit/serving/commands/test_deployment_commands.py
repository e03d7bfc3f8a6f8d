"""`cargobike serve` and `cargobike deployments`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml
from typer.testing import CliRunner, Result

from cargobike import serving
from cargobike.cli.app import app
from support.deployments import Times, all_processes, lives, register, wait_until
from support.scripts import environment


def call(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result


def answer(*words: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(call(*words, "--json").stdout)
    return found


@pytest.fixture
def in_background() -> Iterator[dict[str, object]]:
    register("times", Times(1))
    register("times", Times(2))
    yield answer("serve", "times:1", "--detach", "--replicas", "1:2", "--grpc-port", "0")
    if serving.list_deployments():
        serving.deployment("times").stop()


def shipped() -> dict[str, str]:
    """Return the configuration of a cluster for what is served here."""
    (config, *more) = yaml.safe_load_all(call("deployments", "ship", "times", "--render", "kubernetes").stdout)
    assert {one["kind"] for one in more} >= {"Deployment", "Service", "HorizontalPodAutoscaler"}
    data: dict[str, str] = config["data"]
    return data


def test_a_deployment_in_the_background_is_listed_rolled_scaled_and_removed(in_background: dict[str, object]) -> None:
    assert (in_background["state"], in_background["version"], in_background["token"]) == ("serving", 1, "")
    assert serving.deployment("times").predict(4) == [1, 4]
    assert "times:1" in call("deployments", "ls").stdout
    [listed] = json.loads(call("deployments", "ls", "--json").stdout)
    assert (listed["name"], listed["url"]) == ("times", in_background["url"])
    assert answer("deployments", "roll", "times", "times:2")["version"] == 2
    assert answer("deployments", "rollback", "times")["version"] == 1
    assert json.loads(shipped()["deployment.json"])["model"] == "times:1"
    call("deployments", "ship", "times", code=1)
    scaled = answer("deployments", "scale", "times", "2:3")
    assert (scaled["least"], scaled["most"]) == (2, 3)
    call("deployments", "roll", "times", "times:2", "--canary", "0.5", "--watch", "600")
    shown = answer("deployments", "show", "times")
    assert (shown["state"], shown["candidate"], shown["routes"]) == ("releasing", 2, {"1": 0.5, "2": 0.5})
    text = call("deployments", "show", "times").stdout
    assert "version 2: gets 50%" in text
    assert f"grpc      {in_background['grpc_address']}" in text
    assert "version 2 is being brought in" in text
    assert answer("deployments", "promote", "times")["version"] == 2
    assert "--- front" in call("deployments", "logs", "times").stdout
    assert call("deployments", "stop", "times").stdout == "times is stopped.\n"
    again = answer("deployments", "start", "times")
    assert (again["version"], again["grpc_address"]) == (2, in_background["grpc_address"])
    assert serving.deployment("times").predict(4) == [2, 4]
    call("deployments", "rm", "times", "--yes")
    assert serving.list_deployments() == []
    assert "no deployments" in call("deployments", "ls").stdout


def test_ctrl_c_drains_and_leaves_nothing() -> None:
    register("times", Times(1))
    command = [sys.executable, "-m", "cargobike.cli", "serve", "times", "--token", "new"]
    variables = {**environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("times serves times, version 1, at http://127.0.0.1:")
        curl = process.stdout.readline()
        token = curl.partition("Bearer ")[2].partition("'")[0]
        assert serving.deployment("times", token=token).predict(3) == [1, 3]
        pids = all_processes(serving.deployment("times"))
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 0
    wait_until(lambda: not any(map(lives, pids)))
    assert serving.deployment("times").status().state == "stopped"


def test_what_is_wrong_is_said_in_a_sentence() -> None:
    assert "nothing" in call("serve", "nothing", code=1).output
    assert "--json needs --detach" in call("serve", "nothing", "--json", code=2).output
    assert "such as 1:4" in call("serve", "nothing", "--replicas", "many", code=2).output
    assert "no deployment 'nothing'" in call("deployments", "show", "nothing", code=1).output

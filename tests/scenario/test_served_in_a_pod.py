"""What the container of a pod runs: a copy of one version, tokens of a folder, and an end that loses no request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import yaml

from cargobike import models, project
from cargobike.core.settings import CACHE, PROJECT
from cargobike.serving.commands.shipping import Shipping, ship
from cargobike.serving.specification import Specification
from support.pods import TOKEN, free_port


def slow_twice(rows: list[Any]) -> list[Any]:
    """Answer a text only when a file with that name is gone."""
    for row in rows:
        if row.startswith("/"):
            print("a slow one", flush=True)
            Path(row + ".begun").touch()
            while Path(row).exists():
                time.sleep(0.02)
    return [row * 2 for row in rows]


def test_a_pod_serves_its_version_and_answers_what_it_has_before_it_ends(tmp_path: Path) -> None:
    project.use(tmp_path / "project")
    for _ in range(2):
        models.register("digits", slow_twice, example=["a"])
    models.get("digits:1").promote("champion")
    ship(
        Specification(name="digits", model="digits@champion"),
        Shipping(target="kubernetes", output=tmp_path / "ship", image="registry.example/digits:1"),
    )
    (config, *_) = yaml.safe_load_all((tmp_path / "ship" / "kubernetes.yaml").read_text())
    asked = msgspec.json.decode(config["data"]["deployment.json"], type=Specification)
    assert (asked.model, asked.version) == ("digits:1", 1)
    port = free_port()
    assert asked.limits.leave_s > 0
    limits = msgspec.structs.replace(asked.limits, leave_s=0.2)
    local = msgspec.structs.replace(asked, host="127.0.0.1", port=port, limits=limits)
    (tmp_path / "deployment.json").write_bytes(msgspec.json.encode(local))
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "predict").write_text(f"{TOKEN}\n")
    command = ["serve", "--specification", str(tmp_path / "deployment.json"), "--tokens", str(tmp_path / "tokens")]
    pod = subprocess.Popen(
        [sys.executable, "-m", "cargobike.cli", *command],
        env={**os.environ, PROJECT: str(tmp_path / "ship" / "project"), CACHE: str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        printed = _answer_during_the_end(pod, f"http://127.0.0.1:{port}", tmp_path)
    finally:
        if pod.poll() is None:
            pod.kill()
        rest = pod.communicate()[0]
    output = printed + rest
    assert pod.returncode == 0, output
    assert TOKEN not in output
    assert "replica-1: a slow one" in output, "what a cluster collects"


def _answer_during_the_end(pod: subprocess.Popen[str], address: str, tmp_path: Path) -> str:
    """Return what was printed until it began to end."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    give_up_at = time.monotonic() + 60
    while True:
        try:
            if httpx.get(f"{address}/v2/health/ready").status_code == 200:
                break
        except httpx.TransportError:
            pass
        assert pod.poll() is None
        assert time.monotonic() < give_up_at
        time.sleep(0.1)
    assert httpx.post(f"{address}/predict", json=["ab"]).status_code == 401
    assert httpx.post(f"{address}/predict", json=["ab"], headers=headers).json() == ["abab"]
    figures = httpx.get(f"{address}/metrics", headers=headers).text
    for source in ("cargobike_rows_in_flight", "cargobike_requests_total", "cargobike_longest_wait_seconds"):
        assert f'{source}{{deployment="digits"}} ' in figures, "what the autoscaler of a cluster is told to follow"
    gate = tmp_path / "gate"
    gate.touch()
    answers: list[httpx.Response] = []
    asking = threading.Thread(
        target=lambda: answers.append(httpx.post(f"{address}/predict", json=[str(gate)], headers=headers, timeout=60))
    )
    asking.start()
    while not gate.with_name("gate.begun").exists():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
    pod.send_signal(signal.SIGTERM)
    printed = ""
    for line in pod.stdout or ():
        printed += line
        if "Answering what is there" in line:
            break
    gate.unlink()
    asking.join(60)
    pod.wait(60)
    assert [answer.status_code for answer in answers] == [200]
    return printed

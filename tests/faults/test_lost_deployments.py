"""Whatever dies in a deployment: requests are answered, the next process takes over, nothing is left."""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import subprocess
import sys
import textwrap

import pytest

from cargobike import serving
from cargobike.core.errors import DeploymentError, NotFoundError, PredictionError
from cargobike.serving.tracing import edges
from cargobike.store.files import project
from support.deployments import (
    Requests,
    Times,
    Unloadable,
    all_processes,
    kill,
    lives,
    register,
    replica_processes,
    served,
    short_lived,
    wait_until,
)
from support.scripts import environment


def test_rolls_under_load_with_replicas_killed_fail_no_request() -> None:
    draw = random.Random(7)
    with served(replicas=2) as deployment:
        register("times", Times(2))
        with Requests(deployment.url) as requests:
            for number in range(8):
                requests.wait_for_all()  # one that was at two replicas which died may be to blame for that
                kill(draw.choice(replica_processes(deployment)).pid)
                deployment.roll(f"times:{2 - number % 2}")
            requests.wait_for(20)
        assert requests.failures == []
        assert requests.versions == {1, 2}
        assert deployment.status().traffic.failed == 0


def test_a_version_that_cannot_be_loaded_leaves_the_other_serving() -> None:
    with served() as deployment:
        register("times", Unloadable(2))
        with Requests(deployment.url) as requests:
            with pytest.raises(DeploymentError, match="the weights are not there"):
                deployment.roll("times:2")
            requests.wait_for(20)
        assert (requests.failures, requests.versions) == ([], {1})
        assert "the weights are not there" in deployment.status().last_error
        assert any("version 2 failed" in moment.text for moment in deployment.history())


def test_a_first_version_that_cannot_be_loaded_leaves_nothing() -> None:
    with pytest.raises(DeploymentError, match="the weights are not there"):
        serving.deploy("times", Unloadable(1))
    assert serving.deployment("times").status().state == "stopped"


def test_a_replica_that_crashes_or_hangs_costs_only_the_request_that_did_it() -> None:
    with served(replicas=2, limits={"predict_s": 1.0}) as deployment:
        with Requests(deployment.url, threads=2) as requests:
            requests.wait_for(10)
            with pytest.raises(PredictionError, match="replica ended"):
                deployment.predict("segfault")
            with pytest.raises(PredictionError, match="did not answer in time"):
                deployment.predict("hang")
            requests.wait_for(50)
        assert requests.failures == []
        wait_until(lambda: deployment.status().ready == 2)
        ends = [moment.text for moment in deployment.history() if "ended" in moment.text]
        assert any("SIGSEGV" in text for text in ends)


def test_a_replica_that_leaks_is_replaced_without_a_gap() -> None:
    with served(limits={"memory_bytes": 150 << 20}) as deployment:
        before = deployment.predict("pid")
        with Requests(deployment.url, threads=1) as requests:
            deployment.predict("leak")
            wait_until(lambda: deployment.predict("pid") != before)
            requests.wait_for(10)
        assert requests.failures == []


def test_a_front_that_is_killed_comes_back_on_the_same_port() -> None:
    with served(replicas=2) as deployment:
        url, before = deployment.url, {each.pid for each in replica_processes(deployment)}
        with Requests(url, retries=True) as requests:
            requests.wait_for(20)
            kill(deployment.status().front_pid)
            requests.wait_for(200)
        assert requests.failures == []
        assert deployment.url == url
        assert {each.pid for each in replica_processes(deployment)} == before


def test_a_host_that_is_killed_is_replaced_with_its_replicas() -> None:
    with served(replicas=2) as deployment:
        with Requests(deployment.url, retries=True) as requests:
            requests.wait_for(20)
            kill(*deployment.status().host_pids)
            requests.wait_for(50)
        # Both replicas die at once: what the second got from the first has been tried at two, and may be to blame.
        assert len(requests.failures) <= 4
        assert all("tried at two replicas" in failure for failure in requests.failures)
        wait_until(lambda: deployment.status().ready == 2)


def test_a_new_supervisor_adopts_what_serves_without_a_gap() -> None:
    deployment = serving.deploy("times", Times(1), replicas=2, detach=True)
    try:
        register("times", Times(2))
        before = deployment.status()
        replicas = {each.pid for each in replica_processes(deployment)}
        with Requests(before.url) as requests:
            requests.wait_for(20)
            kill(before.pid)
            wait_until(lambda: not lives(before.pid))
            assert deployment.status().state == "lost"
            requests.wait_for(50)
            serving.start("times", detach=True)
            after = deployment.status()
            requests.wait_for(50)
            deployment.roll("times:2")
            requests.wait_for(20)
        assert requests.failures == []
        assert requests.versions == {1, 2}
        assert after.pid != before.pid
        assert (after.url, after.front_pid, after.host_pids) == (before.url, before.front_pid, before.host_pids)
        assert {each.replica for each in after.replicas} == {each.replica for each in before.replicas}
        assert replicas
        kill(deployment.status().front_pid)  # the socket was handed on, too
        assert deployment.predict(5) == [2, 5]
    finally:
        deployment.stop()


def test_everything_killed_at_once_starts_again_as_it_was() -> None:
    deployment = serving.deploy("times", Times(1), detach=True)
    try:
        register("times", Times(2))
        deployment.roll("times:2")
        deployment.scale((2, 3))
        url, pids = deployment.url, all_processes(deployment)
        assert len(pids) >= 4
        kill(*pids)
        wait_until(lambda: not any(map(lives, pids)))
        serving.start("times", detach=True)
        status = deployment.status()
        assert (status.url, status.version, status.previous, status.least, status.most) == (url, 2, 1, 2, 3)
        assert deployment.predict(5) == [2, 5]
        deployment.rollback()
        assert deployment.predict(5) == [1, 5]
    finally:
        deployment.stop()


def test_what_a_lost_supervisor_left_ends_by_itself() -> None:
    deployment = short_lived("times", Times(1), 0.5)
    pids = all_processes(deployment)
    kill(pids[0])
    wait_until(lambda: not any(map(lives, pids)))
    assert deployment.status().state == "lost"
    deployment.stop()
    assert deployment.status().state == "stopped"


def test_what_a_lost_supervisor_left_can_be_stopped() -> None:
    deployment = serving.deploy("times", Times(1), detach=True)
    pids = all_processes(deployment)
    kill(pids[0])
    deployment.stop()
    assert not any(map(lives, pids))
    assert deployment.status().state == "stopped"


def test_a_second_supervisor_is_refused_and_told_which_has_it() -> None:
    with served() as deployment:
        pid = deployment.status().pid
        with pytest.raises(DeploymentError, match=f"times is being served by process {pid}"):
            serving.start("times")
        assert deployment.predict(3) == [1, 3]


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DeploymentError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            serving.deploy("times", Times(1), port=port)
    assert serving.deployment("times").status().state == "stopped", "it is not lost: it never ran"
    assert list(edges(project.current())) == [], "it keeps no version from being removed"


def test_an_alias_to_nothing_deploys_nothing() -> None:
    register("times", Times(1))
    with pytest.raises(NotFoundError):
        serving.deploy("times", "times@champion")
    with pytest.raises(NotFoundError):
        serving.deploy("other", "nothing:1")
    assert serving.list_deployments() == []


def test_a_full_disk_is_shown_and_serving_goes_on() -> None:
    with served() as deployment:
        register("times", Times(2))
        size = deployment.folder.journal.stat().st_size
        pid = deployment.status().pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        with Requests(deployment.url) as requests:
            deployment.roll("times:2")
            requests.wait_for(20)
        assert requests.failures == []
        assert "no room left" in deployment.status().trouble
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        deployment.scale(2)
        assert deployment.status().trouble == ""
    texts = [moment.text for moment in deployment.history()]
    assert "version 2 released" in texts


def test_secrets_are_in_no_file_that_others_read() -> None:
    token = "a-token-of-more-than-sixteen"
    with served(token=token, environment={"PASSWORD": "hunter-two-and-more"}) as deployment:
        assert deployment.predict(3) == [1, 3]
        with pytest.raises(DeploymentError, match="token"):
            serving.deployment("times").predict(3)
        files = [path for path in deployment.folder.root.rglob("*") if path.is_file()]
        assert deployment.folder.secrets in files
        assert deployment.folder.secrets.stat().st_mode & 0o077 == 0
        for path in files:
            data = path.read_bytes()
            assert token.encode() not in data
            if path != deployment.folder.secrets:
                assert b"hunter-two" not in data


def test_a_deployment_ends_with_the_process_that_made_it_even_if_that_is_killed() -> None:
    script = """
        import json, os, sys
        from cargobike import serving
        from support.deployments import Times, all_processes
        deployment = serving.deploy("times", Times(1))
        print(json.dumps(all_processes(deployment)), flush=True)
        os.kill(os.getpid(), 9)
    """
    pids = _last_line(script)
    assert len(pids) == 4
    wait_until(lambda: not any(map(lives, pids)))
    assert serving.deployment("times").status().state == "stopped"


def _last_line(script: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=project.current().root,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    found: list[int] = json.loads(done.stdout.splitlines()[-1])
    return found

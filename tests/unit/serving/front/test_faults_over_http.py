"""Models that raise, crash, hang, drop rows or return nonsense; replicas and fronts that are killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cargobike.serving.specification import Limits
from cargobike.serving.wire import (
    Drained,
    Expect,
    FrontIs,
    Leave,
    Load,
    ReplicaGone,
    ReplicaReady,
    Route,
    Routes,
    framed,
)
from support.served import Deployment, post, serving


@pytest.fixture(scope="module")
def identity() -> Iterator[Deployment]:
    """A model that breaks as it is told."""
    with serving("identity") as deployment:
        yield deployment


def problem_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def test_a_row_that_raises_is_named_and_costs_no_other_request(identity: Deployment) -> None:
    status, words = problem_of(post(identity, "/predict", [5, 888]))
    assert (status, words) == (500, "row 1: The model raised ValueError: 888 is not a number for me")
    assert post(identity, "/predict", [5, 6]).json() == [5, 6]


def test_a_wrong_number_of_answers_is_an_error_that_names_both(identity: Deployment) -> None:
    status, words = problem_of(post(identity, "/predict", [999]))
    assert (status, "returned 0 answers for 1 rows" in words) == (500, True)


def test_a_model_that_hangs_is_given_up_and_tried_once_more() -> None:
    with serving("identity", replicas=2, limits=Limits(predict_s=0.3)) as deployment:
        status, words = problem_of(post(deployment, "/predict", 777))
        assert (status, "did not answer in time and was given up. It was tried at two" in words) == (502, True)
        assert deployment.wait_for(ReplicaGone).why == "hung"
        deployment.start_replica(11)
        assert post(deployment, "/predict", 5).json() == 5


def test_a_row_that_crashes_replicas_ends_with_502_and_the_others_are_answered() -> None:
    answers: dict[int, Any] = {}

    def ask(row: int) -> None:
        answers[row] = post(deployment, "/predict", row)

    with serving("identity", replicas=3) as deployment:
        askers = [threading.Thread(target=ask, args=(row,)) for row in (1, 2, 666, 3, 4)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
    assert problem_of(answers.pop(666))[0] == 502
    assert {row: answer.json() for row, answer in answers.items()} == {1: 1, 2: 2, 3: 3, 4: 4}


def test_answers_that_are_no_numbers_are_not_sent() -> None:
    with serving("nan") as deployment:
        status, words = problem_of(post(deployment, "/predict", [1, -1]))
        assert (status, words) == (
            500,
            "row 1: The model raised PredictionError: Answers cannot be sent: answer 0, field 'y': nan was given; "
            "numbers must be finite",
        )


def test_a_replica_that_is_killed_loses_no_request(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    deployment = Deployment("gated")
    try:
        deployment.start_front()
        deployment.start_replica(1, GATE=str(gate))
        answers: list[Any] = []
        askers = [
            threading.Thread(target=lambda row=row: answers.append(post(deployment, "/predict", {"row": row}).json()))
            for row in range(4)
        ]
        for asker in askers:
            asker.start()
        deployment.wait_for(Load, lambda load: load.at_work + load.waiting == 4)
        deployment.kill_replica(1)
        gate.touch()
        deployment.start_replica(2, GATE=str(gate))
        for asker in askers:
            asker.join()
        assert sorted(answer["row"] for answer in answers) == [0, 1, 2, 3]
    finally:
        deployment.close()


def test_a_front_that_is_killed_is_followed_by_another_and_the_replicas_come_back() -> None:
    with serving("double") as deployment:
        deployment.kill_front()
        deployment.start_front()
        deployment.wait_for((FrontIs, ReplicaReady), lambda said: isinstance(said, ReplicaReady) or said.replicas)
        assert post(deployment, "/predict", 4).json() == 8


def test_a_front_without_supervisor_goes_on_for_a_time_then_all_end() -> None:
    with serving("double", front_grace_s=0.5) as deployment:
        deployment.leave_alone()
        assert post(deployment, "/predict", 4).json() == 8
        assert deployment.end_of_front() == 0
        assert deployment.end_of_replica(1) == 0


def test_a_new_supervisor_is_told_how_things_stand() -> None:
    with serving("double") as deployment:
        deployment.leave_alone()
        deployment.supervise()
        front = deployment.wait_for(FrontIs)
        assert (front.replicas, front.port) == ({1: 1}, deployment.port)


def test_a_replica_without_front_ends_after_its_grace_time() -> None:
    with serving("double", replica_grace_s=0.3) as deployment:
        deployment.kill_front()
        assert deployment.end_of_replica(1) == 0
        deployment.start_front()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("broken", "broken:1 cannot be loaded: OSError: the weights are not there"),
        ("unwarm", "unwarm:1 cannot answer the example that it was registered with: ValueError: 888"),
    ],
)
def test_a_model_that_cannot_be_loaded_never_connects(model: str, words: str) -> None:
    deployment = Deployment(model)
    try:
        deployment.start_replica(1, wait=False)
        assert deployment.end_of_replica(1) == 1
        assert words in deployment.errors.read_text()
    finally:
        deployment.close()


def test_requests_wait_for_the_first_replica_and_are_refused_when_none_comes() -> None:
    deployment = Deployment("double")
    try:
        deployment.start_front()
        answers: list[httpx.Response] = []
        asker = threading.Thread(target=lambda: answers.append(post(deployment, "/predict", 4)))
        asker.start()
        assert deployment.wait_for(Load, lambda load: load.waiting == 1).arrived == 1
        assert httpx.get(f"{deployment.url}/v2/health/ready").status_code == 503
        deployment.start_replica()
        asker.join()
        assert answers[0].json() == 8
        deployment.kill_replica(1)
        deployment.say(Expect(0, refuse=True))
        refused = post(deployment, "/predict", 4)
        while refused.status_code == 200:  # the order is on its way
            refused = post(deployment, "/predict", 4)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    finally:
        deployment.close()


def test_versions_are_rolled_and_drained_without_a_failed_request() -> None:
    with serving("double") as deployment:
        statuses: list[int] = []
        enough = threading.Event()

        def ask() -> None:
            with httpx.Client() as client:
                while not enough.is_set():
                    statuses.append(client.post(f"{deployment.url}/predict", content=b"4").status_code)

        askers = [threading.Thread(target=ask) for _ in range(3)]
        for asker in askers:
            asker.start()
        for version in (2, 3, 4):
            deployment.start_replica(version, version)
            deployment.say(Routes([Route(version)]))
            deployment.drain(version - 1)
            deployment.wait_for(Drained, lambda said, gone=version - 1: said.replica == gone)
        enough.set()
        for asker in askers:
            asker.join()
        assert set(statuses) == {200}
        tensor = {"name": "x", "shape": [1], "datatype": "FP64", "data": [1]}
        assert post(deployment, "/v2/models/shop/infer", {"inputs": [tensor]}).json()["model_version"] == "4"


def test_strangers_on_the_sockets_are_refused() -> None:
    with serving("double") as deployment:
        for name in ("control.sock", "replicas.sock"):
            for message in (framed(Leave()), b"\xff\xff\xff\xff", b"\x05\0\0\0hello"):
                assert deployment.says_stranger(name, message) == b""
        assert post(deployment, "/predict", 4).json() == 8

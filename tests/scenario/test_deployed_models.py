"""What users do with deployments, on real processes."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from cargobike import serving
from cargobike.core.errors import DeploymentError, InvalidInputError, NotFoundError
from cargobike.core.registering.tracing import Edge, Thing, all_edges
from cargobike.serving import Plan, Scaling, Status
from cargobike.store.files import project
from support.deployments import Requests, Times, register, replica_processes, served, wait_until


def test_a_function_is_served_rolled_and_rolled_back() -> None:
    with serving.deploy("double", lambda rows: [2 * row for row in rows]) as deployment:
        assert deployment.predict(3) == 6
        assert deployment.predict([1, 2]) == [2, 4]
        kept = register("double", lambda rows: [3 * row for row in rows])
        status = deployment.roll(kept)
        assert (status.version, status.previous, status.state) == (2, 1, "serving")
        assert deployment.predict(3) == 9
        assert deployment.rollback().version == 1
        assert deployment.predict(3) == 6
        assert "version 1, serving at http://127.0.0.1:" in repr(deployment)
        assert "replicas  1 ready of 1 wanted (1)" in str(deployment.status())
    assert deployment.status().state == "stopped"
    with pytest.raises(DeploymentError, match="not being served; start it with"):
        deployment.roll("double:2")


def test_functions_stand_before_and_after_the_model() -> None:
    with served(
        before=lambda rows: [row["n"] for row in rows], after=lambda answers: [{"is": a} for a in answers]
    ) as d:
        assert d.predict([{"n": 3}, {"n": 4}]) == [{"is": [1, 3]}, {"is": [1, 4]}]


def test_a_canary_is_judged_by_a_function_of_the_user() -> None:
    with served() as deployment:
        register("times", Times(2))
        seen: list[int] = []

        def judge(status: Status) -> bool | None:
            figures = {each.version: each.requests for each in status.figures}
            seen.append(figures.get(2, 0))
            return True if figures.get(2, 0) >= 20 else None

        with Requests(deployment.url) as requests:
            status = deployment.roll("times:2", canary=0.3, judge=judge)
            requests.wait_for(10)
        assert requests.failures == []
        assert status.version == 2
        assert seen[-1] >= 20
        assert deployment.predict(1) == [2, 1]


def test_a_canary_is_promoted_or_taken_back_by_its_figures() -> None:
    with served() as deployment:
        register("times", Times(2))
        register("times", Broken(3))
        plan = Plan(requests=20, watch_s=0.2)
        with Requests(deployment.url) as requests:
            assert deployment.roll("times:2", canary=0.3, watch=plan).routes == {1: 0.7, 2: 0.3}
            wait_until(lambda: deployment.status().version == 2)
            requests.wait_for(10)
            assert requests.failures == []
            deployment.roll("times:3", canary=0.2, watch=plan)
            wait_until(lambda: deployment.status().state == "serving")
            requests.wait_for(10)
        status = deployment.status()
        assert status.version == 2
        assert "of its requests failed" in status.last_error
        assert deployment.predict(5) == [2, 5]


class Broken(Times):
    """Fails at every request, but not when it is loaded."""

    def __call__(self, rows: list[Any]) -> list[Any]:
        """Raise."""
        raise ValueError("not today")


def test_a_shadow_is_compared_and_not_served() -> None:
    with served() as deployment:
        register("times", Times(2))
        with Requests(deployment.url) as requests:
            assert deployment.roll("times:2", shadow=True).shadow == 2
            wait_until(lambda: any(each.version == 2 and each.differed for each in deployment.status().figures))
        assert (requests.failures, requests.versions) == ([], {1})
        assert deployment.promote().version == 2


def test_equal_values_of_a_field_always_meet_the_same_version() -> None:
    with served(before=lambda rows: [row["user"] for row in rows]) as deployment:
        register("times", Times(2))
        deployment.roll("times:2", canary=0.5, by="user")
        met: dict[int, set[int]] = {}
        for _, user in itertools.product(range(4), range(30)):
            met.setdefault(user, set()).add(deployment.predict({"user": user})[0])
        assert all(len(versions) == 1 for versions in met.values())
        assert len(Counter(min(versions) for versions in met.values())) == 2


def test_it_scales_to_zero_and_the_first_request_waits() -> None:
    with served(replicas=Scaling(least=0, most=1, idle_s=0.5)) as deployment:
        assert deployment.predict(1) == [1, 1]
        wait_until(lambda: not replica_processes(deployment))
        assert deployment.status().state == "serving"
        assert deployment.predict(2) == [1, 2]


def test_more_requests_bring_more_replicas_within_the_bounds() -> None:
    with served(replicas=Scaling(least=1, most=3, target=2)) as deployment:
        with Requests(deployment.url, threads=8) as requests:
            wait_until(lambda: deployment.status().ready == 3)
            requests.wait_for(10)
        assert requests.failures == []
        assert deployment.scale(1).most == 1
        wait_until(lambda: len(replica_processes(deployment)) == 1)


def test_what_models_print_is_kept() -> None:
    with served() as deployment:
        deployment.predict("print")
        assert "a word of the model" in deployment.logs(replica=1)
        assert "--- replica-1" in deployment.logs()
        with pytest.raises(NotFoundError, match="Replica 99"):
            deployment.logs(replica=99)


def test_what_is_served_is_known_to_lineage() -> None:
    with served() as deployment:
        register("times", Times(2))
        deployment.roll("times:2")
        made = Thing("deployment", "times")
        edges = [edge for edge in all_edges(project.current()) if edge.made == made]
        assert edges == [
            Edge(made, Thing("model", "times", "1"), "serves", "to roll back to"),
            Edge(made, Thing("model", "times", "2"), "serves"),
        ]


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        serving.deploy(
            "no/name",
            Times(1),
            replicas=(3, 2),
            port=-1,
            host="nowhere",
            limits={"bach": 3},
            log=7,
            token="short",
            before=3,  # type: ignore[arg-type]
            tls=("/nowhere/cert.pem", "/nowhere/key.pem"),
        )
    for words in ("no/name", "replicas=", "port=-1", "host='nowhere'", "'bach'", "log=7", "16 characters", "before=3"):
        assert words in str(caught.value)
    assert "cert.pem" in str(caught.value)


def test_what_cannot_be_rolled_is_said() -> None:
    with served() as deployment:
        register("other", Times(1))
        with pytest.raises(DeploymentError, match="another model"):
            deployment.roll("other:1")
        with pytest.raises(DeploymentError, match="has no version 9"):
            deployment.roll("times:9")
        with pytest.raises(InvalidInputError, match=r"canary=1\.5"):
            deployment.roll("times:1", canary=1.5)
        with pytest.raises(InvalidInputError, match="needs canary="):
            deployment.roll("times:1", by="user")
        with pytest.raises(DeploymentError, match="no version to go back to"):
            deployment.rollback()
        with pytest.raises(DeploymentError, match="0 <= least <= most"):
            deployment.scale((3, 2))
        assert deployment.predict(1) == [1, 1]


def test_a_deployment_that_is_not_there_is_named_with_the_nearest() -> None:
    with served():
        with pytest.raises(NotFoundError, match="Did you mean 'times'"):
            serving.deployment("tims")
        assert [one.name for one in serving.list_deployments()] == ["times"]

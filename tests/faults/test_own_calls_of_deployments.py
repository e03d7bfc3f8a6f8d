"""A pipeline that loses its process while it deploys or rolls: one deployment, one release, and it goes on serving."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from cargobike import models, project, serving
from cargobike.core.errors import DeploymentError
from cargobike.serving.facts import SERVING_FACTS, ReleaseEnded, ReleaseStarted, SupervisorStarted
from cargobike.serving.record import folder_of
from cargobike.store.journal.journal import read_journal
from support.own_steps import Moment, Remembering


def doubled(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


def tripled(rows: list[Any]) -> list[Any]:
    return [3 * row for row in rows]


def release() -> serving.Deployment:
    """Deploy, roll, roll back: three steps."""
    deployment = serving.deploy("numbers", "numbers:1", log=False)
    deployment.roll("numbers:2")
    deployment.rollback(reason="to see it")
    return deployment


def facts_of(kind: type[Any]) -> list[Any]:
    journal = folder_of(project.current(), "numbers").journal
    return [fact for fact in read_journal(journal, SERVING_FACTS) if isinstance(fact, kind)]


@pytest.mark.parametrize("moment", ["after", "before"])
def test_a_pipeline_that_loses_its_process_deploys_and_rolls_once(moment: Moment) -> None:
    models.register("numbers", doubled)
    models.register("numbers", tripled)
    run = Remembering()
    with contextlib.ExitStack() as exits:
        exits.callback(lambda: serving.deployment("numbers").stop())
        for call in ("serving.deploy", "deployment.roll", "deployment.rollback"):
            assert run.run(release, kill_at=(call, moment)) is None
        deployment = run.run(release)
        assert {call: made for call, made in run.made.items() if made > 1} == {}
        assert deployment.predict([21]) == [42]
        assert deployment.status().version == 1
        assert len(facts_of(SupervisorStarted)) == 1
        assert [fact.model_version for fact in facts_of(ReleaseStarted)] == [1, 2, 1]
        assert [fact.outcome for fact in facts_of(ReleaseEnded)] == ["released"] * 3
        assert deployment.kept_as() == ("deployment", "numbers")


def test_a_function_that_is_deployed_is_registered_once_and_a_second_run_is_refused() -> None:
    def deploy() -> serving.Deployment:
        return serving.deploy("function", doubled, log=False)

    run = Remembering()
    assert run.run(deploy, kill_at=("serving.deploy", "after")) is None
    with serving.deployment("function"):
        assert run.run(deploy).predict(4) == 8
        assert [version.reference for version in models.list("function")] == ["function:1"]
        with pytest.raises(DeploymentError, match="is being served"):
            Remembering("20261118-run").run(deploy)

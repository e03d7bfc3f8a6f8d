"""What steers a project from elsewhere: promote, deploy, run, schedule, publish, by typed routes and the client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike import client, data, models, pipelines
from cargobike import project as project_door
from cargobike.core.errors import ForbiddenError, InvalidInputError, NotFoundError, ServerRefusedError
from cargobike.core.layout import ProjectFolder
from cargobike.remote.commands.rules import allowed
from cargobike.ui.web.access import Access
from cargobike.ui.web.roles import Role
from cargobike.ui.web.tokens import TokenBook
from support.remote_server import TOKEN, served

pytestmark = pytest.mark.timeout(300)
PIPELINE = "def retrain(x=1):\n    return 2 * x\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("steered") / ".cargobike"
    project_door.use(folder)
    try:
        for accuracy in (0.8, 0.9):
            models.register(
                "digits", lambda rows: [2 * row for row in rows], metrics={"accuracy": accuracy}, example=[1.0]
            )
        data.write({"amount": [1.0, 2.0]}, "points")
        yield folder
    finally:
        project_door.use(None)


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[str]:
    book = TokenBook(ProjectFolder(root))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARGOBIKE_SHARE_SECRET", "the secret of the lab")
        with served(ProjectFolder(root), Access(token=TOKEN, book=book)) as address:
            yield address


@pytest.fixture
def remote(server: str) -> Iterator[client.RemoteProject]:
    with client.connect(server, token=TOKEN) as project:
        yield project


def test_models_are_promoted_through_a_gate_tagged_and_noted(remote: client.RemoteProject) -> None:
    assert remote.models.promote("digits", 2, "champion").before is None
    with pytest.raises(ServerRefusedError, match="accuracy"):
        remote.models.promote("digits", 1, "champion", when="accuracy > champion.accuracy")
    moved = remote.models.promote("digits", 2, "champion", when="accuracy >= 0.85")
    assert (moved.version, moved.before, moved.figures["accuracy"]) == (2, 2, 0.9)
    assert remote.models.tag("digits", 2, "fast", "old").tags == ["fast", "old"]
    assert remote.models.tag("digits", 2, remove=["old"]).tags == ["fast"]
    assert remote.models.note("digits", 2, "a good one").notes[-1].text == "a good one"
    with pytest.raises(NotFoundError, match="has no version 9"):
        remote.models.promote("digits", 9, "champion")


def test_a_deployment_lives_from_afar(remote: client.RemoteProject) -> None:
    served_model = remote.serving.deploy("digits", "digits:1", replicas=1, timeout_s=120)
    try:
        assert (served_model.deployment.state, served_model.deployment.version) == ("serving", 1)
        assert remote.serving.scale("digits", 1, 2).state == "serving"
        details = remote.serving.deployment("digits")
        assert (details.least, details.most) == (1, 2)
        with pytest.raises(ServerRefusedError):
            remote.serving.promote("digits")
        assert remote.serving.stop("digits").state == "stopped"
        assert remote.serving.start("digits", timeout_s=120).deployment.state == "serving"
    finally:
        remote.serving.stop("digits")
    with pytest.raises(ServerRefusedError, match="nothing"):
        remote.serving.deploy("nothing", "nothing:1")
    with pytest.raises(InvalidInputError, match="at most the most"):
        remote.serving.scale("digits", 3, 2)


def test_a_pipeline_is_run_again_and_scheduled_by_its_name(
    remote: client.RemoteProject, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "retrain.py").write_text(PIPELINE)
    with pytest.raises(NotFoundError, match="retrain"):
        remote.pipelines.run("retrain")
    ran = remote.commands.run(["pipelines", "run", "nothing.py:retrain"])
    assert ran.exit_code == 1
    project_door.use(root)
    pipelines.run(f"{tmp_path / 'retrain.py'}:retrain", x=2)
    run = remote.pipelines.run("retrain", x=21).run
    give_up_at = time.monotonic() + 60
    while True:
        assert time.monotonic() < give_up_at
        shown = [one for one in remote.pipelines.list("retrain").runs if one.run == run]
        if shown and shown[0].state == "completed":
            break
        time.sleep(0.1)
    result = remote.pipelines.get(run).result
    assert result is not None
    assert "42" in result.text
    assert [one.schedule for one in remote.pipelines.schedule("retrain", cron="0 3 * * *").schedules] == ["retrain"]
    assert remote.pipelines.pause_schedule("retrain").is_paused
    assert not remote.pipelines.resume_schedule("retrain").is_paused
    with pytest.raises(ServerRefusedError, match="nothing sets it off"):
        remote.pipelines.schedule("retrain", name="other")
    remote.pipelines.remove_schedule("retrain")
    assert remote.pipelines.schedules().schedules == []


def test_what_the_project_has_is_published(remote: client.RemoteProject) -> None:
    published = remote.sharing.publish("lab", "points", "table:points", license="CC0", tags=["money"])
    assert (published.publication.name, published.publication.license) == ("points", "CC0")
    for source in ("/etc/passwd", "file:///etc/passwd", "table:"):
        with pytest.raises(InvalidInputError, match="nothing of the project"):
            remote.sharing.publish("lab", "stolen", source)


def test_a_reader_steers_nothing(server: str, root: Path) -> None:
    token = TokenBook(ProjectFolder(root)).create("reader", Role.READ)
    with client.connect(server, token=token) as reader:
        for ask in (
            lambda: reader.models.promote("digits", 1, "champion"),
            lambda: reader.serving.deploy("digits", "digits:1"),
            lambda: reader.serving.stop("digits"),
            lambda: reader.pipelines.run("retrain"),
            lambda: reader.pipelines.schedule("retrain", every="1d"),
            lambda: reader.sharing.publish("lab", "points", "table:points"),
            lambda: reader.monitoring.watch("digits"),
        ):
            with pytest.raises(ForbiddenError, match="role"):
                ask()


def test_only_what_the_project_knows_may_name_a_file() -> None:
    line = ["pipelines", "schedule", "--every=1d", "--", "/srv/retrain.py:retrain"]
    assert allowed(line, "run", known=("function",)).role == "run"
    with pytest.raises(InvalidInputError, match="looks like a path"):
        allowed(line, "run")

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.serving.commands.kubernetes import kubernetes
from cargobike.serving.commands.shipping import apply_and_wait, read_target, render_and_write
from cargobike.serving.kubernetes import applying
from cargobike.serving.specification import Scaling
from support.cluster_requests import asked
from support.mock_cluster import MockCluster


@pytest.fixture
def mock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockCluster]:
    cluster = MockCluster()
    cluster.add_secret("digits-tokens")
    path = cluster.kubeconfig(tmp_path / "config")
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    monkeypatch.setattr(applying, "_POLL_S", 0.0)
    yield cluster
    cluster.close()


def call(*words: str) -> Result:
    return CliRunner().invoke(kubernetes, words, catch_exceptions=False)


def test_a_deployment_is_applied_shown_rolled_back_scaled_and_deleted(
    mock: MockCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in (3, 4):
        apply_and_wait(asked(version, scaling=Scaling(least=2, most=2)))
    told = capsys.readouterr().out
    assert "digits: serving\n" in told
    assert "1 of 2 pods are updated and ready" in told
    assert json.loads(call("status", "digits", "--json").stdout)["model"] == "digits:4"
    listed = call("ls").stdout.split()
    assert listed[-6:] == ["digits", "serving", "digits:4", "digits:3", "2/2", "registry.example/team/digits:4"]
    assert [one["name"] for one in json.loads(call("ls", "--json").stdout)] == ["digits"]
    assert call("show", "digits").stdout.splitlines() == [
        "digits: serving",
        "  model     digits:4, image registry.example/team/digits:4",
        "  replicas  2 ready of 2 wanted",
        "  before    digits:3",
    ]
    printed = json.loads(call("logs", "digits", "--lines", "7", "--json").stdout)
    assert len(printed) == 2
    assert all(json.loads(text) == {"printed by": pod, "tailLines": ["7"]} for pod, text in printed.items())
    assert f"--- {min(printed)}\n" in call("logs", "digits").stdout
    assert "model     digits:3" in call("rollback", "digits").stdout
    assert json.loads(call("scale", "digits", "3", "--json").stdout)["ready"] == 3
    assert CliRunner().invoke(kubernetes, ["rm", "digits"], input="n\n").exit_code == 1
    assert mock.names("deployments") == ["digits"]
    assert "--json cannot ask" in call("rm", "digits", "--json").output
    assert "deleted Deployment digits" in call("rm", "digits", "--yes").stdout
    assert "There are none in the namespace models of http" in call("ls").stdout.replace("\n", " ")
    with pytest.raises(NotFoundError, match=r"no deployment 'digits'"):
        call("status", "digits", "-n", "models")


def test_manifests_are_printed_for_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    render_and_write(asked(), None, "kserve", None)  # type: ignore[arg-type] # the model is not looked at
    kinds = [one["kind"] for one in yaml.safe_load_all(capsys.readouterr().out)]
    assert kinds == ["ConfigMap", "InferenceService"]
    with pytest.raises(InvalidInputError, match=r"--render docker was given; there is kubernetes and kserve"):
        read_target("docker")


def test_kserve_rolls_by_itself(mock: MockCluster, capsys: pytest.CaptureFixture[str]) -> None:
    apply_and_wait(asked(), "kserve")
    assert mock.names("inferenceservices") == ["digits"]
    assert "kubectl get inferenceservice digits" in capsys.readouterr().out


def test_commands_have_words_for_help() -> None:
    assert isinstance(kubernetes, typer.Typer)
    for name in ("ls", "show", "status", "logs", "rollback", "scale", "rm"):
        assert "--namespace" in call(name, "--help").stdout

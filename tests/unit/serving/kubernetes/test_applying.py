from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cargobike.core.errors import DeploymentError, InvalidInputError, NotFoundError, WaitError
from cargobike.serving.kubernetes import cluster as clusters
from cargobike.serving.kubernetes.applying import apply, remove, rollback, scale, status, wait
from cargobike.serving.kubernetes.cluster import Cluster
from cargobike.serving.kubernetes.render import render
from cargobike.serving.specification import Scaling
from support.cluster_requests import asked
from support.mock_cluster import MockCluster, write_kubeconfig

THREE = Scaling(least=3, most=3)


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    cluster = MockCluster()
    cluster.add_secret("digits-tokens")
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(mock: MockCluster, tmp_path: Path) -> Iterator[Cluster]:
    opened = Cluster.open(kubeconfig=str(mock.kubeconfig(tmp_path / "config")))
    yield opened
    opened.close()


def ready(cluster: Cluster, name: str = "digits") -> list[str]:
    """Wait, without waiting between looks, and return what was told."""
    told: list[str] = []
    wait(cluster, name, 30, tell=told.append, pause=lambda _: None)
    return told


def test_a_deployment_is_created_rolled_and_rolled_back(mock: MockCluster, cluster: Cluster) -> None:
    apply(cluster, asked(3, scaling=THREE))
    begun = status(cluster, "digits")
    assert (begun.state, begun.model, begun.wanted) == ("serving", "digits:3", 3), "the first pod is ready"
    told = ready(cluster)
    assert told[-1] == "2 of 3 pods are updated and ready"
    done = status(cluster, "digits")
    assert (done.state, done.ready, done.wanted, done.previous) == ("serving", 3, 3, "")
    assert mock.authorizations == {"Bearer sesame"}

    apply(cluster, asked(4, scaling=THREE))
    begun = status(cluster, "digits")
    assert (begun.state, begun.model) == ("releasing", "digits:4")
    told = ready(cluster)
    assert any("of before are still there" in line for line in told)
    done = status(cluster, "digits")
    assert (done.state, done.model, done.image) == ("serving", "digits:4", "registry.example/team/digits:4")
    assert (done.previous, done.revisions) == ("digits:3", ("digits:4", "digits:3"))
    assert {pod.model for pod in done.pods} == {"digits:4"}

    rollback(cluster, "digits")
    ready(cluster)
    done = status(cluster, "digits")
    assert (done.state, done.model, done.previous) == ("serving", "digits:3", "digits:4")
    assert mock.objects["models", "deployments", "digits"]["metadata"]["annotations"] == {
        "cargobike.dev/model": "digits:3"
    }
    assert mock.fewest_ready >= 3


def test_what_is_applied_is_what_was_rendered_and_a_second_time_changes_nothing(
    mock: MockCluster, cluster: Cluster
) -> None:
    wanted = asked(scaling=Scaling(least=1, most=4))
    apply(cluster, wanted)
    ready(cluster)
    assert {(kind, name) for _, kind, name in mock.objects if kind not in {"pods", "replicasets", "secrets"}} == {
        ("configmaps", render(wanted)[0]["metadata"]["name"]),
        ("deployments", "digits"),
        ("services", "digits"),
        ("poddisruptionbudgets", "digits"),
        ("horizontalpodautoscalers", "digits"),
    }
    generation = mock.objects["models", "deployments", "digits"]["metadata"]["generation"]
    scaled = mock.objects["models", "deployments", "digits"]["spec"]
    scaled["replicas"] = 4  # as the autoscaler does
    apply(cluster, wanted)
    assert mock.objects["models", "deployments", "digits"]["spec"]["replicas"] == 4
    assert mock.objects["models", "deployments", "digits"]["metadata"]["generation"] <= generation + 1


def test_configurations_that_no_revision_uses_are_deleted(mock: MockCluster, cluster: Cluster) -> None:
    for version in (3, 4):
        apply(cluster, asked(version))
        ready(cluster)
    assert len(mock.names("configmaps")) == 2
    old = [
        name
        for name, one in ((name, mock.objects["models", "replicasets", name]) for name in mock.names("replicasets"))
        if one["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    ]
    del mock.objects["models", "replicasets", old[0]]
    apply(cluster, asked(4))
    assert len(mock.names("configmaps")) == 1


def test_without_its_secrets_nothing_is_created_and_how_to_make_them_is_said(
    mock: MockCluster, cluster: Cluster
) -> None:
    del mock.objects["models", "secrets", "digits-tokens"]
    with pytest.raises(
        DeploymentError, match=r"the namespace models needs:\n  kubectl -n models create secret"
    ) as caught:
        apply(cluster, asked(environment={"API_KEY": ""}, tls_certificate="c", tls_key="k", pull_secret="pull"))
    lines = str(caught.value).splitlines()[1:]
    assert [line.split()[5:7] for line in lines] == [
        ["generic", "digits-tokens"],
        ["generic", "digits-environment"],
        ["tls", "digits-tls"],
        ["docker-registry", "pull"],
    ]
    assert not mock.names("deployments")


def test_a_deadline_names_the_pods_that_are_not_ready_and_why(mock: MockCluster, cluster: Cluster) -> None:
    apply(cluster, asked(3, scaling=THREE))
    ready(cluster)
    mock.bad_images.add("registry.example/team/digits:4")
    apply(cluster, asked(4, scaling=THREE))
    for _ in range(5):
        assert status(cluster, "digits").state == "releasing"
    with pytest.raises(WaitError, match=r"digits is not ready after 0 s: 1 of 3 pods are updated") as caught:
        wait(cluster, "digits", 0, pause=lambda _: None)
    assert len(caught.value.missing) == 1
    assert "ImagePullBackOff: cannot pull registry.example/team/digits:4" in str(caught.value)
    assert mock.fewest_ready == 3, "the version of before goes on"


def test_a_cluster_that_has_given_up_is_not_waited_for(mock: MockCluster, cluster: Cluster) -> None:
    mock.bad_images.add("registry.example/team/digits:3")
    apply(cluster, asked())
    assert status(cluster, "digits").state == "starting"
    mock.objects["models", "deployments", "digits"]["status"] = {
        "conditions": [
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"}
        ]
    }
    with pytest.raises(DeploymentError, match=r"does not become ready: .*too slow"):
        wait(cluster, "digits", 60, pause=lambda _: None)


def test_the_first_version_has_nothing_to_go_back_to(cluster: Cluster) -> None:
    apply(cluster, asked())
    ready(cluster)
    with pytest.raises(DeploymentError, match=r"has run one version only, digits:3"):
        rollback(cluster, "digits")


def test_pods_are_scaled_directly_or_through_the_autoscaler(mock: MockCluster, cluster: Cluster) -> None:
    apply(cluster, asked(scaling=THREE))
    assert scale(cluster, "digits", 5).wanted == 5
    apply(cluster, asked(name="scaled", tokens_secret="digits-tokens", scaling=Scaling(least=1, most=4)))
    ready(cluster, "scaled")
    scale(cluster, "scaled", 6)
    spec = mock.objects["models", "horizontalpodautoscalers", "scaled"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (6, 6)


def test_everything_but_secrets_is_deleted(mock: MockCluster, cluster: Cluster) -> None:
    apply(cluster, asked())
    ready(cluster)
    assert len(remove(cluster, "digits")) == 5
    assert {kind for _, kind, _ in mock.objects} == {"secrets"}
    with pytest.raises(NotFoundError, match=r"no deployment 'digits' in the namespace models"):
        remove(cluster, "digits")
    with pytest.raises(NotFoundError, match=r"no deployment 'digits'"):
        status(cluster, "digits")


def test_an_inference_service_is_applied_where_kserve_is(mock: MockCluster, cluster: Cluster) -> None:
    wanted = asked()
    for manifest in render(wanted, "kserve"):
        cluster.apply(manifest)
    assert mock.names("inferenceservices") == ["digits"]
    mock.refuses["inferenceservices"] = (404, "the server could not find the requested resource")
    with pytest.raises(DeploymentError, match=r"does not have .*inferenceservices.* Is KServe installed there\?"):
        cluster.apply(render(wanted, "kserve")[1])


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (401, DeploymentError, r"does not allow PATCH .*/deployments/digits: no"),
        (403, DeploymentError, r"does not allow"),
        (422, InvalidInputError, r"refuses PATCH .*: no"),
        (409, DeploymentError, r"could not do PATCH .*: 409 no"),
    ],
)
def test_errors_of_the_server_are_in_words(
    mock: MockCluster, cluster: Cluster, code: int, error: type[Exception], words: str
) -> None:
    mock.refuses["deployments"] = (code, "no")
    with pytest.raises(error, match=words):
        apply(cluster, asked(scaling=THREE))


def test_contexts_and_namespaces_are_chosen(mock: MockCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(mock.kubeconfig(tmp_path / "config"))
    assert Cluster.open(kubeconfig=path).namespace == "models"
    assert Cluster.open(kubeconfig=path, context="other").namespace == "default"
    assert Cluster.open(kubeconfig=path, namespace="third").namespace == "third"
    with pytest.raises(InvalidInputError, match=r"no context 'mok'; there is mock, other"):
        Cluster.open(kubeconfig=path, context="mok")
    with pytest.raises(InvalidInputError, match=r"cannot be read"):
        Cluster.open(kubeconfig=str(tmp_path / "none"))
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(InvalidInputError, match=r"no configuration of a cluster: set KUBECONFIG"):
        Cluster.open()


@pytest.mark.parametrize("text", ["no yaml: [", "just words", "contexts: 3", "{}", ""])
def test_a_configuration_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(InvalidInputError, match="The configuration of the cluster cannot be read"):
        Cluster.open(kubeconfig=str(tmp_path / "config"))


def test_a_server_that_is_gone_is_named(tmp_path: Path) -> None:
    mock = MockCluster()
    cluster = Cluster.open(kubeconfig=str(mock.kubeconfig(tmp_path / "config")))
    mock.close()
    with pytest.raises(DeploymentError, match=r"The API server http://127.0.0.1:\d+ does not answer"):
        status(cluster, "digits")
    cluster.close()


def test_a_server_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_TIMEOUT_S", (0.2, 0.2))
    monkeypatch.setattr(clusters, "_RETRIES", 0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = write_kubeconfig(tmp_path / "config", f"http://127.0.0.1:{silent.getsockname()[1]}")
        cluster = Cluster.open(kubeconfig=str(config))
        with pytest.raises(DeploymentError, match=r"127.0.0.1:\d+ does not answer: Read timed out"):
            status(cluster, "digits")
        cluster.close()


def test_an_autoscaler_that_comes_later_finds_all_pods_and_one_that_is_not_wanted_goes(
    mock: MockCluster, cluster: Cluster
) -> None:
    apply(cluster, asked(3, scaling=THREE))
    apply(cluster, asked(4, scaling=Scaling(least=1, most=6), grpc_port=0))
    assert mock.names("horizontalpodautoscalers") == ["digits"]
    assert mock.names("services") == ["digits", "digits-grpc"]
    assert status(cluster, "digits").wanted == 3, "and not the one that Kubernetes takes for a field that is left out"
    apply(cluster, asked(5, scaling=THREE))
    assert mock.names("horizontalpodautoscalers") == []
    assert mock.names("services") == ["digits"]
    apply(cluster, asked(5, scaling=THREE, grpc_port=0))
    assert "Service digits-grpc" in remove(cluster, "digits")
    assert mock.names("services") == []

"""Deployments on a real API server, where one can be had: `make test-kubernetes KUBERNETES=FOLDER`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cargobike.core.errors import DeploymentError, InvalidInputError, NotFoundError, WaitError
from cargobike.serving.commands.kubernetes import kubernetes
from cargobike.serving.kubernetes import cluster as clusters
from cargobike.serving.kubernetes.applying import apply, remove, rollback, scale, status, wait
from cargobike.serving.kubernetes.asked import Asked
from cargobike.serving.kubernetes.cluster import Cluster
from cargobike.serving.kubernetes.render import render
from cargobike.serving.specification import Scaling
from support import real_cluster
from support.cluster_requests import asked
from support.real_cluster import BROKEN, RealCluster

pytestmark = pytest.mark.slow
THREE = Scaling(least=3, most=3)
OLDER = {"autoscaling/v2": "autoscaling/v2beta2", "policy/v1": "policy/v1beta1"}
"""The release that can be built from Debian's sources, 1.20, has the same objects under earlier versions."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    if not real_cluster.IS_HERE:
        pytest.skip(real_cluster.REASON)
    started = RealCluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.close()


@pytest.fixture
def namespace(server: RealCluster) -> str:
    """Return a namespace of its own, with the tokens of callers."""
    name = f"models-{secrets.token_hex(4)}"
    server.core().create_namespace({"metadata": {"name": name}})
    secret = {"metadata": {"name": "digits-tokens"}, "stringData": {"predict": "not so secret"}}
    server.core().create_namespaced_secret(name, secret)
    return name


@pytest.fixture
def cluster(server: RealCluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    older = dict(clusters.PATHS)
    for new, old in OLDER.items():
        older = {kind: path.replace(f"/{new}/", f"/{old}/") for kind, path in older.items()}
    monkeypatch.setattr(clusters, "PATHS", older)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(server.kubeconfig))
    opened = Cluster.open(namespace=namespace)
    yield opened
    opened.close()


def rendered(wanted: Asked) -> list[dict[str, Any]]:
    return [{**one, "apiVersion": OLDER.get(one["apiVersion"], one["apiVersion"])} for one in render(wanted)]


def ship(cluster: Cluster, wanted: Asked) -> None:
    apply(cluster, wanted, rendered(wanted))


def call(cluster: Cluster, *words: str) -> Result:
    return CliRunner().invoke(kubernetes, [*words, "--namespace", cluster.namespace], catch_exceptions=False)


def versions(cluster: Cluster, wanted: Asked) -> dict[str, str]:
    """Return what the server counts up whenever an object changes, except for what controllers write."""
    found = {}
    for one in rendered(wanted):
        live = cluster.get(one["kind"], one["metadata"]["name"])
        assert live is not None, one["kind"]
        state = {"generation": live["metadata"].get("generation"), "spec": live.get("spec"), "data": live.get("data")}
        found[f"{one['kind']} {one['metadata']['name']}"] = json.dumps(state, sort_keys=True)
    return found


def test_a_deployment_is_created_rolled_and_rolled_back_with_no_pod_too_few(
    server: RealCluster, cluster: Cluster
) -> None:
    ship(cluster, asked(3, scaling=THREE))
    assert wait(cluster, "digits", 60).ready == 3
    server.watch(cluster.namespace)
    for version in (4, 5):
        ship(cluster, asked(version, scaling=THREE))
        done = wait(cluster, "digits", 60)
        assert (done.state, done.model, done.ready) == ("serving", f"digits:{version}", 3)
    rollback(cluster, "digits")
    done = wait(cluster, "digits", 60)
    assert (done.model, done.previous) == ("digits:4", "digits:5")
    assert server.fewest_ready >= 3
    server.watch("")


def test_the_words_are_those_of_one_machine(cluster: Cluster) -> None:
    for version in (3, 4):
        ship(cluster, asked(version, scaling=THREE))
        wait(cluster, "digits", 60)
    assert call(cluster, "ls").stdout.split()[6:11] == ["digits", "serving", "digits:4", "digits:3", "3/3"]
    assert call(cluster, "show", "digits").stdout.splitlines() == [
        "digits: serving",
        "  model     digits:4, image registry.example/team/digits:4",
        "  replicas  3 ready of 3 wanted",
        "  before    digits:3",
    ]
    assert "model     digits:3" in call(cluster, "rollback", "digits").stdout
    assert "5 ready of 5 wanted" in call(cluster, "scale", "digits", "5").stdout
    assert json.loads(call(cluster, "status", "digits", "--json").stdout)["wanted"] == 5
    assert "digits: stopped" in call(cluster, "scale", "digits", "0").stdout
    told = call(cluster, "rm", "digits", "--yes").stdout
    for one in ("Deployment digits", "Service digits", "PodDisruptionBudget digits", "ConfigMap digits-"):
        assert f"deleted {one}" in told
    with pytest.raises(NotFoundError, match="no deployment 'digits' in the namespace models-"):
        call(cluster, "status", "digits")
    for kind in ("ConfigMap", "Service"):
        assert not cluster.find(kind, {"app.kubernetes.io/managed-by": "cargobike"})


EVERYTHING: dict[str, Any] = {
    "scaling": Scaling(least=2, most=8, by="requests", target=0.5),
    "uses_metrics": True,
    "grpc_port": 0,
    "pulls_model": True,
    "project_url": "s3://bucket/team",
    "environment": {"AWS_SECRET_ACCESS_KEY": ""},
    "tls_certificate": "/c.pem",
    "tls_key": "/k.pem",
    "resources": {"nvidia.com/gpu": 1, "memory": "4Gi"},
}


def test_all_objects_are_accepted_and_applying_again_changes_nothing(server: RealCluster, cluster: Cluster) -> None:
    wanted = asked(3, **EVERYTHING)
    with pytest.raises(DeploymentError, match=r"needs:\n  .*digits-environment .*\n  .* tls digits-tls"):
        ship(cluster, wanted)
    for name in ("digits-environment", "digits-tls"):
        server.core().create_namespaced_secret(cluster.namespace, {"metadata": {"name": name}})
    ship(cluster, wanted)
    before = versions(cluster, wanted)
    assert len(before) == 6
    assert any(name.startswith("HorizontalPodAutoscaler") for name in before)
    ship(cluster, wanted)
    assert versions(cluster, wanted) == before
    assert len(cluster.find("ReplicaSet", {"app.kubernetes.io/instance": "digits"})) <= 1


def test_the_server_refuses_fields_that_it_does_not_know(cluster: Cluster) -> None:
    for kind, field in (("Deployment", "replica"), ("HorizontalPodAutoscaler", "maxReplica")):
        (wrong,) = [one for one in rendered(asked(3)) if one["kind"] == kind]
        wrong["spec"][field] = 3
        with pytest.raises(CLUSTER_ERRORS, match=field):
            cluster.apply(wrong)
    (wrong,) = [one for one in rendered(asked(3)) if one["kind"] == "Deployment"]
    wrong["spec"]["replicas"] = -1
    with pytest.raises(InvalidInputError, match=r"refuses PATCH .*replicas"):
        cluster.apply(wrong)
    with pytest.raises(NotFoundError):
        status(cluster, "digits")


CLUSTER_ERRORS = (InvalidInputError, DeploymentError)


def test_an_autoscaler_that_comes_later_finds_all_pods_and_one_that_is_not_wanted_goes(cluster: Cluster) -> None:
    ship(cluster, asked(3, scaling=THREE))
    wait(cluster, "digits", 60)
    ship(cluster, asked(4, scaling=Scaling(least=1, most=6)))
    assert wait(cluster, "digits", 60).wanted == 3
    autoscaler = cluster.get("HorizontalPodAutoscaler", "digits")
    assert autoscaler is not None
    scale(cluster, "digits", 7)
    autoscaler = cluster.get("HorizontalPodAutoscaler", "digits")
    assert autoscaler is not None
    assert (autoscaler["spec"]["minReplicas"], autoscaler["spec"]["maxReplicas"]) == (7, 7)
    ship(cluster, asked(4, scaling=THREE))
    assert cluster.get("HorizontalPodAutoscaler", "digits") is None
    assert wait(cluster, "digits", 60).wanted == 3


def test_configurations_of_revisions_that_are_kept_are_kept(cluster: Cluster) -> None:
    for version in range(3, 6):
        ship(cluster, asked(version, scaling=THREE))
        wait(cluster, "digits", 60)
    labels = {"app.kubernetes.io/instance": "digits"}
    kept = {one["metadata"]["name"] for one in cluster.find("ConfigMap", labels)}
    used = {
        volume["configMap"]["name"]
        for one in cluster.find("ReplicaSet", labels)
        for volume in one["spec"]["template"]["spec"]["volumes"]
        if "configMap" in volume
    }
    assert kept == used
    assert len(kept) == 3


def test_a_version_that_cannot_start_is_named_and_the_one_before_goes_on(cluster: Cluster) -> None:
    ship(cluster, asked(3, scaling=THREE))
    wait(cluster, "digits", 60)
    ship(cluster, asked(4, scaling=THREE, image=BROKEN))
    with pytest.raises(WaitError, match=r"digits is not ready after 4 s: .*\n  digits-\S+: ImagePullBackOff: Back-off"):
        wait(cluster, "digits", 4)
    seen = status(cluster, "digits")
    assert (seen.state, seen.model, seen.previous) == ("releasing", "digits:4", "digits:3")
    assert sum(pod.state == "ready" and pod.model == "digits:3" for pod in seen.pods) == 3
    rollback(cluster, "digits")
    assert wait(cluster, "digits", 60).model == "digits:3"


def role(namespace: str) -> list[tuple[str, dict[str, Any]]]:
    """Return what the guide says that a user needs."""
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": VERBS},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": VERBS},
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list"]},
        {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": VERBS},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": VERBS},
    ]
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    subject = {"kind": "User", "name": "stranger", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "Role", "name": "shipping", "apiGroup": "rbac.authorization.k8s.io"}
    return [
        (f"{path}/roles", {"metadata": {"name": "shipping"}, "rules": rules}),
        (f"{path}/rolebindings", {"metadata": {"name": "s"}, "roleRef": reference, "subjects": [subject]}),
    ]


VERBS = ["get", "list", "create", "patch", "delete"]


def test_who_may_not_is_told_what_and_who_has_the_documented_role_may(
    server: RealCluster, cluster: Cluster, namespace: str
) -> None:
    stranger = Cluster.open(context="stranger", namespace=namespace)
    with pytest.raises(DeploymentError, match=r'does not allow GET .*secrets.*User "stranger" cannot get'):
        ship(stranger, asked(3, scaling=THREE))
    with pytest.raises(DeploymentError, match=r'does not allow GET .*deployments.*User "stranger" cannot get'):
        status(stranger, "digits")
    for path, body in role(namespace):
        server.api().call_api(path, "POST", body=body, auth_settings=["BearerToken"], _preload_content=False)
    ship(stranger, asked(3, scaling=THREE))
    ship(stranger, asked(4, scaling=Scaling(least=2, most=4)))
    assert wait(stranger, "digits", 60).model == "digits:4"
    rollback(stranger, "digits")
    assert wait(stranger, "digits", 60).model == "digits:3"
    assert "Deployment digits" in remove(stranger, "digits")
    stranger.close()


def test_a_namespace_that_is_not_there_is_said(server: RealCluster, cluster: Cluster) -> None:
    nowhere = Cluster.open(namespace="nowhere")
    with pytest.raises(DeploymentError, match=r"`kubectl create namespace nowhere`"):
        nowhere.apply(rendered(asked(3))[0])
    nowhere.close()


def test_an_inference_service_is_applied_and_deleted_where_kserve_is(server: RealCluster, cluster: Cluster) -> None:
    wanted = asked(3, scaling=Scaling(least=0, most=3))
    with pytest.raises(DeploymentError, match=r"Is KServe installed there\?"):
        apply(cluster, wanted, render(wanted, "kserve"))
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "inferenceservices.serving.kserve.io"},
        "spec": {
            "group": "serving.kserve.io",
            "scope": "Namespaced",
            "names": {"plural": "inferenceservices", "singular": "inferenceservice", "kind": "InferenceService"},
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    },
                }
            ],
        },
    }
    server.define(definition)
    apply(cluster, wanted, render(wanted, "kserve"))
    live = cluster.get("InferenceService", "digits")
    assert live is not None
    assert live["spec"]["predictor"]["minReplicas"] == 0
    assert "InferenceService digits" in remove(cluster, "digits")

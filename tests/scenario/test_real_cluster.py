"""Deployments on a real API server, where one can be had: `make test-kubernetes KUBERNETES=FOLDER`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cargobike.core.errors import DeploymentError, InvalidInputError
from cargobike.serving.kubernetes.applying import apply, rollback, status, wait
from cargobike.serving.kubernetes.cluster import Cluster
from cargobike.serving.kubernetes.render import render
from cargobike.serving.specification import Scaling
from support import real_cluster
from support.cluster_requests import asked
from support.real_cluster import RealCluster

pytestmark = pytest.mark.slow
THREE = Scaling(least=3, most=3)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    if not real_cluster.IS_HERE:
        pytest.skip(real_cluster.REASON)
    started = RealCluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.close()


def test_a_deployment_is_created_rolled_back_and_deleted(server: RealCluster) -> None:
    cluster = Cluster.open(kubeconfig=str(server.kubeconfig))
    wanted = asked(3, scaling=THREE)
    # The release that can be built from Debian's sources, 1.20, has no policy/v1 yet.
    known = [one for one in render(wanted) if one["kind"] != "PodDisruptionBudget"]
    with pytest.raises(DeploymentError, match=r"needs:\n  kubectl -n default create secret generic digits-tokens"):
        apply(cluster, wanted, known)
    secret = {"metadata": {"name": "digits-tokens"}, "stringData": {"predict": "not so secret"}}
    server.core().create_namespaced_secret("default", secret)
    apply(cluster, wanted, known)
    assert wait(cluster, "digits", 60).ready == 3
    server.watches = True
    for version in (4, 5):
        newer = asked(version, scaling=THREE)
        apply(cluster, newer, [one for one in render(newer) if one["kind"] != "PodDisruptionBudget"])
        done = wait(cluster, "digits", 60)
        assert (done.state, done.model, done.ready) == ("serving", f"digits:{version}", 3)
    rollback(cluster, "digits")
    done = wait(cluster, "digits", 60)
    assert (done.model, done.previous) == ("digits:4", "digits:5")
    assert server.fewest_ready >= 3
    server.watches = False
    wrong = render(asked(5, scaling=THREE))[1]
    wrong["spec"]["replicas"] = -1
    with pytest.raises(InvalidInputError, match=r"refuses PATCH .*replicas"):
        cluster.apply(wrong)
    assert status(cluster, "digits").model == "digits:4"
    cluster.delete("Deployment", "digits")
    cluster.close()

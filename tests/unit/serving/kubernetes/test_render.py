from __future__ import annotations

import json
from typing import Any

import kubernetes_validate
import msgspec
import pytest
import yaml

from cargobike.core.errors import InvalidInputError
from cargobike.serving.kubernetes.asked import object_name
from cargobike.serving.kubernetes.render import render
from cargobike.serving.kubernetes.writing import as_yaml
from cargobike.serving.specification import Limits, Logging, Scaling, Specification
from support.cluster_requests import asked

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one replica": {"scaling": Scaling(least=1, most=1)},
    "many": {"scaling": Scaling(least=2, most=20, window_s=900), "resources": {"cpu": "500m", "memory": "4Gi"}},
    "gpu": {"resources": {"nvidia.com/gpu": 1, "memory": "16Gi"}},
    "secrets": {"environment": {"API_KEY": "sesame"}, "pull_secret": "registry", "tokens_secret": "shared"},
    "tls": {"tls_certificate": "/home/me/cert.pem", "tls_key": "/home/me/key.pem"},
    "placed": {"namespace": "models", "service_account": "reader", "project_url": "s3://bucket/team"},
    "grpc": {"grpc_port": 0},
    "view": {"view": "teams:1", "project_url": "s3://bucket/team", "environment": {"CARGOBIKE_REDIS_PASSWORD": ""}},
    "pulled": {"pulls_model": True, "project_url": "s3://bucket/team", "environment": {"AWS_SECRET_ACCESS_KEY": ""}},
    "concurrency": {"uses_metrics": True, "scaling": Scaling(least=1, most=9, target=12)},
    "requests": {"uses_metrics": True, "scaling": Scaling(least=1, most=9, by="requests", target=0.5)},
    "queue": {"uses_metrics": True, "scaling": Scaling(least=1, most=9, by="queue", target=0.05)},
}
KSERVE = {name: more for name, more in VARIANTS.items() if not {"uses_metrics", "grpc_port"} & set(more)}
TO_ZERO: dict[str, Any] = {"scaling": Scaling(least=0, most=3, by="requests", target=50), "pull_secret": "registry"}


def by_kind(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {manifest["kind"]: manifest for manifest in manifests}


EVERYTHING = {name: value for variant in VARIANTS.values() for name, value in variant.items()}
CASES = [
    *((variant, "1.31.0") for variant in VARIANTS),
    *(("everything", one) for one in ("1.25.0", "1.28.0", "1.37.0")),
]


@pytest.mark.parametrize(("variant", "version"), CASES)
def test_every_manifest_is_valid_in_every_release(variant: str, version: str) -> None:
    manifests = render(asked(**VARIANTS.get(variant, EVERYTHING)))
    assert {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget"} <= set(by_kind(manifests))
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_validator_sees_mistakes() -> None:
    deployment = by_kind(render(asked()))["Deployment"]
    deployment["spec"]["template"]["spec"]["containers"][0]["reddinessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="reddinessProbe"):
        kubernetes_validate.validate(deployment, "1.31.0", strict=True)


@pytest.mark.parametrize("variant", [*KSERVE, "to zero"])
def test_the_pod_of_an_inference_service_is_valid(variant: str) -> None:
    config, service = render(asked(**KSERVE.get(variant, TO_ZERO)), "kserve")
    assert (config["kind"], service["kind"], service["apiVersion"]) == (
        "ConfigMap",
        "InferenceService",
        "serving.kserve.io/v1beta1",
    )
    predictor = dict(service["spec"]["predictor"])
    for field in ("minReplicas", "maxReplicas", "scaleMetric", "scaleTarget", "timeout", "annotations", "labels"):
        predictor.pop(field)
    assert predictor["containers"][0]["name"] == "kserve-container"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": predictor}
    kubernetes_validate.validate(pod, "1.31.0", strict=True)


def test_kserve_scales_to_zero_with_knative_and_by_processors_without() -> None:
    service = render(asked(**TO_ZERO), "kserve")[1]
    predictor = service["spec"]["predictor"]
    assert service["metadata"]["annotations"]["serving.kserve.io/deploymentMode"] == "Knative"
    assert [predictor[one] for one in ("minReplicas", "maxReplicas", "scaleMetric", "scaleTarget")] == [0, 3, "rps", 50]
    refused = {"terminationGracePeriodSeconds", "automountServiceAccountToken", "topologySpreadConstraints"}
    assert not {*refused, "securityContext"} & set(predictor)
    (container,) = predictor["containers"]
    assert not {"lifecycle", "startupProbe"} & set(container)
    assert container["ports"] == [{"name": "http1", "containerPort": 8080, "protocol": "TCP"}]
    assert container["securityContext"]["runAsNonRoot"]
    assert container["readinessProbe"]["httpGet"]["port"] == 8080
    service = render(asked(), "kserve")[1]
    assert service["metadata"]["annotations"]["serving.kserve.io/deploymentMode"] == "Standard"
    assert (service["spec"]["predictor"]["scaleMetric"], service["spec"]["predictor"]["scaleTarget"]) == ("cpu", 70)


def test_what_kserve_cannot_do_is_refused() -> None:
    wrong = asked(
        grpc_port=0,
        uses_metrics=True,
        scaling=Scaling(least=0, most=3, by="queue"),
        tls_certificate="/c.pem",
        tls_key="/k.pem",
    )
    with pytest.raises(InvalidInputError, match="KServe routes to one port") as caught:
        render(wrong, "kserve")
    assert len(caught.value.mistakes) == 4


def test_only_kserve_scales_to_zero() -> None:
    with pytest.raises(InvalidInputError, match=r"0:3: .* at least one pod; say 1:3, or .*--render kserve"):
        render(asked(scaling=Scaling(least=0, most=3)))


def test_grpc_has_ports_and_a_name_for_all_pods() -> None:
    manifests = render(asked(grpc_port=0))
    inside = msgspec.json.decode(manifests[0]["data"]["deployment.json"], type=Specification)
    assert (inside.port, inside.grpc_port) == (8080, 8081)
    container = by_kind(manifests)["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "grpc", "containerPort": 8081, "protocol": "TCP"} in container["ports"]
    services = {one["metadata"]["name"]: one["spec"] for one in manifests if one["kind"] == "Service"}
    assert [port["port"] for port in services["digits"]["ports"]] == [80, 8081]
    assert services["digits-grpc"]["clusterIP"] == "None"
    assert [port["targetPort"] for port in services["digits-grpc"]["ports"]] == ["grpc"]


@pytest.mark.parametrize(
    ("variant", "name", "value"),
    [
        ("concurrency", "cargobike_rows_in_flight", "12"),
        ("requests", "cargobike_requests_per_second", "500m"),
        ("queue", "cargobike_longest_wait_seconds", "50m"),
    ],
)
def test_the_number_of_pods_follows_our_figures_if_the_cluster_has_them(variant: str, name: str, value: str) -> None:
    (metric,) = by_kind(render(asked(**VARIANTS[variant])))["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert metric["type"] == "Pods"
    assert metric["pods"] == {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": value}}


def test_a_view_is_read_from_the_project_by_pods() -> None:
    wanted = asked(**VARIANTS["view"])
    inside = msgspec.json.decode(render(wanted)[0]["data"]["deployment.json"], type=Specification)
    assert (inside.view, inside.view_project) == ("teams:1", "s3://bucket/team")
    with pytest.raises(InvalidInputError, match=r"view='teams:1': pods read .* --project s3://bucket/path"):
        render(asked(view="teams:1"))
    bound = {**VARIANTS["view"], "bound_groups": {"players": "in files of each host"}}
    with pytest.raises(InvalidInputError, match=r"rows of the group players are in files .*update\(online='redis://"):
        render(asked(**bound))


def test_a_model_is_pulled_into_a_volume_of_the_pod() -> None:
    pod = by_kind(render(asked(**VARIANTS["pulled"])))["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"][-2:] == ["--pull", "s3://bucket/team"]
    assert {"name": "models", "mountPath": "/srv/cargobike/models"} in container["volumeMounts"]
    assert {"name": "models", "emptyDir": {}} in pod["volumes"]
    with pytest.raises(InvalidInputError, match="pods cannot pull the model: the project must be on storage"):
        render(asked(pulls_model=True))


def test_no_secret_is_in_a_manifest_and_where_they_come_from_is() -> None:
    text = as_yaml(render(asked(environment={"API_KEY": "sesame"}, pull_secret="registry")))
    assert "sesame" not in text
    pod = by_kind(list(yaml.safe_load_all(text)))["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "digits-environment", "key": "API_KEY"}}} in (
        container["env"]
    )
    assert {"name": "tokens", "secret": {"secretName": "digits-tokens"}} in pod["volumes"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert asked(environment={"API_KEY": ""}, pull_secret="registry").secrets == (
        "digits-tokens",
        "digits-environment",
        "registry",
    )


def test_the_pod_has_no_privileges() -> None:
    pod = by_kind(render(asked()))["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    written = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert written == {"/tmp", "/srv/cargobike/deployments"}


def test_a_pod_ends_only_after_what_it_has_was_answered() -> None:
    deployment = by_kind(render(asked(limits=Limits(deadline_s=120))))["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    pause = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > pause + 120
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def test_the_specification_is_that_of_this_machine_with_one_replica_in_each_pod() -> None:
    wanted = asked(limits=Limits(batch=7), tls_certificate="/home/me/c.pem", tls_key="/home/me/k.pem", trust=True)
    manifests = by_kind(render(wanted))
    inside = msgspec.json.decode(manifests["ConfigMap"]["data"]["deployment.json"], type=Specification)
    assert (inside.model, inside.version, inside.host, inside.port) == ("digits:3", 3, "0.0.0.0", 8080)
    assert (inside.scaling.least, inside.scaling.most) == (1, 1)
    assert (inside.limits.batch, inside.trust) == (7, True)
    assert (inside.tls_certificate, inside.tls_key) == ("/etc/cargobike/tls/tls.crt", "/etc/cargobike/tls/tls.key")
    probe = manifests["Deployment"]["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]
    assert (probe["path"], probe["scheme"]) == ("/v2/health/ready", "HTTPS")
    assert manifests["Service"]["spec"]["ports"][0]["port"] == 443


def logging_inside(**more: Any) -> dict[str, Any]:
    text = by_kind(render(asked(**more)))["ConfigMap"]["data"]["deployment.json"]
    logging: dict[str, Any] = json.loads(text)["logging"]
    return logging


def test_files_in_a_pod_end_with_it_so_the_log_goes_where_all_pods_reach() -> None:
    assert logging_inside()["sample"] == 0.0
    assert logging_inside(project_url="s3://bucket/team") == {
        **logging_inside(),
        "url": "s3://bucket/team",
        "sample": 1.0,
    }
    assert logging_inside(logging=Logging(kafka="kafka:9092", sample=0.5))["sample"] == 0.5


def test_a_configuration_has_a_name_of_its_own_so_that_going_back_finds_the_old_one() -> None:
    first, second, again = (by_kind(render(asked(version))) for version in (3, 4, 3))
    names = [one["ConfigMap"]["metadata"]["name"] for one in (first, second, again)]
    assert names[0] == names[2] != names[1]
    assert first["ConfigMap"]["immutable"]
    volumes = second["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "config", "configMap": {"name": names[1]}} in volumes
    assert first["Deployment"]["spec"]["selector"] == second["Deployment"]["spec"]["selector"]


def test_the_autoscaler_decides_alone_about_the_number_of_pods() -> None:
    scaled = by_kind(render(asked(scaling=Scaling(least=2, most=6))))
    assert "replicas" not in scaled["Deployment"]["spec"]
    spec = scaled["HorizontalPodAutoscaler"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 6)
    fixed = by_kind(render(asked(scaling=Scaling(least=3, most=3))))
    assert "HorizontalPodAutoscaler" not in fixed
    assert fixed["Deployment"]["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("name", "expected"), [("digits", "digits"), ("Team_A.digits", "team-a-digits"), ("7up", "d-7up"), ("a__b-", "a-b")]
)
def test_names_are_those_that_kubernetes_allows(name: str, expected: str) -> None:
    assert object_name(name) == expected


def test_all_mistakes_are_said_at_once() -> None:
    wrong = asked(
        0,
        name="d" * 60,
        image="no image",
        resources={"cpu": "much"},
        environment={"not a name": ""},
        view="teams:1",
        logging=Logging(url="s3://me:sesame@bucket/team"),
        scaling=Scaling(least=4, most=2, by="request", target=0),  # type: ignore[arg-type]
        cpu_target=0,
        functions=b"x" * 10**6,
    )
    with pytest.raises(InvalidInputError, match="This cannot be run on Kubernetes") as caught:
        render(wrong)
    assert len(caught.value.mistakes) == 12
    for words in ("'500m', '2' or '4Gi'", "Did you mean 'requests'", "the fewest come first"):
        assert words in str(caught.value)
    assert "sesame" not in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"the name '../up' must be letters"):
        render(asked(name="../up"))


def test_manifests_are_one_file_that_reads_back() -> None:
    manifests = render(asked())
    assert list(yaml.safe_load_all(as_yaml(manifests))) == manifests

"""An API server of Kubernetes: reading, applying and deleting objects as plain dicts, with errors in words."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import yaml

from cargobike.core.errors import CargobikeError, DeploymentError, InvalidInputError
from cargobike.core.registering.lazy import in_words

try:
    from kubernetes import client, config
    from kubernetes.client import ApiClient, ApiException
    from kubernetes.config import ConfigException
    from urllib3.exceptions import HTTPError, MaxRetryError
except ModuleNotFoundError as missing:
    raise in_words(missing, "Speaking to Kubernetes", "kubernetes") from missing

Object = dict[str, Any]

PATHS: Final = {
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/{namespace}/replicasets",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers",
    "InferenceService": "/apis/serving.kserve.io/v1beta1/namespaces/{namespace}/inferenceservices",
}
"""Where the API has the objects that we use."""
_MANAGER: Final = "cargobike"
_TIMEOUT_S: Final = (5.0, 15.0)
"""How long connecting and answering may take; both are tried three times."""
_RETRIES: Final = 2
_LONGEST_WORDS: Final = 500


class Cluster:
    """One namespace of a cluster, as a kubeconfig or the pod that we are in knows it.

    Attributes:
        namespace: The namespace.
        server: The address of the API server.
    """

    def __init__(self, api: ApiClient, namespace: str = "default") -> None:
        self._api = api
        self.namespace = namespace
        self.server = str(api.configuration.host)

    @classmethod
    def open(cls, *, context: str = "", namespace: str = "", kubeconfig: str = "") -> Cluster:
        """Return a cluster; no request is sent yet.

        Args:
            context: Which context of the kubeconfig; by default the current one, or in a pod the pod's own cluster.
            namespace: By default the context's.
            kubeconfig: A file; by default what `KUBECONFIG` names, or `~/.kube/config`.

        Raises:
            InvalidInputError: If there is no such context, or no configuration.
        """
        chosen = client.Configuration()
        try:
            contexts, current = config.list_kube_config_contexts(kubeconfig or None)
            names = [one["name"] for one in contexts]
            if context and context not in names:
                raise InvalidInputError(f"There is no context {context!r}; there is {', '.join(names)}.")
            config.load_kube_config(kubeconfig or None, context or None, client_configuration=chosen)
            used = next((one for one in contexts if one["name"] == context), current)
            default = used["context"].get("namespace", "default")
        except (yaml.YAMLError, KeyError, TypeError, ValueError, OSError) as error:
            raise InvalidInputError(
                f"The configuration of the cluster cannot be read: {type(error).__name__}: {error}. Look at "
                f"{kubeconfig or os.environ.get('KUBECONFIG') or '~/.kube/config'}."
            ) from error
        except ConfigException as error:
            if not context and not kubeconfig and (named := os.environ.get("KUBECONFIG")):
                raise InvalidInputError(f"KUBECONFIG names {named}, which cannot be used: {error}") from error
            if context or kubeconfig:
                raise InvalidInputError(f"The configuration of the cluster cannot be read: {error}") from error
            default = _in_cluster(chosen)
        chosen.retries = _RETRIES
        return cls(ApiClient(chosen), namespace or default)

    def get(self, kind: str, name: str) -> Object | None:
        """Return an object; `None` if there is none."""
        return self._call("GET", f"{self._path(kind)}/{name}", may_be_missing=True)

    def find(self, kind: str, labels: Mapping[str, str]) -> list[Object]:
        """Return the objects that carry labels."""
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        answer = self._call("GET", self._path(kind), query=[("labelSelector", selector)]) or {}
        items: list[Object] = answer.get("items") or []
        return items

    def apply(self, manifest: Object) -> Object:
        """Create an object, or make it what a manifest says; fields of others, such as an autoscaler's, stay theirs."""
        path = f"{self._path(manifest['kind'])}/{manifest['metadata']['name']}"
        query = [("fieldManager", _MANAGER), ("force", "true")]
        return self._call("PATCH", path, query=query, body=manifest, kind="application/apply-patch+yaml") or {}

    def patch(self, kind: str, name: str, steps: list[Object]) -> Object:
        """Change some fields of an object, by a JSON patch."""
        path = f"{self._path(kind)}/{name}"
        query = [("fieldManager", _MANAGER)]
        return self._call("PATCH", path, query=query, body=steps, kind="application/json-patch+json") or {}

    def delete(self, kind: str, name: str) -> bool:
        """Delete an object, and what it owns; returns whether it was there."""
        body = {"propagationPolicy": "Background"}
        return self._call("DELETE", f"{self._path(kind)}/{name}", body=body, may_be_missing=True) is not None

    def log(self, pod: str, lines: int) -> str:
        """Return the last lines that a pod has printed; if it has not begun, what the cluster says about that."""
        query = [("tailLines", str(lines))]
        try:
            answer = self._answer("GET", f"{self._path('Pod')}/{pod}/log", query=query, may_be_missing=True)
        except InvalidInputError as error:
            return str(error)
        return "" if answer is None else answer.decode("utf-8", "replace")

    def close(self) -> None:
        """End the connections."""
        self._api.close()

    def _path(self, kind: str) -> str:
        return PATHS[kind].format(namespace=self.namespace)

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Any = None,
        kind: str = "application/json",
        may_be_missing: bool = False,
    ) -> Object | None:
        answer = self._answer(method, path, query=query, body=body, kind=kind, may_be_missing=may_be_missing)
        found: Object | None = None if answer is None else json.loads(answer)
        return found

    def _answer(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Any = None,
        kind: str = "application/json",
        may_be_missing: bool = False,
    ) -> bytes | None:
        try:
            response = self._api.call_api(
                path,
                method,
                query_params=query or [],
                header_params={"Content-Type": kind, "Accept": "application/json, */*"},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,  # what it would be decoded to differs between releases of the client
                _return_http_data_only=True,
                _request_timeout=_TIMEOUT_S,
            )
            data: bytes = response.data
        except ApiException as error:
            if error.status == 404 and may_be_missing:
                return None
            raise self._explained(error, method, path) from None
        except HTTPError as error:
            words = _reason(error)
            raise DeploymentError(f"The API server {self.server} does not answer: {words}") from None
        return data

    def _explained(self, error: ApiException, method: str, path: str) -> CargobikeError:
        words = _message(error.body) or error.reason
        what = f"{method} {path}"
        if error.status in {401, 403}:
            return DeploymentError(f"The cluster {self.server} does not allow {what}: {words}")
        if error.status == 404:
            advice = " Is KServe installed there?" if "kserve" in path else ""
            if words.startswith("namespaces "):
                advice = f" Make it with `kubectl create namespace {self.namespace}`, or name another with --namespace."
            return DeploymentError(f"The cluster {self.server} does not have {path}: {words}.{advice}")
        if error.status in {400, 422}:
            return InvalidInputError(f"The cluster {self.server} refuses {what}: {words}")
        return DeploymentError(f"The cluster {self.server} could not do {what}: {error.status} {words}")


def _in_cluster(chosen: Any) -> str:
    try:
        config.load_incluster_config(client_configuration=chosen)
    except ConfigException as error:
        raise InvalidInputError(
            "There is no configuration of a cluster: set KUBECONFIG, write ~/.kube/config, or say which file it is."
        ) from error
    try:
        with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return "default"


def _reason(error: HTTPError) -> str:
    """Return why no answer came, without the attempts and addresses around it."""
    cause = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    return str(cause).rpartition("): ")[2][:_LONGEST_WORDS]


def _message(body: Any) -> str:
    """Return the words of an API server's error."""
    try:
        text = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        text = str(body or "")
    return " ".join(text.split())[:_LONGEST_WORDS]

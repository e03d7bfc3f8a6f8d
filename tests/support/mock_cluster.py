"""A small API server of Kubernetes in memory, with a controller that rolls pods, one step for each look at them."""

from __future__ import annotations

import copy
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

Object = dict[str, Any]
_PATH = re.compile(r"/apis?/(?P<api>.+)/namespaces/(?P<namespace>[^/]+)/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?")
REVISION = "deployment.kubernetes.io/revision"


class MockCluster:
    """Objects by namespace, kind and name; pods become ready one after the other, unless their image is bad."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.authorizations: set[str] = set()
        self.refuses: dict[str, tuple[int, str]] = {}
        self.bad_images: set[str] = set()
        self.fewest_ready = 10**6
        self._sized: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()
        self._number = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def kubeconfig(self, path: Path, namespace: str = "models") -> Path:
        """Write a configuration for clients."""
        return write_kubeconfig(path, self.url, namespace)

    def names(self, plural: str, namespace: str = "models") -> list[str]:
        return sorted(name for place, kind, name in self.objects if (place, kind) == (namespace, plural))

    def add_secret(self, name: str, namespace: str = "models") -> None:
        self.objects[namespace, "secrets", name] = {"kind": "Secret", "metadata": {"name": name}}

    # --- the API ------------------------------------------------------------------------------------------------------

    def answer(self, method: str, url: str, content_type: str, body: Any) -> tuple[int, Object]:
        parts = urlsplit(url)
        match = _PATH.fullmatch(parts.path)
        if parts.path.endswith("/log"):
            return 200, {"printed by": parts.path.split("/")[-2], **parse_qs(parts.query)}
        with self._lock:
            self.requests.append((method, parts.path, content_type))
            if match is None:
                return 404, {"message": "the server could not find the requested resource"}
            namespace, plural, name = match["namespace"], match["plural"], match["name"]
            if plural in self.refuses:
                status, words = self.refuses[plural]
                return status, {"message": words}
            key = (namespace, plural, name or "")
            query = parse_qs(parts.query)
            if method == "GET" and name is None:
                return 200, {"items": self._selected(namespace, plural, query.get("labelSelector", [""])[0])}
            if method == "PATCH" and content_type == "application/apply-patch+yaml":
                assert query["fieldManager"] == ["cargobike"]
                return self._apply(key, body)
            if key not in self.objects:
                return 404, {"message": f'{plural} "{name}" not found'}
            if method == "PATCH":
                return self._json_patch(key, body)
            if method == "DELETE":
                return self._delete(key)
            if plural == "deployments":
                self._step(namespace, self.objects[key])
            return 200, self.objects[key]

    def _selected(self, namespace: str, plural: str, selector: str) -> list[Object]:
        wanted = dict(part.split("=") for part in selector.split(",") if part)
        return [
            one
            for (place, kind, _), one in self.objects.items()
            if (place, kind) == (namespace, plural) and wanted.items() <= (one["metadata"].get("labels") or {}).items()
        ]

    def _apply(self, key: tuple[str, str, str], body: Object) -> tuple[int, Object]:
        before = self.objects.get(key)
        made = copy.deepcopy(body)
        was_sized = key in self._sized
        (self._sized.add if "replicas" in (made.get("spec") or {}) else self._sized.discard)(key)
        if before is None:
            self._number += 1
            made["metadata"] |= {"uid": f"uid-{self._number}", "generation": 1}
            self.objects[key] = made
            return 201, made
        if key[1] == "configmaps" and before.get("immutable") and before["data"] != made["data"]:
            return 422, {"message": "ConfigMap is immutable"}
        changed = before.get("spec") != made.get("spec")
        made["metadata"] |= {
            "uid": before["metadata"]["uid"],
            "generation": before["metadata"]["generation"] + changed,
        }
        # A field that was applied and is left out goes back to its default; one that others wrote stays.
        if key[1] == "deployments" and not was_sized and "replicas" in before["spec"]:
            made["spec"].setdefault("replicas", before["spec"]["replicas"])
        self.objects[key] = {**made, "status": before.get("status", {})}
        return 200, self.objects[key]

    def _json_patch(self, key: tuple[str, str, str], steps: list[Object]) -> tuple[int, Object]:
        one = self.objects[key]
        for step in steps:
            *path, last = step["path"].strip("/").split("/")
            place = one
            for name in path:
                place = place[name]
            if step["op"] == "replace" and last not in place:
                return 422, {"message": f"there is no {step['path']}"}
            place[last] = step["value"]
        one["metadata"]["generation"] += 1
        return 200, one

    def _delete(self, key: tuple[str, str, str]) -> tuple[int, Object]:
        gone = self.objects.pop(key)
        if key[1] == "deployments":
            for other in [
                other
                for other, one in self.objects.items()
                if other[1] in {"pods", "replicasets"} and one["metadata"]["owner"] == key[2]
            ]:
                del self.objects[other]
        return 200, gone

    # --- the controller -----------------------------------------------------------------------------------------------

    def _step(self, namespace: str, deployment: Object) -> None:
        """Do one thing: create a pod, make one ready, or end one of before."""
        name, spec = deployment["metadata"]["name"], deployment["spec"]
        spec.setdefault("replicas", 1)
        current = self._replica_set(namespace, deployment)
        pods = [
            one
            for (place, kind, _), one in self.objects.items()
            if (place, kind) == (namespace, "pods") and one["metadata"]["owner"] == name
        ]
        new = [pod for pod in pods if pod["metadata"]["set"] == current]
        old = [pod for pod in pods if pod["metadata"]["set"] != current]
        unready = [
            pod for pod in new if not _is_ready(pod) and pod["spec"]["containers"][0]["image"] not in self.bad_images
        ]
        if unready:
            unready[0]["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        elif len(pods) > spec["replicas"] and all(map(_is_ready, new)):
            gone = old[0] if old else new[-1]
            del self.objects[namespace, "pods", gone["metadata"]["name"]]
        elif len(new) < spec["replicas"] and len(pods) <= spec["replicas"]:
            self._create_pod(namespace, deployment, current)
        elif old and all(map(_is_ready, new)) and len(new) == spec["replicas"]:
            del self.objects[namespace, "pods", old[0]["metadata"]["name"]]
        pods = [one for one in self.objects.values() if one["kind"] == "Pod" and one["metadata"]["owner"] == name]
        ready = sum(map(_is_ready, pods))
        if old:
            self.fewest_ready = min(self.fewest_ready, ready)
        updated = sum(pod["metadata"]["set"] == current for pod in pods)
        deployment["status"] = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": len(pods),
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "conditions": (deployment.get("status") or {}).get("conditions") or [],
        }

    def _replica_set(self, namespace: str, deployment: Object) -> str:
        template = deployment["spec"]["template"]
        sets = [
            one
            for one in self.objects.values()
            if one["kind"] == "ReplicaSet" and one["metadata"]["owner"] == deployment["metadata"]["name"]
        ]
        newest = max((int(one["metadata"]["annotations"][REVISION]) for one in sets), default=0)
        for one in sets:
            bare = copy.deepcopy(one["spec"]["template"])
            del bare["metadata"]["labels"]["pod-template-hash"]
            if bare == template:
                if int(one["metadata"]["annotations"][REVISION]) != newest:
                    one["metadata"]["annotations"][REVISION] = str(newest + 1)
                return str(one["metadata"]["name"])
        self._number += 1
        name = f"{deployment['metadata']['name']}-{self._number}"
        inner = copy.deepcopy(template)
        inner["metadata"]["labels"]["pod-template-hash"] = str(self._number)
        self.objects[namespace, "replicasets", name] = {
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "owner": deployment["metadata"]["name"],
                "labels": inner["metadata"]["labels"],
                "annotations": {REVISION: str(newest + 1)},
                "ownerReferences": [{"uid": deployment["metadata"]["uid"]}],
            },
            "spec": {"template": inner},
        }
        return name

    def _create_pod(self, namespace: str, deployment: Object, replica_set: str) -> None:
        self._number += 1
        template = copy.deepcopy(deployment["spec"]["template"])
        name = f"{replica_set}-{self._number}"
        image = template["spec"]["containers"][0]["image"]
        waiting = {"reason": "ImagePullBackOff", "message": f"cannot pull {image}"}
        bad = {"containerStatuses": [{"ready": False, "restartCount": 0, "state": {"waiting": waiting}}]}
        self.objects[namespace, "pods", name] = {
            "kind": "Pod",
            "metadata": {
                **template["metadata"],
                "name": name,
                "owner": deployment["metadata"]["name"],
                "set": replica_set,
            },
            "spec": template["spec"],
            "status": {"phase": "Pending", **(bad if image in self.bad_images else {})},
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # else head and body travel apart, and wait for each other

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length)
                cluster.authorizations.add(str(self.headers.get("Authorization")))
                content_type = str(self.headers.get("Content-Type"))
                status, answer = cluster.answer(
                    self.command, self.path, content_type, json.loads(text) if text else None
                )
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PATCH = do_DELETE = do_POST = do_PUT = _serve

            def log_message(self, format: str, *args: Any) -> None: ...

        return Handler


def _is_ready(pod: Object) -> bool:
    return any(one["type"] == "Ready" for one in pod["status"].get("conditions", []))


def write_kubeconfig(path: Path, server: str, namespace: str = "models") -> Path:
    """Write a configuration for clients of a server."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "sesame"}}],
        "contexts": [
            {"name": "mock", "context": {"cluster": "c", "user": "u", "namespace": namespace}},
            {"name": "other", "context": {"cluster": "c", "user": "u"}},
        ],
        "current-context": "mock",
    }
    path.write_text(yaml.safe_dump(document))
    return path

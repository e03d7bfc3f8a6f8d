"""A real API server of Kubernetes without nodes, from binaries that were built elsewhere, and a made-up kubelet."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("KUBERNETES", "")
REASON = "no folder with kube-apiserver, kube-controller-manager and etcd was given as KUBERNETES"
_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "etcd")
_UP_WITHIN_S = 180.0
BROKEN = "registry.example/team/broken:1"
"""Pods with this image never become ready here."""


def program(name: str) -> str:
    """Return where a program is; empty if it is not there."""
    return shutil.which(name, path=f"{FOLDER}{os.pathsep}{os.environ.get('PATH', '')}") or "" if FOLDER else ""


IS_HERE = all(program(name) for name in _PROGRAMS)


class RealCluster:
    """Three processes in a folder; `kubeconfig` is a file for clients."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ended = threading.Event()
        self._kubelet = threading.Thread(target=self._play_kubelet)
        self.fewest_ready = 10**6
        self._watched = ""
        etcd, peers, api = _free_ports(3)
        self.kubeconfig = folder / "config"
        self._write_configuration(api)
        store = f"http://127.0.0.1:{etcd}"
        peer = f"http://127.0.0.1:{peers}"
        self._start("etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls={store}",
                    f"--advertise-client-urls={store}", f"--listen-peer-urls={peer}", "--unsafe-no-fsync",
                    f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}")  # fmt: skip
        key = folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        self._start("kube-apiserver", f"--etcd-servers={store}", "--bind-address=127.0.0.1",
                    "--advertise-address=127.0.0.1", f"--secure-port={api}", f"--cert-dir={folder}/certs",
                    f"--token-auth-file={folder}/tokens.csv", "--service-account-issuer=https://tests",
                    f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                    "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC",
                    "--disable-admission-plugins=ServiceAccount")  # fmt: skip
        self._wait()
        self._start("kube-controller-manager", f"--kubeconfig={self.kubeconfig}", "--bind-address=127.0.0.1",
                    "--controllers=deployment,replicaset,endpoint,garbagecollector,disruption", "--leader-elect=false",
                    f"--service-account-private-key-file={key}")  # fmt: skip
        self._kubelet.start()

    def close(self) -> None:
        """End all processes."""
        self._ended.set()
        if self._kubelet.is_alive():
            self._kubelet.join()
        for process in reversed(self._processes):  # one after the other: the API server needs its store to end
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def api(self) -> Any:
        """Return what clients are made of."""
        from kubernetes import client, config  # here, since every test session loads this file

        configuration = client.Configuration()
        config.load_kube_config(str(self.kubeconfig), client_configuration=configuration)
        return client.ApiClient(configuration)

    def core(self) -> Any:
        """Return a client."""
        from kubernetes import client

        return client.CoreV1Api(self.api())

    def watch(self, namespace: str) -> None:
        """Begin to count the fewest pods that are ready in a namespace; end it if it is empty."""
        self._watched = namespace

    def define(self, definition: dict[str, Any]) -> None:
        """Make a kind of objects known, and wait until it is."""
        api = self.api()
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        words = {"auth_settings": ["BearerToken"], "_preload_content": False}
        api.call_api(path, "POST", body=definition, **words)
        spec = definition["spec"]
        found = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        give_up_at = time.monotonic() + _UP_WITHIN_S
        while True:
            try:
                api.call_api(found, "GET", **words)
                return
            except Exception:
                assert time.monotonic() < give_up_at
            time.sleep(0.1)

    def _start(self, name: str, *arguments: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [program(name), *arguments]
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder))

    def _write_configuration(self, port: int) -> None:
        import yaml

        users = {"sesame": ("admin", "system:masters"), "mellon": ("stranger", "guests")}
        rows = [f'{token},{user},{user},"{group}"\n' for token, (user, group) in users.items()]
        (self._folder / "tokens.csv").write_text("".join(rows))
        # The server makes a certificate of its own when it starts.
        certificate = str(self._folder / "certs" / "apiserver.crt")
        server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": certificate}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": user, "user": {"token": token}} for token, (user, _) in users.items()],
            "contexts": [
                {"name": "real", "context": {"cluster": "c", "user": "admin"}},
                {"name": "stranger", "context": {"cluster": "c", "user": "stranger"}},
            ],
            "current-context": "real",
        }
        self.kubeconfig.write_text(yaml.safe_dump(document))

    def _wait(self) -> None:
        give_up_at = time.monotonic() + _UP_WITHIN_S
        while True:
            try:
                self.core().read_namespace("default")
                self.api().call_api("/readyz", "GET", auth_settings=["BearerToken"], _preload_content=False)
                return
            except Exception as error:
                ended = [process.args for process in self._processes if process.poll() is not None]
                if ended or time.monotonic() > give_up_at:
                    self.close()
                    raise AssertionError(f"the API server did not come up in {self._folder}: {ended}") from error
            time.sleep(0.25)

    def _play_kubelet(self) -> None:
        """Make pods ready a moment after they were created, and end those that are to end."""
        from kubernetes import client

        core = self.core()
        while not self._ended.wait(0.1):
            try:
                pods = core.list_pod_for_all_namespaces().items
                for pod in pods:
                    self._tend(core, pod)
            except client.ApiException:
                continue
            if self._watched:
                ready = sum(
                    _is_ready(pod) and not pod.metadata.deletion_timestamp
                    for pod in pods
                    if pod.metadata.namespace == self._watched
                )
                self.fewest_ready = min(self.fewest_ready, ready)
        core.api_client.close()

    def _tend(self, core: Any, pod: Any) -> None:
        from kubernetes import client

        name, namespace = pod.metadata.name, pod.metadata.namespace
        if pod.metadata.deletion_timestamp:
            core.delete_namespaced_pod(name, namespace, grace_period_seconds=0)
        elif not pod.spec.node_name:
            target = client.V1ObjectReference(kind="Node", name="made-up")
            binding = client.V1Binding(metadata=client.V1ObjectMeta(name=name), target=target)
            core.create_namespaced_binding(namespace, binding, _preload_content=False)
        elif pod.spec.containers[0].image == BROKEN:
            waiting = {"reason": "ImagePullBackOff", "message": f"Back-off pulling image {BROKEN}"}
            told = {"name": "server", "image": BROKEN, "imageID": "", "ready": False, "restartCount": 0}
            status = {"phase": "Pending", "containerStatuses": [{**told, "state": {"waiting": waiting}}]}
            core.patch_namespaced_pod_status(name, namespace, {"status": status})
        elif not _is_ready(pod):
            now = datetime.datetime.now(datetime.UTC).isoformat()
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            core.patch_namespaced_pod_status(
                name, namespace, {"status": {"phase": "Running", "podIP": "10.0.0.9", "conditions": [ready]}}
            )


def _is_ready(pod: Any) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or [])


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports

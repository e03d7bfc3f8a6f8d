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
_UP_WITHIN_S = 90.0


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
        self.watches = False
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
                    "--controllers=deployment,replicaset,endpoint,garbagecollector", "--leader-elect=false",
                    f"--service-account-private-key-file={key}")  # fmt: skip
        self._kubelet.start()

    def close(self) -> None:
        """End all processes."""
        self._ended.set()
        if self._kubelet.is_alive():
            self._kubelet.join()
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def core(self) -> Any:
        """Return a client."""
        from kubernetes import client, config  # here, since every test session loads this file

        configuration = client.Configuration()
        config.load_kube_config(str(self.kubeconfig), client_configuration=configuration)
        return client.CoreV1Api(client.ApiClient(configuration))

    def _start(self, name: str, *arguments: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [program(name), *arguments]
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder))

    def _write_configuration(self, port: int) -> None:
        import yaml

        (self._folder / "tokens.csv").write_text('sesame,admin,1,"system:masters"\n')
        server = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": "u", "user": {"token": "sesame"}}],
            "contexts": [{"name": "real", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "real",
        }
        self.kubeconfig.write_text(yaml.safe_dump(document))

    def _wait(self) -> None:
        give_up_at = time.monotonic() + _UP_WITHIN_S
        while True:
            try:
                self.core().list_namespace()
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
                pods = core.list_namespaced_pod("default").items
                for pod in pods:
                    self._tend(core, pod)
            except client.ApiException:
                continue
            if self.watches:
                ready = sum(_is_ready(pod) and not pod.metadata.deletion_timestamp for pod in pods)
                self.fewest_ready = min(self.fewest_ready, ready)
        core.api_client.close()

    def _tend(self, core: Any, pod: Any) -> None:
        from kubernetes import client

        name = pod.metadata.name
        if pod.metadata.deletion_timestamp:
            core.delete_namespaced_pod(name, "default", grace_period_seconds=0)
        elif not pod.spec.node_name:
            target = client.V1ObjectReference(kind="Node", name="made-up")
            binding = client.V1Binding(metadata=client.V1ObjectMeta(name=name), target=target)
            core.create_namespaced_binding("default", binding, _preload_content=False)
        elif not _is_ready(pod):
            now = datetime.datetime.now(datetime.UTC).isoformat()
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            core.patch_namespaced_pod_status(
                name, "default", {"status": {"phase": "Running", "podIP": "10.0.0.9", "conditions": [ready]}}
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

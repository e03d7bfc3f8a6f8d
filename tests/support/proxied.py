"""Workers that reach their driver only through a proxy, which can be cut."""

from __future__ import annotations

import socket
import threading

import msgspec

from cargobike.engines.engine import WorkerSpec
from cargobike.engines.local.engine import LocalHandle
from cargobike.workers.wire.connection import AgentConfig
from support.far_engine import KeyedEngine


class Proxy:
    """Passes bytes on between two sides, and cuts all connections when told."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self.connections = 0
        self.is_down = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                if self.is_down:
                    near.close()
                    continue
                far = socket.create_connection(self._target)
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._pairs.append((near, far))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(4096):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self) -> None:
        """Close every connection, in the middle of whatever it carries."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()


class ProxiedEngine(KeyedEngine):
    """A local engine whose workers reach the driver only through a proxy."""

    def __init__(self) -> None:
        super().__init__(cores=2, gpus=())
        self.proxy: Proxy | None = None

    def abandon_network(self) -> None:
        """Cut everybody off for good; workers that are started from now on get another way to the driver."""
        if self.proxy is not None:
            self.proxy.is_down = True
            self.proxy.cut()
            self.proxy = None

    def start_worker(self, spec: WorkerSpec) -> LocalHandle:
        config = AgentConfig.decode(spec.config)
        host, _, port = config.address.removeprefix("tcp://").partition(":")
        if self.proxy is None:
            self.proxy = Proxy(host, int(port))
        moved = msgspec.structs.replace(config, address=f"tcp://{host}:{self.proxy.port}")
        return super().start_worker(msgspec.structs.replace(spec, config=moved.encode()))

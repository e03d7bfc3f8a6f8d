"""A real PostgreSQL server for tests: in a folder of its own, reached by a socket in it, gone with the test run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_KEEPER = """
exec 3<&0
(
    "$BIN/pg_ctl" -D "$DATA" -l "$DATA/log" -w -t 120 start > /dev/null && echo ready
    exec > /dev/null
    cat <&3 > /dev/null
    "$BIN/pg_ctl" -D "$DATA" -m immediate stop
    rm -rf "$DATA"
) &
"""


class PostgresServer:
    """A server that runs until `close`, or until this process is gone.

    It is no descendant of this process: tests look for those that are left running. A keeper beside it waits for the
    end of a pipe instead.
    """

    def __init__(self, programs: Path) -> None:
        self._bin = programs
        self._user = "nobody" if os.getuid() == 0 else None  # it refuses to run as root
        self._group = "nogroup" if self._user else None
        self.folder = Path(tempfile.mkdtemp(prefix="cbpg-"))
        if self._user:
            shutil.chown(self.folder, self._user, self._group)
        self._run(
            "initdb", "-D", str(self.folder), "-U", "cargobike", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"
        )
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write(f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\nfsync = off\n")
        self._keeper = subprocess.Popen(
            ["sh", "-c", _KEEPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                "BIN": str(programs),
                "DATA": str(self.folder),
                "PATH": os.environ["PATH"],
                "LC_ALL": "C",
            },
            user=self._user,
            group=self._group,
            cwd=self.folder,
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        line = self._keeper.stdout.readline()
        self._keeper.wait()
        assert line == b"ready\n", (self.folder / "log").read_text()

    @property
    def url(self) -> str:
        return f"postgresql://cargobike@/postgres?host={self.folder}"

    def restart(self) -> None:
        """Restart without waiting for anybody, as after a crash."""
        self._run("pg_ctl", "-D", str(self.folder), "-m", "immediate", "-w", "-l", str(self.folder / "log"), "restart")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder), "-m", "fast", "-w", "stop")

    def start(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder), "-w", "-l", str(self.folder / "log"), "start")

    def close(self) -> None:
        """End the server and wait until its folder is gone."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.stdout.close()
        subprocess.run(
            ["sh", "-c", 'i=0; while [ -e "$0" ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done', str(self.folder)],
            check=True,
        )

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE,
            user=self._user,
            group=self._group,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (program, done.stderr)

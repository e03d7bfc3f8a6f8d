"""Members in processes of their own: `python -m support.swarm_processes serve …`; addresses they contact are noted."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cargobike.sharing.daemon.control import ask_daemon
from cargobike.sharing.daemon.messages import SetLimits
from cargobike.sharing.daemon.serving import Daemon
from cargobike.sharing.getting.front import get
from support.swarm import lab, project_at


def start(*words: str | int | Path, under: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a member; its first line says where it is, or how it ended."""
    command = [*under, sys.executable, "-m", "support.swarm_processes", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=environment)


def line_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next line of a member."""
    assert process.stdout is not None
    words: dict[str, Any] = json.loads(process.stdout.readline())
    return words


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def wait_until(happened: Any, what: str, timeout_s: float = 60.0) -> None:
    until = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < until, f"{what} did not happen"
        time.sleep(0.02)


def _note_addresses() -> set[str]:
    """Note every address that this process connects or sends to, and every name that it looks up."""
    contacted: set[str] = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
            address = arguments[1]
            if isinstance(address, tuple) and arguments[0].family in (socket.AF_INET, socket.AF_INET6):
                contacted.add("{}:{}".format(*address[:2]))
        elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
            contacted.add(f"name {arguments[0]}")

    sys.addaudithook(note)
    return contacted


def _say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def _serve(folder: str, port: str, *peers: str) -> None:
    contacted = _note_addresses()
    project = project_at(Path(folder))
    announces = "announce" in peers
    addresses = [peer for peer in peers if peer != "announce"]
    try:
        daemon = Daemon(project, lab(), port=int(port), peers=addresses, announces=announces, gossip_s=0.5)
        with daemon:
            ask_daemon(project, "lab", SetLimits(gives_way=False))
            _say(address=daemon.address)
            daemon.run()
    except OSError as error:
        _say(error=str(error))
        return
    _say(contacted=sorted(contacted))


def _get(folder: str, to: str, *peers: str) -> None:
    contacted = _note_addresses()
    try:
        arrival = get("higgs", network=lab(), to=to, peers=peers, project=project_at(Path(folder)), timeout_s=60.0)
    except (OSError, LookupError) as error:
        _say(error=str(error))
        return
    progress = arrival.progress
    _say(fetched=progress.size_fetched, found=progress.size_found, contacted=sorted(contacted))


if __name__ == "__main__":
    {"serve": _serve, "get": _get}[sys.argv[1]](*sys.argv[2:])

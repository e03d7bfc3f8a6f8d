"""A crowd of silent connections to the driver's port costs neither a log, nor a worker, nor the driver."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import psutil
import pytest

from support.watching import Script, above, wait_for

SEARCH = """
    import json, os, pathlib, resource, time
    resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
    from cargobike import experiment
    from cargobike.core.running.hosting import Listening
    from cargobike.engines.capabilities import Elsewhere
    from cargobike.engines.local.engine import LocalEngine

    class Listens(LocalEngine, Elsewhere):
        listening = Listening(port={port})

    here = pathlib.Path.cwd()

    def train(x):
        print("begin", x)
        (here / f"running-{{os.getpid()}}").touch()
        deadline = time.monotonic() + 100
        while not (here / "go").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        print("limits", *resource.getrlimit(resource.RLIMIT_NOFILE))
        return x

    result = experiment.launch(train, {{"x": [1, 2, 3, 4, 5, 6]}}, workers=2, engine=Listens(), quiet=True)
    ends = {{
        "state": result.state,
        "values": [trial.value for trial in result.trials],
        "limits": resource.getrlimit(resource.RLIMIT_NOFILE),
        "folder": str(result.folder),
    }}
    (here / "result").write_text(json.dumps(ends))
"""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(1000):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@pytest.mark.parametrize(("soft", "hard"), [(1024, 1024), (1024, 4096), (100, 100)])
def test_a_search_survives_a_silent_crowd_and_the_loss_of_a_worker(tmp_path: Path, soft: int, hard: int) -> None:
    port = _free_port()
    script = Script(tmp_path, SEARCH.format(soft=soft, hard=hard, port=port))
    crowd: list[socket.socket] = []
    try:
        wait_for(lambda: len(list(tmp_path.glob("running-*"))) >= 2, "two trials")
        for _ in range(1050):
            crowd.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        runner = psutil.Process(int(next(tmp_path.glob("running-*")).name.removeprefix("running-")))
        _template, agent, host = above(runner)[:3]
        for victim in (host, agent):
            victim.send_signal(signal.SIGKILL)
        wait_for(lambda: len(list(tmp_path.glob("running-*"))) >= 3, f"another worker\n{script.output}")
        wait_for(lambda: sum(map(_is_closed, crowd)) >= 800, "the connections of strangers to be closed")
        (tmp_path / "go").touch()
        assert script.end(60) == 0, script.output
    finally:
        for connection in crowd:
            connection.close()
        script.process.kill()
        script.process.wait()
    result = json.loads((tmp_path / "result").read_text())
    assert result["state"] == "completed"
    assert result["values"] == [1, 2, 3, 4, 5, 6]
    assert result["limits"] == [soft, hard]
    for index in range(6):
        lines = (Path(result["folder"]) / "trials" / f"{index:04}" / "stdout.log").read_text().splitlines()
        assert set(lines) == {f"begin {index + 1}", f"limits {soft} {hard}"}, "printed in full, under the old limit"
    assert "Traceback" not in script.output
    assert "do not say who they are" in script.output

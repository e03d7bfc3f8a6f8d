"""Requests of one row over HTTP, from `wrk` on the same machine: how many a second, how late, at what cost of CPU.

    python benchmarks/serving/http_load.py [--servers ours ours-without-log fastapi mlserver litserve bentoml]
                                           [--callers 1 16 64] [--seconds 10] [--rounds 3] [--model torch] [--json FILE]

Every server has the same 28-64-64-1 MLP, in torch or in NumPy, with one thread, and one worker; ours has checks,
metrics, a token and the inference log on. Servers take turns in each round; tables hold medians. `wrk` is a Debian
package.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mlp import example_row
from rig import findings, machine, venvs

HERE = Path(__file__).resolve().parent

TOKEN = secrets.token_hex(16)
V2 = {"inputs": [{"name": "x", "shape": [1, 28], "datatype": "FP32", "data": example_row()}]}
VARIABLES = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "BENTOML_DO_NOT_TRACK": "true"}


@dataclass(frozen=True)
class Server:
    """How a server is started and asked.

    Attributes:
        venv: Whose environment it runs in; empty for ours.
        command: What follows the interpreter; `{port}`, `{folder}` and `{bin}` are filled in.
        path: Where rows are sent.
        body: What is sent.
        health: Where it says that it is ready.
    """

    venv: str
    command: tuple[str, ...]
    path: str
    body: object
    health: str


SERVERS = {
    "ours": Server(
        "",
        (f"{HERE}/servers/cargobike_server.py", "{port}", TOKEN, "log"),
        "/predict",
        example_row(),
        "/v2/health/ready",
    ),
    "ours-v2": Server(
        "",
        (f"{HERE}/servers/cargobike_server.py", "{port}", TOKEN, "log"),
        "/v2/models/mlp/infer",
        V2,
        "/v2/health/ready",
    ),
    "ours-without-log": Server(
        "",
        (f"{HERE}/servers/cargobike_server.py", "{port}", TOKEN, "nolog"),
        "/predict",
        example_row(),
        "/v2/health/ready",
    ),
    "fastapi": Server(
        "fastapi", (f"{HERE}/servers/fastapi_server.py", "{port}"), "/predict", {"x": example_row()}, "/healthz"
    ),
    "mlserver": Server(
        "mlserver",
        ("-c", "from mlserver.cli import main; main()", "start", "{folder}"),
        "/v2/models/mlp/infer",
        V2,
        "/v2/models/mlp/ready",
    ),
    "litserve": Server(
        "litserve", (f"{HERE}/servers/litserve_server.py", "{port}"), "/predict", {"x": example_row()}, "/health"
    ),
    "bentoml": Server(
        "bentoml",
        ("-m", "bentoml", "serve", f"{HERE}/servers/bentoml_service.py:Service", "--port", "{port}"),
        "/predict",
        {"x": [example_row()]},
        "/readyz",
    ),
}


@dataclass(frozen=True)
class Sample:
    """What one run of `wrk` has found."""

    server: str
    callers: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    wrong: int


@contextmanager
def running(server: Server) -> Iterator[tuple[str, psutil.Process]]:
    """Run a server; yield its address and its first process."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
        probe.close()
        _write_mlserver_settings(Path(folder), port)
        python = Path(sys.executable) if not server.venv else venvs.python_of(server.venv, HERE.parents[1])
        command = [str(python), *(part.format(port=port, folder=folder) for part in server.command)]
        variables = {**os.environ, **VARIABLES}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        errors = Path(folder) / "errors.log"
        with errors.open("wb") as file:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=file, env=variables)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(f"{url}{server.health}", process, errors)
            yield url, psutil.Process(process.pid)
        finally:
            _end(process)


def _write_mlserver_settings(folder: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        ports = {"grpc_port": one.getsockname()[1], "metrics_port": two.getsockname()[1]}
    settings = {"http_port": port, "host": "127.0.0.1", "parallel_workers": 0, "debug": False, **ports}
    (folder / "settings.json").write_text(json.dumps(settings))
    model = {"name": "mlp", "implementation": "mlserver_runtime.Runtime"}
    (folder / "model-settings.json").write_text(json.dumps(model))
    shutil.copy(HERE / "servers" / "mlserver_runtime.py", folder)
    shutil.copy(HERE / "mlp.py", folder)


def _wait(url: str, process: subprocess.Popen[bytes], errors: Path) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        if time.monotonic() > until or process.poll() is not None:
            raise SystemExit(f"{url} did not come up:\n{errors.read_text()[-2000:]}")
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a server and everything that it has started: ours ends when its input is closed."""
    try:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        family = []
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        process.terminate()
    _, left = psutil.wait_procs(family, timeout=15)
    for one in left:
        one.kill()
    process.wait()


def measure(name: str, url: str, first: psutil.Process, callers: int, seconds: int) -> Sample:
    """Ask one server for a time."""
    server = SERVERS[name]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(
            f'wrk.method = "POST"\nwrk.body = [=[{json.dumps(server.body)}]=]\n'
            f'wrk.headers["Content-Type"] = "application/json"\nwrk.headers["Authorization"] = "Bearer {TOKEN}"\n'
        )
        script.flush()
        wrk = ["wrk", "-t1", f"-c{callers}", "--latency", "-s", script.name, f"{url}{server.path}"]
        subprocess.run([*wrk, "-d1s"], check=True, capture_output=True)
        before = _cpu_s(first)
        output = subprocess.run([*wrk, f"-d{seconds}s"], check=True, capture_output=True, text=True).stdout
        spent_s = _cpu_s(first) - before
    requests = int(_find(r"(\d+) requests in", output))
    wrong = int(_find(r"Non-2xx or 3xx responses: (\d+)", output, "0"))
    wrong += sum(map(int, re.findall(r"(?:connect|read|write|timeout) (\d+)", output)))
    return Sample(
        name,
        callers,
        float(_find(r"Requests/sec:\s+([\d.]+)", output)),
        _ms(_find(r"(?m)^ +50% +(\S+) *$", output)),
        _ms(_find(r"(?m)^ +99% +(\S+) *$", output)),
        spent_s / requests * 1e6,
        wrong,
    )


def _cpu_s(first: psutil.Process) -> float:
    total = 0.0
    for process in [first, *first.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def _find(pattern: str, text: str, otherwise: str | None = None) -> str:
    match = re.search(pattern, text)
    if match is None and otherwise is None:
        raise SystemExit(f"wrk said something else:\n{text}")
    return match[1] if match is not None else str(otherwise)


def _ms(text: str) -> float:
    for unit, factor in (("us", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 6e4)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise SystemExit(f"{text!r} is no time")


def show(samples: list[Sample]) -> None:
    """Print medians."""
    print(f"{'server':18} {'callers':>7} {'requests/s':>11} {'p50 ms':>8} {'p99 ms':>8} {'CPU us':>15} {'failed':>7}")
    for name, callers in dict.fromkeys((sample.server, sample.callers) for sample in samples):
        same = [sample for sample in samples if (sample.server, sample.callers) == (name, callers)]
        middle = {
            field: statistics.median(getattr(sample, field) for sample in same)
            for field in ("requests_per_s", "p50_ms", "p99_ms", "cpu_us")
        }
        wrong = sum(sample.wrong for sample in same)
        print(
            f"{name:18} {callers:7} {middle['requests_per_s']:11,.0f} {middle['p50_ms']:8.2f} "
            f"{middle['p99_ms']:8.2f} {middle['cpu_us']:15.0f} {wrong:7}"
        )


def judged(samples: list[Sample]) -> Iterator[findings.Target]:
    """Yield what was wanted, and what was found."""

    def middle(server: str, callers: int, field: str) -> float | None:
        same = [getattr(sample, field) for sample in samples if (sample.server, sample.callers) == (server, callers)]
        return statistics.median(same) if same else None

    rate = middle("ours", 16, "requests_per_s")
    for peer in ("fastapi", "mlserver", "litserve", "bentoml"):
        beside = middle(peer, 16, "requests_per_s")
        if rate and beside:
            text = f"requests/s of 16 callers: at least 3 × {peer}"
            yield findings.at_least(text, rate / beside, 3, " ×", gate=True)
    bare = middle("ours-without-log", 16, "requests_per_s")
    if rate and bare:
        yield findings.at_most("requests/s that the inference log costs", 100 * (1 - rate / bare), 10, " %", gate=True)
    p50, p99 = middle("ours", 64, "p50_ms"), middle("ours", 64, "p99_ms")
    if p50 and p99:
        yield findings.at_most("p99 / p50 of 64 callers", p99 / p50, 3, " ×", gate=True)
    yield findings.at_most("CPU of a request", middle("ours", 16, "cpu_us"), 200, " µs")
    wrong = sum(sample.wrong for sample in samples if sample.server.startswith("ours"))
    yield findings.at_most("requests that failed", wrong, 0, gate=True)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", nargs="+", choices=list(SERVERS), default=["ours", "ours-without-log", "fastapi"])
    parser.add_argument("--callers", nargs="+", type=int, default=[1, 16, 64])
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", choices=["torch", "numpy"], default="torch")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    os.environ["BENCHMARK_MODEL"] = asked.model
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed here: apt-get install wrk")
    print(json.dumps(machine.facts()), f"load {machine.load()}")
    samples: list[Sample] = []
    for _ in range(asked.rounds):
        for name in asked.servers:
            with running(SERVERS[name]) as (url, first):
                samples += [measure(name, url, first, callers, asked.seconds) for callers in asked.callers]
    show(samples)
    findings.hand_on("requests", list(judged(samples)))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(sample) for sample in samples], indent=1))


if __name__ == "__main__":
    main()

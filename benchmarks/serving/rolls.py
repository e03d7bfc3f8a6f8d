"""Releases under load, and scaling after a step of load: how many requests fail, and how long it takes.

    python benchmarks/serving/rolls.py [--rolls 100] [--callers 8] [--kill] [--steps 5] [--json FILE]

Callers send one row after the other on connections that they keep, and try nothing again: what is not answered with 200
and the right row counts as a failure. `--kill` ends a random replica with SIGKILL during each roll; the next one begins
when what was under way is answered, since a request that was at two replicas which died is given up on purpose. The
second part starts with one replica, lets callers begin all at once, and takes the time until four replicas are ready;
the model sleeps 5 ms a batch, so that a queue forms, and has no libraries to import.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig import findings, machine

from cargobike import models, project, serving


def model(factor: int, pause_s: float) -> Callable[[list[Any]], list[Any]]:
    """Return a predictor that says which version it is."""

    def predict(rows: list[Any]) -> list[Any]:
        time.sleep(pause_s)
        return [[factor, row] for row in rows]

    return predict


class Callers:
    """Threads that send requests until the end of a `with` block."""

    def __init__(self, url: str, count: int) -> None:
        self.failures: list[str] = []
        self.latencies: list[float] = []
        self._address = urlsplit(url).netloc
        self._stop = threading.Event()
        self._rounds = [0] * count
        self._threads = [threading.Thread(target=self._call, args=(number,)) for number in range(count)]

    def __enter__(self) -> Callers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_all(self) -> None:
        """Wait until every request that is under way now has ended."""
        goals = [count + 2 for count in self._rounds]
        while any(count < goal for count, goal in zip(self._rounds, goals, strict=True)):
            time.sleep(0.001)

    def _call(self, number: int) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=30)
        row = number * 10_000_000
        while not self._stop.is_set():
            row += 1
            began = time.perf_counter()
            try:
                connection.request("POST", "/predict", str(row), {"Content-Type": "application/json"})
                response = connection.getresponse()
                body = response.read()
                if response.status != 200 or json.loads(body)[1] != row:
                    self.failures.append(f"{response.status} {body.decode()[:200]}")
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                connection.close()
            self.latencies.append(time.perf_counter() - began)
            self._rounds[number] += 1
        connection.close()


def kill_one(deployment: serving.Deployment, draw: random.Random, killed: list[int]) -> None:
    """End a random replica, and note which."""
    found = []
    for pid in deployment.status().host_pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += psutil.Process(pid).children()
    time.sleep(0.03 * draw.random())
    with contextlib.suppress(psutil.NoSuchProcess, IndexError):
        one = draw.choice(found)
        one.kill()
        killed.append(one.pid)


def measure_rolls(rolls: int, callers: int, *, kill: bool) -> dict[str, Any]:
    """Roll back and forth between two versions while requests come."""
    draw, took = random.Random(7), []
    killed: list[int] = []
    with serving.deploy("rolls", model(1, 0.001), replicas=2, log=False) as deployment:
        models.register("rolls", model(2, 0.001))
        with Callers(deployment.url, callers) as load:
            began = time.perf_counter()
            for number in range(rolls):
                killer = threading.Thread(target=kill_one, args=(deployment, draw, killed))
                if kill:
                    killer.start()
                at = time.perf_counter()
                deployment.roll(f"rolls:{2 - number % 2}")
                took.append(time.perf_counter() - at)
                if kill:
                    killer.join()
                    load.wait_for_all()
            seconds = time.perf_counter() - began
    latencies = sorted(load.latencies)
    return {
        "rolls": rolls,
        "replicas_killed": len(killed),
        "requests": len(latencies),
        "failures": len(load.failures),
        "first_failures": load.failures[:3],
        "requests_per_s": len(latencies) / seconds,
        "roll_ms": 1e3 * statistics.median(took),
        "slowest_roll_ms": 1e3 * max(took),
        "p50_ms": 1e3 * latencies[len(latencies) // 2],
        "p99_ms": 1e3 * latencies[int(0.99 * len(latencies))],
        "slowest_ms": 1e3 * latencies[-1],
    }


def measure_steps(steps: int) -> dict[str, Any]:
    """Take the time from a step of load to four replicas that are ready."""
    took = []
    for number in range(steps):
        scaling = serving.Scaling(least=1, most=4, target=4)
        name = f"steps-{number}"
        with serving.deploy(name, model(1, 0.005), replicas=scaling, log=False) as deployment:
            began = time.perf_counter()
            with Callers(deployment.url, 16) as load:
                while deployment.status().ready < 4:
                    time.sleep(0.005)
                took.append(time.perf_counter() - began)
            if load.failures:
                raise SystemExit(f"requests failed: {load.failures[:3]}")
    return {"steps": steps, "median_s": statistics.median(took), "slowest_s": max(took)}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rolls", type=int, default=100)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project.use(folder)
        result = {
            "machine": machine.facts(),
            "rolls": measure_rolls(options.rolls, options.callers, kill=options.kill),
            "scaling": measure_steps(options.steps),
        }
    print(json.dumps(result, indent=2))
    rolls, scaling = result["rolls"], result["scaling"]
    findings.hand_on(
        "rolls",
        [
            findings.at_most(f"requests that failed in {options.rolls} rolls", rolls["failures"], 0, gate=True),
            findings.at_most("from a step of load to four replicas", scaling["median_s"], 2, " s"),
        ],
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

"""One search of a chaos schedule, as a program of its own: `python chaos_search.py SCHEDULE.json [EXPERIMENT]`.

Begins the search, or goes on with the experiment given, and brings down its own misfortunes on it: each is due
when so many facts have been recorded since this process began. It may well not live to see the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from cargobike import Searchspace, experiment, trial
from cargobike.engines.engine import Engine
from cargobike.experiments.asking import launching
from cargobike.experiments.driving.conduct import conduct, take_up
from cargobike.experiments.driving.request import Patience, Request
from cargobike.experiments.trial.checkpoints.folder import list_folders
from support.proxied import ProxiedEngine

EPOCHS = 6
SPACE = Searchspace(x=("DOUBLE", [0, 1]), y=("INTEGER", [0, 3]))
PATIENCE = Patience(join_s=60, silence_s=4, reconnect_s=3)
SPARK = json.loads(os.environ.get("CHAOS_SPARK", "null"))
"""Where a cluster is, if the search is to run on one."""
LOCAL_PLACES = ("host", "agent", "template", "runner")
SPARK_PLACES = ("executor", "daemon", "worker", "host", "agent", "template", "runner")


def score(x: float, y: int, epoch: int) -> float:
    return (x + y) * (epoch + 1) / EPOCHS


def train(x: float, y: int) -> float:
    for epoch in range(trial.checkpoint.load(0), EPOCHS):
        time.sleep(0.01 * (1 + y))
        trial.report(score=score(x, y, epoch), step=epoch)
        trial.checkpoint.save(epoch + 1)
    return score(x, y, EPOCHS - 1)


class Misfortune:
    """Lets each fault happen when its time has come."""

    def __init__(self, faults: Sequence[dict[str, Any]], engine: Engine, seed: int) -> None:
        self._faults = sorted(faults, key=lambda fault: fault["at"])
        self._engine = engine
        self._rng = random.Random(seed)
        self._seen = 0
        self._happen: dict[str, Callable[[], None]] = {
            **{f"kill {place}": lambda place=place: self._kill(place) for place in SPARK_PLACES},  # type: ignore[misc]
            "kill driver": lambda: os.kill(os.getpid(), signal.SIGKILL),
            "stop agent": lambda: self._freeze(None),
            "stop agent 1 s": lambda: self._freeze(1.0),
            "cut network": lambda: self._cut(0.0),
            "cut network 1 s": lambda: self._cut(1.0),
            "cut network 10 s": lambda: self._cut(10.0),
            "cut network for ever": self._abandon_network,
            "clock back": lambda: _jump(-86_400.0),
            "clock ahead": lambda: _jump(86_400.0),
            "disk full": self._fill_disk,
            "damage checkpoint": lambda: self._damage(flip=True),
            "cut checkpoint short": lambda: self._damage(flip=False),
        }

    def on_facts(self, facts: Sequence[object]) -> None:
        self._seen += len(facts)
        while self._faults and self._faults[0]["at"] <= self._seen:
            kind = self._faults.pop(0)["kind"]
            with Path("struck").open("a") as file:
                file.write(f"{kind}\n")
            self._happen[kind]()

    def _processes(self) -> dict[str, list[psutil.Process]]:
        """Return what runs below this process, or below Spark's workers, by its place."""
        found: dict[str, list[psutil.Process]] = {}
        generation = [psutil.Process()] if SPARK is None else list(map(psutil.Process, SPARK["workers"]))
        for place in LOCAL_PLACES if SPARK is None else SPARK_PLACES:
            generation = [child for parent in generation for child in _children(parent)]
            found[place] = generation
        return found

    def _kill(self, place: str) -> None:
        candidates = self._processes()[place]
        if candidates:
            _signal(self._rng.choice(candidates), signal.SIGKILL)

    def _freeze(self, seconds: float | None) -> None:
        candidates = self._processes()["agent"]
        if not candidates:
            return
        victim = self._rng.choice(candidates)
        _signal(victim, signal.SIGSTOP)
        if seconds is not None:
            _later(seconds, lambda: _signal(victim, signal.SIGCONT))

    def _cut(self, seconds: float) -> None:
        proxy = self._engine.proxy if isinstance(self._engine, ProxiedEngine) else None
        if proxy is None:
            return
        proxy.is_down = seconds > 0
        proxy.cut()
        if seconds:
            _later(seconds, lambda: setattr(proxy, "is_down", False))

    def _abandon_network(self) -> None:
        if isinstance(self._engine, ProxiedEngine):
            self._engine.abandon_network()

    def _fill_disk(self) -> None:
        journal = next(Path(os.environ["CARGOBIKE_PROJECT"]).glob("experiments/*/journal.jsonl"))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size, resource.RLIM_INFINITY))

    def _damage(self, *, flip: bool) -> None:
        folders = [
            folder
            for root in Path(os.environ["CARGOBIKE_PROJECT"]).glob("experiments/*/trials/*/checkpoints")
            for folder in list_folders(root)[-1:]
        ]
        files = [path for folder in folders for path in folder.glob("state*")]
        if files:
            path = self._rng.choice(files)
            with contextlib.suppress(FileNotFoundError):  # a newer one has just taken its place
                data = path.read_bytes()
                path.write_bytes(bytes([data[0] ^ 255]) + data[1:] if flip else data[: len(data) // 2])


def _children(parent: psutil.Process) -> list[psutil.Process]:
    try:
        return parent.children()
    except psutil.Error:
        return []


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.Error:
        pass


def _later(seconds: float, what: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, what)
    timer.daemon = True
    timer.start()


def _jump(seconds: float) -> None:
    real = time.time
    time.time = lambda: real() + seconds


def _hurry(request: Request) -> Request:
    return msgspec.structs.replace(request, patience=PATIENCE)


def _engine() -> Engine:
    if SPARK is None:
        return ProxiedEngine()
    from cargobike.engines.spark.engine import SparkEngine

    return SparkEngine(master=SPARK["master"], conf=SPARK["settings"])


def main() -> None:
    schedule = json.loads(Path(sys.argv[1]).read_text())
    round_number = int(sys.argv[2])
    launching.conduct = lambda request: conduct(_hurry(request))  # type: ignore[attr-defined]
    launching.take_up = lambda request, folder: take_up(_hurry(request), folder)  # type: ignore[attr-defined]
    engine = _engine()
    faults = schedule["rounds"][round_number] if round_number < len(schedule["rounds"]) else []
    misfortune = Misfortune(faults, engine, schedule["seed"] + round_number)
    if not experiment.list():
        experiment.launch(
            train,
            SPACE,
            optimizer=schedule["optimizer"],
            num_trials=schedule["num_trials"],
            workers=schedule["workers"],
            isolation=schedule["isolation"],
            gang=schedule["gang"],
            seed=schedule["seed"],
            engine=engine,
            callbacks=[misfortune],
            quiet=True,
        )
    else:
        experiment.resume("last", engine=engine, callbacks=[misfortune], quiet=True)


if __name__ == "__main__":
    main()

"""One search of a chaos schedule, as a program of its own: `python search.py SCHEDULE.json`.

Begins the search, or goes on with it if there is one. It may well not live to see the end. What cannot be done to it
from outside is asked for on its standard input: to cut its network, to move its clock.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cargobike import Searchspace, experiment, trial
from cargobike.engines.engine import Engine
from cargobike.engines.local.engine import LocalEngine
from cargobike.errors import StoreError
from cargobike.experiments.asking import launching, resuming
from cargobike.experiments.driving.conduct import conduct, take_up
from cargobike.experiments.driving.request import Patience, Request
from faults.chaos.schedules import needs_network
from faults.chaos.ways import WAYS, result, script
from support.proxied import ProxiedEngine

INTERRUPTED = 3
"""The exit code of a search that was interrupted and ended in good order."""
SPACE = Searchspace(x=("DOUBLE", [0, 1]), y=("INTEGER", [0, 3]))
PATIENCE = Patience(join_s=60, silence_s=4, reconnect_s=3)
SPARK = "CHAOS_SPARK"


def perform(x: float, y: int, *, way: str, starts_children: bool, diary: str) -> float | dict[str, float]:
    """Perform the script, from where an earlier attempt had saved."""
    actions = script(way, x, y)
    begin = trial.checkpoint.load(0)
    if trial.rank == 0:
        _write_into_diary(diary, begin)
    if starts_children:
        subprocess.Popen(["sleep", "1000"])
        subprocess.Popen(["sh", "-c", "trap '' TERM INT HUP; setsid sleep 1000 & sleep 1000"], start_new_session=True)
    pause_s = 0.12 * (1 + y) / len(actions)
    for position in range(begin, len(actions)):
        time.sleep(pause_s)
        action = actions[position]
        if action is None:
            trial.checkpoint.save(position + 1)
        else:
            trial.report(**action[1], step=action[0])
    value = result(way, x, y)
    return value if WAYS[way].metric is None else {"score": value, "loss": -value}


def _write_into_diary(diary: str, begin: int) -> None:
    """Note where this attempt begins; a line that short is written whole or not at all."""
    line = json.dumps({"trial": trial.number, "attempt": trial.attempt, "begin": begin})
    fd = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


def make_train(schedule: dict[str, Any]) -> Callable[[float, int], float | dict[str, float]]:
    """Return a train function that brings along everything it has to know."""
    perform_this = functools.partial(
        perform, way=schedule["way"], starts_children=schedule["starts_children"], diary=str(Path("diary").resolve())
    )
    if schedule["world"] == "servers":
        from faults.chaos.with_servers import with_a_server

        return with_a_server(perform_this)

    def train(x: float, y: int) -> float | dict[str, float]:
        return perform_this(x, y)

    return train


class Forks:
    """Forks a child in the middle of the search, as programs with data loaders and loggers do."""

    def __init__(self) -> None:
        self._child: multiprocessing.process.BaseProcess | None = None
        self._seen = 0

    def on_facts(self, facts: Sequence[object]) -> None:
        self._seen += len(facts)
        if self._child is None and self._seen > 8:
            self._child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
            self._child.start()

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.join()


def obey(engine: Engine) -> None:
    """Do what is asked for on standard input, until that is closed."""
    for line in sys.stdin:
        what, *arguments = line.split()
        if what == "clock":
            real, ahead_s = time.time, float(arguments[0])
            time.time = lambda real=real, ahead_s=ahead_s: real() + ahead_s  # type: ignore[misc]
        elif isinstance(engine, ProxiedEngine) and what == "abandon":
            engine.abandon_network()
        elif isinstance(engine, ProxiedEngine) and engine.proxy is not None:
            proxy, seconds = engine.proxy, float(arguments[0])
            proxy.is_down = seconds > 0
            proxy.cut()
            time.sleep(seconds)
            proxy.is_down = False


def _hurry(request: Request) -> Request:
    return msgspec.structs.replace(request, patience=PATIENCE)


def _engine(schedule: dict[str, Any]) -> Engine:
    if schedule["engine"] == "local":
        return ProxiedEngine() if needs_network(schedule) else LocalEngine(cores=2, gpus=())
    from cargobike.engines.spark.engine import SparkEngine

    spark = json.loads(os.environ[SPARK])
    shares_disk = schedule["world"] == "shared disk"
    return SparkEngine(master=spark["master"], conf=spark["settings"], share_disk=shares_disk)


def _begin(schedule: dict[str, Any], common: dict[str, Any]) -> Any:
    train = make_train(schedule)
    common["metric"] = WAYS[schedule["way"]].metric
    common["seed"] = schedule["seed"]
    if schedule["world"] == "servers":
        return experiment.parameter_server(
            train, params={"x": 0.5, "y": 2}, workers=2, servers=1, checkpoint_every_s=0.2, **common
        )
    return experiment.launch(
        train,
        SPACE,
        optimizer=schedule["optimizer"],
        num_trials=schedule["num_trials"],
        workers=schedule["workers"],
        isolation="reuse" if schedule["world"] == "reuse" else "fresh",
        gang=2 if schedule["world"] == "gang" else 1,
        **common,
    )


def _points(recorded: Any) -> dict[str, list[list[float]]]:
    return {name: [list(point) for point in curve] for name, curve in recorded.curves.items()}


def _write_down(found: Any) -> None:
    """Write what the public names say about the search, for a comparison with its journal."""
    best = found.best
    seen = {
        "id": found.id,
        "state": found.state.value,
        "best": None if best is None else {"number": best.number, "value": best.value},
        "trials": [
            {"number": one.number, "state": one.state.value, "value": one.value, "curves": _points(one)}
            for one in found.trials
        ],
        "listed": [[one.id, one.state.value, one.trials, one.best_value] for one in experiment.list()],
    }
    Path("seen.part").write_text(json.dumps(seen))
    Path("seen.part").rename("seen.json")


def _go_on(schedule: dict[str, Any], common: dict[str, Any]) -> Any:
    """Resume the search; one that was killed before it had kept its code says that it is to be launched anew."""
    try:
        return experiment.resume("last", **common)
    except StoreError as error:
        if "Launch it anew" not in str(error):
            raise
        return _begin(schedule, common)


def main() -> int:
    faulthandler.register(signal.SIGUSR2)
    schedule = json.loads(Path(sys.argv[1]).read_text())
    launching.conduct = lambda request: conduct(_hurry(request))  # type: ignore[attr-defined]
    resuming.take_up = lambda request, folder: take_up(_hurry(request), folder)  # type: ignore[attr-defined]
    engine = _engine(schedule)
    threading.Thread(target=obey, args=(engine,), daemon=True).start()
    forks = Forks()
    common: dict[str, Any] = {"engine": engine, "callbacks": [forks] if schedule["forks"] else [], "quiet": True}
    try:
        found = _go_on(schedule, common) if experiment.list() else _begin(schedule, common)
    finally:
        forks.close()
    if found.state.value != "completed":
        return INTERRUPTED
    _write_down(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

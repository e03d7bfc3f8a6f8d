"""Several experiments at once, in one process and in several, on the same project."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from cargobike import experiment
from cargobike.experiments.results.result import Result
from support.scripts import environment
from support.trains import parabola


def test_two_threads_of_one_process(tmp_path: Path) -> None:
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def search(offset: int) -> None:
        def train(x: int) -> float:
            print(f"offset {offset}")
            (tmp_path / f"met-{offset}").touch()
            give_up_at = time.monotonic() + 60
            while len(list(tmp_path.glob("met-*"))) < 2:
                assert time.monotonic() < give_up_at, "the other experiment did not come"
            return x + offset

        try:
            results[offset] = experiment.launch(train, {"x": [1, 2, 3]}, workers=1, quiet=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=search, args=(offset,)) for offset in (10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert errors == []
    assert sorted(results) == [10, 20]
    for offset, result in results.items():
        assert [ended.value for ended in result.trials] == [1.0 + offset, 2.0 + offset, 3.0 + offset]
        assert {result.logs(ended) for ended in result.trials} == {f"offset {offset}\n"}
    assert len(experiment.list()) == 2


def test_two_processes_on_one_project() -> None:
    program = (
        "import json, sys\nfrom cargobike import experiment\n"
        "def train(x):\n    return x * int(sys.argv[1])\n"
        "factor = int(sys.argv[1])\n"
        "result = experiment.launch(lambda x: x * factor, {'x': [1, 2, 3]}, workers=1, quiet=True)\n"
        "print(json.dumps([result.id, [t.value for t in result.trials]]))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, factor], env=environment(), stdout=subprocess.PIPE, text=True)
        for factor in ("2", "3")
    ]
    found: dict[str, Any] = dict(json.loads(process.communicate(timeout=300)[0]) for process in running)
    assert sorted(found.values()) == [[2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]
    assert sorted(experiment.list()) == sorted(found)
    for name, values in found.items():
        assert [ended.value for ended in experiment.load(name).trials] == values


def test_an_experiment_inside_an_experiment() -> None:
    def outer(x: int) -> float:
        from cargobike import experiment as inner_door

        def inner(y: int) -> float:
            return x * y

        best = inner_door.launch(inner, {"y": [1, 2]}, workers=1, quiet=True).best
        assert best is not None
        return best.value or 0.0

    result = experiment.launch(outer, {"x": [1, 5]}, workers=1, quiet=True)
    assert [ended.value for ended in result.trials] == [2.0, 10.0]
    assert len(experiment.list()) == 3


def test_one_after_the_other_with_the_same_engine() -> None:
    from cargobike.engines.local.engine import LocalEngine

    engine = LocalEngine(gpus=("0",))
    for _ in range(2):
        result = experiment.launch(parabola, {"x": [1, 2]}, engine=engine, quiet=True)
        assert result.counts == {"completed": 2}

"""The tables of what goes wrong most: every line is tried, and must say what the table says."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cargobike import Resources, Searchspace, experiment, trial
from cargobike.engines.local.engine import LocalEngine
from support.scripts import run_script

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "mistakes.md"
SPACE = Searchspace(lr=("DOUBLE", [1e-4, 1e-1], "log"))


def launch(train: Any, space: Any = SPACE, **options: Any) -> None:
    experiment.launch(train, space, **{"num_trials": 3, "workers": 2, "quiet": True, **options})


def good(lr: float) -> float:
    return lr


def otherwise(learning_rate: float) -> float:
    return learning_rate


def deep(lr: float, layers: int) -> float:
    return lr * layers


def nothing(lr: float) -> None:
    pass


def generator(lr: float) -> Any:
    yield lr


async def coroutine(lr: float) -> float:
    return lr


def several(lr: float) -> dict[str, float]:
    return {"accuracy": lr, "loss": 1 - lr}


def reports_text(lr: float) -> float:
    trial.report(accuracy="good")
    return lr


def reporting(lr: float, *names: str, returned: str = "accuracy") -> dict[str, float]:
    for step in range(1, 4):
        trial.report(dict.fromkeys(names, lr), step=step)
    return {returned: lr}


def opens(lr: float) -> int:
    return len(Path("data.csv").read_text())


def imports(lr: float) -> float:
    import surely_not_installed  # type: ignore[import-not-found]

    return float(surely_not_installed.score)


def ends(number: signal.Signals) -> Callable[[float], float]:
    def train(lr: float) -> float:
        os.kill(os.getpid(), number)
        return lr

    return train


def leaves(lr: float) -> float:
    sys.exit("enough")


def leaves_in_good_order(lr: float) -> float:
    sys.exit(0)


def vanishes(lr: float) -> float:
    os._exit(0)


def with_lock() -> None:
    lock = threading.Lock()

    def train(lr: float) -> float:
        with lock:
            return lr

    launch(train)


def with_open_file() -> None:
    with Path("log.txt").open("w") as file:

        def train(lr: float) -> float:
            file.write("hello")
            return lr

        launch(train)


def relative() -> None:
    Path("data.csv").write_text("1,2,3")
    launch(opens)


def on_import() -> None:
    Path("at_import.py").write_text(
        "from cargobike import experiment\n"
        "def train(lr):\n    return lr\n"
        'experiment.launch(train, {"lr": [0.1, 0.2]}, quiet=True)\n'
    )
    sys.path.insert(0, str(Path.cwd()))
    try:
        import at_import  # type: ignore[import-not-found] # noqa: F401
    finally:
        sys.path.remove(str(Path.cwd()))
        sys.modules.pop("at_import", None)


def old_java() -> None:
    pytest.importorskip("pyspark")
    program = Path("java/bin/java")
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'java.lang.UnsupportedClassVersionError: compiled for 61.0' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(Path("java").absolute()))
        # In a process of its own: an earlier test may have started a good Java in this one.
        said = run_script(
            Path("fresh"),
            """
            import json
            from cargobike import experiment

            try:
                experiment.launch(lambda lr: lr, {"lr": [0.1]}, engine="spark", quiet=True)
            except Exception as error:
                print(json.dumps(str(error)))
            """,
        )
    raise RuntimeError(said)


def full_disk() -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
        launch(good, num_trials=100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


CASES: dict[str, Callable[[], object]] = {
    "name a parameter otherwise than the function does": lambda: launch(otherwise),
    "forget a parameter": lambda: launch(deep),
    "call the function instead of giving it": lambda: launch(good(0.1)),
    "name a file that is not there": lambda: launch("nowhere.py:train"),
    "keep a lock in a closure": with_lock,
    "keep a file open for writing in a closure": with_open_file,
    "give a space and parameters": lambda: launch(good, params={"lr": 0.1}),
    "turn a range upside down": lambda: Searchspace(lr=("DOUBLE", [1e-1, 1e-4])),
    "begin a log scale at 0": lambda: Searchspace(lr=("DOUBLE", [0, 1], "log")),
    "misspell a type": lambda: Searchspace(lr=("DUBLE", [0, 1])),
    "misspell an optimizer": lambda: launch(good, optimizer="ahsa"),
    "misspell an engine": lambda: launch(good, engine="sparc"),
    "misspell a stop rule": lambda: launch(good, early_stop="medan"),
    "misspell a direction": lambda: launch(good, direction="up"),
    "ask for no trials": lambda: launch(good, num_trials=0),
    "do not say how long to search": lambda: launch(good, num_trials=None),
    "ask for a GPU where there is none": lambda: launch(
        good, resources=Resources(gpus=1), engine=LocalEngine(cores=2, gpus=())
    ),
    "start from a point outside the space": lambda: launch(good, start_points=[{"lr": 5}]),
    "name an experiment that is not there": lambda: experiment.load("nowhere"),
    "launch on import, in the module that workers import": on_import,
    "have a Java that is too old for Spark": old_java,
    "return nothing": lambda: launch(nothing),
    "return a generator": lambda: launch(generator),
    "write an `async` function": lambda: launch(coroutine),
    "return text": lambda: launch(lambda lr: "0.9"),
    "return several numbers and choose none": lambda: launch(several),
    "return text as the metric": lambda: launch(lambda lr: {"accuracy": "0.9", "loss": lr}, metric="accuracy"),
    "misspell the metric": lambda: launch(several, metric="acuracy"),
    "report what is no number": lambda: launch(reports_text),
    "report another name than `metric` with ASHA, PBT or `early_stop`": lambda: launch(
        lambda lr: reporting(lr, "acc"), metric="accuracy", optimizer="asha"
    ),
    "report several numbers with them and choose none": lambda: launch(
        lambda lr: reporting(lr, "loss", "accuracy"), early_stop="median"
    ),
    "report one number with them and return another": lambda: launch(
        lambda lr: reporting(lr, "loss"), early_stop="median"
    ),
    "open a file by a relative path": relative,
    "import what the workers do not have": lambda: launch(imports),
    "run out of memory, or are killed": lambda: launch(ends(signal.SIGKILL)),
    "crash the interpreter": lambda: launch(ends(signal.SIGSEGV)),
    "call `sys.exit` with a message": lambda: launch(leaves),
    "call `sys.exit(0)` in a search": lambda: launch(leaves_in_good_order),
    "call `os._exit(0)`": lambda: launch(vanishes),
    "fill the disk": full_disk,
}


def rows() -> dict[str, list[str]]:
    """Return what the page says about each mistake: the passages of the answer that are quoted."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 2 and cells[0] not in ("you", "---"):
            quoted = re.findall(r"``(.+?) ?``|`([^`]+)`", cells[1])
            found[cells[0]] = [double or single for double, single in quoted]
    return found


@pytest.mark.parametrize("mistake", CASES)
def test_what_is_said(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what it says is what is tested
        CASES[mistake]()
    said = str(caught.value)
    for passage in rows()[mistake]:
        assert passage in said


def test_the_page_and_the_cases_are_the_same() -> None:
    assert list(rows()) == list(CASES)
    assert all(rows().values())

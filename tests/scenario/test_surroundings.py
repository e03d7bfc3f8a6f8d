"""What each trial gets of its own: seed, directories, output, threads, devices."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cargobike import Resources, experiment, project, tensorboard, trial
from cargobike.core.errors import TrialFailedError
from cargobike.core.layout import ExperimentFolder
from cargobike.engines.local.engine import LocalEngine
from support.scripts import run_script


def test_files_and_logs_of_a_trial_are_its_own(tmp_path: Path) -> None:
    def train(x: int) -> float:
        assert os.listdir(".") == []
        Path("mine.txt").write_text(str(x))
        Path(tensorboard.logdir(), "events").write_text(str(x))
        return x

    before = os.getcwd()
    result = experiment.launch(train, {"x": [1, 2, 3]}, quiet=True)
    assert os.getcwd() == before
    assert len(result.trials) == 3
    for ended in result.trials:
        folder = ExperimentFolder(result.folder).trial(ended.number)
        assert (folder.files / "mine.txt").read_text() == str(ended.params["x"])
        assert (folder.logs / "events").read_text() == str(ended.params["x"])


@pytest.mark.parametrize("isolation", ["fresh", "reuse"])
def test_a_trial_that_writes_nothing_leaves_no_folder(isolation: Any) -> None:
    result = experiment.launch(lambda x: x, {"x": [1, 2, 3]}, isolation=isolation, quiet=True)
    assert [path.name for path in result.folder.rglob("*") if "000" in path.name] == []


def test_a_relative_path_gets_a_hint_and_can_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "data.csv").write_text("1\n")
    monkeypatch.chdir(work)

    def train() -> float:
        with open("data.csv") as file:
            return float(file.read())

    with pytest.raises(TrialFailedError) as caught:
        experiment.launch(train, params={}, quiet=True)
    assert f"'data.csv' exists in {work}" in str(caught.value)
    assert 'working_directory="launch"' in str(caught.value)
    assert experiment.launch(train, params={}, working_directory="launch", quiet=True).value == 1.0


def test_the_project_is_the_same_inside() -> None:
    def train() -> None:
        Path(project.path("shared.txt")).write_text(f"by trial {trial.number}")

    experiment.launch(train, params={}, quiet=True)
    assert Path(project.path("shared.txt")).read_text() == "by trial 0"


def test_all_output_is_captured_and_told_apart() -> None:
    def train(x: int) -> float:
        print(f"printed {x}")
        print("wörds on stderr", x, file=sys.stderr)
        os.write(1, f"written below Python {x}\n".encode())
        subprocess.run(["sh", "-c", f"echo from a child {x}; echo complaint {x} >&2"], check=True)
        sys.stdout.write("no newline at the end")
        return x

    result = experiment.launch(train, {"x": [1, 2, 3, 4]}, workers=2, quiet=True)
    assert len(result.trials) == 4
    for ended in result.trials:
        x = ended.params["x"]
        assert result.logs(ended) == (f"printed {x}\nwritten below Python {x}\nfrom a child {x}\nno newline at the end")
        assert result.logs(ended, "stderr") == f"wörds on stderr {x}\ncomplaint {x}\n"


def test_output_of_a_reused_process_goes_to_the_right_trial() -> None:
    def train(x: int) -> float:
        print("x" * x)
        return x

    result = experiment.launch(train, {"x": list(range(1, 30))}, isolation="reuse", workers=1, quiet=True)
    assert [result.logs(ended) for ended in result.trials] == ["x" * n + "\n" for n in range(1, 30)]


def test_output_at_the_very_end_of_a_process_is_still_its_trials() -> None:
    def train(x: int) -> float:
        import atexit

        atexit.register(print, f"goodbye from {x}")
        print(f"hello from {x}")
        return x

    result = experiment.launch(train, {"x": list(range(8))}, workers=1, quiet=True)
    assert [result.logs(ended) for ended in result.trials] == [f"hello from {x}\ngoodbye from {x}\n" for x in range(8)]


def test_huge_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    size = 50 << 20

    def train(x: int) -> float:
        line = b"0123456789abcde\n" * 4096
        os.write(1, b"first line\n")
        written = 0
        while written < size:
            written += os.write(1, line)
        os.write(1, b"last line\n")
        with open(f"/proc/{os.getppid()}/stat") as file:
            agent = file.read().split()[3]
        with open(f"/proc/{agent}/status") as file:
            [peak] = [line for line in file if line.startswith("VmHWM")]
        return float(peak.split()[1]) / 1024

    result = experiment.launch(train, {"x": [1]}, quiet=True)
    log = ExperimentFolder(result.folder).trial(0).stdout
    assert log.stat().st_size < 12 << 20
    text = result.logs(0)
    assert text.startswith("first line\n0123456789abcde\n")
    assert text.endswith("0123456789abcde\nlast line\n")
    assert "bytes left out" in text
    peak_mib = result.trials[0].value
    assert peak_mib is not None
    assert peak_mib < 200


def test_parallel_trials_share_the_cores() -> None:
    def train(x: int) -> dict[str, float]:
        from cargobike import devices

        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
        return {"threads": max(float(os.environ[name]) for name in names), "cpus": devices.get_num_cpus()}

    def threads(workers: int, **options: Any) -> dict[str, float]:
        result = experiment.launch(
            train,
            {"x": list(range(workers))},
            engine=LocalEngine(cores=8),
            workers=workers,
            metric="threads",
            quiet=True,
            **options,
        )
        return result.trials[0].metrics

    assert threads(1) == {"threads": 8.0, "cpus": 8.0}
    assert threads(2) == {"threads": 4.0, "cpus": 4.0}
    assert threads(2, resources=Resources(cpus=3)) == {"threads": 3.0, "cpus": 3.0}


def test_a_users_own_choice_of_threads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    result = experiment.launch(lambda: float(os.environ["OMP_NUM_THREADS"]), params={}, quiet=True)
    assert result.value == 7.0


def test_gpus_are_exclusive(tmp_path: Path) -> None:
    def train(x: int) -> float:
        from cargobike import devices

        device = os.environ["CUDA_VISIBLE_DEVICES"]
        assert devices.get_gpus() == (device,)
        claim = tmp_path / f"claimed-{device}"
        claim.touch(exist_ok=False)
        time.sleep(0.05)
        claim.unlink()
        return float(device)

    engine = LocalEngine(gpus=("0", "1"))
    result = experiment.launch(train, {"x": list(range(8))}, engine=engine, isolation="reuse", quiet=True)
    assert result.counts == {"completed": 8}
    assert {ended.value for ended in result.trials} == {0.0, 1.0}


def test_a_device_can_be_shared(tmp_path: Path) -> None:
    def train(x: int) -> float:
        (tmp_path / f"here-{x}").touch()
        while len(list(tmp_path.glob("here-*"))) < 4:
            time.sleep(0.01)
        return float(os.environ["CUDA_VISIBLE_DEVICES"])

    result = experiment.launch(
        train,
        {"x": list(range(4))},
        engine=LocalEngine(cores=4, gpus=("0", "1")),
        resources=Resources(gpus=0.5),
        trial_timeout_s=60,
        quiet=True,
    )
    assert sorted(ended.value or 0.0 for ended in result.trials) == [0.0, 0.0, 1.0, 1.0]


def test_without_gpus_none_are_visible() -> None:
    def train() -> float:
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
        return 1.0

    assert experiment.launch(train, params={}, engine=LocalEngine(gpus=()), quiet=True).value == 1.0


def test_random_numbers_differ_between_trials_and_repeat_with_the_seed(tmp_path: Path) -> None:
    script = """
        import json
        from cargobike import Searchspace, experiment, trial

        def train(x):
            import random
            import numpy
            return {
                "random": random.random(),
                "numpy": float(numpy.random.rand()),
                "own": float(numpy.random.default_rng(trial.seed).random()),
            }

        def numbers(seed, isolation):
            result = experiment.launch(
                train, Searchspace(x=("DOUBLE", [0, 1])), num_trials=3, seed=seed, isolation=isolation,
                metric="own", quiet=True,
            )
            return [[t.params["x"], *t.metrics.values()] for t in result.trials]

        print(json.dumps([numbers(7, "fresh"), numbers(7, "fresh"), numbers(7, "reuse"), numbers(8, "fresh")]))
    """
    first, again, reused, other = run_script(tmp_path / "work", script)
    assert first == again == reused
    everything = [number for run in (first, other) for row in run for number in row]
    assert len(set(everything)) == len(everything)

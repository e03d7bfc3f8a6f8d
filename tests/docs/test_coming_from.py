"""What the page "Coming from …" says: programs run unchanged as gangs, and each difference is as it is told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from cargobike import experiment, trial
from cargobike.errors import TrialFailedError
from support.scripts import environment
from support.snippets import ROOT

PAGE = ROOT / "docs" / "guides" / "coming-from.md"
PROGRAMS = ROOT / "tests" / "support" / "torchrun_programs"
FRAMEWORKS = {"with_accelerate.py", "with_fabric.py", "with_lightning.py", "with_transformers.py"}

SCRIPT = """
    import json
    import sys
    from cargobike import experiment

    if __name__ == "__main__":
        outcomes = {}
        for program in sys.argv[1:]:
            run = experiment.allreduce(f"{program}:main", workers=2, stall_timeout_s=120, quiet=True)
            outcomes[program] = [run.counts, run.trials[0].attempts]
        print(json.dumps(outcomes))
"""


def run_programs(folder: Path, names: list[str]) -> None:
    """Run programs with two ranks each, and check that each has succeeded at its first attempt."""
    (folder / "gangs.py").write_text(textwrap.dedent(SCRIPT))
    paths = [str(PROGRAMS / name) for name in names]
    done = subprocess.run(
        [sys.executable, "gangs.py", *paths],
        cwd=folder,
        env={**environment(), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=300 + 100 * len(names),
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert json.loads(done.stdout.splitlines()[-1]) == {path: [{"completed": 1}, 1] for path in paths}


def test_the_page_and_the_programs_name_each_other() -> None:
    listed = re.findall(r"^\| \[(\w+\.py)\]", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in PROGRAMS.glob("[a-z]*.py"))


def test_the_usual_program_runs_unchanged(tmp_path: Path) -> None:
    run_programs(tmp_path, ["plain_ddp.py"])


@pytest.mark.timeout(600)
def test_programs_that_need_only_torch_run_unchanged(tmp_path: Path) -> None:
    needs_nothing = sorted({path.name for path in PROGRAMS.glob("[a-z]*.py")} - FRAMEWORKS - {"plain_ddp.py"})
    assert len(needs_nothing) == 6
    run_programs(tmp_path, needs_nothing)


@pytest.mark.timeout(600)
def test_programs_of_frameworks_run_unchanged(tmp_path: Path) -> None:
    run_programs(tmp_path, sorted(FRAMEWORKS))


# -- what is different -----------------------------------------------------------------------------------------------


def _raise() -> None:
    trial.report(loss=1.0, step=3)
    trial.barrier()
    if trial.rank == 1:
        raise ValueError("a bad batch")
    trial.barrier()


def check_a_rank_that_raises(_: Path) -> None:
    with pytest.raises(TrialFailedError, match=r"(?s)rank 1 on \S+ \(last step 3\).* in _raise.*a bad batch") as caught:
        experiment.allreduce(_raise, workers=2, quiet=True)
    assert caught.value.result is not None
    assert caught.value.result.trials[0].attempts == 1


def _die(times: int) -> float:
    begun = trial.checkpoint.load() or 0
    for step in range(begun, 3):
        if step < 2:
            trial.checkpoint.save(step + 1, step=step)
        trial.barrier()
        if trial.attempt <= times:
            if trial.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
    return float(begun)


def check_a_rank_that_is_killed(_: Path) -> None:
    run = experiment.allreduce(_die, params={"times": 3}, workers=2, quiet=True)
    assert (run.trials[0].attempts, run.values) == (4, [2.0, 2.0])
    with pytest.raises(TrialFailedError, match=r"gave up after 3 lost attempts.*SIGKILL") as caught:
        experiment.allreduce(_die, params={"times": 9}, workers=2, quiet=True)
    assert caught.value.result is not None
    assert caught.value.result.trials[0].attempts == 4, "the second one was the last to get further"


def _wait_for_ever() -> None:
    if trial.rank == 1:
        time.sleep(1000)
    trial.barrier()


def check_a_rank_that_waits(_: Path) -> None:
    with pytest.raises(TrialFailedError, match=r"waited 1 s for .* of rank 1") as caught:
        experiment.allreduce(_wait_for_ever, workers=2, stall_timeout_s=1, quiet=True)
    assert re.search(r"(?s)rank 0 on \S+ .*trial.barrier\(\)", str(caught.value))
    assert re.search(r"(?s)rank 1 on \S+ [^\n]* stood here:.* in _wait_for_ever", str(caught.value))


def _write_here() -> None:
    Path(f"of-rank-{trial.rank}.txt").write_text("here")


def check_relative_paths(launched_in: Path) -> None:
    run = experiment.allreduce(_write_here, workers=2, quiet=True)
    assert sorted(path.name for path in (run.folder / "files/0000").iterdir()) == ["of-rank-0.txt", "of-rank-1.txt"]
    assert not list(launched_in.glob("of-rank-*"))
    experiment.allreduce(_write_here, workers=2, working_directory="launch", quiet=True)
    assert len(list(launched_in.glob("of-rank-*"))) == 2


def _main() -> object:
    return "out/model.pt" if trial.rank == 0 else 2


def check_what_main_returns(_: Path) -> None:
    run = experiment.allreduce(_main, workers=2, quiet=True)
    assert (run.values, run.trials[0].extras) == ([None, 2.0], {"returned": "out/model.pt"})


def _exit(code: int) -> None:
    trial.barrier()
    sys.exit(code if trial.rank == 1 else 0)


def check_sys_exit(_: Path) -> None:
    assert experiment.allreduce(_exit, params={"code": 0}, workers=2, quiet=True).counts == {"completed": 1}
    with pytest.raises(TrialFailedError, match=r"sys\.exit\(2\)"):
        experiment.allreduce(_exit, params={"code": 2}, workers=2, quiet=True)


DIFFERENCES = {
    "a rank that raises is started again, `--max-restarts` times": check_a_rank_that_raises,
    "a rank that was killed takes the others along": check_a_rank_that_is_killed,
    "a rank that waits for ever is noticed by a timeout of torch": check_a_rank_that_waits,
    "relative paths begin where you are": check_relative_paths,
    "what `main()` returns is thrown away": check_what_main_returns,
    "`sys.exit(0)` is a success, any other code a failure": check_sys_exit,
}


def test_every_difference_is_checked() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("| under torchrun |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([^-].*?) \|", table, re.MULTILINE) == list(DIFFERENCES)


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_what_is_different_is_as_the_page_says(
    difference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    DIFFERENCES[difference](tmp_path)

"""Random misfortunes, one schedule after the other: `python tests/faults/chaos.py --schedules 200 --seed 0`.

Each schedule is a search with faults at random moments, drawn from its seed. Afterwards nothing may be lost, counted
twice, changed or left behind. A trial whose own process is killed fails, and says so: it may be the one to blame.
`--replay SEED` runs one schedule again and keeps its folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
SOURCES = TESTS.parent / "src"
sys.path.append(str(TESTS))  # for its helpers, where this is run as a program
DEADLINE_S = 180.0
"""For one process of a search, on a machine that has other things to do as well."""
GRACE_S = 30.0
CLUSTER_MARK = "CHAOS_CLUSTER"
MAX_ATTEMPTS = 3

KINDS = {
    "kill runner": 4,
    "kill template": 2,
    "kill agent": 4,
    "kill host": 2,
    "kill driver": 4,
    "stop agent": 1,
    "stop agent 1 s": 2,
    "cut network": 3,
    "cut network 1 s": 2,
    "cut network 10 s": 1,
    "cut network for ever": 2,
    "clock back": 1,
    "clock ahead": 1,
    "disk full": 1,
    "damage checkpoint": 2,
    "cut checkpoint short": 2,
}
KINDS_ON_SPARK = {
    "kill executor": 4,
    "kill daemon": 3,
    "kill worker": 4,
    **{kind: weight for kind, weight in KINDS.items() if not kind.startswith("cut network")},
}
OPTIMIZERS = ("random", "sobol", "asha", "hyperband", "bohb", "dehb", "tpe", "de", "random", "pbt", "auto")
FATAL = ("kill driver", "disk full")


@dataclass
class Verdict:
    """What became of a schedule."""

    seed: int
    schedule: dict[str, Any]
    mistakes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    processes: int = 0
    struck: list[str] = field(default_factory=list)
    spark: dict[str, Any] | None = None


def draw(seed: int, engine: str = "local") -> dict[str, Any]:
    """Return a schedule: the same one for the same seed, whatever the machine."""
    known = KINDS if engine == "local" else KINDS_ON_SPARK
    rng = random.Random(f"chaos {seed}")
    rounds: list[list[dict[str, Any]]] = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        kinds = rng.choices(list(known), weights=list(known.values()), k=rng.choice([1, 2, 3]))
        rounds.append([{"kind": kind, "at": rng.randint(1, 90)} for kind in kinds])
    schedule = {
        "seed": seed,
        "optimizer": rng.choice(OPTIMIZERS),
        "num_trials": rng.randint(6, 14),
        "workers": rng.choice([1, 2, 3]),
        "isolation": rng.choice(["fresh", "fresh", "reuse"]),
        "rounds": rounds,
        "gang": rng.choice([1, 1, 1, 2]),
    }
    if schedule["gang"] == 2:
        schedule["workers"], schedule["isolation"] = rng.choice([2, 4]), "fresh"
    return schedule


def play(seed: int, keep: Path | None = None, spark: dict[str, Any] | None = None) -> Verdict:
    """Run a schedule, here or on a Spark cluster, and look at what is left of it."""
    started = time.monotonic()
    verdict = Verdict(seed, draw(seed, "local" if spark is None else "spark"), spark=spark)
    with contextlib.ExitStack() as exits:
        if keep is None:
            folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True)))
        else:
            folder = keep
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        _play_in(folder, verdict)
    verdict.seconds = time.monotonic() - started
    return verdict


def _play_in(folder: Path, verdict: Verdict) -> None:
    project, temporary = folder / "project", folder / "tmp"
    project.mkdir()
    temporary.mkdir()
    (folder / "schedule.json").write_text(json.dumps(verdict.schedule, indent=1))
    path = os.pathsep.join([str(SOURCES), str(TESTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    env = {**os.environ, "CARGOBIKE_PROJECT": str(project), "TMPDIR": str(temporary), "PYTHONPATH": path}
    if verdict.spark is not None:
        env["CHAOS_SPARK"] = json.dumps(verdict.spark)
    rounds = verdict.schedule["rounds"]
    for number in range(len(rounds) + 1):
        before = _journal(project)
        is_over = _one_process(folder, number, env, verdict)
        if not _journal(project).startswith(before):
            verdict.mistakes.append(f"process {number} changed what the journal said before")
        _check_nothing_left(project, temporary, verdict)
        if is_over or verdict.mistakes:
            break
    else:
        verdict.mistakes.append("the search did not end although the misfortunes had")
    log = folder / "struck"
    verdict.struck = log.read_text().splitlines() if log.exists() else []
    if not verdict.mistakes:
        _check_record(project, verdict)


def _one_process(folder: Path, number: int, env: dict[str, str], verdict: Verdict) -> bool:
    """Run the search until it ends or dies; return whether it has ended."""
    verdict.processes += 1
    faults = [fault["kind"] for fault in (verdict.schedule["rounds"] + [[]])[number]]
    with (folder / f"output-{number}").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "chaos_search.py"), str(folder / "schedule.json"), str(number)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            verdict.mistakes.append(f"process {number} hung for {DEADLINE_S:.0f} s; faults: {faults}")
            return False
    if code == 0:
        return True
    if not any(fatal in faults for fatal in FATAL):
        tail = (folder / f"output-{number}").read_text(errors="replace")[-1500:]
        verdict.mistakes.append(f"process {number} ended with {code}, and no fault of {faults} explains that:\n{tail}")
    return False


def _journal(project: Path) -> bytes:
    """Return the complete lines of the journal; a line that a killed driver had not finished is not one."""
    data = b"".join(path.read_bytes() for path in project.rglob("journal.jsonl"))
    return data[: data.rfind(b"\n") + 1]


def _check_nothing_left(project: Path, temporary: Path, verdict: Verdict) -> None:
    deadline = time.monotonic() + GRACE_S
    while left := [*_processes_of(project), *_below_spark(verdict.spark)]:
        if time.monotonic() > deadline:
            verdict.mistakes.append(f"left running: {[' '.join(process.cmdline()) for process in left]}")
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            break
        time.sleep(0.05)
    files = [path.name for path in temporary.iterdir()]
    if files:
        verdict.mistakes.append(f"left in the folder for temporary files: {files}")


def _below_spark(spark: dict[str, Any] | None) -> list[psutil.Process]:
    """Return what runs on a cluster, below its workers and orphaned; its own processes do not count."""
    found: list[psutil.Process] = []
    if spark is None:
        return found
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE and process.pid not in spark["workers"]
            if alive and process.environ().get(CLUSTER_MARK) == spark["mark"]:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def _processes_of(project: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and process.environ().get("CARGOBIKE_PROJECT") == str(project):
                yield process
        except (psutil.Error, OSError):
            continue


def _check_record(project: Path, verdict: Verdict) -> None:
    """Hold the experiment against what an undisturbed one would say."""
    from cargobike.core import facts
    from cargobike.core.facts import EXPERIMENT_FACTS
    from cargobike.core.record import ExperimentRecord
    from cargobike.store.journal.journal import read_journal
    from faults.chaos_search import EPOCHS, score

    [path] = project.rglob("journal.jsonl")
    header, *rest = read_journal(path, EXPERIMENT_FACTS)
    assert isinstance(header, facts.ExperimentStarted)
    record = ExperimentRecord(header)
    ends: Counter[int] = Counter()
    for fact in rest:
        record.apply(fact)
        if isinstance(fact, facts.TrialEnded):
            ends[fact.trial] += 1
    say = verdict.mistakes.append
    if record.state.value != "completed":
        say(f"the experiment is {record.state.value}: {record.reason}")
    wanted = verdict.schedule["num_trials"]
    if len(record.trials) != wanted and verdict.schedule["optimizer"] != "pbt":
        say(f"{len(record.trials)} trials instead of {wanted}")
    for number, trial in record.trials.items():
        x, y = trial.params["x"], trial.params["y"]
        if ends[number] != 1:
            say(f"trial {number} ended {ends[number]} times")
        if trial.state.value == "failed":
            losses = sum(isinstance(fact, facts.AttemptLost) and fact.trial == number for fact in rest)
            is_own = "kill runner" in verdict.struck and "ended by SIGKILL" in (trial.error or "")
            if losses < MAX_ATTEMPTS and not is_own:
                say(f"trial {number} failed after {losses} lost attempts: {trial.error}")
        elif trial.state.value == "completed" and trial.value != score(x, y, EPOCHS - 1):
            say(f"trial {number} scored {trial.value} instead of {score(x, y, EPOCHS - 1)}")
        for step, value in trial.curve:
            if value != score(x, y, step):
                say(f"trial {number} has {value} at step {step} instead of {score(x, y, step)}")


@contextlib.contextmanager
def _cluster() -> Iterator[dict[str, Any]]:
    """Start a Spark cluster of two workers, and say where it is."""
    from cargobike.testing.spark_cluster import SparkCluster

    mark = f"{os.getpid()}-{time.time_ns()}"
    hosts = ("127.0.0.2", "127.0.0.3")
    with SparkCluster(hosts, environment={host: {CLUSTER_MARK: mark} for host in hosts}) as cluster:
        spark: dict[str, Any] = {"master": cluster.master, "settings": cluster.settings(), "mark": mark, "workers": []}
        spark["workers"] = [process.pid for process in _below_spark(spark)]
        yield spark


def _line(verdict: Verdict) -> str:
    schedule = verdict.schedule
    faults = "; ".join(
        ", ".join(f"{fault['kind']} @{fault['at']}" for fault in sorted(faults, key=lambda one: one["at"]))
        for faults in schedule["rounds"]
    )
    return (
        f"{'ok  ' if not verdict.mistakes else 'FAIL'} seed {verdict.seed:<5} {verdict.seconds:5.1f} s  "
        f"{schedule['optimizer']:<9} {schedule['num_trials']:>2} trials, {schedule['workers']} workers, "
        f"{schedule['isolation']}, gang of {schedule['gang']}: {faults}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the first one")
    parser.add_argument("--at-once", type=int, default=max(2, (os.cpu_count() or 2)))
    parser.add_argument("--engine", choices=["local", "spark"], default="local")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run this one only, and keep its folder")
    options = parser.parse_args()
    with contextlib.ExitStack() as exits:
        spark = exits.enter_context(_cluster()) if options.engine == "spark" else None
        if options.replay is not None:
            keep = Path(tempfile.gettempdir()) / f"chaos-replay-{options.replay}"
            verdict = play(options.replay, keep, spark)
            print(_line(verdict), *verdict.mistakes, sep="\n  ")
            return bool(verdict.mistakes)
        print(f"{options.schedules} schedules from seed {options.seed}", flush=True)
        verdicts: list[Verdict] = []
        seeds = range(options.seed, options.seed + options.schedules)
        # On a cluster one after the other: an executor that is killed must be the schedule's own.
        with ThreadPoolExecutor(options.at_once if spark is None else 1) as pool:
            for verdict in pool.map(lambda seed: play(seed, spark=spark), seeds):
                verdicts.append(verdict)
                print(_line(verdict), *verdict.mistakes, sep="\n  ", flush=True)
    struck = Counter(kind for one in verdicts for kind in one.struck)
    failed = [verdict.seed for verdict in verdicts if verdict.mistakes]
    print(f"\n{len(verdicts)} schedules, {sum(one.processes for one in verdicts)} drivers, {struck.total()} faults:")
    print("  " + ", ".join(f"{kind} {count}" for kind, count in sorted(struck.items())))
    print(f"{len(verdicts) - len(failed)} passed, {len(failed)} failed", flush=True)
    for seed in failed:
        print(f"  again: python tests/faults/chaos.py --engine {options.engine} --replay {seed}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())

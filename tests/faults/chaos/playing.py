"""Plays a schedule: runs its search, strikes it, resumes it, and looks at what is left."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from faults.chaos.outside import begun_at, disagreements, has_results, joined, mistakes_of, whole_lines
from faults.chaos.schedules import draw, is_fatal, needs_network
from faults.chaos.striking import Striker, Victim, files_like, is_fork
from faults.chaos.worlds import Worlds, below_spark, carrying, segments_in

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]
SOURCES = TESTS.parent / "src"
DEADLINE_S = 180.0
"""For one process of a search, on a machine that has other things to do as well."""
GRACE_S = 30.0
TORCHS_OWN = "torchinductor_"
"""What torch leaves in the folder for temporary files, to find it there again."""


@dataclass
class Verdict:
    """What became of a schedule."""

    seed: int
    schedule: dict[str, Any]
    mistakes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    processes: int = 0
    struck: list[str] = field(default_factory=list)


def play(seed: int, worlds: Worlds, *, engine: str = "local", keep: Path | None = None) -> Verdict:
    """Run a schedule and look at what is left of it; in the folder `keep`, if there is something to look at later."""
    started = time.monotonic()
    verdict = Verdict(seed, draw(seed, engine))
    with contextlib.ExitStack() as exits:
        if keep is None:
            folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True)))
        else:
            folder = keep
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        spark = exits.enter_context(worlds.spark()) if engine == "spark" else None
        Game(folder, verdict, worlds, spark).play()
    verdict.seconds = time.monotonic() - started
    return verdict


class Game:
    """One schedule that is being played."""

    def __init__(self, folder: Path, verdict: Verdict, worlds: Worlds, spark: dict[str, Any] | None) -> None:
        self._folder = folder
        self._verdict = verdict
        self._schedule = verdict.schedule
        self._spark = spark
        self._disk = folder / "project"
        self._temporary = folder / "tmp"
        self._diary = folder / "diary"
        for made in (self._disk, self._temporary):
            made.mkdir()
        (folder / "schedule.json").write_text(json.dumps(self._schedule, indent=1))
        self._variables = self._surroundings(worlds)

    def _surroundings(self, worlds: Worlds) -> dict[str, str]:
        path = os.pathsep.join([str(SOURCES), str(TESTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        variables = {
            "CARGOBIKE_PROJECT": str(self._disk),
            "TMPDIR": str(self._temporary),
            "PYTHONPATH": path,
            "CARGOBIKE_CACHE": str(self._disk),
        }
        if self._schedule["world"] == "postgres":
            variables |= worlds.postgres()
        if self._schedule["world"] == "s3":
            variables |= worlds.bucket()
        if self._spark is not None:
            variables["CHAOS_SPARK"] = json.dumps(self._spark)
        return variables

    def play(self) -> None:
        """Play it to the end, and note every mistake in the verdict."""
        say, rounds = self._verdict.mistakes.append, self._schedule["rounds"]
        for number in range(len(rounds) + 1):
            before = self._journals()
            is_over = self._one_process(number, rounds[number] if number < len(rounds) else [])
            after = self._journals()
            if any(not after.get(path, b"").startswith(data) for path, data in before.items()):
                say(f"process {number} changed what the journal said before")
            self._check_nothing_left()
            if is_over or self._verdict.mistakes:
                break
        else:
            say("the search did not end although the faults had")
        if not self._verdict.mistakes:
            self._verdict.mistakes += self._check_record()

    def _journals(self) -> dict[Path, bytes]:
        return {path: whole_lines(path) for path in files_like(self._disk, "**/experiments/*/journal.jsonl")}

    def _one_process(self, number: int, faults: list[dict[str, Any]]) -> bool:
        """Run the search until it ends or dies; return whether it has ended."""
        self._verdict.processes += 1
        say = self._verdict.mistakes.append
        log = self._folder / f"output-{number}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "search.py"), str(self._folder / "schedule.json")],
                cwd=self._folder,
                env={**os.environ, **self._variables},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            has_templates = needs_network(self._schedule) or self._schedule["world"] != "reuse"
            workers = None if self._spark is None else self._spark["workers"]
            victim = Victim(process, self._disk, workers, has_templates=has_templates)
            striker = Striker(victim, faults, self._schedule["seed"] + number)
            striker.start()
            code = _wait(process)
            striker.join()
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
        self._verdict.struck += striker.struck
        with (self._folder / "struck").open("a") as file:
            file.writelines(f"{number} {kind}\n" for kind in striker.struck)
        tail = log.read_text(errors="replace")[-3000:]
        if code is None:
            say(f"process {number} hung for {DEADLINE_S:.0f} s; struck by {striker.struck}\n{tail}")
            return False
        if code == 0:
            return True
        if not any(map(is_fatal, striker.struck)):
            say(f"process {number} ended with {code}, and nothing of {striker.struck} explains that:\n{tail}")
        return False

    def _check_nothing_left(self) -> None:
        self._end_forks()
        say = self._verdict.mistakes.append
        deadline = time.monotonic() + GRACE_S
        while left := [*carrying("CARGOBIKE_PROJECT", self._variables["CARGOBIKE_PROJECT"]), *below_spark(self._spark)]:
            if time.monotonic() > deadline:
                say(f"left running: {list(map(_describe, left))}")
                for process in left:
                    with contextlib.suppress(psutil.Error):
                        process.kill()
                break
            time.sleep(0.05)
        files = [path.name for path in self._temporary.iterdir() if not path.name.startswith(TORCHS_OWN)]
        if files:
            say(f"left in the folder for temporary files: {files}")

    def _end_forks(self) -> None:
        """End what the driver's program had forked, once all others have ended: it may outlive the driver."""
        if not self._schedule["forks"]:
            return
        deadline = time.monotonic() + GRACE_S
        while True:
            living = carrying("CARGOBIKE_PROJECT", self._variables["CARGOBIKE_PROJECT"])
            forks = [process for process in living if is_fork(process)]
            if len(forks) == len(living):
                break
            if time.monotonic() > deadline:
                others = [_describe(process) for process in living if process not in forks]
                self._verdict.mistakes.append(f"kept alive by a fork of the driver: {others}")
                break
            time.sleep(0.05)
        for process in forks:
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _check_record(self) -> Iterator[str]:
        # By time: names of the same second are in no order, and a search that was killed at once is soon begun anew.
        *before, (path, data) = sorted(self._journals().items(), key=lambda item: (begun_at(item[1]), item[0]))
        if any(has_results(earlier) for _, earlier in before):
            yield "an experiment that had results was begun anew"
        if path.read_bytes() != data:
            yield "the journal has a torn tail after the experiment's end"
        if self._schedule["world"] == "s3" and joined(segments_in(self._variables)) != data:
            yield "the journal on shared storage is not the one here"
        mistakes = mistakes_of(data, self._schedule, self._diary, self._verdict.struck)
        yield from mistakes
        if not mistakes:
            seen = json.loads((self._folder / "seen.json").read_text())
            yield from disagreements(data, self._schedule, self._diary, seen)
            yield from self._half_saved(seen)

    def _half_saved(self, seen: dict[str, Any]) -> Iterator[str]:
        for trial in seen["trials"]:
            if trial["state"] == "completed":
                left = files_like(self._disk, f"**/trials/{trial['number']:04d}/checkpoints/.*")
                yield from (f"left of a checkpoint that was never saved: {path.name}" for path in left)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """Wait for the end of a search; kill it and return `None` if it does not come."""
    try:
        return process.wait(DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR2)  # it prints where it stands
        time.sleep(1.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {process.status()} {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return f"{process.pid} (gone meanwhile)"

"""The chapters of the story, one method each; `story.py` tells them in a terminal, `story.ipynb` with figures."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import learning
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bank import CHANGED, USUAL, Bank, Habits
from guarding import guarded_process
from learning import DEPLOYMENT, MODEL, learn, say
from live import Day, Production, Traffic, deliver
from scoring import average_precision
from signals import SIGNALS, make_view

from cargobike import models, monitoring, pipelines, project, serving
from cargobike.errors import CargobikeError

HISTORY = 28
"""Days that have passed when the story begins."""
SCHEDULE = "after-drift"
PATIENCE_S = 900.0
CLI = "import sys; from cargobike.cli import main; sys.argv[0] = 'cargobike'; main()"


@dataclass(frozen=True)
class Size:
    """How large the story is.

    Attributes:
        rows_a_day: About how many payments there are on a day.
        one_of: The first models learn from one in so many honest payments.
        trials: How many GANs are tried at first.
        retrials: How many GANs are tried after the alarm.
        epochs: How long a promising GAN is trained.
        requests: How many payments of a day the deployment is asked about.
        usual_days: How many days pass in production before habits change.
        learn_days: How many changed days are learned from after the alarm.
        judge_days: By how many changed days after these is judged.
    """

    rows_a_day: int
    one_of: int
    trials: int
    retrials: int
    epochs: int
    requests: int
    usual_days: int = 2
    learn_days: int = 2
    judge_days: int = 2

    @property
    def changed_days(self) -> int:
        """How many changed days there are before the alarm."""
        return self.learn_days + self.judge_days


FULL = Size(rows_a_day=71_500, one_of=4, trials=20, retrials=8, epochs=9, requests=1500)
QUICK = Size(rows_a_day=2_000, one_of=2, trials=3, retrials=1, epochs=3, requests=300)


class Story:
    """What happens, in order; each method is a chapter, in the project in use.

    Args:
        size: How large it is.
        delivered: The folder of the bank's files.
        engine: Where trials run.
        seed: The same seed gives the same bank, and the same searches where trials end in the same order.
    """

    def __init__(self, size: Size, delivered: Path, *, engine: str = "local", seed: int = 7) -> None:
        self.size, self.delivered = size, delivered
        self.bank = Bank(size.rows_a_day, seed)
        self.changes = HISTORY + size.usual_days
        self._asked: dict[str, Any] = {"delivered": str(delivered), "engine": engine, "seed": seed}
        self._asked |= {"epochs": size.epochs, "window": size.requests}
        self._asked |= {"alarm": f"{size.changed_days} of {size.changed_days + 1}"}  # a window is a day

    @property
    def next_day(self) -> int:
        """The first day that has not passed when the alarm is raised."""
        return self.changes + self.size.changed_days

    def deliver(self) -> pa.Table:
        """Have the bank deliver what has happened before the story begins."""
        chapter("The bank delivers four weeks of transactions")
        payments = self.bank.days(0, HISTORY - 1)
        deliver(payments, self.delivered, 0)
        pq.write_table(self.bank.customers(), self.delivered / "customers.parquet")
        say(f"{payments.num_rows:,} payments, {np.count_nonzero(payments['is_fraud'].to_numpy()):,} of them stolen")
        return payments

    def learn(self) -> dict[str, float]:
        """Run the pipeline for the first time, and return how well each kind of model finds fraud."""
        chapter("Features, search, comparison, registration, deployment: a pipeline")
        run = pipelines.run(learn, one_of=self.size.one_of, trials=self.size.trials, **self._asked)
        precisions: dict[str, float] = run.result
        print_comparison(precisions)
        return precisions

    def live(self) -> list[Day]:
        """Let usual days pass."""
        chapter("Production: requests hold keys, features are looked up")
        self._production = Production(self.bank, self.delivered, self.size.requests)
        return [self._live_day(day, USUAL, "a usual day") for day in range(HISTORY, self.changes)]

    def change(self) -> str:
        """Let changed days pass, until the alarm, which a schedule waits for; return what the alarm says."""
        chapter("Customers and thieves change their habits")
        pipelines.schedule(
            f"{Path(learning.__file__).absolute()}:learn",
            when=monitoring.drifted(DEPLOYMENT),
            name=SCHEDULE,
            learn_days=self.size.learn_days,
            judge_days=self.size.judge_days,
            trials=self.size.retrials,
            **self._asked,
        )
        for day in range(self.changes, self.next_day):
            self._live_day(day, CHANGED, "a changed day")
        record = monitoring.monitor(DEPLOYMENT).wait(PATIENCE_S, alarms=1)
        text: str = record.alarms[0].raised.text
        say(text)
        return text

    def retrain(self) -> pipelines.Run:
        """Have the pipeline run because of the alarm, while requests go on; return the run."""
        chapter("The alarm sets off the pipeline, and requests go on")
        self.before = before = served_version()
        with Traffic(self._some(self.next_day)) as traffic, scheduler():
            run = follow(wait_for_run(SCHEDULE))
        after = served_version()
        self.is_better = after != before
        say(f"{traffic.outcome.asked} requests meanwhile, {traffic.outcome.failed} failed{_errors(traffic.outcome)}")
        say(
            f"{MODEL}:{after} serves in place of {MODEL}:{before}"
            if before != after
            else f"no candidate has passed the gate: {MODEL}:{before} goes on"
        )
        return run

    def judge(self) -> dict[int, float]:
        """Let one more day pass, and return how well the versions before and after would find the fraud of that day."""
        chapter("Was it worth it?")
        after = served_version()
        self._live_day(self.next_day, CHANGED, f"a changed day, with {MODEL}:{after}")
        rows = make_view().training_data(self.bank.days(self.next_day, self.next_day, CHANGED)).to_arrow()
        found = {version: precision_of(version, rows) for version in dict.fromkeys((self.before, after))}
        for version, precision in found.items():
            say(f"{MODEL}:{version} finds the fraud of that day with average precision {precision:.3f}")
        command("monitor", "ack", DEPLOYMENT, "--note", f"{MODEL}:{after} serves now")
        return found

    def day_by_day(self, versions: Sequence[int]) -> dict[int, dict[int, float]]:
        """Return, for each day in production, how well versions would find its fraud."""
        view = make_view()
        found = {}
        for day in range(HISTORY, self.next_day + 1):
            habits = CHANGED if day >= self.changes else USUAL
            rows = view.training_data(self.bank.days(day, day, habits)).to_arrow()
            found[day] = {version: precision_of(version, rows) for version in versions}
        return found

    def go_back(self) -> None:
        """Go back to the old version and to the new one again, while requests go on."""
        chapter("The old version is one command away")
        version = served_version()
        with Traffic(self._some(self.next_day + 1)) as traffic:
            if version == self.before:  # the gate has refused all candidates: there is nothing to go back from
                version = max(one.version for one in models.list(MODEL))
                say(f"{MODEL}:{version} is brought in by hand, since the gate has refused it")
                command("deployments", "roll", DEPLOYMENT, f"{MODEL}:{version}")
            command("deployments", "rollback", DEPLOYMENT)
            say(f"{MODEL}:{served_version()} serves again")
            if self.is_better:
                command("deployments", "roll", DEPLOYMENT, f"{MODEL}:{version}")
        say(f"{traffic.outcome.asked} requests meanwhile, {traffic.outcome.failed} failed{_errors(traffic.outcome)}")

    def trace(self) -> None:
        """Show where predictions come from."""
        chapter("Where does a prediction come from?")
        command("lineage", DEPLOYMENT, "--kind", "deployment", "--depth", "2")

    def _some(self, day: int) -> pa.Table:
        """Return some payments of a day."""
        payments = self.bank.days(day, day, CHANGED)
        return payments.take(np.random.default_rng(day).permutation(payments.num_rows)[: self.size.requests])

    def _live_day(self, day: int, habits: Habits, what: str) -> Day:
        began = time.monotonic()
        outcome = self._production.live(day, habits)
        seconds = time.monotonic() - began
        say(
            f"{what}: {outcome.asked} requests in {seconds:.0f} s, {outcome.failed} failed, {outcome.flagged} flagged"
            + _errors(outcome)
        )
        return outcome


def served_version() -> int:
    """Return the version that serves."""
    return int(serving.deployment(DEPLOYMENT).status().version)


def suspicions_of(version: int, rows: pa.Table) -> np.ndarray[Any, Any]:
    """Return how suspicious a version finds rows of the view."""
    answers = models.get(f"{MODEL}:{version}").predict(rows.select(list(SIGNALS)).to_pylist())
    return np.array([answer["suspicion"] for answer in answers])


def precision_of(version: int, rows: pa.Table) -> float:
    """Return how well a version finds the fraud among rows of the view."""
    return average_precision(rows["is_fraud"].to_numpy(), suspicions_of(version, rows))


def print_comparison(precisions: dict[str, float]) -> None:
    """Say which kind of model wins, whichever it is."""
    for name, precision in sorted(precisions.items(), key=lambda item: -item[1]):
        print(f"           {name:18} {precision:.3f}  {'█' * round(40 * precision)}")
    say(f"on fraud that none has seen, the {max(precisions, key=lambda name: precisions[name])} finds most")


def wait_for_run(schedule: str) -> str:
    """Return the id of the run that a schedule has begun."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        runs = [run for run in pipelines.list() if run.id.startswith(schedule)]
        if runs:
            return str(runs[0].id)
        time.sleep(0.2)
    raise TimeoutError(f"the alarm has set off no run of {schedule} in {PATIENCE_S:.0f} s")


def follow(id: str) -> pipelines.Run:
    """Print the steps of a run while it goes on, and return it when it has ended."""
    until, told = time.monotonic() + PATIENCE_S, 0
    while time.monotonic() < until:
        run = pipelines.get(id)
        done = [step for step in run.steps if step.state.is_done]
        for step in done[told:]:
            if step.seconds >= 1:
                say(f"{step.name} ({step.seconds:.1f} s)")
        told = len(done)
        if run.state is not pipelines.RunState.RUNNING:
            say(f"run {run.id}: {told} steps, {run.state.value}, because of {run.cause.get('alarm')}")
            if run.error:
                raise RuntimeError(run.error)
            return run
        time.sleep(0.5)
    raise TimeoutError(f"the run {id} has not ended in {PATIENCE_S:.0f} s")


@contextlib.contextmanager
def scheduler() -> Iterator[None]:
    """Have a scheduler at work, which runs what is due."""
    process = subprocess.Popen([sys.executable, "-c", CLI, "scheduler"], stdout=subprocess.DEVNULL)
    with guarded_process(process):
        yield


def use(where: str) -> None:
    """Choose the project, for this process and those that it starts."""
    os.environ["CARGOBIKE_PROJECT"] = where if "://" in where else str(Path(where).absolute())
    project.use(os.environ["CARGOBIKE_PROJECT"])


def stop_everything() -> None:
    """End runs of pipelines, the watcher and the deployment; what cannot be ended does not keep the others."""
    kinds: tuple[Callable[[], Sequence[Any]], ...] = (_going_on, monitoring.list_monitors, serving.list_deployments)
    for find in kinds:
        try:
            for one in find():
                _end(one)
        except CargobikeError as error:
            print(f"  What is left running is not known: {error}", file=sys.stderr)


def _going_on() -> list[pipelines.Run]:
    return [run for run in pipelines.list() if run.state is pipelines.RunState.RUNNING]


def _end(one: Any) -> None:
    try:
        if isinstance(one, pipelines.Run):
            pipelines.cancel(one.id, force=True)
        else:
            one.stop(timeout_s=30)
    except CargobikeError as error:
        print(f"  {one!r} has not ended: {error}", file=sys.stderr)


def command(*words: str) -> None:
    """Run a command of the shell, as a reader would."""
    print(f"           $ cargobike {shlex.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-c", CLI, *words], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"cargobike {shlex.join(words)} ended with {done.returncode}: {done.stderr}")
    print("".join(f"           {line}\n" for line in done.stdout.splitlines()), end="", flush=True)


def chapter(title: str) -> None:
    """Print what comes now."""
    print(f"\n{title}", flush=True)


def _errors(outcome: Day) -> str:
    return "".join(f"\n           {error}" for error in outcome.errors[:3])

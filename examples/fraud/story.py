"""The whole way, in one project: raw data, features, search, model, serving, monitoring, retraining.

    python examples/fraud/story.py            # two million transactions; some minutes on two cores
    python examples/fraud/story.py --quick    # the same story, small
    python examples/fraud/story.py --keep     # leaves the deployment and its watcher running

`make story` does the first, in an environment of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import learning
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bank import CHANGED, USUAL, Bank, Habits
from learning import DEPLOYMENT, MODEL, learn, say
from live import Production, deliver, moment
from scoring import average_precision
from signals import SIGNALS, make_view

from cargobike import models, monitoring, pipelines, project, serving
from cargobike.errors import CargobikeError

HISTORY = 28
"""Days that have passed when the story begins."""
PATIENCE_S = 900.0
CLI = "import sys; from cargobike.cli import main; sys.argv[0] = 'cargobike'; main()"


@dataclass(frozen=True)
class Size:
    """How large the story is."""

    rows_a_day: int
    one_of: int
    trials: int
    retrials: int
    epochs: int
    requests: int
    usual_days: int = 2


FULL = Size(rows_a_day=71_500, one_of=4, trials=12, retrials=5, epochs=9, requests=1500)
QUICK = Size(rows_a_day=2_000, one_of=2, trials=3, retrials=1, epochs=3, requests=400, usual_days=1)


def main() -> None:
    """Tell the story."""
    options = read_options()
    project.use(options.project)
    size = QUICK if options.quick else FULL
    if options.rows:
        size = Size(**{**vars(size), "rows_a_day": max(2000, options.rows // HISTORY)})
    delivered = Path(options.delivered or f"{options.project}-delivered").absolute()
    with cleaned_up(keep=options.keep):
        tell(size, delivered, engine=options.engine, seed=options.seed)
    print_end(options.project, keep=options.keep)


def tell(size: Size, delivered: Path, *, engine: str = "local", seed: int = 7) -> None:
    """Tell all chapters, in the project in use."""
    chapter("The bank delivers four weeks of transactions")
    bank = Bank(size.rows_a_day, seed)
    payments = bank.days(0, HISTORY - 1)
    deliver(payments, delivered, 0)
    pq.write_table(bank.customers(), delivered / "customers.parquet")
    say(f"{payments.num_rows:,} payments, {np.count_nonzero(payments['is_fraud'].to_numpy()):,} of them stolen")

    chapter("Features, search, comparison, registration, deployment: a pipeline")
    common: dict[str, Any] = {"delivered": str(delivered), "window": size.requests, "engine": engine, "seed": seed}
    common |= {"one_of": size.one_of, "epochs": size.epochs}
    first = pipelines.run(
        learn,
        honest_from=_day(7),
        judged_from=_day(HISTORY - 6),
        judged_until=_day(HISTORY),
        trials=size.trials,
        **common,
    )
    print_comparison(first.result)

    chapter("Production: requests hold keys, features are looked up")
    production = Production(bank, delivered, size.requests)
    changes = HISTORY + size.usual_days
    for day in range(HISTORY, changes):
        live_day(production, day, USUAL, "a usual day")

    chapter("Customers and thieves change their habits")
    pipelines.schedule(
        f"{Path(learning.__file__).absolute()}:learn",
        when=monitoring.drifted(DEPLOYMENT),
        name="after-drift",
        honest_from=_day(changes),
        judged_from=_day(changes + 1),
        judged_until=_day(changes + 2),
        counted_from=_day(HISTORY),
        trials=size.retrials,
        **{**common, "one_of": 1},  # there are not many payments yet
    )
    before = serving.deployment(DEPLOYMENT).status().version
    with scheduler():
        for day in (changes, changes + 1):
            live_day(production, day, CHANGED, "a changed day")
        record = monitoring.monitor(DEPLOYMENT).wait(PATIENCE_S, alarms=1)
        say(record.alarms[0].raised.text)
        chapter("The alarm sets off the pipeline")
        follow(wait_for_run("after-drift"))

    chapter("Was it worth it?")
    after = serving.deployment(DEPLOYMENT).status().version
    live_day(production, changes + 2, CHANGED, f"a changed day, with {MODEL}:{after}")
    compare(bank.days(changes + 2, changes + 2, CHANGED), before, after)
    chapter("The old version is one command away")
    if before == after:  # the gate refused all candidates, so there is nothing to go back from
        after = before % len(models.list(MODEL)) + 1
        serving.deployment(DEPLOYMENT).roll(f"{MODEL}:{after}")
        say(f"{MODEL}:{after} is rolled out by hand")
    command("deployments", "rollback", DEPLOYMENT)
    say(f"{MODEL}:{serving.deployment(DEPLOYMENT).status().version} serves again")
    chapter("Where does a prediction come from?")
    command("lineage", DEPLOYMENT, "--kind", "deployment")


def live_day(production: Production, day: int, habits: Habits, what: str) -> None:
    """Let a day pass, and say how it went."""
    began = time.monotonic()
    outcome = production.live(day, habits)
    seconds = time.monotonic() - began
    say(
        f"{what}: {outcome.asked} requests in {seconds:.0f} s, {outcome.failed} failed, {outcome.flagged} flagged"
        + "".join(f"\n           {error}" for error in outcome.errors[:3])
    )


def compare(payments: pa.Table, before: int, after: int) -> None:
    """Say how well both versions find the fraud of a day that neither has seen."""
    rows = make_view().training_data(payments).to_arrow()
    signals = rows.select(list(SIGNALS)).to_pylist()
    for version in dict.fromkeys((before, after)):
        answers = models.get(f"{MODEL}:{version}").predict(signals)
        suspicion = np.array([answer["suspicion"] for answer in answers])
        say(f"{MODEL}:{version}: average precision {average_precision(rows['is_fraud'], suspicion):.3f}")
    if before == after:
        say("no candidate passed the gate: the old version goes on")


def print_comparison(precisions: dict[str, float]) -> None:
    """Say who wins, whoever it is."""
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


def follow(id: str) -> None:
    """Print the steps of a run while it goes on."""
    until, told = time.monotonic() + PATIENCE_S, 0
    while time.monotonic() < until:
        run = pipelines.get(id)
        done = [step for step in run.steps if step.state.is_done]
        for step in done[told:]:
            say(f"{step.name} ({step.seconds:.1f} s)")
        told = len(done)
        if run.state is not pipelines.RunState.RUNNING:
            say(f"run {run.id}: {run.state.value}, because of {run.cause.get('alarm')}")
            if run.error:
                raise RuntimeError(run.error)
            return
        time.sleep(0.5)
    raise TimeoutError(f"the run {id} has not ended in {PATIENCE_S:.0f} s")


@contextlib.contextmanager
def scheduler() -> Iterator[None]:
    """Have a scheduler at work, which runs what is due."""
    process = subprocess.Popen([sys.executable, "-c", CLI, "scheduler"], env=_environment(), stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def cleaned_up(*, keep: bool) -> Iterator[None]:
    """Leave nothing running, whatever happens; also after Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        if not keep:
            running: list[Any] = [*monitoring.list_monitors(), *serving.list_deployments()]
            for one in running:
                try:
                    one.stop(timeout_s=30)
                except CargobikeError as error:  # the others are to end all the same
                    print(f"  {one.name} has not ended: {error}", file=sys.stderr)


def command(*words: str) -> None:
    """Run a command of the shell, as a reader would."""
    print(f"           $ cargobike {' '.join(words)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-c", CLI, *words], env=_environment(), capture_output=True, text=True, check=True, timeout=120
    )
    print("".join(f"           {line}\n" for line in done.stdout.splitlines()), end="", flush=True)


def chapter(title: str) -> None:
    print(f"\n{title}", flush=True)


def print_end(where: str, *, keep: bool) -> None:
    print("\nSee all of it, with figures and links from each thing to what it came from:")
    print(f"  cargobike --project {where} ui")
    if keep:
        print(f"  cargobike --project {where} deployments stop {DEPLOYMENT}    ends what was kept running")
    print("Then http://127.0.0.1:8765/ is the dashboard.")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", default="fraud-story", help="a folder or an address, such as s3://team/fraud")
    parser.add_argument("--delivered", default="", help="the folder of the bank's files; beside the project by default")
    parser.add_argument("--rows", type=int, default=0, help="how many transactions; two million by default")
    parser.add_argument("--quick", action="store_true", help="a small story, in a minute or two")
    parser.add_argument("--engine", default="local", help="where trials run: local, spark, or the address of a master")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", action="store_true", help="leave the deployment and its watcher running")
    return parser.parse_args()


def _day(number: int) -> str:
    return moment(number).isoformat()


def _environment() -> dict[str, str]:
    return {**os.environ, "CARGOBIKE_PROJECT": str(project.current().root)}


if __name__ == "__main__":
    main()

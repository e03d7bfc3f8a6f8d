"""What a driver takes: `python benchmarks/load/load.py [agents] [trials] [points] [day]`.

- agents: 1,000 agents that speak the real wire from other processes, ten reports a second each.
- trials: 100,000 trials of a function that returns at once, in one experiment.
- points: 1,000,000 reported points in one experiment, then read back.
- day: 24 hours of 1,000 workers in virtual time, with ASHA.

Memory is that of the driver's process, sampled while it works: growth without bound would show.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agents import FakeAgents

from cargobike import Searchspace, experiment, trial
from cargobike.core.facts import Fact, Reported
from cargobike.core.records import Params
from cargobike.experiments.scheduling.simulation import SimulatedRun, simulate


class Watch:
    """Samples the memory of this process, and times what is heard."""

    def __init__(self, every_s: float = 1.0) -> None:
        self.megabytes: list[float] = []
        self.delays_ms: list[float] = []
        self.heard = 0
        self._over = threading.Event()
        self._every_s = every_s
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._over.wait(self._every_s):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.megabytes.append(pages * resource.getpagesize() / 2**20)

    def on_facts(self, facts: Sequence[Fact]) -> None:
        now = time.time()
        for fact in facts:
            if isinstance(fact, Reported):
                self.heard += 1
                if self.heard % 50 == 0:
                    self.delays_ms.append(1000 * (now - float(fact.metrics["sent_at"])))

    def close(self) -> str:
        self._over.set()
        self._thread.join()
        quarter = max(1, len(self.megabytes) // 4)
        marks = self.megabytes[::quarter][:4] + self.megabytes[-1:]
        return " → ".join(f"{mark:.0f}" for mark in marks) + " MiB"


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def agents(count: int = 1000, rate: float = 10.0, reports: int = 100, rounds: int = 3) -> None:
    watch = Watch()
    engine = FakeAgents(processes=4, reports=reports, rate=rate)
    before = cpu_s()
    started = time.monotonic()
    result = experiment.launch(
        lambda x: x,
        Searchspace(x=("DOUBLE", [0, 1])),
        num_trials=count * rounds,
        workers=count,
        engine=engine,
        metric="sent_at",
        callbacks=[watch],
        quiet=True,
    )
    took_s = time.monotonic() - started
    memory = watch.close()
    lost = count * rounds * reports - watch.heard
    delays = sorted(watch.delays_ms)
    print(
        f"agents: {count:,} agents, {watch.heard:,} reports in {took_s:.0f} s ({watch.heard / took_s:,.0f}/s), "
        f"{lost} lost, {result.counts}; from sending to recorded: median {statistics.median(delays):.0f} ms, "
        f"95 % {delays[int(0.95 * len(delays))]:.0f} ms; "
        f"driver: {100 * (cpu_s() - before) / took_s:.0f} % of a core, {memory}"
    )


def nothing(x: float) -> float:
    return x


def trials(count: int = 100_000) -> None:
    watch = Watch()
    started = time.monotonic()
    result = experiment.launch(
        nothing,
        Searchspace(x=("DOUBLE", [0, 1])),
        optimizer="random",
        num_trials=count,
        workers=2,
        isolation="reuse",
        quiet=True,
    )
    took_s = time.monotonic() - started
    memory = watch.close()
    starts = sorted(one.started_at for one in result.trials if one.started_at is not None)
    tenth = len(starts) // 10
    first, last = starts[tenth] - starts[0], starts[-1] - starts[-tenth - 1]
    began = time.monotonic()
    experiment.load(result.id)
    load_s = time.monotonic() - began
    size = (result.folder / "journal.jsonl").stat().st_size / 2**20
    print(
        f"trials: {count:,} trials in {took_s:.0f} s ({count / took_s:,.0f}/s), "
        f"the last tenth {last / first:.2f} × as long "
        f"as the first; driver {memory}; journal {size:.0f} MiB, loaded again in {load_s:.1f} s"
    )


def many_points(x: int) -> float:
    for step in range(50_000):
        trial.report(accuracy=step * 1e-6, step=step)
    return 1.0


def points(count: int = 1_000_000) -> None:
    watch = Watch()
    started = time.monotonic()
    result = experiment.launch(many_points, {"x": list(range(count // 50_000))}, workers=2, quiet=True)
    took_s = time.monotonic() - started
    memory = watch.close()
    found = sum(len(one.curve) for one in result.trials)
    began = time.monotonic()
    loaded = experiment.load(result.id)
    load_s = time.monotonic() - began
    assert sum(len(one.curve) for one in loaded.trials) == found
    size = (result.folder / "journal.jsonl").stat().st_size / 2**20
    print(
        f"points: {found:,} of {count:,} points in {took_s:.0f} s ({found / took_s:,.0f}/s); driver {memory}; "
        f"journal {size:.0f} MiB, loaded again in {load_s:.1f} s"
    )


def model(params: Params, seed: int) -> SimulatedRun:
    value = 1 - abs(params["lr"] - 0.01)
    steps = [(60.0 + seed % 240, {"accuracy": value * (1 - 0.6**epoch)}) for epoch in range(1, 28)]
    return SimulatedRun(steps=steps, value=value)


def day(workers: int = 1000, hours: float = 24.0) -> None:
    watch = Watch()
    started = time.monotonic()
    result = simulate(
        model,
        Searchspace(lr=("DOUBLE", [1e-4, 1e-1], "log")),
        optimizer="asha",
        workers=workers,
        timeout_s=hours * 3600,
        seed=1,
    )
    took_s = time.monotonic() - started
    print(
        f"day: {result.makespan_s / 3600:.1f} virtual hours of {workers:,} workers in {took_s:.0f} s: "
        f"{len(result.trials):,} "
        f"trials, {result.events:,} events, {result.driver_us_per_event:.0f} µs of driver CPU each; {watch.close()}"
    )


PARTS: dict[str, Callable[[], None]] = {"agents": agents, "trials": trials, "points": points, "day": day}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    options = parser.parse_args()
    for name in options.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            os.environ["CARGOBIKE_PROJECT"] = folder
            PARTS[name]()


if __name__ == "__main__":
    main()

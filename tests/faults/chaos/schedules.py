"""Schedules: what is searched, where, and what befalls it when, all from one seed."""

from __future__ import annotations

import random
from typing import Any

from faults.chaos.ways import WAYS

FAULTS = (
    "SIGKILL driver", "SIGKILL agent", "SIGKILL runner", "SIGINT driver", "cut network", "SIGTERM driver",
    "SIGKILL host", "SIGKILL template", "SIGHUP driver", "damage checkpoint", "SIGSTOP SIGKILL driver", "disk full",
    "SIGKILL host+agent", "SIGINT group", "cut network 1 s", "SIGSTOP 1 s agent", "SIGSTOP agent", "SIGQUIT driver",
    "cut checkpoint short", "SIGKILL agent+runner", "SIGSTOP 1 s driver", "SIGTERM agent", "cut network for ever",
    "SIGTERM runner", "SIGKILL driver+host", "clock back", "SIGINT twice driver", "SIGTERM template", "SIGINT agent",
    "SIGSTOP 6 s driver", "SIGTERM host", "SIGHUP runner", "clock ahead", "SIGKILL agent+agent", "SIGINT runner",
    "SIGHUP agent", "SIGSTOP SIGKILL agent", "cut network 10 s", "SIGKILL template+runner", "SIGHUP host",
    "SIGSTOP 1 s template", "SIGTERM driver+agent", "SIGINT template", "SIGSTOP SIGKILL runner", "SIGQUIT agent",
    "SIGSTOP 1 s runner", "SIGINT host", "SIGSTOP 1 s host",
)  # fmt: skip
"""What can befall a search on local processes, the likely before the odd; schedules get one after the other."""

FAULTS_ON_SPARK = (
    "SIGKILL executor", "SIGKILL worker", "SIGKILL daemon", "SIGKILL driver", "SIGKILL agent", "SIGINT driver",
    "SIGKILL host", "SIGKILL runner", "SIGTERM driver", "SIGKILL template", "SIGSTOP 1 s agent", "damage checkpoint",
    "SIGSTOP agent", "clock ahead", "SIGHUP driver", "SIGKILL host+agent", "disk full", "cut checkpoint short",
    "clock back",
)  # fmt: skip

FATAL = ("disk full", "SIGINT group", *(fault for fault in FAULTS if fault.startswith("SIG") and "driver" in fault))
"""What may end the driver; it is resumed then."""
HARMLESS = ("SIGSTOP 1 s driver", "SIGSTOP 6 s driver")

WORLDS = (
    "plain", "gang", "plain", "postgres", "plain", "s3", "reuse", "plain", "gang", "plain", "servers",
)  # fmt: skip
OPTIMIZERS = ("random", "asha", "sobol", "hyperband", "bohb", "dehb", "tpe", "de", "pbt", "auto")
PATIENT = ("random", "sobol", "tpe", "de")
"""Those that wait for results; the others refuse train functions whose reports do not name an objective."""


def is_fatal(fault: str) -> bool:
    """Tell whether a fault may end the driver."""
    return fault in FATAL and fault not in HARMLESS


def draw(seed: int, engine: str = "local") -> dict[str, Any]:
    """Return a schedule: the same one for the same seed, whatever the machine.

    Seeds that follow each other go through all faults, worlds and ways to report in turn, so that a short run meets
    each of them; the rest is drawn.
    """
    faults = FAULTS if engine == "local" else FAULTS_ON_SPARK
    rng = random.Random(f"chaos {seed}")
    turn = seed + seed // len(faults)
    world = WORLDS[turn % len(WORLDS)] if engine == "local" else ("shared disk", "no shared disk")[turn % 2]
    way = list(WAYS)[turn % len(WAYS)]
    optimizers = OPTIMIZERS if WAYS[way].objective is not None else PATIENT
    first = faults[seed % len(faults)]
    rounds = []
    for number in range(rng.choice([1, 1, 2, 3])):
        kinds = [rng.choice(faults) for _ in range(rng.choice([0, 1, 2] if number == 0 else [1, 2, 3]))]
        rounds.append([{"kind": kind, **_moment(rng, way)} for kind in ([first] if number == 0 else []) + kinds])
    return {
        "seed": seed,
        "engine": engine,
        "world": world,
        "way": way,
        "optimizer": optimizers[turn % len(optimizers)],
        "num_trials": rng.randint(5, 10),
        "workers": {"gang": rng.choice([2, 4]), "servers": 2}.get(world, rng.choice([1, 2, 3])),
        "forks": rng.random() < 0.25,
        "starts_children": rng.random() < 0.3,
        "rounds": rounds,
    }


def needs_network(schedule: dict[str, Any]) -> bool:
    """Tell whether there has to be a network between the driver and its workers, for it to be cut."""
    return any(fault["kind"].startswith("cut network") for faults in schedule["rounds"] for fault in faults)


def _moment(rng: random.Random, way: str) -> dict[str, Any]:
    """Draw when a fault strikes: after so many seconds, or just when something has been written for the nth time."""
    what = rng.choice(["time", "journal", "journal", "journal" if way == "never saving" else "checkpoint"])
    if what == "time":
        return {"after": "start", "count": 1, "delay_s": round(rng.uniform(0.0, 2.0), 4)}
    count = rng.randint(1, 18) if what == "journal" else rng.randint(1, 6)
    return {"after": what, "count": count, "delay_s": rng.choice([0.0, round(rng.expovariate(100.0), 5)])}


def describe(schedule: dict[str, Any]) -> str:
    """Describe a schedule in a line."""
    rounds = "; ".join(
        ", ".join(f"{one['kind']} @{one['after']} {one['count']}+{one['delay_s']}s" for one in faults)
        for faults in schedule["rounds"]
    )
    extras = "".join(f", {name.replace('_', ' ')}" for name in ("forks", "starts_children") if schedule[name])
    return (
        f"{schedule['world']}, {schedule['optimizer']}, {schedule['num_trials']} trials, "
        f"{schedule['workers']} workers, {schedule['way']}{extras}: {rounds}"
    )

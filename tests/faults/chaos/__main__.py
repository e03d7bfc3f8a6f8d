"""Play random schedules of faults; `--replay SEED` plays one again and keeps its folder."""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder of all tests, not of this room

from faults.chaos.playing import Verdict, play  # noqa: E402
from faults.chaos.schedules import describe  # noqa: E402
from faults.chaos.worlds import Worlds  # noqa: E402


def _line(verdict: Verdict) -> str:
    mark = "FAIL" if verdict.mistakes else "ok  "
    return f"{mark} seed {verdict.seed:<5} {verdict.seconds:5.1f} s  {describe(verdict.schedule)}"


def _replay(options: argparse.Namespace) -> int:
    keep = Path(tempfile.gettempdir()) / f"chaos-replay-{options.replay}"
    with Worlds() as worlds:
        verdict = play(options.replay, worlds, engine="spark" if options.engine == "spark" else "local", keep=keep)
    print(_line(verdict), *verdict.mistakes, f"struck: {verdict.struck}; see {keep}", sep="\n  ")
    return bool(verdict.mistakes)


def _play_all(options: argparse.Namespace) -> list[Verdict]:
    """Play the schedules, and on Spark one for every twenty: those take longest, and one after the other."""
    counts = {"local": options.schedules, "spark": math.ceil(options.schedules / 20)}
    verdicts: list[Verdict] = []
    for engine in ["local", "spark"] if options.engine == "both" else [options.engine]:
        seeds = range(options.seed, options.seed + counts[engine])
        print(f"{len(seeds)} schedules from seed {options.seed}, engine {engine}", flush=True)
        with Worlds() as worlds, ThreadPoolExecutor(options.at_once if engine == "local" else 1) as pool:
            for verdict in pool.map(lambda seed: play(seed, worlds, engine=engine), seeds):  # noqa: B023 - used here only
                verdicts.append(verdict)
                print(_line(verdict), *verdict.mistakes, sep="\n  ", flush=True)
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the first one")
    parser.add_argument("--at-once", type=int, default=max(2, (os.cpu_count() or 2)))
    parser.add_argument("--engine", choices=["local", "spark", "both"], default="both")
    parser.add_argument("--replay", type=int, metavar="SEED", help="play this one only, and keep its folder")
    options = parser.parse_args()
    if options.replay is not None:
        return _replay(options)
    verdicts = _play_all(options)
    struck = Counter(kind for one in verdicts for kind in one.struck)
    failed = [verdict for verdict in verdicts if verdict.mistakes]
    print(f"\n{len(verdicts)} schedules, {sum(one.processes for one in verdicts)} drivers, {struck.total()} faults:")
    print("  " + ", ".join(f"{kind} {count}" for kind, count in sorted(struck.items())))
    print(f"{len(verdicts) - len(failed)} passed, {len(failed)} failed", flush=True)
    for verdict in failed:
        print(f"  again: python tests/faults/chaos --engine {verdict.schedule['engine']} --replay {verdict.seed}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Try mutants on the unit tests and print those that survive."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the folder of all tests, not of this room
os.environ.setdefault("HYPOTHESIS_PROFILE", "ci")

from mutants.table import TESTS, WANTED  # noqa: E402
from mutants.trying import Outcome, try_module  # noqa: E402


def load_libraries() -> None:
    """Load once, before any copy of this process is made, what many tests need and no mutant changes."""
    import hypothesis.strategies
    import msgspec
    import numpy
    import torch
    import zmq

    assert all((hypothesis.strategies, msgspec, numpy, torch, zmq))


def in_a_copy(module: str, tests: tuple[str, ...], most: int, seed: int) -> Outcome:
    """Try a module in a copy of this process, since pytest changes the process that it runs in."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, json.dumps(asdict(try_module(module, tests, most, seed))).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return Outcome(**json.loads(answer)) if answer else Outcome(trouble=f"{module}: the process ended early")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="WORD", help="modules whose path contains this word")
    parser.add_argument("--most", type=int, default=40, help="mutants of each module, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    modules = [module for module in TESTS if (options.only or "") in module]
    if not modules:
        sys.exit(f"no module's path contains {options.only!r}; there are {', '.join(TESTS)}")
    load_libraries()
    tried = survived = 0
    troubles: list[str] = []
    for module in modules:
        outcome = in_a_copy(module, TESTS[module], options.most, options.seed)
        if outcome.trouble:
            troubles.append(outcome.trouble)
        killed = outcome.tried - len(outcome.survivors)
        untried = f" ({outcome.untried} could not be tried)" if outcome.untried else ""
        print(f"{module:<55} {killed:>4} of {outcome.tried:>4} killed{untried}", flush=True)
        tried, survived = tried + outcome.tried, survived + len(outcome.survivors)
    ratio = 1.0 - survived / max(tried, 1)
    print(*troubles, sep="\n", end="\n" if troubles else "")
    print(f"{tried - survived} of {tried} mutants killed: {ratio:.1%} (seed {options.seed}, wanted {WANTED:.0%})")
    return int(bool(troubles) or ratio < WANTED)


if __name__ == "__main__":
    sys.exit(main())

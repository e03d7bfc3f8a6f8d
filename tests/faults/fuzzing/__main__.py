"""Try random inputs on everything that parses; `--replay FILE` tries one of the corpus again."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder of all tests, not of this room

from faults.fuzzing.fuzzer import Fuzzer, limit_memory, outcome, watched  # noqa: E402
from faults.fuzzing.targets import all_targets  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="in all; quick parsers get most of them")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", metavar="TARGET", help="one parser only")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="an input in a folder named as its target")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzzing-") as folder, all_targets(Path(folder)) as targets, watched():
        if options.replay is not None:
            target = targets[options.replay.resolve().parent.name]
            way, what = outcome(target, options.replay.read_bytes())
            print(what or f"ended as it may: {way}")
            return bool(what)
        limit_memory()
        print(f"{options.inputs} inputs, seed {options.seed}", flush=True)
        chosen = [target for target in targets.values() if options.only in (None, target.name)]
        share = options.inputs / sum(target.weight for target in chosen)
        mistakes = 0
        for target in chosen:
            began = time.monotonic()
            fuzzer = Fuzzer(target, options.seed)
            fuzzer.run(round(target.weight * share))
            took_s = time.monotonic() - began
            mark = "FAIL" if fuzzer.mistakes else "ok  "
            print(f"{mark} {target.name:<20} {fuzzer.tried:>8} inputs in {took_s:5.0f} s", flush=True)
            for mistake in fuzzer.mistakes:
                print(
                    f"  seed {options.seed}, kept as {mistake.save()}: {mistake.data[:200]!r}\n{mistake.what}",
                    flush=True,
                )
            mistakes += len(fuzzer.mistakes)
    return bool(mistakes)


if __name__ == "__main__":
    sys.exit(main())

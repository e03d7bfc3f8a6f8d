"""How good the searches are: normalized regret in virtual time, beside Optuna, Ray and Syne Tune.

    python benchmarks/search/quality.py                    # hours the first time; what is known is kept in .curves
    python benchmarks/search/quality.py --quick            # a look: few seeds, no slow systems
    python benchmarks/search/quality.py --family tables --only auto --only "Optuna GP" --seeds 20

Everybody has 4 workers and the time of 40 full trainings. Regret is (best - optimum) / (median random configuration -
optimum), of the best configuration that was trained to its end, after 25, 50 and 100 % of the time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from quality_peers import LinePeer
from quality_problems import FAMILIES, Problem, problems
from quality_report import (
    Found,
    against_best,
    against_namesakes,
    comparisons_table,
    family_table,
    problems_table,
    verdict,
    write_into,
)
from quality_running import SYSTEMS, Results, System, describe_peers


def gather(options: argparse.Namespace, systems: list[System]) -> tuple[list[Problem], Found]:
    results = Results(options.cache)
    deadline = time.monotonic() + 60 * options.minutes if options.minutes is not None else None
    chosen = [
        make()
        for name, is_held_out, make in problems(options.cache, options.family or FAMILIES)
        if (not options.problem or name in options.problem) and not (options.development and is_held_out)
    ]
    found: Found = {system.name: {} for system in systems}
    # Seeds come last in the order of searching, so that who stops early has something of everybody.
    for upto in sorted({min(step, options.seeds) for step in (3, 10, options.seeds)}):
        for problem in chosen:
            for system in systems:
                began = time.monotonic()
                known = results.of(system, problem, range(upto), deadline)
                found[system.name] |= {(problem.name, seed): regrets for seed, regrets in known.items()}
                if time.monotonic() - began > 1:
                    print(
                        f"{system.name} on {problem.name}: {time.monotonic() - began:.0f} s",
                        file=sys.stderr,
                        flush=True,
                    )
    return chosen, {name: rows for name, rows in found.items() if rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--family", choices=FAMILIES, action="append", help="may be repeated")
    known = [name for name, *_ in problems(Path())]
    parser.add_argument("--problem", choices=known, metavar="NAME", action="append", help="may be repeated")
    who = [system.name for system in SYSTEMS]
    parser.add_argument("--only", choices=who, metavar="NAME", action="append", help="who searches; may be repeated")
    parser.add_argument("--development", action="store_true", help="without the problems that are held out")
    parser.add_argument("--quick", action="store_true", help="2 seeds, without systems that take seconds for a search")
    parser.add_argument("--minutes", type=float, help="search no longer than this; the rest stays unknown")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--into", type=Path, help="also put the tables into this page, between its marks")
    parser.add_argument("--cache", type=Path, default=Path(".curves"), help="where curves and results are kept")
    options = parser.parse_args()
    systems = [
        system
        for system in SYSTEMS
        if (not options.only or system.name in options.only) and not (options.quick and system.is_slow)
    ]
    options.seeds = 2 if options.quick else options.seeds
    try:
        chosen, found = gather(options, systems)
    finally:
        LinePeer.dismiss_all()
    if not found:
        print("Nothing is known about these, and there was no time to search.", file=sys.stderr)
        return 1
    families = [family for family in FAMILIES if any(problem.family == family for problem in chosen)]
    best, namesakes = against_best(chosen, found), against_namesakes(chosen, found)
    parts = {
        "peers": [", ".join(f"{name} {version}" for name, version in describe_peers().items()) + "."],
        "families": [line for family in families for line in family_table(family, chosen, found)],
        "best": comparisons_table(best),
        "namesakes": comparisons_table(namesakes),
        "problems": problems_table(chosen, found),
        "verdict": verdict([*best, *namesakes], found),
    }
    for name, lines in parts.items():
        print(f"\n## {name}\n", *lines, sep="\n")
    if options.into:
        write_into(options.into, parts)
    if options.json:
        regrets: Any = {name: [[*key, *values] for key, values in rows.items()] for name, rows in found.items()}
        told = [vars(one) for one in (*best, *namesakes)]
        options.json.write_text(json.dumps({"regrets": regrets, "comparisons": told}, indent=1))
    return int(any(one.verdict == "worse" for one in (*best, *namesakes)))


if __name__ == "__main__":
    sys.exit(main())

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
from quality_running import SHARES, SYSTEMS, Results, System, describe_peers
from quality_statistics import Comparison, Regrets, compare, correct, geometric_mean, mean_ranks

Found = dict[str, dict[tuple[str, int], list[float]]]
"""For each system, by problem and seed, the regrets after each share."""


def gather(options: argparse.Namespace, systems: list[System]) -> tuple[list[Problem], Found]:
    results = Results(options.cache)
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else None
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
    return chosen, found


def at(found: Found, share: int, names: set[str]) -> dict[str, Regrets]:
    """Return the regrets after one share, on some problems."""
    return {
        system: {key: regrets[share] for key, regrets in rows.items() if key[0] in names}
        for system, rows in found.items()
    }


def print_family(family: str, chosen: list[Problem], found: Found) -> None:
    names = {problem.name for problem in chosen if problem.family == family}
    per_share = [at(found, index, names) for index in range(len(SHARES))]
    ranks = [mean_ranks(one) for one in per_share]
    pairs = len(set.intersection(*(set(rows) for rows in per_share[-1].values())))
    print(f"\n### {family}: {len(names)} problems, {pairs} pairs of problem and seed\n")
    print("| system | regret at 25 % | at 50 % | at 100 % | rank at 25 % | at 50 % | at 100 % |")
    print("| --- |" + " ---: |" * 6)
    order = sorted(found, key=lambda name: geometric_mean(per_share[-1][name]))
    for name in order:
        cells = [f"{geometric_mean(one[name]):.4f}" for one in per_share] + [f"{rank[name]:.1f}" for rank in ranks]
        is_ours = next(system.is_ours for system in SYSTEMS if system.name == name)
        print(f"| {'**' + name + '**' if is_ours else name} | {' | '.join(cells)} |")


def print_problems(chosen: list[Problem], found: Found) -> None:
    print("\n### each problem: geometric mean of the regret at 100 %\n")
    print("| problem | " + " | ".join(found) + " |")
    print("| --- |" + " ---: |" * len(found))
    for problem in chosen:
        rows = at(found, len(SHARES) - 1, {problem.name})
        cells = [f"{geometric_mean(rows[name]):.4f}" for name in found]
        print(f"| {problem.name}{' (held out)' if problem.held_out else ''} | {' | '.join(cells)} |")


def against_best(chosen: list[Problem], found: Found) -> list[Comparison]:
    """Compare auto with the best peer of each family after each share."""
    peers = [system.name for system in SYSTEMS if not system.is_ours and system.name in found]
    made = []
    for family in FAMILIES:
        names = {problem.name for problem in chosen if problem.family == family}
        for index, share in enumerate(SHARES if names and peers and "auto" in found else ()):
            rows = at(found, index, names)
            best = min(peers, key=lambda name: geometric_mean(rows[name]))
            made.append(compare(family, share, ("auto", best), rows["auto"], rows[best]))
    correct(made)
    return made


def against_namesakes(chosen: list[Problem], found: Found) -> list[Comparison]:
    made = []
    for system in SYSTEMS:
        if system.namesake not in found or system.name not in found:
            continue
        for family in FAMILIES:
            names = {problem.name for problem in chosen if problem.family == family}
            if names:
                rows = at(found, len(SHARES) - 1, names)
                pair = (system.namesake, system.name)
                made.append(compare(family, 1.0, pair, rows[pair[0]], rows[pair[1]]))
    correct(made)
    return made


def print_comparisons(title: str, comparisons: list[Comparison]) -> None:
    print(f"\n### {title}\n")
    print("| where | at | ours | peer | pairs | ratio of regrets | p worse | corrected | p better | corrected | |")
    print("| --- | ---: | --- | --- |" + " ---: |" * 6 + " --- |")
    for one in comparisons:
        ps = [one.p_worse, one.p_worse_corrected, one.p_better, one.p_better_corrected]
        cells = " | ".join(f"{p:.3f}" if p >= 0.001 else f"{p:.0e}" for p in ps)
        print(
            f"| {one.family} | {one.share:.0%} | {one.ours} | {one.peer} | {one.pairs} | {one.ratio:.2f} | {cells} "
            f"| {one.verdict} |"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--family", choices=FAMILIES, action="append", help="may be repeated")
    parser.add_argument("--problem", action="append", help="a problem's name; may be repeated")
    parser.add_argument("--only", action="append", help="a system's name; may be repeated")
    parser.add_argument("--development", action="store_true", help="without the problems that are held out")
    parser.add_argument("--quick", action="store_true", help="2 seeds, without systems that take seconds for a search")
    parser.add_argument("--minutes", type=float, help="search no longer than this; the rest stays unknown")
    parser.add_argument("--json", type=Path, help="also write the figures here")
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
    print(f"Peers: {describe_peers()}")
    for family in FAMILIES:
        if any(problem.family == family for problem in chosen):
            print_family(family, chosen, found)
    print_problems(chosen, found)
    tests = {
        "auto against the best peer of each family": against_best(chosen, found),
        "each of ours against its namesakes": against_namesakes(chosen, found),
    }
    for title, comparisons in tests.items():
        print_comparisons(title, comparisons)
    if options.json:
        regrets: Any = {name: [[*key, *values] for key, values in rows.items()] for name, rows in found.items()}
        told = {title: [vars(one) for one in comparisons] for title, comparisons in tests.items()}
        options.json.write_text(json.dumps({"regrets": regrets, "comparisons": told}, indent=1))
    return int(any(one.verdict == "worse" for comparisons in tests.values() for one in comparisons))


if __name__ == "__main__":
    sys.exit(main())

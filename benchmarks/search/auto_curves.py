"""Whether `auto` is ever worse than `asha` where trials report, and always better than random search.

    python benchmarks/search/auto_curves.py                      # ours; trains what it needs once, minutes
    python benchmarks/search/auto_curves.py --peers --seeds 10   # with Optuna, Ray and Syne Tune
    python benchmarks/search/auto_curves.py --into docs/benchmarks-search.md

Tables hold curves of real trainings, one for every configuration of a lattice; surrogates are smooth functions of
continuous parameters fitted to them. Everybody has 4 workers and the time of 40 full trainings of 27 epochs; regret as
in `quality.py`.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import quality_curves
from quality_chance import Chance, chances, compare_with_chance
from quality_peers import LinePeer
from quality_problems import Problem, _of_curves, problems
from quality_report import comparisons_table, write_into
from quality_running import SHARES, SYSTEMS, Results, System, _ours
from quality_statistics import Comparison, compare, correct, geometric_mean
from quality_surrogates import Surrogate
from quality_trainings import MORE

OURS = ["auto", "asha"]
PEERS = ["Ray ASHA", "Syne Tune ASHA", "Optuna TPE, ASHA pruner", "Optuna TPE, median pruner"]
_FAMILIES = {
    "wine": "networks",
    "classes": "networks",
    "friedman": "networks",
    "digits": "networks",
    "wine, few": "few configurations",
    "moons": "few configurations",
    "friedman, trees": "boosted trees",
    "linear": "linear models",
    "convolutions": "convolutions",
    "diabetes": "apart: networks",
    "breast_cancer": "apart: networks",
    "breast_cancer, trees": "apart: boosted trees",
}
"""Those apart were looked at only when all choices had been made."""
_SMOOTH = (
    "wine",
    "classes",
    "friedman",
    "digits",
    "friedman, trees",
    "linear",
    "convolutions",
    "diabetes",
    "breast_cancer, trees",
)
_CLOSE = (
    *("few configurations", "linear models", "convolutions", "apart: networks", "apart: boosted trees"),
    *("boosted trees, smooth", "linear models, smooth", "convolutions, smooth"),
)
"""Families in which twenty searches did not show whether auto is better than random search: searched more often.
"""
_OFTEN = {**dict.fromkeys(_CLOSE, 3), "linear models": 9}
"""How many times as often; that is settled before, and not by what is found."""
Found = dict[str, dict[tuple[str, int], list[float]]]
ByChance = dict[str, dict[float, Chance]]
"""By problem and share."""


def curve_problems(cache: Path) -> Iterator[tuple[str, str, Callable[[], Problem]]]:
    """Yield family, name, and what makes the problem."""
    sets = {which.name: which for which in (*quality_curves.SETS, *MORE)}
    for name, family in _FAMILIES.items():
        yield family, name, functools.partial(_of_curves, sets[name], cache, name, reports=True)
    for name in _SMOOTH:
        title = f"{name}, smooth"
        yield f"{_FAMILIES[name]}, smooth", title, functools.partial(_smooth, sets[name], cache, title)
    for name, _, make in problems(cache, ["analytic"]):
        if name in ("Branin", "mixed", "conditional", "lattice"):
            yield "formulas", name, make


def _smooth(which: quality_curves.CurveSet, cache: Path, name: str) -> Problem:
    surrogate = Surrogate(quality_curves.load(which, cache), cache / f"surrogate-{which.name}.npz")
    print(f"{name}: {surrogate.explained:.0%} of the variance of final losses explained", file=sys.stderr)
    least, typical = surrogate.extremes()
    return Problem(name, "curves", surrogate.space, surrogate.curve, True, least, typical, truth=surrogate.score)


def table(names: list[tuple[str, str]], found: Found, by_chance: ByChance) -> list[str]:
    """Return the regrets on each problem, and how many configurations were looked at."""
    titles = [*found, "randomsearch, exactly"]
    lines = ["| family | problem | " + " | ".join(titles) + " |", "| --- | --- |" + " ---: |" * len(titles)]
    for family, name in names:
        cells = []
        for rows in found.values():
            mine = {key: row for key, row in rows.items() if key[0] == name}
            means = [geometric_mean({key: row[index] for key, row in mine.items()}) for index in (1, 2)]
            seen = statistics.median(row[len(SHARES)] for row in mine.values()) if mine else 0
            cells.append(f"{means[0]:.4f} / {means[1]:.4f} ({seen:.0f})" if mine else "–")
        means = [by_chance[name][share].mean for share in SHARES[1:]]
        cells.append(f"{means[0]:.4f} / {means[1]:.4f}")
        lines.append(f"| {family} | {name} | {' | '.join(cells)} |")
    return lines


def against_chance(names: list[tuple[str, str]], found: Found, by_chance: ByChance) -> list[Comparison]:
    """Compare auto with random search in each family, after half and all of the time."""
    made = []
    for family in dict.fromkeys(family for family, _ in names):
        members = [name for one, name in names if one == family]
        for index in (1, 2):
            ours = {name: [row[index] for key, row in found["auto"].items() if key[0] == name] for name in members}
            ours = {name: regrets for name, regrets in ours.items() if regrets}
            chance = {name: by_chance[name][SHARES[index]] for name in ours}
            if ours:
                made.append(compare_with_chance(family, SHARES[index], "auto", ours, chance))
    correct(made)
    return made


def comparisons(names: list[tuple[str, str]], found: Found, others: list[str]) -> list[Comparison]:
    """Compare auto with others in each family, after half and all of the time."""
    made = []
    for other in others:
        for family in dict.fromkeys(family for family, _ in names):
            members = {name for one, name in names if one == family}
            for index in (1, 2):
                mine, theirs = (
                    {key: row[index] for key, row in found[who].items() if key[0] in members} for who in ("auto", other)
                )
                if set(mine) & set(theirs):
                    made.append(compare(family, SHARES[index], ("auto", other), mine, theirs))
    correct(made)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--peers", action="store_true", help="Optuna, Ray and Syne Tune as well; what is known is not searched anew"
    )
    parser.add_argument("--problem", action="append", metavar="NAME", help="may be repeated")
    parser.add_argument("--family", action="append", metavar="NAME", help="may be repeated")
    parser.add_argument("--minutes", type=float, help="search no longer than this; the rest stays unknown")
    parser.add_argument("--cache", type=Path, default=Path(".curves"))
    parser.add_argument("--into", type=Path, help="also put the tables into this page, between its marks")
    options = parser.parse_args()
    deadline = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    by_name: dict[str, System] = {system.name: system for system in SYSTEMS} | {"asha": _ours("asha")}
    who = [*OURS, *(PEERS if options.peers else [])]
    results, found, by_chance, names = Results(options.cache), Found(), ByChance(), []
    try:
        for family, name, make in curve_problems(options.cache):
            if (options.problem and name not in options.problem) or (options.family and family not in options.family):
                continue
            problem: Problem | None = None
            began = time.process_time()
            names.append((family, name))
            for system in who:
                often = _OFTEN.get(family, 1) if system == "auto" else 1
                seeds = range(options.first_seed, options.first_seed + often * options.seeds)
                known = results.known(by_name[system], name, seeds)
                if len(known) < len(seeds) and (deadline is None or time.monotonic() < deadline):
                    problem = problem or make()  # takes minutes the first time
                    known = results.of(by_name[system], problem, seeds, deadline)
                found.setdefault(system, {}).update({(name, seed): row for seed, row in known.items()})
            by_chance[name] = chances(problem or make())
            print(f"{name}: {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)
    finally:
        LinePeer.dismiss_all()
    told = comparisons(names, found, [name for name in who if name != "auto"])
    beside_chance = against_chance(names, found, by_chance)
    parts = {
        "auto on curves": table(names, found, by_chance),
        "auto and others": comparisons_table(told),
        "auto and chance": comparisons_table(beside_chance),
    }
    for name, lines in parts.items():
        print(f"\n## {name}\n", *lines, sep="\n")
    if options.into:
        write_into(options.into, parts)
    return int(any(one.verdict == "worse" for one in [*told, *beside_chance]))


if __name__ == "__main__":
    sys.exit(main())

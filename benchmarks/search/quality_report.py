"""The tables of `quality.py`, as Markdown."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from pathlib import Path

from quality_problems import FAMILIES, Problem
from quality_running import SHARES, SYSTEMS
from quality_statistics import Comparison, Regrets, compare, correct, geometric_mean, mean_ranks

Found = dict[str, dict[tuple[str, int], list[float]]]
"""For each system, by problem and seed, the regrets after each share."""

_ENOUGH = 1 / 3
"""A peer is compared with where it has searched at least so much of what auto has."""


def at(found: Found, share: int, names: set[str]) -> dict[str, Regrets]:
    """Return the regrets after one share, on some problems."""
    return {
        system: {key: regrets[share] for key, regrets in rows.items() if key[0] in names}
        for system, rows in found.items()
    }


def names_of(family: str, chosen: list[Problem]) -> set[str]:
    """Return the names of the problems of a family."""
    return {problem.name for problem in chosen if problem.family == family}


def family_table(family: str, chosen: list[Problem], found: Found) -> list[str]:
    """Return the regrets and ranks of everybody in a family."""
    names = names_of(family, chosen)
    per_share = [at(found, index, names) for index in range(len(SHARES))]
    # Means are taken over what all have searched, apart from those who have searched little.
    usual = statistics.median(len(rows) for rows in per_share[-1].values())
    whole = [name for name, rows in per_share[-1].items() if len(rows) >= usual / 2]
    shared = set.intersection(*(set(per_share[-1][name]) for name in whole))
    per_share = [{name: {key: one[name][key] for key in shared & set(one[name])} for name in one} for one in per_share]
    ranks = [mean_ranks({name: one[name] for name in whole}) for one in per_share]
    lines = [
        f"### {family}: {len({key[0] for key in shared})} problems, {len(shared)} pairs of problem and seed",
        "",
        "| system | regret at 25 % | at 50 % | at 100 % | rank at 25 % | at 50 % | at 100 % |",
        "| --- |" + " ---: |" * 6,
    ]
    for name in sorted(found, key=lambda name: geometric_mean(per_share[-1][name])):
        count = len(per_share[-1][name])
        is_ours = next(system.is_ours for system in SYSTEMS if system.name == name)
        title = (f"**{name}**" if is_ours else name) + (f" ({count} of these pairs)" if count < len(shared) else "")
        cells = [f"{geometric_mean(one[name]):.4f}" if count else "–" for one in per_share]
        cells += [f"{rank[name]:.1f}" if name in rank else "–" for rank in ranks]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return [*lines, ""]


def problems_table(chosen: list[Problem], found: Found) -> list[str]:
    """Return the regrets of everybody on each problem."""
    lines = ["| problem | " + " | ".join(found) + " |", "| --- |" + " ---: |" * len(found)]
    for problem in chosen:
        rows = at(found, len(SHARES) - 1, {problem.name})
        cells = [f"{geometric_mean(rows[name]):.4f}" if rows[name] else "–" for name in found]
        lines.append(f"| {problem.name}{' (held out)' if problem.held_out else ''} | {' | '.join(cells)} |")
    return lines


def against_best(chosen: list[Problem], found: Found) -> list[Comparison]:
    """Compare auto with the best peer of each family after each share."""
    peers = [system.name for system in SYSTEMS if not system.is_ours and system.name in found]
    made = []
    for family in FAMILIES:
        names = names_of(family, chosen)
        for index, share in enumerate(SHARES if names and "auto" in found else ()):
            rows = at(found, index, names)
            able = [name for name in peers if len(set(rows[name]) & set(rows["auto"])) >= _ENOUGH * len(rows["auto"])]
            one_by_one = [compare(family, share, ("auto", name), rows["auto"], rows[name]) for name in able]
            if one_by_one:
                made.append(max(one_by_one, key=lambda one: one.ratio))
    correct(made)
    return made


def against_namesakes(chosen: list[Problem], found: Found) -> list[Comparison]:
    """Compare each of ours with the peers that do the same, at the end."""
    made = []
    for system in SYSTEMS:
        pair = (system.namesake, system.name)
        for family in FAMILIES if pair[0] in found and pair[1] in found else ():
            rows = at(found, len(SHARES) - 1, names_of(family, chosen))
            if set(rows[pair[0]]) & set(rows[pair[1]]):
                made.append(compare(family, 1.0, pair, rows[pair[0]], rows[pair[1]]))
    correct(made)
    return made


def comparisons_table(comparisons: list[Comparison]) -> list[str]:
    """Return comparisons with their p values."""
    lines = [
        "| where | at | ours | peer | pairs | ratio of regrets | p worse | corrected | p better | corrected | |",
        "| --- | ---: | --- | --- |" + " ---: |" * 6 + " --- |",
    ]
    for one in comparisons:
        ps = [one.p_worse, one.p_worse_corrected, one.p_better, one.p_better_corrected]
        cells = " | ".join(f"{p:.3f}" if p >= 0.001 else f"{p:.0e}" for p in ps)
        lines.append(
            f"| {one.family} | {one.share:.0%} | {one.ours} | {one.peer} | {one.pairs} | {one.ratio:.2f} | {cells} "
            f"| {one.verdict} |"
        )
    return lines


def verdict(comparisons: list[Comparison], found: Found) -> list[str]:
    """Say in a sentence or two what the comparisons come to, and what they lack."""
    worse = [
        f"{one.ours} than {one.peer} ({one.family}, {one.share:.0%})" for one in comparisons if one.verdict == "worse"
    ]
    better = [one for one in comparisons if one.verdict == "better"]
    lines = [
        f"Of {len(comparisons)} comparisons, ours is significantly worse in {len(worse)} and better in {len(better)}"
        + (f": worse are {'; '.join(worse)}." if worse else ".")
    ]
    most = max(len(rows) for rows in found.values())
    partial = [f"{name} {len(rows)}" for name, rows in found.items() if len(rows) < most]
    if partial:
        lines += ["", f"Not everybody has searched all {most} pairs of problem and seed: {', '.join(partial)}."]
    return lines


def write_into(page: Path, parts: Mapping[str, list[str]]) -> None:
    """Replace what lies between `<!-- begin: name -->` and `<!-- end: name -->` in a page by the part of that name."""
    text = page.read_text()
    for name, lines in parts.items():
        marks = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        body = "\n".join(lines).strip()
        text = marks.sub(lambda found, body=body: f"{found[1]}\n{body}\n\n{found[2]}", text)  # type: ignore[misc]
    page.write_text(text)

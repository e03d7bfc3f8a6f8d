"""Findings of all measurements: handed on by programs that run for themselves, kept in a file, shown as one page.

A program of a room calls `hand_on` with its targets when it is done. It prints them; and when `run.py` has started the
program, it reads them from the file that `FINDINGS` in the environment names. What was found is kept in
`figures.json`, with what each printed: a measurement replaces what it found before and nothing else. From that file two
pages are written: one table of all rooms, and what each measurement has printed, the peers' figures among it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rig import machine, table
from rig.measuring import Target as Target
from rig.measuring import show

FINDINGS = "BENCH_FINDINGS"
BEGIN = "<!-- figures: written by `make bench` -->"
END = "<!-- end of figures -->"
_TARGETS = "### Targets"
_DETAILS = """# What each measurement printed

Written by `make bench` from what it kept; [how fast it is](benchmarks.md) has one table of it, and
[benchmarks/README.md](../benchmarks/README.md) says how each is measured and what can mislead.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a measurement has found.

    Attributes:
        targets: What was wanted, and what was found.
        report: What it printed, with the peers' figures; lines that begin with `|` are tables.
    """

    targets: Sequence[Target]
    report: str = ""


def at_least(text: str, value: float | None, least: float, unit: str = "", *, gate: bool = False) -> Target:
    """Judge a figure that should not be smaller than a bound; a gate must be a ratio or a count of the same run."""
    met = None if value is None else value >= least
    return Target(text=text, found=_show(value, unit), met=met, kind="gate" if gate else "information")


def at_most(text: str, value: float | None, most: float, unit: str = "", *, gate: bool = False) -> Target:
    """Judge a figure that should not be larger than a bound; a gate must be a ratio or a count of the same run."""
    met = None if value is None else value <= most
    return Target(text=text, found=_show(value, unit), met=met, kind="gate" if gate else "information")


def hand_on(name: str, targets: Sequence[Target]) -> None:
    """Print what a program found beside what was wanted, and hand it to the run that has started the program."""
    print("\n" + table.render_targets([(name, target) for target in targets], _TARGETS), flush=True)
    if path := os.environ.get(FINDINGS):
        Path(path).write_text(json.dumps([asdict(target) for target in targets]), encoding="utf-8")


def read_handed_on(path: Path) -> list[Target]:
    """Return what a program has handed on; nothing if it did not come that far."""
    try:
        return [Target(**target) for target in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []


def report_of(output: str) -> str:
    """Return what a program has printed before the table of its targets."""
    return output.partition(f"{_TARGETS}\n")[0].strip("\n")


def keep(figures: Path, found: Mapping[tuple[str, str], Finding], commit: str) -> None:
    """Enter what was found, by room and measurement, in the file of figures.

    Args:
        figures: The file.
        found: What each measurement that was made now has found.
        commit: What was measured.
    """
    kept = _read(figures)
    for (room, name), finding in found.items():
        if finding.targets:
            kept.setdefault(room, {})[name] = {
                "at": time.strftime("%Y-%m-%d", time.gmtime()),
                "commit": commit,
                "load": machine.load(),
                "targets": [asdict(target) for target in finding.targets],
                "report": finding.report.splitlines(),
            }
    figures.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_page(figures: Path, page: Path) -> None:
    """Put the table of all figures that are kept into a page, between its two marks.

    Raises:
        ValueError: The page lacks the marks.
    """
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} lacks the lines {BEGIN!r} and {END!r}, between which figures are written")
    page.write_text(f"{before}{BEGIN}\n{render(figures)}\n{END}{after}", encoding="utf-8")


def write_details(figures: Path, page: Path) -> None:
    """Write the page of what each measurement has printed."""
    page.write_text(f"{_DETAILS}\n{render_reports(figures)}", encoding="utf-8")


def render(figures: Path) -> str:
    """Return all figures that are kept as a table, by room."""
    words = {True: "met", False: "**missed**", None: "not measured"}
    rows = [
        [room, name, target["text"], target["found"], words[target["met"]], target["kind"], f"{at['at']}, {at['load']}"]
        for room, measurements in _read(figures).items()
        for name, at in measurements.items()
        for target in at["targets"]
    ]
    return "\n".join(table.lines(["room", "measurement", "wanted", "found", "", "kind", "when, load"], rows))


def render_reports(figures: Path) -> str:
    """Return what each measurement has printed, by room, as Markdown."""
    text: list[str] = []
    for room, measurements in _read(figures).items():
        text += [f"## {room.capitalize()}", ""]
        for name, at in measurements.items():
            text += [f"### {name}", "", f"{at['at']}, commit {at['commit']}, load {at['load']} at its end.", ""]
            text += [*_as_markdown(at["report"]), ""]
    return "\n".join(text)


def _as_markdown(report: Sequence[str]) -> list[str]:
    """Return printed lines as Markdown: headings one level lower, and what is neither a table nor prose as it is."""
    if any(line.startswith("|") for line in report):
        return [f"#{line}" if line.startswith("###") else line for line in report]
    return ["```text", *(line.rstrip() for line in report), "```"]


def _read(figures: Path) -> dict[str, dict[str, Any]]:
    try:
        kept: dict[str, dict[str, Any]] = json.loads(figures.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return kept


def _show(value: float | None, unit: str) -> str:
    return show(value) if value is None else table.number(value) + unit

"""What a journal says, read without any of our code, and held against what the train functions did.

A journal is text: one JSON object per line. The last entries of each are its number, the checksum of the line before,
and a checksum of everything before that one.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.chaos.ways import result, script

SEAL = re.compile(rb'.*,"line":(\d+),"prev":"([0-9a-f]{8})","crc":"([0-9a-f]{8})"}')
SEAL_BYTES = len(b',"crc":"01234567"}')
MAX_ATTEMPTS = 3

Report = tuple[int | None, dict[str, float]]


def whole_lines(path: Path) -> bytes:
    """Return the complete lines of a journal; one that a killed driver had not finished is not one."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def facts_of(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the facts; raises `ValueError` at a line whose checksum is wrong or that does not follow the one before."""
    before = b"00000000"
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        seal = SEAL.fullmatch(line)
        if seal is None or int(seal[3], 16) != zlib.crc32(line[:-SEAL_BYTES]):
            raise ValueError(f"line {number} is not sealed by its checksum")
        if (int(seal[1]), seal[2]) != (number, before):
            raise ValueError(f"line {number} does not follow the one before it")
        before = seal[3]
        yield json.loads(line)


@dataclass
class TrialHistory:
    """What became of a trial.

    Attributes:
        reports: The surviving ones: an attempt that begins again before the end of the one before takes their place.
        begin: Where the script was taken up from a copied checkpoint of another trial.
        mistakes: What cannot have been.
    """

    number: int
    params: dict[str, Any] = field(default_factory=dict)
    copied: bool = False
    script: list[Report] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    first: int | None = None
    count: int = 0
    attempt: int = 0
    restarted: int = 0
    losses: int = 0
    verdict: str = ""
    ends: list[dict[str, Any]] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)

    @property
    def reports(self) -> list[Report]:
        return self.script[self.first or 0 : self.count]

    @property
    def is_complete(self) -> bool:
        return self.count == len(self.script)


def read_history(data: bytes, way: str, begins: dict[tuple[int, int], int]) -> tuple[dict[int, TrialHistory], str]:
    """Fold a journal; returns the trials and the state of the experiment.

    Args:
        data: The journal.
        way: How the train functions report.
        begins: Where in its script each attempt began, by trial and attempt, as the functions wrote down.
    """
    trials: dict[int, TrialHistory] = {}
    state = "running"
    for fact in facts_of(data):
        kind = fact["fact"]
        if kind == "trial-suggested":
            trials[fact["trial"]] = _suggested(fact, way)
        elif kind == "experiment-resumed":
            state = "running"
        elif kind == "experiment-ended":
            state = fact["state"]
        elif kind == "attempt-started":
            trials[fact["trial"]].attempt = fact["attempt"]
        elif kind == "attempt-lost":
            trials[fact["trial"]].losses += 1
        elif kind == "judged":
            trials[fact["trial"]].verdict = fact["decision"]
        elif kind == "trial-ended":
            trials[fact["trial"]].ends.append(fact)
        elif kind == "reported":
            trial = trials[fact["trial"]]
            _reported(trial, fact, begins)
    for trial in trials.values():
        if trial.copied and trial.first is None:  # nothing may be left to report after a copied checkpoint
            began = begins.get((trial.number, trial.attempt), 0)
            trial.first = trial.count = sum(position < began for position in trial.positions)
    return trials, state


def _suggested(fact: dict[str, Any], way: str) -> TrialHistory:
    actions = script(way, fact["params"]["x"], fact["params"]["y"])
    return TrialHistory(
        number=fact["trial"],
        params=fact["params"],
        copied=fact.get("copy_checkpoint_of") is not None,
        script=[action for action in actions if action is not None],
        positions=[position for position, action in enumerate(actions) if action is not None],
    )


def _reported(trial: TrialHistory, fact: dict[str, Any], begins: dict[tuple[int, int], int]) -> None:
    began = begins.get((trial.number, fact.get("attempt", 1)))
    report = (fact["step"], {name: float(value) for name, value in fact["metrics"].items()})
    say = trial.mistakes.append
    try:
        index = trial.script.index(report)
    except ValueError:
        say(f"reported {report}, which its function never does")
        return
    if trial.ends:
        say(f"reported {report} after its end")
    if fact.get("attempt", 1) != trial.attempt:
        say(f"reported {report} in attempt {fact.get('attempt', 1)} during attempt {trial.attempt}")
    if began is None:
        say(f"reported {report} in attempt {trial.attempt}, which did not begin")
        return
    if trial.first is None:
        trial.first = trial.count = index if trial.copied else 0
    restart = next(_may_restart(trial, begins, index), None)
    if index < trial.count and restart is not None:
        trial.restarted = restart
        trial.count = index
    if index != trial.count:
        what = "again" if index < trial.count else f"although {index - trial.count} before it are missing"
        say(f"reported {report} in attempt {trial.attempt} (which began at {began}) {what}")
    trial.count = index + 1


def _may_restart(trial: TrialHistory, begins: dict[tuple[int, int], int], index: int) -> Iterator[int]:
    """Yield the attempts that began with a report and of which none has arrived in its own time.

    An attempt may be lost before its reports arrive. The one that goes on from its checkpoint makes them again, and
    they take the place of those that the attempt before it had made.
    """
    for attempt in range(trial.restarted + 1, trial.attempt + 1):
        began = begins.get((trial.number, attempt))
        if began is not None and sum(position < began for position in trial.positions) == index:
            yield attempt


def mistakes_of(data: bytes, schedule: dict[str, Any], diary: Path, struck: list[str]) -> list[str]:
    """Return what is wrong with the journal of a search that has ended."""
    try:
        trials, state = read_history(data, schedule["way"], read_diary(diary))
    except (ValueError, KeyError) as error:
        return [f"the journal cannot be read: {error!r}"]
    found = [] if state == "completed" else [f"the experiment is {state}"]
    wanted = 1 if schedule["world"] == "servers" else schedule["num_trials"]
    if len(trials) != wanted and schedule["optimizer"] != "pbt":
        found.append(f"{len(trials)} trials instead of {wanted}")
    for trial in trials.values():
        found += [f"trial {trial.number} {mistake}" for mistake in [*trial.mistakes, *_end_of(trial, schedule, struck)]]
    return found


def _end_of(trial: TrialHistory, schedule: dict[str, Any], struck: list[str]) -> Iterator[str]:
    if len(trial.ends) != 1:
        yield f"ended {len(trial.ends)} times"
        return
    [end] = trial.ends
    if end["state"] == "completed":
        value = result(schedule["way"], trial.params["x"], trial.params["y"])
        if end.get("value") != value:
            yield f"scored {end.get('value')} instead of {value}"
        if not trial.is_complete:
            yield f"is completed with {trial.count} of its {len(trial.script)} reports"
    elif end["state"] == "stopped":
        if trial.verdict not in ("stop", "pause"):  # one that was paused is given up when nothing better is left
            yield f"was given up although nothing had decided so: {end.get('error')}"
    elif trial.losses < MAX_ATTEMPTS and not any("runner" in kind for kind in struck):
        yield f"failed after {trial.losses} lost attempts: {end.get('error')}"


def disagreements(data: bytes, schedule: dict[str, Any], diary: Path, seen: dict[str, Any]) -> Iterator[str]:
    """Compare what the public names said about a search with its journal."""
    trials, _ = read_history(data, schedule["way"], read_diary(diary))
    if [one["number"] for one in seen["trials"]] != list(trials):
        yield f"the result has trials {[one['number'] for one in seen['trials']]} instead of {list(trials)}"
        return
    for one in seen["trials"]:
        trial = trials[one["number"]]
        curves: dict[str, list[list[float]]] = defaultdict(list)
        for step, metrics in trial.reports:
            for name, value in metrics.items():
                curves[name].append([step or 0, value])
        if one["curves"] != curves:
            yield f"the curves of trial {trial.number} are {one['curves']} instead of {dict(curves)}"[:1000]
        if (one["state"], one["value"]) != (trial.ends[-1]["state"], trial.ends[-1].get("value")):
            yield f"the result says {one['state']} {one['value']} of trial {trial.number}"
    completed = [trial for trial in trials.values() if trial.ends[-1]["state"] == "completed"]
    best = max(completed, key=lambda trial: (trial.ends[-1]["value"], -trial.number), default=None)
    found = None if best is None else {"number": best.number, "value": best.ends[-1]["value"]}
    if seen["best"] != found:
        yield f"the best is {seen['best']} instead of {found}"
    row = [seen["id"], "completed", len(trials), None if found is None else found["value"]]
    if [one for one in seen["listed"] if one[0] == seen["id"]] != [row]:
        yield f"the index lists {seen['listed']} instead of {row}"


def begun_at(data: bytes) -> float:
    """Return when an experiment was begun, 0 if nothing is written down of it."""
    return next((float(fact["at"]) for fact in facts_of(data)), 0.0)


def has_results(data: bytes) -> bool:
    """Tell whether a trial of an experiment had reported anything, or come to its end."""
    return any(fact["fact"] in ("reported", "trial-ended") for fact in facts_of(data))


def joined(segments: dict[tuple[int, int], bytes]) -> bytes:
    """Put a journal together from pieces, which are named by their first byte and the one after their last."""
    data = b""
    for (start, _), piece in sorted(segments.items(), key=lambda item: (item[0][0], -item[0][1])):
        if start <= len(data) < start + len(piece):
            data += piece[len(data) - start :]
    return data


def read_diary(path: Path) -> dict[tuple[int, int], int]:
    """Return where each attempt began, by trial and attempt."""
    lines = path.read_text().splitlines() if path.exists() else []
    entries = map(json.loads, lines)
    return {(entry["trial"], entry["attempt"]): entry["begin"] for entry in entries}

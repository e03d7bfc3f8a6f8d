"""The graph of a run: which step needed which, as text, for Graphviz and for Mermaid."""

from __future__ import annotations

from typing import Final

from cargobike.pipelines.facts import StepState
from cargobike.pipelines.record import RunRecord, StepRecord

_MARKS: Final = {
    StepState.WAITING: "·",
    StepState.RUNNING: "▶",
    StepState.COMPLETED: "✓",
    StepState.CACHED: "=",
    StepState.FAILED: "✗",
    StepState.REFUSED: "◇",
    StepState.SKIPPED: "-",
    StepState.INTERRUPTED: "!",
}
_COLOURS: Final = {
    StepState.WAITING: "#e5e7eb",
    StepState.RUNNING: "#bfdbfe",
    StepState.COMPLETED: "#bbf7d0",
    StepState.CACHED: "#d9f99d",
    StepState.FAILED: "#fecaca",
    StepState.REFUSED: "#fef3c7",
    StepState.SKIPPED: "#f3f4f6",
    StepState.INTERRUPTED: "#fde68a",
}


def as_text(record: RunRecord) -> str:
    """Draw the graph as lines: each step with what it needed."""
    width = len(str(max(record.steps, default=0)))
    lines = []
    for step in _steps(record):
        needs = f"  ← {', '.join(map(str, step.after))}" if step.after else ""
        lines.append(f"{_MARKS[step.state]} {step.number:{width}d} {step.name}{needs}")
    return "\n".join(lines)


def as_dot(record: RunRecord) -> str:
    """Write the graph for Graphviz."""
    lines = [f"digraph {_quoted(record.pipeline)} {{", "  rankdir=LR; node [shape=box, style=filled];"]
    for step in _steps(record):
        label = _quoted(f"{step.number} {step.name}")
        lines.append(f'  s{step.number} [label={label}, fillcolor="{_COLOURS[step.state]}"];')
    lines += [f"  s{one} -> s{step.number};" for step in _steps(record) for one in step.after]
    return "\n".join([*lines, "}"])


def as_mermaid(record: RunRecord) -> str:
    """Write the graph for Mermaid."""
    lines = ["flowchart LR"]
    for step in _steps(record):
        text = f"{step.number} {step.name}".replace('"', "'")
        lines.append(f'  s{step.number}["{text}"]:::{step.state.value}')
    lines += [f"  s{one} --> s{step.number}" for step in _steps(record) for one in step.after]
    used = {step.state for step in _steps(record)}
    lines += [f"  classDef {state.value} fill:{_COLOURS[state]}" for state in StepState if state in used]
    return "\n".join(lines)


def _steps(record: RunRecord) -> list[StepRecord]:
    return [record.steps[number] for number in sorted(record.steps)]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
